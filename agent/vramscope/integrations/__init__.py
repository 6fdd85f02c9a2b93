"""Callbacks that tell what only a training framework knows: epoch, loss, batch size, phase.

None is needed: without them the optimizer hook counts steps and phases are recognised. Each module
imports its framework, so import the one that you use.
"""
