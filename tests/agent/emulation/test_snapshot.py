from __future__ import annotations

import io
import pickletools
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

POOL = (0, 0)


def recorded(**parts: Any) -> Any:
    from vramscope.emulation.history import Recorded

    return Recorded(**parts)


def stack() -> Any:
    from vramscope.emulation.stacks import Stacks

    return Stacks().gather()


def segment(**changes: Any) -> dict[str, Any]:
    blocks = [
        {"address": 4096, "size": 512, "state": "active_allocated", "frames": []},
        {"address": 4608, "size": 512, "state": "inactive", "frames": []},
    ]
    return {"address": 4096, "total_size": 1024, "frames": [], "blocks": blocks} | changes


def snapshot(version: tuple[int, int], **parts: Any) -> dict[str, Any]:
    from vramscope.emulation.snapshot import plain_snapshot

    return plain_snapshot([segment()], recorded(**parts), {"expandable_segments": True}, version)


ENTRY_KEYS_OF_2_4 = ["action", "addr", "size", "stream", "time_us"]


@pytest.mark.parametrize(
    ("version", "top", "entry"),
    [
        ((2, 4), [], []),
        ((2, 5), ["external_annotations"], []),
        ((2, 8), ["external_annotations"], ["compile_context"]),
        ((2, 10), ["external_annotations"], ["compile_context", "user_metadata"]),
        ((2, 12), ["external_annotations"], ["compile_context", "user_metadata", "pool_id"]),
        (
            (2, 14),
            ["external_annotations", "host_segments", "host_traces"],
            ["compile_context", "user_metadata", "pool_id"],
        ),
    ],
)
def test_the_keys_are_those_of_the_release(
    version: tuple[int, int], top: list[str], entry: list[str]
) -> None:
    entries = (("alloc", 4096, 100, 0, 17, POOL, None, "words"),)

    made = snapshot(version, entries=entries)

    assert list(made) == ["segments", "device_traces", "allocator_settings", *top]
    ((plain,),) = made["device_traces"]
    assert list(plain) == [*ENTRY_KEYS_OF_2_4, *entry]
    assert [plain[key] for key in ENTRY_KEYS_OF_2_4] == ["alloc", 4096, 100, 0, 17]


def test_an_oom_says_what_the_device_had_left_instead_of_an_address() -> None:
    made = snapshot((2, 11), entries=(("oom", 1 << 20, 100, 0, 17, POOL, None, ""),))

    ((entry,),) = made["device_traces"]
    assert entry["device_free"] == 1 << 20
    assert "addr" not in entry


def test_frames_are_missing_where_no_stack_was_taken_and_empty_where_there_was_none() -> None:
    entries = tuple(("alloc", 4096, 100, 0, 17, POOL, each, "") for each in (None, (), stack()))

    (trace,) = snapshot((2, 11), entries=entries)["device_traces"]

    assert "frames" not in trace[0]
    assert trace[1]["frames"] == []
    assert trace[2]["frames"][0]["name"] == "stack"


def test_segments_and_live_blocks_carry_their_stacks() -> None:
    made = snapshot((2, 11), block_stacks={4096: stack()}, segment_stacks={4096: stack()})

    (one,) = made["segments"]
    assert one["frames"][0]["name"] == "stack"
    assert one["blocks"][0]["frames"][0]["name"] == "stack"
    assert one["blocks"][1]["frames"] == []


def test_annotations_are_written_as_pytorch_does() -> None:
    made = snapshot((2, 11), annotations=(("START", "Optimizer.step#SGD.step", 17),))

    assert made["external_annotations"] == [
        {"stage": "START", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": 17}
    ]


def test_the_pickle_is_one_that_the_viewer_reads() -> None:
    from vramscope.emulation.snapshot import dump_snapshot

    file = io.BytesIO()
    shared = stack()
    entries = tuple(("alloc", n, 100, 0, 17, POOL, shared, "") for n in range(3))
    dump_snapshot(snapshot((2, 14), entries=entries), file)

    opcodes = [
        (opcode.name, argument) for opcode, argument, _ in pickletools.genops(file.getvalue())
    ]
    assert opcodes[0] == ("PROTO", 4)
    foreign = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "EXT1"}
    assert foreign.isdisjoint(name for name, _ in opcodes)
