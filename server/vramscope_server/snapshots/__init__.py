"""Snapshots of PyTorch's allocator: taken in from agents and persons, kept, and given out."""
