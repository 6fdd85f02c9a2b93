"""``%vramscope``: attach this kernel, and show the live page of its run below the cell."""

from __future__ import annotations

import argparse
import os
import shlex
import socket
from collections.abc import Mapping
from typing import Any, Final, Protocol

import vramscope
from vramscope import current
from vramscope.cli.agent_options import EPILOG, add_agent_options
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.guard import guarded
from vramscope.notebook.frame import frame_html, open_frame
from vramscope.notebook.notebook_name import notebook_name
from vramscope.notices import is_stderr_saved, write_line
from vramscope.session import Session
from vramscope.transport.address import AddressError, parse_address
from vramscope.transport.transport import Target

SERVER_WAIT_S: Final = 20.0
_HEIGHTS_PX: Final = range(200, 4001)


class Publisher(Protocol):
    """How a shell shows something in more than one form."""

    def publish(self, data: dict[str, str], metadata: dict[str, Any]) -> object:
        """Show one thing, by media type."""
        ...


class Shell(Protocol):
    """What is used of IPython's shell."""

    @property
    def display_pub(self) -> Publisher:
        """Where it shows things."""
        ...

    @property
    def user_ns(self) -> Mapping[str, object]:
        """What is defined in the notebook."""
        ...


class Magic:
    """The magic of one shell.

    Args:
        shell: where it shows things.
        wait_s: how long a cell waits for the server, which may have to be started.
    """

    def __init__(self, shell: Shell, wait_s: float = SERVER_WAIT_S) -> None:
        self._shell = shell
        self._wait_s = wait_s
        self._attached_with: dict[str, Any] | None = None

    def run(self, line: str) -> None:
        """Do what one line asks for. Nothing but Ctrl-C and ``SystemExit`` leaves this."""
        with guarded("notebook"):
            try:
                options = _parse(line)
                if options is None:
                    return
                if options.detach:
                    _detach()
                else:
                    self._attach_and_show(options)
            except Problem as problem:
                write_line(str(problem))

    def _attach_and_show(self, options: argparse.Namespace) -> None:
        session = self._attach(_agent_options(options))
        if not session.is_active:
            return  # why has been said
        target = session.wait_for_server(self._wait_s)
        if target is None:
            raise Problem(
                f"run {session.run_name} is watched, but no server has answered within "
                f"{self._wait_s:g} s; the agent goes on trying: run %vramscope again later"
            )
        if is_stderr_saved():
            self._show(session, target, options)
        else:
            # A terminal shows no frames; what it shows is not saved, so the address may be whole.
            self._publish(session, session.page_url or target.address.http_url)

    def _attach(self, options: dict[str, Any]) -> Session:
        before = current.session()
        was_attached = before is not None and before.is_active
        wished = {name: value for name, value in options.items() if value is not None}
        if "run" not in wished and not os.environ.get("VRAMSCOPE_RUN"):
            options = {**options, "run": notebook_name(os.environ, self._shell.user_ns)}
        session = vramscope.attach(**options)
        if not was_attached:
            self._attached_with = wished
        elif wished and wished != self._attached_with:
            write_line(
                f"already attached as run {session.run_name}, with other options; for new ones "
                "run %vramscope --detach first"
            )
        return session

    def _show(self, session: Session, target: Target, options: argparse.Namespace) -> None:
        address = target.address
        base_url = options.page_url or address.http_url
        page_url = f"{base_url}/runs/{session.run_id}"
        scopes = ["view"] if options.view_only else ["view", "control"]
        try:
            frame = open_frame(target, session.run_id, scopes)
        except Problem as problem:
            raise Problem(f"no page below this cell: {problem}; it is at {page_url}") from None
        self._publish(
            session,
            page_url,
            frame_html(
                frame,
                address,
                base_url,
                name=session.run_name,
                host=socket.gethostname(),
                height_px=options.height,
            ),
        )

    def _publish(self, session: Session, page_url: str, html: str | None = None) -> None:
        data = {"text/plain": f"vramscope: run {session.run_name} at {page_url}"}
        if html is not None:
            data["text/html"] = html
        self._shell.display_pub.publish(data, {})


def _detach() -> None:
    session = current.session()
    if session is None or not session.is_active:
        raise Problem("this kernel is not attached")
    session.detach()
    print(f"vramscope: detached; run {session.run_name} stays on the page as ended")


def _parse(line: str) -> argparse.Namespace | None:
    """Options of a line; ``None`` when it asked for help, which has been shown.

    Raises:
        Problem: an option is unknown or cannot be used.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Problem(f"expected options, got {line!r}: {error}") from None
    try:
        return _parser().parse_args(words)
    except SystemExit:
        return None


def _agent_options(options: argparse.Namespace) -> dict[str, Any]:
    own = {"height", "page_url", "view_only", "detach"}
    return {name: value for name, value in vars(options).items() if name not in own}


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="%vramscope",
        usage="%%vramscope [options]",
        description="Attach this kernel and show the live page of its run below the cell.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--height", metavar="PX", type=_height_px, default=720, help="height of the frame (720)")
    add(
        "--page-url",
        metavar="URL",
        type=_page_url,
        help="the server as your browser reaches it, such as a forwarded port",
    )
    add("--view-only", action="store_true", help="a page without the right to send commands")
    add("--detach", action="store_true", help="stop watching this kernel")
    add_agent_options(parser)
    return parser


def _height_px(text: str) -> int:
    if not text.isdecimal() or int(text) not in _HEIGHTS_PX:
        low, high = _HEIGHTS_PX[0], _HEIGHTS_PX[-1]
        raise argparse.ArgumentTypeError(f"expected {low} to {high} pixels, got {text!r}")
    return int(text)


def _page_url(text: str) -> str:
    try:
        return parse_address(text).http_url
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
