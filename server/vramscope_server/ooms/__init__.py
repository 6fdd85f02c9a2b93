"""Reports of running out of memory: taken in from agents, kept, judged and given out."""
