"""The clock that reads every collector at a steady rate, within its cost budget."""
