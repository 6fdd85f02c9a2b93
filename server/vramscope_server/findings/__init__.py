"""What is wrong with a run: found from what its ranks send, kept open until it is over."""
