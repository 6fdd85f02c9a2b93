"""The advice on the batch size on a real GPU with a capped memory fraction, held against bisection.

Each model has a server and processes of its own: they may run side by side on one device.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.batch_trial import Trial
from tests.support.job_process import Api
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

TOKEN = "batch-advisor"
CAP_MIB = 8192
HEAD_ROOM = 0.05
SCALE = 4
PLAN = "4x8,8x60"
RECORD_AFTER = 14
PAUSE_S = 0.1
"""Small steps take a GPU some milliseconds: all would be over before the recording is asked for."""
STEPS = 200
STEPS_THAT_TELL = 4
"""A training that needs as much in each step shows at once whether it fits."""
STEPS_OF_ANY_LENGTH = 60
"""One batch in seven is of the greatest length: of so many steps, some are."""

MODELS = (
    *("transformer", "conv", "unet", "checkpointed", "sgd"),
    *("lengths", "amp", "accumulated", "attention", "conv-amp"),
)


def options(cap_mib: float) -> list[str]:
    return ["--device=cuda", f"--scale={SCALE}", f"--cap-mib={cap_mib}"]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield Api(server.url, TOKEN)


@pytest.mark.parametrize("model", MODELS)
def test_the_advised_batch_runs_and_is_at_least_95_percent_of_the_largest(
    api: Api, model: str
) -> None:
    trial = Trial(model, (), options(CAP_MIB))
    advice = trial.advised(api, PLAN, RECORD_AFTER, PAUSE_S)["advice"]
    assert advice["limit_bytes"] == pytest.approx(CAP_MIB << 20, rel=0.001)
    size = advice["batch_size"]
    ran = trial.outcome(f"{size}x{STEPS}")
    steps = STEPS_OF_ANY_LENGTH if model == "lengths" else STEPS_THAT_TELL
    search = f"search:{steps}:{size}"
    largest = trial.outcome(search, job=options(CAP_MIB * (1 - HEAD_ROOM)))["largest"]
    told = f"{model}: advised {size} ({advice['low']} to {advice['high']}), largest {largest}"
    print(f"{told}, {size / largest:.1%}; ran {ran}")
    assert ran == {"steps": STEPS, "failed_at": None}, told
    assert size >= 0.95 * largest, told
