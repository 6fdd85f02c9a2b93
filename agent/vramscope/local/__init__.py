"""The server of this machine: found through its runtime file, or started."""
