from __future__ import annotations

from vramscope.collectors.process_listing import ProcessListing
from vramscope_protocol.columns import UNKNOWN


def test_what_lies_outside_is_the_difference_of_the_same_moment() -> None:
    assert ProcessListing(own_bytes=700, reserved_bytes=200).outside_bytes == 500


def test_without_the_drivers_number_nothing_is_known() -> None:
    assert ProcessListing().outside_bytes == UNKNOWN
    assert ProcessListing(reserved_bytes=200).outside_bytes == UNKNOWN
    assert ProcessListing().processes is None
