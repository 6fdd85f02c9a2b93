"""The connection to the server, on threads of its own."""
