from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20


def refused(**changes: Any) -> Any:
    from vramscope_analysis.allocator import OutOfMemoryError

    values: dict[str, Any] = {
        "requested_bytes": 5 * MIB,
        "segment_bytes": 20 * MIB,
        "capacity_bytes": 64 * MIB,
        "allowed_bytes": 64 * MIB,
        "reserved_bytes": 60 * MIB,
        "allocated_bytes": 50 * MIB,
        "largest_free_bytes": 0,
        "stream": 0,
    }
    return OutOfMemoryError(**values | changes)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (1024, "1024 bytes"),
        (1536, "1.50 KiB"),
        (198 * MIB, "198.00 MiB"),
        (1 << 30, "1024.00 MiB"),
        (3 << 30, "3.00 GiB"),
    ],
)
def test_sizes_read_as_in_the_real_error(size_bytes: int, text: str) -> None:
    from vramscope.emulation.out_of_memory import format_size

    assert format_size(size_bytes) == text


def test_the_message_is_laid_out_as_the_real_one() -> None:
    from vramscope.emulation.out_of_memory import message

    # Words and order of a real message of torch 2.11, with " (emulated)" added.
    assert message(refused(), (2, 11)) == (
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 (emulated) has a total capacity of "
        "64.00 MiB of which 4.00 MiB is free. Including non-PyTorch memory, this process has 60.00 "
        "MiB memory in use. Of the allocated memory 50.00 MiB is allocated by PyTorch, and 10.00 "
        "MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def test_a_cap_is_named_before_what_is_allocated() -> None:
    from vramscope.emulation.out_of_memory import message

    text = message(refused(allowed_bytes=62 * MIB), (2, 11))

    assert "memory in use. 62.00 MiB allowed; Of the allocated memory 50.00 MiB is" in text
    assert "which 4.00 MiB is free" in text


@pytest.mark.parametrize(
    ("version", "variable", "page"),
    [
        ((2, 4), " PYTORCH_CUDA_ALLOC_CONF=", "//pytorch.org/docs/stable/notes/cuda.html#env"),
        ((2, 9), " PYTORCH_CUDA_ALLOC_CONF=", "//pytorch.org/docs/stable/notes/cuda.html#env"),
        ((2, 10), " PYTORCH_ALLOC_CONF=", "//pytorch.org/docs/stable/notes/cuda.html#env"),
        ((2, 11), " PYTORCH_CUDA_ALLOC_CONF=", "//docs.pytorch.org/docs/stable/notes/cuda.html#o"),
        ((2, 14), " PYTORCH_CUDA_ALLOC_CONF=", "//docs.pytorch.org/docs/stable/notes/cuda.html#o"),
    ],
)
def test_the_hint_names_what_the_release_names(
    version: tuple[int, int], variable: str, page: str
) -> None:
    from vramscope.emulation.out_of_memory import hint

    assert variable in hint(version)
    assert page in hint(version)


def test_observers_are_told_in_turn_before_the_error() -> None:
    from vramscope.emulation.out_of_memory import OutOfMemory

    told: list[Any] = []
    out_of_memory = OutOfMemory((2, 11))
    out_of_memory.attach(lambda *facts: told.append(("first", facts)))
    out_of_memory.attach(lambda *facts: told.append(("second", facts)))

    error = out_of_memory.error(refused(allowed_bytes=62 * MIB))

    facts = (0, 20 * MIB, 62 * MIB, 4 * MIB)
    assert told == [("first", facts), ("second", facts)]
    assert isinstance(error, torch.cuda.OutOfMemoryError)


def test_what_an_observer_raises_takes_the_place_of_the_error() -> None:
    from vramscope.emulation.out_of_memory import OutOfMemory

    def stop(*_facts: int) -> None:
        raise KeyboardInterrupt

    out_of_memory = OutOfMemory((2, 11))
    out_of_memory.attach(stop)

    with pytest.raises(KeyboardInterrupt):
        out_of_memory.error(refused())


def test_a_rejection_has_other_words_and_no_observers() -> None:
    from vramscope.emulation.out_of_memory import OutOfMemory

    told: list[Any] = []
    out_of_memory = OutOfMemory((2, 12))
    out_of_memory.attach(lambda *facts: told.append(facts))

    text = str(out_of_memory.error(refused(is_rejection=True)))

    assert told == []
    assert text.startswith("CUDA out of memory. Allocation was preemptively rejected because it")
    assert "Requested size: 20.00 MiB (on GPU 0, emulated)" in text
