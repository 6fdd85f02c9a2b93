"""Who a process is: run, rank and place, from its launcher, from PyTorch or from the kernel."""
