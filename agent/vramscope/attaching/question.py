"""Asked of the interpreter of the process, as ``python -c``: could it import vramscope?

Prints one line of JSON. Standard library only, and nothing of the job is imported.
"""

from __future__ import annotations

import sys

_NEEDED = (
    "vramscope",
    "vramscope_protocol",
    "vramscope_analysis",
    "msgspec",
    "websockets",
    "pynvml",
)


def _folders(names: tuple[str, ...]) -> list[str]:
    import importlib.util
    import os

    found: list[str] = []
    for name in names:
        spec = importlib.util.find_spec(name)
        origin = None if spec is None else spec.origin
        if spec is None or origin is None:
            continue
        is_package = spec.submodule_search_locations is not None
        folder = os.path.dirname(os.path.dirname(origin) if is_package else origin)
        if folder not in found:
            found.append(folder)
    return found


def main() -> None:
    """Try the import, and say what came of it."""
    # Of ``-c``: the working folder, from which the job itself does not import either.
    sys.path[:] = [entry for entry in sys.path if entry]
    import importlib.util
    import json

    answer: dict[str, object] = {
        "executable": sys.executable,
        "python": list(sys.version_info[:2]),
        "has_pip": importlib.util.find_spec("pip") is not None,
    }
    try:
        import vramscope
        import vramscope.arrival

        answer["version"] = vramscope.__version__
        answer["folders"] = _folders(_NEEDED)
        assert vramscope.arrival
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer["error"] = f"{type(error).__name__}: {error}"
        answer["is_missing"] = (
            isinstance(error, ModuleNotFoundError) and getattr(error, "name", "") == "vramscope"
        )
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
