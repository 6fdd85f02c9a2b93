"""A device that is not there: the tensors of a CPU script, laid out as a GPU would hold them.

Only ``--emulate`` imports this package; it needs torch, which the agent does not.
"""

from vramscope.emulation.emulation import Emulation, start_emulation

__all__ = ["Emulation", "start_emulation"]
