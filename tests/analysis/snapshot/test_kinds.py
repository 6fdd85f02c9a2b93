from __future__ import annotations

from collections import OrderedDict

from vramscope_analysis.snapshot.kinds import is_dict, is_list, is_pair, is_tuple


def test_subclasses_are_something_else() -> None:
    assert is_dict({})
    assert not is_dict(OrderedDict())
    assert is_list([])
    assert not is_list(())
    assert is_tuple(())
    assert not is_tuple([])


def test_pairs() -> None:
    assert is_pair((0, 2**63 - 1))
    assert not is_pair((0, 2**63))
    assert not is_pair((0, -1))
    assert not is_pair((0, True))
    assert not is_pair((0,))
    assert not is_pair([0, 0])
