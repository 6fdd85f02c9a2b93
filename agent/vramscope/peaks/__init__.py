"""The highest values of the allocator's counters: of each step, and as the job sees them."""
