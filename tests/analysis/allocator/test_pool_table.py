from __future__ import annotations

from vramscope_analysis.allocator.pool_table import PoolTable


def table_of(*ids: tuple[int, int]) -> PoolTable[int]:
    table = PoolTable[int]()
    for number, pool_id in enumerate(ids):
        table.insert(pool_id, number)
    return table


def test_ids_come_in_the_order_of_their_slots() -> None:
    # Seen in a recorded run: pools released in the order 1, 3, 4 were freed in this one.
    assert table_of((1, 0), (3, 0), (4, 0)).ids() == [(4, 0), (1, 0), (3, 0)]
    assert table_of((1, 0), (3, 0), (4, 0)).values() == [2, 0, 1]


def test_the_second_number_counts_where_the_first_is_none() -> None:
    assert table_of((0, 1), (0, 3), (0, 4)).ids() == [(0, 4), (0, 1), (0, 3)]


def test_a_small_table_tells_fewer_ids_apart() -> None:
    # 1 and 6 begin with the same two bits, but not with the same three.
    assert table_of((1, 0), (6, 0)).ids() == [(1, 0), (6, 0)]
    assert table_of((6, 0), (1, 0)).ids() == [(6, 0), (1, 0)]
    assert table_of((6, 0), (1, 0), (3, 0)).ids() == [(1, 0), (6, 0), (3, 0)]


def test_values_leave_and_the_table_keeps_its_size() -> None:
    table = table_of((1, 0), (3, 0), (4, 0))
    table.insert((3, 0), 99)
    table.remove((4, 0))

    assert (table.values(), len(table)) == ([0, 1], 2)
