"""What ``attach`` returns: the handle of a watched process."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from vramscope import current
from vramscope.agent import Agent
from vramscope.config import Config, ConfigError, load_config
from vramscope.guard import guarded
from vramscope.identity.identity import Identity
from vramscope.identity.inheritance import Inheritance, bequeath, disinherit
from vramscope.identity.secrets import seat_secret
from vramscope.identity.source import IdentitySource
from vramscope.lifecycle import Ending, Lifecycle
from vramscope.notices import write_line
from vramscope.phases.stretches import Source
from vramscope.transport.transport import Target


class Session:
    """A watched process, or the harmless stand-in when it is not watched."""

    def __init__(self, agent: Agent | None = None) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._lifecycle: Lifecycle | None = None
        self._identity = agent.identity if agent is not None else None
        self._has_heirs = False

    @property
    def run_id(self) -> str:
        """Id of the run, the same on all its ranks; empty for a stand-in."""
        identity = self._identity_now()
        return identity.run_id if identity is not None else ""

    @property
    def run_name(self) -> str:
        """What a person calls the run; empty for a stand-in."""
        identity = self._identity_now()
        return identity.run_name if identity is not None else ""

    @property
    def rank(self) -> int:
        """Rank of this process in the run, as far as it is known now."""
        identity = self._identity_now()
        return identity.rank if identity is not None else 0

    @property
    def is_active(self) -> bool:
        """Whether the process is being watched."""
        return self._agent is not None

    def step(self) -> None:
        """Mark the end of one optimizer step, where no optimizer of PyTorch does."""
        agent = self._agent
        if agent is not None:
            with guarded("step"):
                agent.mark_step()

    def framework_step(self) -> None:
        """A framework says that one optimizer step ended; counts only where no hook sees it."""
        agent = self._agent
        if agent is not None:
            with guarded("framework step"):
                agent.mark_framework_step()

    def should_stop(self) -> bool:
        """Whether a person has told training to end. Who asks ends it, and need not be ended."""
        agent = self._agent
        return agent is not None and agent.stop_command.ask()

    def framework_begins(self, name: str) -> None:
        """A framework trains, and ends by itself once :attr:`is_stop_wanted` is true."""
        agent = self._agent
        if agent is not None:
            agent.stop_command.framework_begins(name)

    def framework_ends(self) -> None:
        """It trains no more."""
        agent = self._agent
        if agent is not None:
            agent.stop_command.framework_ends()

    @property
    def is_stop_wanted(self) -> bool:
        """Whether a person has told training to end: a framework that trains asks at each step."""
        agent = self._agent
        return agent is not None and agent.stop_command.framework_asks()

    def begin_phase(self, name: str, source: Source = "user") -> Callable[[], None]:
        """Enter a phase; what is returned leaves it (see :class:`vramscope.phases.phase.Phase`)."""
        agent = self._agent
        return _nothing if agent is None else agent.begin_phase(name, source)

    def log(self, **values: object) -> None:
        """Attach numbers of your own to the current step, such as ``loss=0.3``."""
        agent = self._agent
        if agent is not None:
            with guarded("log"):
                agent.log(values)

    def detach(self) -> bool:
        """Stop watching; what was measured is delivered first, within a deadline.

        Returns:
            Whether everything was delivered.
        """
        return self._end(None)

    @property
    def last_notice(self) -> str:
        """What a person was told last on stderr; empty if nothing."""
        agent = self._agent
        return agent.notices.last if agent is not None else ""

    def wait_for_server(self, timeout_s: float) -> Target | None:
        """The server that has taken this process's stream; ``None`` when there is none by then.

        Args:
            timeout_s: how long to wait for one.
        """
        agent = self._agent
        return agent.wait_for_server(timeout_s) if agent is not None else None

    @property
    def page_url(self) -> str | None:
        """Address of this run's page, once a server is found. That of a local server holds its
        token: it is for a person's terminal, not for what is saved or sent on."""
        agent = self._agent
        return agent.page_url() if agent is not None else None

    def start(self) -> None:
        """Start to watch, and watch for the end of the process."""
        agent = self._agent
        if agent is None:
            return
        self._lifecycle = Lifecycle(self._end, self._forked)
        self._lifecycle.install()
        is_started = False
        try:
            agent.start()
            is_started = True
        finally:
            # No thread to be had, or Ctrl-C: nobody will hold this session, so nothing may stay.
            if not is_started:
                self._end(None)

    def ended(self, ending: Ending) -> None:
        """The launcher knows better than any hook how the script ended."""
        if self._lifecycle is not None:
            self._lifecycle.ending = ending

    def bequeath(self) -> None:
        """Let the ranks that this process starts by itself be watched, in the run that it is in.

        It sets a variable of the environment, which is only safe before the job has threads.
        """
        agent, identity = self._agent, self._identity_now()
        if agent is not None and identity is not None:
            left = Inheritance(agent.config, identity.run_name, identity.key, seat_secret())
            bequeath(left)
            self._has_heirs = True

    def leave_to_child(self, why: str) -> None:
        """Stop watching: the rank that this process seemed to be is one that it started."""
        self._has_heirs = False  # it may start more of them
        self._end(None, why)

    def _identity_now(self) -> Identity | None:
        agent = self._agent
        if agent is not None:
            self._identity = agent.identity
        return self._identity

    def _end(self, ending: Ending | None, why: str = "") -> bool:
        with self._lock:
            agent, self._agent = self._agent, None
        if agent is None:
            return True
        self._identity = agent.identity
        _runs[os.getpid()] = Inheritance(agent.config, self.run_name, self._identity.key)
        if self._has_heirs:
            disinherit()
        lifecycle = self._lifecycle
        if lifecycle is not None:
            lifecycle.remove()
        try:
            with guarded("stop"):
                return agent.stop(ending, why=why)
            return False  # pyright: ignore[reportUnreachable]  # the guard swallows
        finally:
            # Again: a hook of the agent lay over it until the agent had stopped.
            if lifecycle is not None:
                lifecycle.remove()

    def _forked(self) -> None:
        agent, self._agent = self._agent, None
        self._lock = threading.Lock()
        if agent is not None:
            agent.forget_after_fork()


