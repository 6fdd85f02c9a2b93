"""What runs on the machine of this server, for whoever sits at it."""
