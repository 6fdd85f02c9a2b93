"""What is not delivered yet: one ordered queue over memory and disk."""
