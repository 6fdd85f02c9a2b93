"""Tensors are divided among the containers that they came to one by one."""

from __future__ import annotations

from vramscope.holders.clusters import Way, clusters

ROOT, OTHER = 1, 2


def way(*path: int) -> list[Way]:
    return [Way(list(path), None)]


def test_the_container_to_which_something_came_again_and_again() -> None:
    # Sessions: a list (10) of optimizers (20, 21, 22), each with the state of two parameters.
    ways = {
        100: way(ROOT, 10, 20, 30, 100),
        101: way(ROOT, 10, 20, 30, 101),
        102: way(ROOT, 10, 21, 31, 102),
        103: way(ROOT, 10, 21, 31, 103),
        104: way(ROOT, 10, 22, 32, 104),
    }
    (cluster,) = clusters(ways, {100: 0, 101: 0, 102: 1, 103: 1, 104: 2})
    assert cluster.way.path[cluster.container] == 10
    assert cluster.members == set(ways)
    assert cluster.is_growing


def test_lists_of_one_dictionary_are_told_apart() -> None:
    ways = {number: way(ROOT, 10, 20 + number % 2, number) for number in range(100, 106)}
    found = clusters(ways, {number: number // 2 for number in ways})
    assert [each.way.path[each.container] for each in found] in ([20, 21], [21, 20])
    assert [len(each.members) for each in found] == [3, 3]


def test_of_nested_ones_with_one_tensor_it_is_the_nearest() -> None:
    (cluster,) = clusters({100: way(ROOT, 10, 20, 100)}, {100: 0})
    assert cluster.way.path[cluster.container] == 20
    assert cluster.is_growing is None


def test_a_variable_is_its_own() -> None:
    (cluster,) = clusters({100: way(100)}, {100: 0})
    assert (cluster.container, cluster.members) == (0, {100})


def test_of_several_ways_that_counts_by_which_the_others_are_held() -> None:
    ways = {
        100: [Way([100], None), Way([ROOT, 10, 100], None)],
        101: way(ROOT, 10, 101),
        102: way(ROOT, 10, 102),
    }
    (cluster,) = clusters(ways, {100: 2, 101: 0, 102: 1})
    assert cluster.members == {100, 101, 102}


def test_one_that_a_longer_way_leads_to_counts_for_the_container() -> None:
    ways = {100: way(OTHER, 100), 101: way(ROOT, 10, 20, 101), 102: way(ROOT, 10, 21, 102)}
    (cluster,) = clusters(ways, {100: 2, 101: 0, 102: 1}, lambda number: {10, ROOT, OTHER})
    assert cluster.members == {100, 101, 102}
    both = clusters(ways, {100: 2, 101: 0, 102: 1})
    assert [each.members for each in both] == [{101, 102}, {100}]
