from __future__ import annotations

import pytest

from vramscope.transport.address import AddressError, ServerAddress, parse_address


@pytest.mark.parametrize(
    ("url", "agent_url", "http_url"),
    [
        ("http://127.0.0.1:8470", "ws://127.0.0.1:8470/ws/agent", "http://127.0.0.1:8470"),
        ("http://127.0.0.1:8470/", "ws://127.0.0.1:8470/ws/agent", "http://127.0.0.1:8470"),
        ("ws://box:1", "ws://box:1/ws/agent", "http://box:1"),
        ("https://box", "wss://box:443/ws/agent", "https://box:443"),
        ("wss://box:8470/", "wss://box:8470/ws/agent", "https://box:8470"),
        ("http://[::1]:8470", "ws://[::1]:8470/ws/agent", "http://[::1]:8470"),
        (" http://box:80 ", "ws://box:80/ws/agent", "http://box:80"),
    ],
)
def test_an_address_gives_both_urls(url: str, agent_url: str, http_url: str) -> None:
    address = parse_address(url)
    assert (address.agent_url, address.http_url) == (agent_url, http_url)
    assert parse_address(address.http_url) == address


@pytest.mark.parametrize(
    "url",
    ["", "box:8470", "box", "ftp://box:8470", "http://", "http://box:99999", "http://box:x"],
)
def test_what_is_no_address_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(AddressError, match=r"^expected a server URL.*got ") as caught:
        parse_address(url)
    assert "\n" not in str(caught.value)


def test_more_than_host_and_port_is_refused_and_secrets_are_not_repeated() -> None:
    with pytest.raises(AddressError, match="leave out everything after the port") as caught:
        parse_address("http://box:8470/?token=s3cr3t")
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(AddressError, match="without a user name") as caught:
        parse_address("http://user:s3cr3t@box:8470")
    assert "s3cr3t" not in str(caught.value)


def test_the_scheme_says_whether_it_is_secure() -> None:
    assert parse_address("https://box:1") == ServerAddress("box", 1, secure=True)
    assert parse_address("ws://box:1") == ServerAddress("box", 1, secure=False)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("a.localhost", True),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.org", False),
        ("", False),
    ],
)
def test_whether_it_is_of_this_machine_is_told_without_looking_a_name_up(
    host: str, is_loopback: bool
) -> None:
    assert ServerAddress(host, 1).is_loopback is is_loopback
