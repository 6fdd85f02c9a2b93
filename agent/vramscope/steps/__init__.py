"""Where an optimizer step ends, and the exact row taken there."""
