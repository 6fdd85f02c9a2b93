from __future__ import annotations

import argparse

from vramscope.cli.agent_options import add_agent_options
from vramscope.config import OPTIONS, load_config


def parse(*words: str, emulation: bool = True) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    add_agent_options(parser, emulation=emulation)
    return vars(parser.parse_args(words))


def test_every_option_of_the_agent_is_offered_and_absent_unless_given() -> None:
    given = parse()
    assert set(given) == set(OPTIONS)
    assert set(given.values()) == {None}


def test_what_is_given_is_what_the_agent_reads() -> None:
    words = ["--url=http://box:1", "--run=mine", "--rate-hz=2", "--no-local-server", "--emulate"]
    config = load_config({}, **parse(*words))
    assert config.address is not None
    assert (config.address.http_url, config.run, config.rate_hz) == ("http://box:1", "mine", 2.0)
    assert (config.local_server, config.emulate) == (False, True)


def test_the_emulated_device_is_not_offered_where_it_cannot_be_had() -> None:
    assert set(OPTIONS) - set(parse(emulation=False)) == {"emulate", "capacity"}
