"""What the map asks for is what the agent knows of its tensors."""

from __future__ import annotations

from tests.support.made_segments import MIB, segment
from tests.support.recorded_map import MapOfLooks
from vramscope.memory_map.owners import no_owners
from vramscope.tensors.owners import Owned, Owners
from vramscope_protocol.map_columns import BLOCK_COLUMNS, unpack_columns

HERE = 0x7F0000000000


def test_nobody_knows_the_owners_at_first() -> None:
    assert no_owners() is None


def test_storages_of_tensors_name_the_blocks_that_they_lie_in() -> None:
    owned = [Owned(HERE, MIB, 1, "fc.weight"), Owned(HERE + 3 * MIB, MIB // 2, 3, "exp_avg of fc")]
    frame = MapOfLooks(Owners(owned, 7, 0)).frame([segment(HERE, "a1 a2 a1 f1")])
    blocks = unpack_columns(BLOCK_COLUMNS, frame.blocks, frame.block_count)
    assert list(blocks["category"]) == [1, 0, 3, 0]
    assert list(blocks["owner"]) == [0, -1, 1, -1]
    assert frame.texts == ["fc.weight", "exp_avg of fc"]
