"""Runs: the stretches of equal dicts that make up large pickles, decoded all at once."""
