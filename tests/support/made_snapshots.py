"""Snapshots made up at random, in PyTorch's structure and beyond it, and pickles of them."""

from __future__ import annotations

import io
import pickle
import pickletools
import random
from typing import Any

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "snapshot", "strange")
# Bytes as a dict of a run begins with them.
LURES = (b"}\x94(h\x05h\x03", b"u}\x94(h\x06}", b"}\x94(j\x05\x00\x00\x00")
TEXTS = ("", "N/A", "N/A", "é\x94(}", "u}(h", "}q\x05(h\x06K\x01u", "}\x94(h\x05", "x" * 280)


def assert_identical(got: Any, expected: Any, where: str = "snapshot") -> None:
    """Equal, of the same types, and with the keys of dicts in the same order."""
    assert type(got) is type(expected), where
    if isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key in expected:
            assert_identical(got[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected), where
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_identical(one, other, f"{where}[{index}]")
    else:
        assert got == expected or got != got, where


class MadeSnapshot:
    """One made-up snapshot: ``plain`` holds it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        choice = chance.choice
        names = [{"name": f"f{line}", "filename": "a.py", "line": line} for line in range(6)]
        names.append({"name": "g", "filename": "b.py", "line": 1, "fx_node_op": None})
        self._frames: list[dict[str, Any]] = names
        self._stacks = [chance.choices(names, k=chance.randrange(6)) for _ in range(5)]
        self._empty: list[Any] = []
        self._stack_share = choice((0.0, 0.5, 1.0))
        self._has_pools = choice((True, False))
        self._has_metadata = choice((True, False))
        self._future = choice((None, None, "integers", "texts", "objects", "pairs"))
        self._previous_share = choice((0, 0, 0.02, 0.3))
        self._previous: dict[str, Any] | None = None
        segments = [self._segment(index) for index in range(chance.randrange(4))]
        self.plain: dict[str, Any] = {
            "segments": segments,
            "device_traces": [self._trace() for _ in range(chance.randrange(3))],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "roundup": {"1": 0}, "f": 0.5},
        }
        self._add_odd_keys(segments)

    def _add_odd_keys(self, segments: list[dict[str, Any]]) -> None:
        chance, plain = self._chance, self.plain
        if chance.random() < 0.3:
            plain["external_annotations"] = [{"name": "s", "time_us": at} for at in range(30)]
        if chance.random() < 0.3:
            plain["host_segments"] = [self._block(1) for _ in range(chance.choice((0, 40)))]
            plain["host_traces"] = self._trace()
        if chance.random() < 0.2:
            plain["unknown"] = {"blocks": [self._block(2) for _ in range(40)], 3: None}
        if chance.random() < 0.1:
            plain["again"] = chance.choice((segments, plain["device_traces"]))
        if chance.random() < 0.1:
            segments.extend(segments[:1])

    def _stack(self) -> list[Any]:
        kind = self._chance.random()
        if kind < 0.3:
            return self._empty
        if kind < 0.6:
            return self._chance.choice(self._stacks)
        return self._chance.choices(self._frames, k=self._chance.randrange(6))

    def integer(self) -> int:
        """Any integer that fits, some of them full of bytes as pickles have them."""
        kind = self._chance.random()
        if kind < 0.3:
            return self._chance.choice((0, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**63 - 1))
        if kind < 0.6:
            return int.from_bytes(self._chance.choice(LURES), "little") % 2**63
        return self._chance.getrandbits(self._chance.randrange(1, 63))

    def _trace(self) -> list[dict[str, Any]]:
        count = self._chance.choice((0, 1, 2, 20, 100, 1050))
        trace = [self._entry() for _ in range(count)]
        if trace and self._chance.random() < 0.2:
            trace.insert(self._chance.randrange(count), self._chance.choice(trace))
        return trace

    def _entry(self) -> dict[str, Any]:
        chance = self._chance
        is_oom = chance.random() < 0.02
        entry: dict[str, Any] = {"action": "oom" if is_oom else chance.choice(ACTIONS)}
        entry["device_free" if is_oom else "addr"] = self.integer()
        entry["size"] = self.integer()
        entry["stream"] = chance.choice((0, 0, 0, 94_000_000_000_000))
        entry["time_us"] = 1_790_000_000_000_000 + chance.randrange(10**6)
        if chance.random() < 0.95:
            # A new object each time, as PyTorch makes them.
            entry["compile_context"] = "".join(("N", "/A"))
        if self._has_metadata:
            entry["user_metadata"] = chance.choice(TEXTS)
        if self._has_pools:
            entry["pool_id"] = chance.choice(((0, 0), (0, 1), (chance.randrange(300), 0)))
        self._add_future(entry)
        if chance.random() < self._stack_share:
            entry["frames"] = self._stack()
        if chance.random() < 0.01:
            entry["behind"] = 1
        return entry

    def _add_future(self, entry: dict[str, Any]) -> None:
        chance = self._chance
        if self._future == "integers":
            entry["future"] = chance.choice((-5, 2**70, -(2**40), self.integer()))
        elif self._future == "texts":
            entry["future"] = chance.choice(TEXTS)
        elif self._future == "objects":
            entry["future"] = chance.choice(([1], {"k": 1}, None, 1.5, True, float("inf")))
        elif self._future == "pairs":
            entry["future"] = chance.choice(((1, 2), (3, 4), (-1, 2), (1, 2, 3)))
        if chance.random() < self._previous_share and self._previous is not None:
            entry["previous"] = self._previous
        self._previous = None if "previous" in entry else entry

    def _block(self, address: int) -> dict[str, Any]:
        chance = self._chance
        block: dict[str, Any] = {
            "address": address,
            "size": chance.choice((512, 1024, 2**21, 2**33)),
            "requested_size": chance.randrange(2**20),
            "state": chance.choice(("inactive", "active_allocated", "unheard_of")),
        }
        if chance.random() < 0.9:
            block["frames"] = self._stack()
        return block

    def _segment(self, index: int) -> dict[str, Any]:
        chance = self._chance
        address = 2**40 + index * 2**21
        return {
            "device": index % 2,
            "address": address,
            "total_size": 2**21,
            "allocated_size": 0,
            "stream": 0,
            "segment_type": chance.choice(("small", "large", "huge")),
            "segment_pool_id": (0, chance.randrange(2)),
            "is_expandable": chance.choice((True, False)),
            "frames": self._stack(),
            "blocks": [self._block(address + 512 * at) for at in range(chance.choice((0, 1, 90)))],
        }


def pickled(plain: Any, chance: random.Random) -> bytes:
    """A pickle of protocol 2 to 5, by the C pickler, by Python's, or with fewer opcodes."""
    protocol = chance.choice((2, 3, 4, 4, 4, 5))
    kind = chance.random()
    if kind < 0.6:
        return pickle.dumps(plain, protocol)
    if kind < 0.8:
        return pickletools.optimize(pickle.dumps(plain, protocol))
    file = io.BytesIO()
    pickle._Pickler(file, protocol).dump(plain)
    return file.getvalue()


def changed(data: bytes, chance: random.Random) -> bytes:
    """The same bytes with a few of them flipped, replaced, taken out, doubled or cut off."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if not made:
            break
        at = chance.randrange(len(made))
        kind = chance.random()
        if kind < 0.5:
            made[at] ^= 1 << chance.randrange(8)
        elif kind < 0.7:
            made[at] = chance.choice(b"}u(e]a\x94hjKMJ\x8a\x8cNq.r")
        elif kind < 0.8:
            del made[at : at + chance.randrange(1, 4)]
        elif kind < 0.9:
            made[at:at] = bytes(made[at : at + chance.randrange(1, 60)])
        else:
            del made[at:]
    return bytes(made)
