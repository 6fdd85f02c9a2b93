"""An argument parser whose complaint is one line, like every other error of the command."""

from __future__ import annotations

import argparse
from typing import NoReturn

from vramscope.cli.problem import Problem


class OneLineParser(argparse.ArgumentParser):
    """``argparse`` without the usage in front of each error."""

    def error(self, message: str) -> NoReturn:
        """Complain in one line.

        Raises:
            Problem: always, with exit code 2.
        """
        raise Problem(f"{message} (see {self.prog} --help)")
