"""What is wrong, told from what was measured: one file for each kind of finding."""
