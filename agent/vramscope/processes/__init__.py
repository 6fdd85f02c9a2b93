"""What /proc and the driver tell about the processes of this machine; nothing is stopped for it."""
