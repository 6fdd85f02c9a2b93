"""One word that all ranks of a job act on, written once into the store that the job has anyway.

Every process group has a key-value store that its ranks met through. The first word under a key
stands, and whoever asks reads it back: so the ranks stay together even when the server, which
says the word first, is lost while some have heard it and others have not.

The store is the job's, and may fail or hang with the rank that hosts it. It is asked on a thread
of its own, one question at a time, and nobody waits longer for an answer than is said.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Literal, cast

from vramscope.fork_gate import no_fork
from vramscope.guard import Attempt

Word = Literal["run", "drop"]

ASK_S: Final = 2.0
"""How long an answer of the store is waited for."""
LOOK_S: Final = 0.5
"""The same for a look, after which there is another one."""

_MODULE: Final = "torch.distributed.distributed_c10d"
_THREAD_NAME: Final = "vramscope-agreement"
_WORDS: Final = {b"run": "run", b"drop": "drop"}

Ask = Callable[[Any], object]


class Agreement:
    """Writes and reads such words. Never raises, and never waits long.

    Args:
        store: finds the store of the job; ``None`` where there is none.
        ask_s: longest wait for an answer.
    """

    def __init__(self, store: Callable[[], Any] | None = None, ask_s: float = ASK_S) -> None:
        self._store = store or job_store
        self._ask_s = ask_s
        self._is_free = threading.Lock()

    def settle(self, key: str, word: Word, limit_s: float | None = None) -> Word | None:
        """Propose a word.

        Returns:
            The word that stands, which may be that of another rank; ``None`` without a store.
        """

        def compare_set(store: Any) -> object:
            # A key that is not there is set if the empty word is expected.
            return store.compare_set(key, "", word)

        return _word(self._ask(compare_set, self._ask_s if limit_s is None else limit_s))

    def look(self, key: str) -> Word | None:
        """The word that stands; ``None`` as long as nobody has proposed one."""

        def read(store: Any) -> object:
            # Asked for without that, a key that is not there is waited for.
            return store.get(key) if store.check([key]) else None

        return _word(self._ask(read, min(LOOK_S, self._ask_s)))

    def tell(self, key: str, word: Word) -> None:
        """Propose a word without waiting for what stands."""
        self.settle(key, word, 0.0)

    def _ask(self, ask: Ask, limit_s: float) -> object:
        """What the store answers; ``None`` if it does not within the time."""
        # An earlier question may hang: then there is no second one that could hang as well.
        if not self._is_free.acquire(timeout=limit_s):
            return None
        answers: list[object] = []
        answered = threading.Event()

        def run() -> None:
            try:
                with Attempt():
                    store = self._store()
                    if store is not None:
                        # Its client has a lock of its own: a child forked now would inherit it.
                        with no_fork():
                            answers.append(ask(store))
            finally:
                self._is_free.release()
                answered.set()

        is_started = False
        try:
            with Attempt():  # no thread to be had
                threading.Thread(target=run, name=_THREAD_NAME, daemon=True).start()
                is_started = True
        finally:
            if not is_started:
                self._is_free.release()
        if is_started:
            answered.wait(limit_s)
        return answers[0] if answers else None


def job_store() -> Any:
    """The store of the job's default process group; ``None`` where there is none."""
    distributed: Any = sys.modules.get(_MODULE)
    if distributed is None or not distributed.is_initialized():
        return None
    return distributed._get_default_store()


def _word(answer: object) -> Word | None:
    return cast("Word | None", _WORDS.get(answer)) if isinstance(answer, bytes) else None
