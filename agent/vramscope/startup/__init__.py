"""What a Python process does about vramscope as it starts, when its environment asks for it."""

from vramscope.startup.arming import arm

__all__ = ["arm"]
