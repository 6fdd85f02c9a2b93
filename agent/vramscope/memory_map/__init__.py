"""The memory map: looks at the segments, what changed between two, and frames of it."""
