"""Tables: the segments, blocks, trace entries and frames of a snapshot as columns."""
