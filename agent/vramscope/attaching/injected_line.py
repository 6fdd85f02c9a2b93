"""The few lines that are put into the process; everything else they find in the request's folder.

They run on its main thread between two bytecodes, in the namespace of ``__main__``: they bind no
name there, let nothing out, and only start a thread.
"""

from __future__ import annotations

import os

# ``threading`` first: Python takes the thread that imports it for the main one. A job that has
# torch has it already. Names are reached through ``__import__``, because the job may have
# functions of its own called ``exec`` or ``open`` in ``__main__``.
_LINE = """try:
 __import__('threading')
 __import__('_thread').start_new_thread(__import__('builtins').exec,({code!a},{{}}))
except:pass
"""

# What is armed may run long after the client has given up and removed the folder, in /tmp, where
# anybody can make another one of that name: only a folder that is this user's alone is read, by its
# descriptor. And a fork inherits what is armed: only the process that was meant takes it.
_ON_THE_THREAD = """try:
 import os
 f={folder!a};d=os.open(f,os.O_DIRECTORY|os.O_NOFOLLOW|os.O_CLOEXEC)
 try:
  s=os.fstat(d);n={{'__name__':'vramscope_arrive'}}
  if os.getpid()=={pid} and s.st_uid==os.geteuid() and not s.st_mode&0o77:
   o=lambda p,m:os.open(p,m,dir_fd=d)
   with open('arrive.py',encoding='utf-8',opener=o) as s:exec(s.read(),n)
   n['arrive'](f,d)
 finally:os.close(d)
except:pass
"""


def injected_line(folder: str, pid: int) -> bytes:
    """Source that has the process look into ``folder``; nothing happens if that is gone.

    Args:
        folder: of the request, as the process sees it.
        pid: of the process, as it sees it itself.
    """
    code = _ON_THE_THREAD.format(folder=os.fspath(folder), pid=pid)
    return _LINE.format(code=code).encode("ascii")
