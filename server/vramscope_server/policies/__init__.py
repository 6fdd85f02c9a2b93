"""Policies: what the server may do by itself, because somebody told it when to. Off by default."""
