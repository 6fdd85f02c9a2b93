"""Ranks of a script by the variables of torchrun, forked from one process: PyTorch is loaded once.

forked_ranks.py RANKS SCRIPT ARGUMENTS
Nobody watches them: what they compute is what others are compared with.
"""

from __future__ import annotations

import importlib
import os
import runpy
import socket
import sys


def main(ranks: int, script: str, arguments: list[str]) -> int:
    """Run the script on every rank; 0 if all went well."""
    importlib.import_module("torch._dynamo")  # the first optimizer of a process loads it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    sys.argv = [script, *arguments]
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            runpy.run_path(script, run_name="__main__")
            return 0
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
