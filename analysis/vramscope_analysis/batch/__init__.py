"""The largest batch that fits, from how the peaks of the job's own steps depend on theirs."""
