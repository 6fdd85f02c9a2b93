"""What was there before: the state at any entry of a recording, found by going backwards."""
