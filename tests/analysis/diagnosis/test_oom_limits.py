"""Settings are named that a replay proved; a cap is raised where there is more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.analysis.diagnosis.test_oom_causes import LEVEL
from tests.analysis.diagnosis.test_oom_pieces import PIECES
from tests.analysis.diagnosis.test_oom_remedies import actions, remedies
from tests.support.made_ooms import MIB, made_oom, step_rows
from vramscope_analysis.evidence.settings_trial import SettingsTrial


def trial(text: str, **more: Any) -> SettingsTrial:
    told: dict[str, Any] = {
        "is_recorded": False,
        "peak_reserved_bytes": 5,
        "peak_allocated_bytes": 5,
        "gain_bytes": 80 * MIB,
        "retries": 0,
        "more_device_allocs": 0,
        "runs_out": False,
        "is_worth_it": True,
    }
    return SettingsTrial(text, **{**told, **more})


RECORDED = trial("", is_recorded=True, runs_out=True, is_worth_it=False)


def test_settings_are_advised_if_a_replay_proved_them_and_they_are_not_on() -> None:
    trials = (
        RECORDED,
        trial("expandable_segments:True"),
        trial("max_split_size_mb:64", runs_out=True),
    )
    told = "\n".join(remedy.fix for remedy in remedies(PIECES, trials=trials))
    assert "expandable_segments:True" in told
    assert "max_split_size_mb" not in told
    on = replace(PIECES, settings="expandable_segments:True")
    told = "\n".join(r.fix + r.action for r in (*remedies(on, trials=trials), *remedies(PIECES)))
    assert "expandable_segments" not in told


def test_of_growing_needs_it_is_told_for_how_long_a_setting_helps() -> None:
    growing = made_oom(
        step_rows([200 + 25 * n for n in range(30)]), allocated_mib=750, pieces_mib=200
    )
    told = remedies(growing, trials=(RECORDED, trial("expandable_segments:True")))
    why = next(r.why for r in told if "expandable" in r.action)
    # 274 MiB were free, 200 of them were asked for.
    assert "at 25.0 MiB more with every step that lasts for about 3 steps" in why


def test_a_cap_is_raised_where_the_device_has_more() -> None:
    assert "raise the memory fraction" in actions(made_oom(LEVEL, total_mib=8192))
    assert "raise the memory fraction" not in actions(made_oom(LEVEL))
    assert "raise" not in actions(made_oom(LEVEL, total_mib=8192, free_mib=50))
