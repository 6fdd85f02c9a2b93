"""Clean workloads by name: jobs that are well, and in which nothing may be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.cases.workloads import frameworks, learning, sequences, vision

_JOBS: Final = (
    vision.classifier,
    vision.multi_scale,
    vision.objects,
    vision.large_evaluation,
    vision.averaged,
    vision.diffusion,
    vision.progressive,
    vision.unfrozen,
    vision.memory_bank,
    vision.compiled,
    vision.autotuned,
    sequences.any_length,
    sequences.curriculum,
    sequences.checkpointed,
    sequences.recurrent,
    sequences.packed,
    sequences.graphs,
    sequences.experts,
    sequences.mixed_precision,
    sequences.growing_batch,
    learning.replay_buffer,
    learning.rollouts,
    learning.two_networks,
    learning.gradient_penalty,
    learning.folds,
    learning.trials,
    learning.second_order,
    learning.another_optimizer,
    learning.warm_cache,
    frameworks.trainer_bert,
    frameworks.trainer_gpt,
    frameworks.trainer_llama,
    frameworks.accelerated,
    frameworks.lightning_fit,
    frameworks.lightning_by_hand,
    frameworks.ignite_loop,
)

WORKLOADS: Final[Mapping[str, Callable[[int], None]]] = {job.__name__: job for job in _JOBS}
