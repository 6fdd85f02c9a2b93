"""The black box: what was known when the job ran out of memory, written down before it unwinds."""
