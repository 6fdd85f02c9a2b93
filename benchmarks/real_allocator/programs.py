"""Random programs of calls to the caching allocator, each fixed by its seed.

Sizes come back, blocks are freed in random order, and the device is small enough to run out of
memory. What a program may do beyond that is drawn from its themes. Only calls that the release
accepts are written, and of those that it refuses in some states only where it accepts them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

MIB = 1 << 20
OTHER_STREAM = 12288  # uses blocks of the streams that allocate
ALLOCATING_STREAMS = [0, 4096, 8192]
CALLS = 260

THEMES = {
    "settings": "record split gc frac expandable runtime large pow2 throw",
    "pools": "pools oom capture split gc frac expandable runtime large",
    "streams": "pools record capture oom split",
}

Version = tuple[int, int]


@dataclass(frozen=True)
class Program:
    """Calls to make, on a device of ``capacity_bytes``; the seed also says where memory lies."""

    seed: str
    capacity_bytes: int
    calls: list[str]

    @property
    def device_seed(self) -> int:
        """Seed of the device that it runs on."""
        return random.Random(self.seed).getrandbits(30)


def random_program(theme: str, number: int, version: Version) -> Program:
    """The program of one number, with some of the theme's features."""
    seed = f"{theme}-{number}"
    rng = random.Random(f"{version}-{seed}")
    names = THEMES[theme].split()
    features = {name for name in names if rng.random() < 0.75 or name == "pools"}
    if version < (2, 5) and "expandable" in features:
        features.discard("split")  # 2.4 fails where it meets both in one pool
    capacity_bytes = rng.choice([200, 400, 1000, 4000, 40000]) * MIB + rng.choice([0, 12345])
    return Program(seed, capacity_bytes, _Writer(rng, version, features, capacity_bytes).write())


