"""The pickle itself: which bytes, which opcodes, and the machine that executes them."""
