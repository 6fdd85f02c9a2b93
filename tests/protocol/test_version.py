"""Version and features that both sides offer."""

from __future__ import annotations

from vramscope_protocol import version


def test_features_are_the_declared_ones() -> None:
    declared = {value for name, value in vars(version).items() if name.startswith("FEATURE_")}
    assert set(version.AGENT_FEATURES) | set(version.SERVER_FEATURES) == declared
    assert len(set(version.AGENT_FEATURES)) == len(version.AGENT_FEATURES)


def test_protocol_version() -> None:
    # Raised only when an older peer could misread a message: change this line on purpose.
    assert version.PROTOCOL_VERSION == 1
