from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_commands import FakeRuns
from vramscope_protocol.command_table import command_spec
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, VramscopeError
from vramscope_server.commands.rank_rules import Way, choose_way


def way(
    name: str,
    runs: FakeRuns | None = None,
    ranks: list[int] | None = None,
    *,
    dry_run: bool = False,
    unable: tuple[int, ...] = (),
) -> Way:
    shown: Any = (runs or FakeRuns(3)).run("r1")
    wanted = [rank["rank"] for rank in shown["ranks"]] if ranks is None else ranks
    spec = command_spec(name)
    return choose_way(spec, wanted, shown, lambda rank: rank not in unable, dry_run=dry_run)


def refusal(name: str, runs: FakeRuns, code: str, **request: Any) -> str:
    with pytest.raises(VramscopeError) as refused:
        way(name, runs, **request)
    assert refused.value.code == code
    return refused.value.message


def test_commands_of_one_rank_and_such_as_need_no_agreement_wait_for_nobody() -> None:
    assert way("gc_collect") == Way(together=False)
    assert way("empty_cache", ranks=[1]) == Way(together=False)
    assert way("stop", FakeRuns(1)) == Way(together=False)
    assert way("set_batch_size", FakeRuns(1), unable=(0,)) == Way(together=False)


def test_several_ranks_run_it_together() -> None:
    assert way("empty_cache") == Way(together=True)
    assert way("empty_cache", ranks=[0, 2]) == Way(together=True)
    assert way("set_batch_size") == Way(together=True)


def test_a_dry_run_changes_nothing_and_does_not_wait() -> None:
    assert way("set_batch_size", dry_run=True) == Way(together=False)
    assert way("empty_cache", dry_run=True, unable=(0,)) == Way(together=False)
    # It says no where the real one would.
    refusal("set_batch_size", FakeRuns(3), CONFLICT, dry_run=True, unable=(0,))


@pytest.mark.parametrize("name", ["set_batch_size", "set_accumulation", "pause", "stop", "resume"])
def test_what_is_for_the_whole_run_is_not_for_a_part_of_it(name: str) -> None:
    message = refusal(name, FakeRuns(3), BAD_REQUEST, ranks=[0, 2])
    assert message == (
        f"ranks: expected 'all', because {name} is for a run as a whole, got 2 of 3 ranks"
    )


def test_every_rank_of_the_run_has_to_be_there() -> None:
    runs = FakeRuns(3)
    runs.world_size = 4
    message = refusal("pause", runs, CONFLICT)
    assert message == ("pause needs every rank of the run: expected 4, got 3 that have registered")
    runs = FakeRuns(3)
    runs.rank_states[1] = "lost"
    assert refusal("pause", runs, CONFLICT).endswith("but rank 1 is lost")
    runs.rank_states[2] = "lost"
    assert refusal("pause", runs, CONFLICT).endswith("but ranks 1 and 2 are lost")
    runs.rank_states = dict.fromkeys((0, 1, 2), "ended")
    assert refusal("pause", runs, CONFLICT).endswith("but ranks 0, 1 and 2 have ended")
    # Whoever still stands there is to go on.
    assert way("resume", runs) == Way(together=False)


def test_ranks_that_cannot_agree_do_not_change_training() -> None:
    message = refusal("stop", FakeRuns(3), CONFLICT, unable=(1,))
    assert message == (
        "stop has to run at the same step on all ranks, but rank 1 cannot wait for a certain step: "
        "vramscope is older there"
    )
    runs = FakeRuns(3)
    runs.from_start[0] = runs.from_start[2] = False
    assert "the steps of ranks 0 and 2 are not counted" in refusal("stop", runs, CONFLICT)


def test_what_changes_no_training_is_run_by_each_and_that_is_said() -> None:
    assert way("empty_cache", unable=(1,)) == Way(
        together=False,
        note="Each rank runs it at the end of its own next step, because rank 1 cannot wait for a "
        "certain step: vramscope is older there.",
    )
    runs = FakeRuns(3)
    runs.from_start[1] = False
    assert "not the same step" in way("empty_cache", runs).note
    assert way("empty_cache", runs, ranks=[0, 2]) == Way(together=True)


def test_a_rank_that_is_not_connected_is_taken_at_its_word() -> None:
    shown: Any = FakeRuns(2).run("r1")
    found = choose_way(command_spec("stop"), [0, 1], shown, lambda _rank: None, dry_run=False)
    assert found.together
