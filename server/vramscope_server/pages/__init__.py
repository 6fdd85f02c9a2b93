"""The page and its files, and the door before it."""
