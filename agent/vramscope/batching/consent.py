"""All ranks show each other what they would change, before any of them does.

They stand at the same place of the same step. What one of them refuses, or sees otherwise, is done
by none: a rank that draws more batches than the others would wait for them for good.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

from vramscope.commands.agreement import Agreement

WAIT_S: Final = 10.0
"""So long the other ranks are waited for: far below the time after which NCCL gives up."""
_LOOK_EVERY_S: Final = 0.02

Shown = dict[str, Any]
"""Plain data; ``refusal`` is the reason of a rank that would change nothing, or empty."""


class Consent(Agreement):
    """Exchanges plans over the store of the job."""

    def reason_against(self, key: str, shown: Shown, wait_s: float = WAIT_S) -> str | None:
        """Why the ranks may not do what this one shows; ``None`` if all do the same.

        Args:
            key: of this change, the same on all ranks.
            shown: by this rank.
            wait_s: for the others.
        """
        answers = self.answers(key, shown, wait_s)
        if answers is None:
            _, ranks = _place()
            return f"not all {ranks} ranks have said within {wait_s:g} s what they would change"
        return _difference(answers)

    def answers(self, key: str, shown: Shown, wait_s: float = WAIT_S) -> list[Shown] | None:
        """What each rank shows under a key; ``None``, on all of them, if one does not in time.

        Args:
            key: the same on all ranks, and used once.
            shown: by this rank.
            wait_s: for the others.
        """
        rank, ranks = _place()
        keys = [f"{key}/{each}" for each in range(ranks)]
        text = json.dumps(shown)
        self._ask(lambda store: store.set(keys[rank], text), wait_s)
        answers = self._wait_for(keys, time.monotonic() + wait_s)
        # One word for all, or one would give up at the moment when the last one has answered.
        word = self.settle(f"{key}/word", "drop" if answers is None else "run")
        if word == "run" and answers is None:
            answers = self._wait_for(keys, time.monotonic() + wait_s)
        return answers if word == "run" else None

    def show(self, key: str, shown: Shown) -> None:
        """Show something without waiting for the others."""
        rank, _ = _place()
        text = json.dumps(shown)
        self._ask(lambda store: store.set(f"{key}/{rank}", text), 0.0)

    def _wait_for(self, keys: list[str], deadline_s: float) -> list[Shown] | None:
        def read(store: Any) -> object:
            return [store.get(key) for key in keys] if store.check(keys) else None

        while True:
            answer: Any = self._ask(read, max(0.1, deadline_s - time.monotonic()))
            if answer is not None:
                return [json.loads(each) for each in answer]
            if time.monotonic() >= deadline_s:
                return None
            time.sleep(_LOOK_EVERY_S)


def _place() -> tuple[int, int]:
    """Number of this rank, and how many there are."""
    distributed: Any = sys.modules["torch.distributed"]
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _difference(answers: list[Shown]) -> str | None:
    for rank, shown in enumerate(answers):
        if shown["refusal"]:
            return f"rank {rank}: {shown['refusal']}"
    for rank, shown in enumerate(answers):
        for name, value in shown.items():
            if value != answers[0].get(name):
                return f"ranks differ in {name}: {answers[0].get(name)} on 0, {value} on {rank}"
    return None
