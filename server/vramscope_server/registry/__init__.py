"""Which runs and ranks there are, and what state they are in."""
