"""What a browser without a session sees: a page that takes a token."""

from __future__ import annotations

import html
import math
from typing import Final

from starlette.responses import HTMLResponse

from vramscope_frontend import STATIC_DIR
from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_server.auth.throttle import RateLimited
from vramscope_server.error_response import STATUS

_BOUNCE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>vramscope</title>"
    '<meta http-equiv=refresh content="0">'
)


def login_page(error: VramscopeError | None, next_path: str) -> HTMLResponse:
    """The login page, with what was wrong with the last token, and where to go after it."""
    template = (STATIC_DIR / "login.html").read_text(encoding="utf-8")
    page = template.replace("{{next}}", html.escape(local_path(next_path), quote=True))
    page = page.replace("{{message}}", html.escape(_explain(error)))
    headers = {"cache-control": "no-store"}
    if isinstance(error, RateLimited):
        headers["retry-after"] = str(math.ceil(error.wait_s))
    status = STATUS[AUTH_FAILED] if error is None else STATUS.get(error.code, 500)
    return HTMLResponse(page, status, headers)


def bounce_page() -> HTMLResponse:
    """A page that loads itself again.

    After a click on a link of another site the browser holds a SameSite=Strict cookie back. Once
    the page is ours, the same address loaded by ourselves carries it.
    """
    return HTMLResponse(_BOUNCE, headers={"cache-control": "no-store"})


def local_path(path: str) -> str:
    """``path`` if it leads to a page of this server, else ``/``: no redirect leaves the origin."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_local and path.isprintable() and "\\" not in path else "/"


def _explain(error: VramscopeError | None) -> str:
    if error is None:
        return ""
    return error.message[:1].upper() + error.message[1:] + "."
