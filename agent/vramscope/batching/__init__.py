"""Changing how many samples a running job takes at a time, in whatever way it takes them."""
