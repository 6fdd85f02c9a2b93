"""In a process that was reached from outside: attach or detach it, and answer.

Runs on a thread of its own. It never touches torch or CUDA; what it does is what
``vramscope.attach()`` and ``vramscope.detach()`` do in code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope import current
from vramscope._version import __version__
from vramscope.config import Config, ConfigError, load_config
from vramscope.guard import Attempt, summary
from vramscope.session import Session, start_session

URL_WAIT_S: Final = 10.0
"""For a server to take the stream, before the answer goes without an address."""
_POLL_S: Final = 0.1

Reply = Callable[[dict[str, Any]], None]

_NOT_ATTACHED: Final = "it was not attached"
_UNDELIVERED: Final = "no server acknowledged the last of what was measured in time"

_finders: list[object] = []
"""What finds vramscope in this process, where its own search path does not."""


def found_by(finder: object | None) -> None:
    """Remember who found this package, to let go of it with the agent."""
    if finder is not None:
        _finders.append(finder)


def act(request: Mapping[str, Any], reply: Reply) -> None:
    """Do what is asked for. A failure becomes the answer.

    Args:
        request: ``action`` is "attach" or "detach"; ``options`` are those of ``attach()``.
        reply: takes the answer; a later one replaces an earlier one.
    """
    with Attempt() as attempt:
        if request.get("action") == "detach":
            _detach(reply)
        else:
            _attach(dict(request.get("options") or {}), reply)
    if attempt.error is not None:
        reply({"ok": False, "version": __version__, "message": _reason(attempt.error)})


def _attach(options: dict[str, Any], reply: Reply) -> None:
    opened: list[Session] = []

    def open_session() -> Session:
        opened.append(start_session(_config(options), is_late=True))
        return opened[0]

    session = current.session_or(open_session)
    answer = {
        "ok": True,
        "already": not opened,
        "run_id": session.run_id,
        "run_name": session.run_name,
        "rank": session.rank,
        "version": __version__,
    }
    url = session.page_url
    if url is None:
        reply({**answer, "final": False})
        url = _address(session)
    if url is None:
        answer["message"] = session.last_notice or "no server has answered yet; it keeps trying"
    # The run is asked for again: a launcher may have said meanwhile which one it is.
    answer.update(run_id=session.run_id, run_name=session.run_name, rank=session.rank)
    reply({**answer, "url": url or ""})


def _config(options: dict[str, Any]) -> Config:
    config = load_config(**options)
    if config.emulate:
        raise ConfigError(
            "emulation has to be there from the start: use vramscope run --emulate, "
            "or unset VRAMSCOPE_EMULATE in the job"
        )
    return config


def _address(session: Session) -> str | None:
    """Address of the run's page, once a server has taken the stream."""
    deadline_s = time.monotonic() + URL_WAIT_S
    # In short turns: detached meanwhile, nothing of us may stay. And once a person has been told
    # why there is no server, the answer can say so too.
    while session.is_active and not session.last_notice and time.monotonic() < deadline_s:
        if session.wait_for_server(_POLL_S) is not None:
            break
    return session.page_url


def _detach(reply: Reply) -> None:
    session = current.session()
    if session is None or not session.is_active:
        reply({"ok": True, "already": True, "version": __version__, "message": _NOT_ATTACHED})
        return
    answer = {"run_id": session.run_id, "run_name": session.run_name, "rank": session.rank}
    is_delivered = session.detach()
    while _finders:
        finder = _finders.pop()
        # Another thread may be going through the list: it keeps the old one.
        sys.meta_path = [each for each in sys.meta_path if each is not finder]
    message = "everything measured was delivered" if is_delivered else _UNDELIVERED
    reply({**answer, "ok": True, "version": __version__, "message": message})


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ConfigError) else summary(error)
