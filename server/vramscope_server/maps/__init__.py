"""Memory maps: the present one of each rank, kept while somebody looks, and who looks."""
