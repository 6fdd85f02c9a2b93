"""Attaching to a process that runs already: asking it whether it can, and telling it to."""
