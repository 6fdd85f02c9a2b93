"""The batch advisor: evidence from the store, replays of recorded windows, probing steps."""
