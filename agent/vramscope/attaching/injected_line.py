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

_ON_THE_THREAD = """try:
 f={folder!a}
 n={{'__name__':'vramscope_arrive'}}
 with open(f+'/arrive.py',encoding='utf-8') as s:exec(s.read(),n)
 n['arrive'](f)
except:pass
"""


def injected_line(folder: str) -> bytes:
    """Source that has the process look into ``folder``; nothing happens if that is gone.

    Args:
        folder: of the request, as the process sees it.
    """
    return _LINE.format(code=_ON_THE_THREAD.format(folder=os.fspath(folder))).encode("ascii")
