"""``python -m vramscope_server [serve] ...`` and ``python -m vramscope_server token ...``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from vramscope_protocol.errors import VramscopeError
from vramscope_server.settings import (
    DEFAULT_PORT,
    DEFAULT_SNAPSHOTS_GIB,
    Settings,
    snapshot_limits,
)
from vramscope_server.version import server_version

BAD_USAGE = 2


class _Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"vramscope: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; a wrong option or a server that cannot start exits with 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}):
        words.insert(0, "serve")
    arguments = _parser().parse_args(words)
    try:
        settings = settings_from(arguments, os.environ)
        # Imported late, so that a wrong option is answered at once.
        if arguments.command == "token":
            from vramscope_server.token_command import run_token_command

            run_token_command(arguments, settings)
        else:
            from vramscope_server.serve import serve

            serve(settings)
    except VramscopeError as error:
        print(f"vramscope: {error.message}", file=sys.stderr)
        raise SystemExit(BAD_USAGE) from None


def settings_from(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    """Settings out of the options and, where an option is missing, out of the environment.

    Raises:
        VramscopeError: ``bad_request``.
    """
    database_url = arguments.database or environ.get("VRAMSCOPE_DATABASE", "")
    if arguments.command == "token":
        return Settings(database_url=database_url)
    token = arguments.token
    if token is None:
        token = environ.get("VRAMSCOPE_TOKEN") or None
    return Settings(
        host=arguments.host,
        port=arguments.port,
        database_url=database_url,
        token=token,
        lost_after_s=arguments.lost_after_s,
        idle_exit_s=arguments.idle_exit_s,
        runtime_file=not arguments.no_runtime_file,
        allow_hosts=tuple(host.lower() for host in arguments.allow_host),
        allow_attach=arguments.allow_attach,
        limits=snapshot_limits(arguments.snapshots_gib),
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="vramscope", description="The vramscope server.")
    parser.add_argument("--version", action="version", version=f"vramscope {server_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="serve|token")
    serve = commands.add_parser("serve", help="run the server")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes any free port")
    serve.add_argument(
        "--database", metavar="URL", help="SQLAlchemy URL (VRAMSCOPE_DATABASE); default: SQLite"
    )
    serve.add_argument("--token", help="fixed token with every scope (VRAMSCOPE_TOKEN)")
    serve.add_argument(
        "--lost-after-s", type=float, default=300.0, help="a rank silent that long is lost"
    )
    serve.add_argument(
        "--idle-exit-s", type=float, default=0.0, help="exit when not needed that long; 0: never"
    )
    serve.add_argument(
        "--no-runtime-file", action="store_true", help="agents of this machine do not find it"
    )
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="further name of a loopback server, for a proxy in front of it (repeatable)",
    )
    serve.add_argument(
        "--allow-attach",
        action="store_true",
        help="the page lists the training processes of this machine; loopback only",
    )
    serve.add_argument(
        "--snapshots-gib",
        type=float,
        default=DEFAULT_SNAPSHOTS_GIB,
        help="what all snapshots may take; those of one run a quarter of it",
    )
    from vramscope_server.token_command import add_token_parser

    add_token_parser(commands.add_parser("token", help="make, list and revoke tokens"))
    return parser


if __name__ == "__main__":
    main()
