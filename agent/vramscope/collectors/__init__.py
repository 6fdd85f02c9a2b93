"""What the sampler reads, one module a source."""