class _Writer:
    """Writes one program, call by call, with what it must know to stay valid."""

    def __init__(
        self, rng: random.Random, version: Version, features: set[str], capacity_bytes: int
    ) -> None:
        self.rng = rng
        self.version = version
        self.features = features
        self.capacity_bytes = capacity_bytes
        self.calls: list[str] = []
        self.allocated = 0
        self.live: list[int] = []
        self.pools: list[int] = []
        self.released: list[int] = []
        self.last_resort: int | None = None  # the pool for when memory runs out; more have no order
        self.scopes: dict[int, bool] = {}  # open ones, and whether they capture
        self.streams = ALLOCATING_STREAMS[: rng.choice([1, 2, 3])]
        self.sizes = [self._size() for _ in range(rng.choice([3, 8, 40]))]
        self.split_mib = rng.choice([21, 32, 64, 100, 128]) if "split" in features else 0
        self.growth = rng.choice([0.45, 0.5, 0.55, 0.6])

    def write(self) -> list[str]:
        """All calls, with a look at everything at the end."""
        self._set()
        self._limit([0.3, 0.5, 0.8, 1.0])
        for _ in range(CALLS):
            self._call()
        self.calls += ["stats", "snap"]
        return self.calls

    def _call(self) -> None:
        kinds = {
            self._block: 860,
            self._catch_up: 40,
            self._empty_cache: 25,
            self._counters: 15,
            self._set: 15 if "runtime" in self.features else 0,
            self._limit: 10,
            self._pool: 35 if "pools" in self.features else 0,
        }
        self.rng.choices(list(kinds), list(kinds.values()))[0]()

    def _size(self) -> int:
        rng = self.rng
        ranges = [(1, 600), (1, MIB), (MIB, 10 * MIB), (10 * MIB, 200 * MIB)]
        edges = [MIB, MIB + 1, 2 * MIB, 10 * MIB, 512 * rng.randint(1, 4000)]
        return rng.choice([rng.randint(*rng.choice(ranges)), rng.choice(edges)])

    def _block(self) -> None:
        rng = self.rng
        if not self.live or rng.random() < self.growth:
            size = rng.choice([*self.sizes, self._size()])
            self._allocate(rng.randint(1, self.capacity_bytes) if rng.random() < 0.08 else size)
            return
        block = self.live.pop(rng.randrange(len(self.live)) if rng.random() < 0.8 else -1)
        if "record" in self.features and rng.random() < 0.3:
            self.calls.append(f"r {block} {OTHER_STREAM}")
        self.calls.append(f"f {block}")

    def _allocate(self, size_bytes: int) -> None:
        self.allocated += 1
        self.calls.append(f"m {self.allocated} {size_bytes} {self.rng.choice(self.streams)}")
        self.live.append(self.allocated)

    def _catch_up(self) -> None:
        if "record" in self.features:
            self.calls.append(f"sync {OTHER_STREAM}")

    def _empty_cache(self) -> None:
        if not self.scopes or self.version >= (2, 8):  # refused in a scope before
            self.calls.append("e 0 0")

    def _counters(self) -> None:
        self.calls.append(self.rng.choice(["stats", "stats", "peaks", "accum"]))

    def _limit(self, fractions: list[float] | None = None) -> None:
        if "frac" in self.features:
            self.calls.append(f"frac {self.rng.choice(fractions or [0.2, 0.5, 0.9, 1.0])}")

    def _set(self) -> None:
        settings = self._settings()
        if settings:
            self.rng.shuffle(settings)
            self.calls.append("set " + ",".join(settings))

    def _settings(self) -> list[str]:
        rng = self.rng
        drawn: list[str] = []

        def draw(feature: str, since: Version, name: str, values: list[str]) -> None:
            if feature in self.features and self.version >= since and rng.random() < 0.6:
                drawn.append(f"{name}:{rng.choice(values)}")

        if self.split_mib:
            # Segments may not be larger than what is never split, nor than the rounding's least.
            drawn.append(f"max_split_size_mb:{self.split_mib}")
            draw("split", (2, 6), "max_non_split_rounding_mb", ["64", "100", "200"])
        if not self.split_mib or self.split_mib >= 64:
            segments = ["11", "12", "19", "20", "32", "64"]
            draw("large", (2, 11), "large_segment_size_mb", segments)
        divisions = ["1", "2", "4", "8", "16", "[256:1,512:2,1024:4,>:8]", "[1:8,64:4]", "[>:4]"]
        draw("pow2", (2, 4), "roundup_power2_divisions", divisions)
        draw("gc", (2, 4), "garbage_collection_threshold", ["0.05", "0.3", "0.6", "0.8"])
        draw("throw", (2, 12), "throw_on_cudamalloc_oom", ["True", "False"])
        draw("throw", (2, 12), "per_process_memory_fraction", ["0.3", "0.5", "0.9", "1.0"])
        draw("expandable", (2, 4), "expandable_segments", ["True", "True", "False"])
        return drawn

    def _pool(self) -> None:
        changes = [self._create_pool, self._begin_scope, self._end_scope, self._release_pool]
        self.rng.choices([*changes, self._empty_pool], [25, 30, 25, 10, 10])[0]()

    def _create_pool(self) -> None:
        if len(self.pools) == 4 or self.version < (2, 6):
            return
        pool = len(self.pools) + len(self.released) + 1
        is_last_resort = (
            "oom" in self.features and self.last_resort is None and self.version >= (2, 8)
        )
        is_unsplit = self.version >= (2, 10) and self.rng.random() < 0.3
        if is_last_resort:
            self.last_resort = pool
        self.calls.append(f"create 0 {pool} {is_last_resort:d} {is_unsplit:d}")
        self.pools.append(pool)

    def _begin_scope(self) -> None:
        pools = [pool for pool in self.pools if pool not in self.scopes]
        if not pools or len(self.scopes) == 2:
            return
        pool = self.rng.choice(pools)
        captures = "capture" in self.features and self.rng.random() < 0.6
        streams = f" {self.streams[0]}" if self.rng.random() < 0.4 else ""
        if "record" in self.features and not self.scopes:
            self._finish_frees()
        self.calls.append(f"begin 0 {pool}{streams}")
        if captures:
            self.calls.append("capture 0 1")
            self.calls += ["mark 1"] if self.version >= (2, 13) else []
        self.scopes[pool] = captures

    def _finish_frees(self) -> None:
        # A scope can hold frees back until it ends. Those that only wait for a stream are done with
        # before: which of the two kinds is completed first is not what these programs ask.
        self._catch_up()
        self._allocate(512)

    def _end_scope(self) -> None:
        if not self.scopes:
            return
        pool = self.rng.choice(list(self.scopes))
        if self.scopes.pop(pool):
            self.calls += ["mark 0"] if self.version >= (2, 13) else []
            self.calls += [] if any(self.scopes.values()) else ["capture 0 0"]
        self.calls += [f"end 0 {pool}", f"release 0 {pool}"]

    def _release_pool(self) -> None:
        kept = {*self.scopes, self.last_resort}
        pools = [pool for pool in self.pools if pool not in kept]
        if pools:
            pool = self.rng.choice(pools)
            self.pools.remove(pool)
            self.released.append(pool)
            self.calls.append(f"release 0 {pool}")

    def _empty_pool(self) -> None:
        pools = self.pools + self.released
        if pools and not self.scopes and self.version >= (2, 8):
            self.calls.append(f"e 0 {self.rng.choice(pools)}")
