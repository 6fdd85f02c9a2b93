"""The agent's options, from arguments and ``VRAMSCOPE_*`` variables, validated once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from vramscope.history.rule import HistoryRule, parse_rule
from vramscope.transport.address import AddressError, ServerAddress, parse_address
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.integers import MAX_INT64
from vramscope_protocol.user_commands import PREFIX

Allow = Literal["observe", "control"]

_USER: Final = re.compile(re.escape(PREFIX) + r"[A-Za-z_][A-Za-z0-9_.-]*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY_UNITS: Final = {"KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40}
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off", ""})


class ConfigError(ValueError):
    """An option cannot be used; the message is one line: expected, got, what to do."""


class Config(Struct, frozen=True):
    """Every option of the agent. See ``docs/configuration.md`` for what each is for."""

    address: ServerAddress | None = None
    token: str | None = None
    run: str | None = None
    launch_id: str | None = None
    rate_hz: float = 10.0
    cost_budget: float = 0.005
    """CPU time that sampling may take, as a fraction of one core."""
    peaks: bool = True
    """Whether the exact peak of each step is taken, by resetting the counters behind the job."""
    parts_budget: float = 0.0005
    """Time that splitting steps into parts may add, as a fraction of the step time; 0 is never."""
    fields: tuple[str, ...] | None = None
    """Series to stream; ``None`` is the documented default set."""
    allow: Allow = "control"
    observes_by_default: bool = False
    """Whether ``allow`` is "observe" only because the server is on another machine."""
    is_allow_given: bool = False
    """Whether somebody has said what is allowed: then it holds wherever the server is."""
    allow_commands: frozenset[str] | None = None
    """Names of the commands that may run; ``None`` is all that ``allow`` permits."""
    outbox_bytes: int = 16 << 20
    spool_bytes: int = 256 << 20
    """Bound of the disk spool; 0 is no spool."""
    spool_dir: str = ""
    snapshot_bytes: int = 1 << 30
    """Bound of the disk that snapshots take until they are delivered."""
    explain_growth: bool = True
    """Whether what grows may be looked at, which records stacks for some steps."""
    history_rule: HistoryRule | None = None
    """When to record the history without being asked; ``None`` is never."""
    oom_reports: bool = True
    """Whether it is written down what is known when memory runs out."""
    emulate: bool = False
    capacity_bytes: int = 8 << 30
    """Memory of the emulated device."""
    exit_timeout_s: float = 1.0
    local_server: bool = True
    """Whether a server may be started beside the job when none is given and none is running."""


def load_config(environ: Mapping[str, str] | None = None, **arguments: Any) -> Config:
    """Build the options: an argument that is not ``None`` wins over its variable.

    Args:
        environ: variables to read; the process's own by default.
        arguments: options by the name of their ``VRAMSCOPE_*`` variable in lower case.

    Raises:
        ConfigError: an option is unknown or cannot be used.
    """
    variables = os.environ if environ is None else environ
    unknown = arguments.keys() - _READERS.keys()
    if unknown:
        raise ConfigError(
            f"no option named {sorted(unknown)[0]!r}; expected one of: {', '.join(_READERS)}"
        )
    values: dict[str, Any] = {"spool_dir": _default_spool_dir(variables)}
    for name, (target, read) in _READERS.items():
        given = arguments.get(name)
        source = name
        if given is None:
            source = f"VRAMSCOPE_{name.upper()}"
            given = variables.get(source)
        if given is None or given == "":
            continue
        try:
            values[target] = read(given)
        except (ConfigError, AddressError) as error:
            raise ConfigError(f"{source}: {error}") from None
    allowed = values.pop("allow_raw", None)
    if allowed is not None:
        values["allow"], values["allow_commands"] = allowed
        values["is_allow_given"] = True
    elif (address := values.get("address")) is not None and not address.is_loopback:
        # Whoever may act there is not known here: who starts the job has to want it.
        values["allow"], values["observes_by_default"] = "observe", True
    return Config(**values)


def parse_size(text: object) -> int:
    """Bytes from a number or from text such as ``8GiB``, ``512 MB`` or ``1048576``.

    Raises:
        ConfigError: not a size.
    """
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= MAX_INT64:
        return text
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(f"expected a size such as 8GiB or 512MB, got {text!r}")
    unit = (match[2] or "").upper()
    size_bytes = float(match[1]) * (_BINARY_UNITS.get(unit) or _UNITS[unit])
    if size_bytes > MAX_INT64:
        raise ConfigError(f"expected a size below 8 EiB, got {text!r}")
    return int(size_bytes)


def _read_number(low: float, high: float, what: str) -> Callable[[object], float]:
    def read(given: object) -> float:
        try:
            number = float(given)  # type: ignore[arg-type]  # whatever was given is tried
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not low <= number <= high:
            raise ConfigError(f"expected {what} from {low:g} to {high:g}, got {given!r}")
        return number

    return read


def _read_text(what: str, limit: int) -> Callable[[object], str]:
    def read(given: object) -> str:
        text = str(given).strip()
        if not text or len(text) > limit or not text.isprintable():
            shown = "something else" if what == "a token" else repr(text[:60])
            raise ConfigError(f"expected {what} of 1 to {limit} printable characters, got {shown}")
        return text

    return read


def _read_folder(given: object) -> str:
    try:
        return os.path.abspath(os.path.expanduser(str(given)))
    except OSError as error:  # relative to a working folder that is gone
        raise ConfigError(f"expected a folder, got {given!r}: {error.strerror}") from None


def _read_flag(given: object) -> bool:
    word = str(given).strip().lower()
    if word not in _TRUE | _FALSE:
        raise ConfigError(f"expected 1 or 0, got {given!r}")
    return word in _TRUE


def _read_names(given: object) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else list(_as_iterable(given))
    names = tuple(part.strip() for part in map(str, parts) if part.strip())
    if not names:
        raise ConfigError(f"expected names separated by commas, got {given!r}")
    return names


def _as_iterable(given: object) -> list[object]:
    if isinstance(given, (list, tuple, set, frozenset)):
        return list(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # items are turned into text by the caller
    raise ConfigError(f"expected names separated by commas, got {given!r}")


def _read_allow(given: object) -> tuple[Allow, frozenset[str] | None]:
    names = _read_names(given)
    if names in {("observe",), ("control",)}:
        return ("observe" if names[0] == "observe" else "control"), None
    # What the job declares itself is not known yet.
    unknown = sorted(name for name in names if name not in COMMANDS and not _USER.fullmatch(name))
    if unknown:
        raise ConfigError(
            f"expected observe, control or command names ({', '.join(sorted(COMMANDS))}, "
            f"{PREFIX}NAME), got {unknown[0]!r}"
        )
    return "control", frozenset(names)


def _read_rule(given: object) -> HistoryRule | None:
    try:
        return parse_rule(str(given))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _default_spool_dir(variables: Mapping[str, str]) -> str:
    # Node-local on purpose: a home folder is often a network disk that hangs with the network.
    # Not tempfile.gettempdir(): that writes a file to find out, and raises on a full disk.
    base = variables.get("TMPDIR") or "/tmp"
    return os.path.join(base, f"vramscope-{os.getuid()}-spool")


_READERS: Final[dict[str, tuple[str, Callable[[object], Any]]]] = {
    "url": ("address", lambda given: parse_address(str(given))),
    "token": ("token", _read_text("a token", 512)),
    "run": ("run", _read_text("a run name", 200)),
    "launch_id": ("launch_id", _read_text("a launch id", 200)),
    "rate_hz": ("rate_hz", _read_number(0.1, 100.0, "a rate in Hz")),
    "cost_budget": ("cost_budget", _read_number(0.0001, 1.0, "a fraction of one core")),
    "peaks": ("peaks", _read_flag),
    "parts_budget": ("parts_budget", _read_number(0.0, 1.0, "a fraction of the step time")),
    "fields": ("fields", _read_names),
    "allow": ("allow_raw", _read_allow),
    "outbox_bytes": ("outbox_bytes", parse_size),
    "spool_bytes": ("spool_bytes", parse_size),
    "spool_dir": ("spool_dir", _read_folder),
    "snapshot_bytes": ("snapshot_bytes", parse_size),
    "explain_growth": ("explain_growth", _read_flag),
    "history_rule": ("history_rule", _read_rule),
    "oom_reports": ("oom_reports", _read_flag),
    "emulate": ("emulate", _read_flag),
    "capacity": ("capacity_bytes", parse_size),
    "exit_timeout_s": ("exit_timeout_s", _read_number(0.0, 60.0, "seconds")),
    "local_server": ("local_server", _read_flag),
}
"""Name of the option -> field of :class:`Config` and the reader that validates it."""

OPTIONS: Final = tuple(_READERS)
"""Names of the options; each is also ``VRAMSCOPE_`` and the name in capitals."""
