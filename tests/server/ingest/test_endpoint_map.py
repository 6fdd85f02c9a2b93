"""Frames of the memory map on an agent's connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tests.support.ingest_bench import ack_of, open_stream, refusal, running_bench, send
from tests.support.made_segments import segment
from tests.support.recorded_map import MapOfLooks
from tests.support.streams import made_batches, made_columns


def test_frames_of_the_memory_map_are_kept_and_one_that_cannot_be_ends_the_connection(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        source = MapOfLooks()
        async with running_bench(tmp_path) as bench, bench.socket() as socket:
            await open_stream(socket)
            send(socket, source.frame([segment(1 << 40, "a1 f1")]))
            send(socket, *made_batches(made_columns(10)))
            await ack_of(socket, 1)
            whole = bench.maps.whole("run-a", 0)
            assert whole is not None
            assert whole["blocks"]["size"] == [1 << 20, 1 << 20]
            bad = source.frame([segment(1 << 40, "a2")])
            send(socket, msgspec.structs.replace(bad, blocks=b""))
            assert (await refusal(socket))[0] == "bad_message"

    asyncio.run(asyncio.wait_for(test(), 30))
