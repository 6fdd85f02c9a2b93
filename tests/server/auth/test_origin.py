from __future__ import annotations

import pytest

from vramscope_protocol.errors import FORBIDDEN, ORIGIN_REFUSED, VramscopeError
from vramscope_server.auth.origin import check_host, check_origin, host_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8470", "localhost"),
        ("LOCALHOST", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8470", "::1"),
        ("[::1]", "::1"),
        ("", ""),
    ],
)
def test_host_name(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize("host", ["localhost:8470", "127.0.0.1", "127.8.9.1:80", "[::1]:8470"])
def test_names_of_this_machine_pass(host: str) -> None:
    check_host(host, ())


@pytest.mark.parametrize("host", ["evil.example:8470", "127.0.0.1.evil.example", "192.168.0.7", ""])
def test_a_rebound_name_is_refused(host: str) -> None:
    with pytest.raises(VramscopeError, match="expected a Host of this machine") as refused:
        check_host(host, ())
    assert refused.value.code == FORBIDDEN


def test_a_name_that_was_allowed_passes() -> None:
    check_host("gpu-box.example:443", ("gpu-box.example",))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8470", "127.0.0.1:8470"),
        ("https://gpu-box.example", "gpu-box.example"),
        ("http://LOCALHOST:1", "localhost:1"),
    ],
)
def test_the_own_origin_passes(origin: str, host: str) -> None:
    check_origin(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "127.0.0.1:8470"),
        ("http://127.0.0.1:3000", "127.0.0.1:8470"),
        ("http://127.0.0.1:8470.evil.example", "127.0.0.1:8470"),
        ("null", "127.0.0.1:8470"),
        ("file://127.0.0.1:8470", "127.0.0.1:8470"),
        ("http://[bad", "127.0.0.1:8470"),
        ("http://", ""),
    ],
)
def test_another_origin_is_refused(origin: str, host: str) -> None:
    with pytest.raises(VramscopeError, match="expected a page of this server") as refused:
        check_origin(origin, host)
    assert refused.value.code == ORIGIN_REFUSED
