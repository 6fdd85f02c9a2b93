"""Windows in which PyTorch records the allocator's history, and snapshots on their way out."""
