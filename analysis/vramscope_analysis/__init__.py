"""Pure functions over allocator data: no I/O, no clock, no torch."""
