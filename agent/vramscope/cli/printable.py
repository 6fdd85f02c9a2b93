"""A job's own words, as a terminal may see them."""

from __future__ import annotations


def printable(text: str, keep: str = "\n") -> str:
    """The text with a question mark for whatever could steer a terminal.

    Args:
        text: names of runs, files, threads and tensors, or what a command has answered.
        keep: characters that stay although they are none that is seen.
    """
    return "".join(char if char.isprintable() or char in keep else "?" for char in text)
