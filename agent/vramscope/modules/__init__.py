"""Memory by ``nn.Module``, for a few steps, on request."""
