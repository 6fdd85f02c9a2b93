"""The shape that docs/architecture.md promises: roots, arrows, file sizes, twin test files."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 400

PACKAGES = {
    "vramscope_protocol": "protocol/vramscope_protocol",
    "vramscope": "agent/vramscope",
    "vramscope_analysis": "analysis/vramscope_analysis",
    "vramscope_server": "server/vramscope_server",
    "vramscope_frontend": "frontend/vramscope_frontend",
}

# Arrows: what each root may import of ours, anywhere in its files.
OURS = {
    "vramscope_protocol": set[str](),
    "vramscope": {"vramscope_protocol"},
    "vramscope_analysis": set[str](),
    "vramscope_server": {"vramscope_protocol", "vramscope_analysis", "vramscope_frontend"},
    "vramscope_frontend": set[str](),
}
# Two arrows more: emulation puts the allocator model into the training process, and commands that
# work on files analyse in their own process (docs/decisions/0009-offline-commands.md).
EMULATION = "agent/vramscope/emulation"
OFFLINE_COMMANDS = {
    "agent/vramscope/cli/diagnose_file.py",
    "agent/vramscope/cli/replay.py",
    "agent/vramscope/cli/replay_answer.py",
    "agent/vramscope/cli/replay_settings.py",
}

# What each root may import of others, beside the standard library.
OTHERS = {
    "vramscope_protocol": {"msgspec"},
    "vramscope": {"msgspec", "websockets", "pynvml", "torch", "numpy"},
    "vramscope_analysis": {"numpy"},
    "vramscope_server": {
        "alembic",
        "fastapi",
        "msgspec",
        "numpy",
        "plotly",
        "pydantic",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "uvloop",
        "zstandard",
    },
    "vramscope_frontend": set[str](),
}

# Each framework is imported by the one file that is for its users.
INTEGRATIONS = {
    "agent/vramscope/integrations/accelerate.py": {"accelerate"},
    "agent/vramscope/integrations/transformers.py": {"transformers"},
}

# Never at import time of the agent: absent in some training environments, slow in all.
NOT_AT_MODULE_LEVEL = {"torch", "numpy", "pynvml", "vramscope_analysis", "vramscope.emulation"}
A_PROGRAM_OF_ITS_OWN = "agent/vramscope/demo/train.py"

# Source files without a test file of the same path, each with the reason.
NO_TWIN: dict[str, str] = {
    "agent/vramscope/_version.py": "one constant; tests/test_package.py compares it",
    "agent/vramscope/__main__.py": "one call; every test that starts a job runs it",
    "agent/vramscope/cli/problem.py": "an exception; every test of a subcommand's refusal sees it",
    "agent/vramscope/devices/device.py": "an interface; its implementations are tested",
    "agent/vramscope/peaks/peak_counters.py": "an interface; its implementations are tested",
    "agent/vramscope/steps/step_columns.py": "an interface; test_step_rows.py implements it",
    "agent/vramscope/transport/limits.py": "numbers; the tests of transport.py set each",
    "analysis/vramscope_analysis/evidence/growth_report.py": "plain data; test_growth_answer.py",
    "analysis/vramscope_analysis/evidence/oom_report.py": "plain data; test_oom_reading.py",
    "server/vramscope_server/commands/counterparts.py": "interfaces; server_commands.py has fakes",
}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / PACKAGES[package]).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree: ast.AST, *, at_import_time: bool = False) -> Iterator[str]:
    """Dotted names of everything imported; on request only of what importing the file imports."""
    for node in ast.iter_child_nodes(tree):
        if at_import_time and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            or is_type_checking(node)
        ):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node, at_import_time=at_import_time)


def roots(names: Iterator[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def lies_in(name: str, module: str) -> bool:
    return f"{name}.".startswith(f"{module}.")


def test_imports_are_found_wherever_they_stand() -> None:
    tree = ast.parse(
        "import a.b\n"
        "if TYPE_CHECKING:\n    import typed\n"
        "def f():\n    from c.d import e\n"
        "class G:\n    import h\n"
    )
    assert set(imports(tree)) == {"a.b", "typed", "c.d.e", "h"}
    assert set(imports(tree, at_import_time=True)) == {"a.b", "h"}


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_follow_the_arrows(package: str) -> None:
    import sys

    wrong = []
    for path in sources(package):
        allowed = {package} | OURS[package] | OTHERS[package] | sys.stdlib_module_names
        if relative(path).startswith(EMULATION) or relative(path) in OFFLINE_COMMANDS:
            allowed = allowed | {"vramscope_analysis"}
        allowed = allowed | INTEGRATIONS.get(relative(path), set())
        found = roots(imports(ast.parse(path.read_text())))
        wrong += [f"{relative(path)} imports {name}" for name in sorted(found - allowed)]
    assert wrong == []


def test_agent_imports_nothing_heavy_at_module_level() -> None:
    wrong = [
        f"{relative(path)} imports {name}"
        for path in sources("vramscope")
        if relative(path) != A_PROGRAM_OF_ITS_OWN and not relative(path).startswith(EMULATION)
        for name in imports(ast.parse(path.read_text()), at_import_time=True)
        if any(lies_in(name, module) for module in NOT_AT_MODULE_LEVEL)
    ]
    assert wrong == []


def test_the_agent_stays_free_of_event_loops() -> None:
    wrong = [
        relative(path)
        for path in sources("vramscope")
        if "asyncio" in roots(imports(ast.parse(path.read_text())))
    ]
    assert wrong == []


def twin(path: Path) -> Path:
    """tests/<root>/<path inside the package>/test_<name>.py"""
    root, _, *folders, _name = path.relative_to(ROOT).parts
    return ROOT.joinpath("tests", root, *folders, f"test_{path.stem.strip('_')}.py")


def has_code(path: Path) -> bool:
    """Whether a file holds more than a docstring and imports."""
    return any(
        not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
        for node in ast.parse(path.read_text()).body
    )


def test_every_source_file_has_its_test_file() -> None:
    without = [
        relative(path)
        for package in PACKAGES
        for path in sources(package)
        if path.name != "__init__.py" and has_code(path) and not twin(path).is_file()
    ]
    assert sorted(set(without) - set(NO_TWIN)) == []
    assert sorted(set(NO_TWIN) - set(without)) == [], "listed, but has a test file or is gone"


def tracked(*suffixes: str) -> list[Path]:
    """Files of the repository: what git tracks, or everything in an unpacked sdist."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name.endswith(suffixes)]


def test_no_file_is_too_long() -> None:
    lengths = {
        relative(path): len(path.read_text().splitlines())
        for path in tracked(".py", ".js", ".css", ".html")
        if path.exists()
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_nothing_names_the_machine_it_was_written_on() -> None:
    here = "/" + "work/"
    texts = tracked(".py", ".js", ".md", ".toml", ".css", ".html", ".json", ".yml", "Makefile")
    scripts = [*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]
    named = [
        relative(path)
        for path in (*texts, *scripts)
        if path.is_file() and "tests/data" not in relative(path) and here in path.read_text()
    ]
    assert named == []
