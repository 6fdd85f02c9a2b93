"""What was measured of a run, as the judges of ``diagnosis`` read it: plain columns and reports."""
