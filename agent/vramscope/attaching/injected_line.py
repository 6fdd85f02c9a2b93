"""The few lines that are put into the process; everything else they find in the request's folder.

They run on its main thread between two bytecodes, in the namespace of ``__main__``: they bind no
name there, let nothing out, and only start a thread.
"""

from __future__ import annotations

import os

# Whatever goes wrong in here is kept silent: it would be raised in the middle of the code of the
# job, and there is nobody to tell. The client notices that no answer comes, and says so.
#
# Names are reached through ``__import__``, because the job may have functions of its own called
# ``exec`` or ``open`` in ``__main__``.
_LINE = """try:__import__('builtins').exec({code!a},{{}})
except:pass
"""

# ``threading`` first: Python takes the thread that imports it for the main one. A job that has
# torch has it already.
#
# What is armed may run long after the client has given up and removed the folder, in /tmp, where
# anybody can make another one of that name: only a folder that is this user's alone is read, by its
# descriptor. And a fork inherits what is armed: only the process that was meant takes it.
#
# Where no thread can be started, the answer that says so is written from here. And what a signal
# handler of the job raises in these microseconds (Ctrl-C, a time limit) is the job's: it is raised
# again, as the very object that it is, where the job goes on. By another thread, because it would
# come at once, and be caught here.
_CODE = """import threading,_thread
def g(e=0):
 try:
  import os
  f={folder!a};d=os.open(f,os.O_DIRECTORY|os.O_NOFOLLOW|os.O_CLOEXEC)
  try:
   s=os.fstat(d);n={{'__name__':'vramscope_arrive'}}
   if os.getpid()=={pid} and s.st_uid==os.geteuid() and not s.st_mode&63:
    o=lambda p,m:os.open(p,m,dir_fd=d)
    with open('arrive.py',encoding='utf-8',opener=o) as s:exec(s.read(),n)
    n['arrive'](f,d,e)
  finally:os.close(d)
 except Exception:pass
try:
 try:_thread.start_new_thread(g,())
 except RuntimeError:g(1)
except BaseException as x:
 import ctypes as c
 y=type('',(type(x),),{{'__new__':lambda*_,x=x:x}})
 t=c.c_ulong(_thread.get_ident()),c.py_object(y)
 _thread.start_new_thread(c.pythonapi.PyThreadState_SetAsyncExc,t)
"""


def injected_line(folder: str, pid: int) -> bytes:
    """Source that has the process look into ``folder``; nothing happens if that is gone.

    Args:
        folder: of the request, as the process sees it.
        pid: of the process, as it sees it itself.
    """
    code = _CODE.format(folder=os.fspath(folder), pid=pid)
    return _LINE.format(code=code).encode("ascii")
