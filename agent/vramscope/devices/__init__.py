"""The devices that a rank can use."""
