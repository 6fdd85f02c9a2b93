"""Commands that reach this rank: waiting, running, receipts."""
