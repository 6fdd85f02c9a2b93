"""Reaching into a running Python process, without a debugger and without harm.

Linux on x86-64 and aarch64, Python 3.10 and later. Nothing here knows of the agent.
"""

from vramscope.injection.errors import InjectionError, NotInjectable
from vramscope.injection.injected import Injected, inject
from vramscope.injection.interpreter import Interpreter, find_interpreter
from vramscope.injection.native_wait import native_wait
from vramscope.injection.traceback_dump import dump_main_thread

__all__ = [
    "Injected",
    "InjectionError",
    "Interpreter",
    "NotInjectable",
    "dump_main_thread",
    "find_interpreter",
    "inject",
    "native_wait",
]
