"""The first search waits for nothing, others for their time; what was too little becomes more."""

from __future__ import annotations

from vramscope.growth.search_plan import BY_NAME_NS, UPWARDS_NS, SearchPlan

MS = 1_000_000
MOST_NS = 400 * MS


def limit(plan: SearchPlan, left_ns: int) -> int:
    return plan.limit_ns(left_ns, may_wait=True)


def waiting() -> SearchPlan:
    """A plan whose first search has found nothing that has stayed."""
    plan = SearchPlan(MOST_NS)
    plan.searched(5 * MS, BY_NAME_NS, ran_out=False, is_left=True)
    plan.forget()
    return plan


def test_the_first_one_waits_for_nothing_and_gets_no_more_than_it_is_expected_to_take() -> None:
    plan = SearchPlan(MOST_NS)
    assert limit(plan, -MS) == BY_NAME_NS
    assert limit(plan, 90 * MS) == 90 * MS
    plan.forget()  # what was to be searched for had gone before
    assert limit(plan, -MS) == BY_NAME_NS
    plan.searched(5 * MS, BY_NAME_NS, ran_out=False, is_left=True)
    plan.forget()
    assert limit(plan, -MS) == 0


def test_a_further_one_waits_until_what_it_is_expected_to_take_is_left() -> None:
    plan = waiting()
    assert limit(plan, BY_NAME_NS - 1) == 0
    assert limit(plan, BY_NAME_NS) == BY_NAME_NS
    assert limit(plan, 90 * MS) == 90 * MS
    assert limit(plan, 9000 * MS) == MOST_NS


def test_where_it_would_be_gone_by_then_it_does_not_wait() -> None:
    assert SearchPlan(MOST_NS).limit_ns(-MS, may_wait=False) == MOST_NS


def test_one_that_found_all_is_the_last() -> None:
    plan = SearchPlan(MOST_NS)
    assert plan.searched(5 * MS, BY_NAME_NS, ran_out=False, is_left=False)


def test_what_no_name_leads_to_is_searched_for_upwards_when_there_is_time() -> None:
    plan = SearchPlan(MOST_NS)
    assert not plan.searched(5 * MS, BY_NAME_NS, ran_out=False, is_left=True)
    assert plan.is_upwards
    assert limit(plan, UPWARDS_NS - 1) == 0
    # Stopped early it would have found nothing.
    assert limit(plan, UPWARDS_NS) == MOST_NS
    assert plan.searched(90 * MS, MOST_NS, ran_out=False, is_left=True)


def test_upwards_is_expected_to_take_no_less_than_by_name() -> None:
    plan = SearchPlan(MOST_NS)
    plan.searched(200 * MS, 300 * MS, ran_out=False, is_left=True)
    assert limit(plan, 200 * MS - 1) == 0
    assert limit(plan, 200 * MS) == MOST_NS


def test_one_that_had_too_little_time_waits_for_more_up_to_the_most() -> None:
    plan = SearchPlan(MOST_NS)
    tried: list[int] = []
    left_ns = 0
    while True:
        left_ns += MS
        limit_ns = limit(plan, left_ns)
        if limit_ns:
            tried.append(limit_ns)
            if plan.searched(limit_ns, limit_ns, ran_out=True, is_left=False):
                break
            assert not plan.is_upwards
    # The first one at once; those after it when there is so much.
    assert tried == [BY_NAME_NS, 4 * BY_NAME_NS, 16 * BY_NAME_NS, MOST_NS]


def test_a_short_limit_of_the_command_is_all_that_it_waits_for() -> None:
    plan = SearchPlan(10 * MS)
    assert limit(plan, 0) == 10 * MS
    plan.searched(5 * MS, 10 * MS, ran_out=False, is_left=True)
    plan.forget()
    assert limit(plan, 9 * MS) == 0
    assert limit(plan, 10 * MS) == 10 * MS


def test_what_is_gone_is_searched_for_no_more() -> None:
    plan = SearchPlan(MOST_NS)
    plan.searched(5 * MS, BY_NAME_NS, ran_out=False, is_left=True)
    plan.forget()
    assert (plan.is_wanted, plan.is_upwards) == (False, False)
    assert limit(plan, BY_NAME_NS) == BY_NAME_NS