def open_session(script: str | None = None, **options: Any) -> Session:
    """Start to watch this process; says why in one line when that cannot be, and never raises."""
    if _is_importing_for_spawn():
        return Session()
    with guarded("attach"):
        try:
            config = load_config(**options)
        except ConfigError as error:
            write_line(f"not attached: {error}")
            return Session()
        return open_session_with(config, script)
    return Session()


def open_session_with(
    config: Config, script: str | None = None, parent: Inheritance | None = None
) -> Session:
    """Start to watch this process with options that are valid."""
    with guarded("attach"):
        return start_session(config, script, parent)
    return Session()


def start_session(
    config: Config,
    script: str | None = None,
    parent: Inheritance | None = None,
    *,
    is_late: bool = False,
) -> Session:
    """The same for a caller who wants to know why not.

    Args:
        config: options.
        script: script that runs, if the caller knows.
        parent: what the watched process that started this one left to it.
        is_late: whether training may have begun already, unlike on other ranks.

    Raises:
        Exception: of any kind; nothing has stayed behind.
    """

    if parent is not None:
        seat_secret(parent.seat_secret)
    before = _runs.get(os.getpid())
    if before is not None and config.launch_id is None:
        config = replace(config, launch_id=before.config.launch_id)

    def open_in_child() -> None:
        identity = identities.identity
        left = Inheritance(config, identity.run_name, identity.key, seat_secret())
        current.session_or(lambda: open_session_with(config, script, left))

    def superseded(why: str) -> None:
        session.leave_to_child(why)

    identities = IdentitySource(config.run, config.launch_id, script, parent, before, open_in_child)
    agent = Agent(
        config,
        identities,
        on_superseded=superseded,
        is_late=is_late,
    )
    session = Session(agent)
    session.start()
    return session


# The run that a process was in when it was watched last. A forked child is another process.
_runs: dict[int, Inheritance] = {}


def _nothing() -> None:
    """Leaves no phase."""


def _is_importing_for_spawn() -> bool:
    """Whether this is a worker process that is still importing the main script.

    A script that attaches at its top level would otherwise make a rank of every spawned
    DataLoader worker. Processes that attach in their own function are ranks, and are not here.
    """
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))
