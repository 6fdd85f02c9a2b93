"""The options in force, whatever release and whoever has set them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors.allocator_settings import AllocatorSettings, text_of_environment
from vramscope_protocol.messages import Event

SETTER = {"2.6.0": "_cuda_cudaCachingAllocator_set_allocator_settings"}


class Job:
    """A process with some release of PyTorch, which the test lets come up."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, version: str, environ: dict[str, str], **c: Any
    ) -> None:
        self.is_up = False
        self.set_texts: list[str] = []
        setter = SETTER.get(version, "_accelerator_setAllocatorSettings")
        self.c_module = SimpleNamespace(
            _cuda_memoryStats=None, **{setter: self.set_texts.append}, **c
        )
        torch = SimpleNamespace(
            __version__=version,
            _C=self.c_module,
            cuda=SimpleNamespace(is_initialized=lambda: self.is_up),
        )
        monkeypatch.setitem(sys.modules, "torch", torch)
        self.setter = setter
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.settings = AllocatorSettings(
            self.clock, self.events.append, lambda: 7, environ=environ
        )

    def set(self, text: str) -> None:
        getattr(self.c_module, self.setter)(text)

    def told(self) -> list[str]:
        self.clock.advance(1.0)
        self.settings.read()
        return [event.data["text"] for event in self.events]


def test_nothing_is_said_before_the_device_is_up_because_pytorch_reads_it_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environ = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    job = Job(monkeypatch, "2.6.0", environ)
    assert (job.settings.text(), job.told()) == (None, [])
    environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # by the script, in time
    job.is_up = True
    assert job.told() == ["expandable_segments:True"]
    environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:32"  # too late: nobody reads it
    assert job.told() == ["expandable_segments:True"]
    assert (job.events[0].kind, job.events[0].step) == ("settings", 7)


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0"])
def test_what_the_job_sets_later_is_followed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    job = Job(monkeypatch, version, {})
    job.is_up = True
    assert job.told() == [""]
    job.set("expandable_segments:True")
    assert job.told() == ["", "expandable_segments:True"]
    assert job.set_texts == ["expandable_segments:True"]  # PyTorch has got it
    job.settings.remove()
    job.set("max_split_size_mb:64")
    assert job.told() == ["", "expandable_segments:True"]


def test_a_release_that_can_be_asked_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["roundup_power2_divisions:4"]
    job = Job(monkeypatch, "2.12.0", {}, _accelerator_getAllocatorSettings=lambda: said[0])
    job.is_up = True
    job.told()
    said[0] = "expandable_segments:True"
    assert job.told() == ["roundup_power2_divisions:4", "expandable_segments:True"]
    setter: Any = getattr(job.c_module, job.setter)
    assert setter == job.set_texts.append  # nothing had to be wrapped


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0"])
def test_what_each_text_leaves_as_it_is_stays_known(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    environ = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64"}
    job = Job(monkeypatch, version, environ)
    assert job.settings.known() == {}
    job.is_up = True
    assert job.settings.known() == {"expandable_segments": "True", "max_split_size_mb": "64"}
    job.set("garbage_collection_threshold:0.5")
    assert job.settings.known() == {
        "expandable_segments": "True",
        "garbage_collection_threshold": "0.5",
    }


def test_so_does_it_where_the_release_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["max_split_size_mb:64"]
    environ = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    job = Job(monkeypatch, "2.12.0", environ, _accelerator_getAllocatorSettings=lambda: said[0])
    job.is_up = True
    # The job had set it before anybody looked: the environment was first all the same.
    assert job.settings.known() == {"expandable_segments": "True", "max_split_size_mb": "64"}
    said[0] = "roundup_power2_divisions:[256:1,>:4]"
    assert job.settings.known() == {
        "expandable_segments": "True",
        "roundup_power2_divisions": "[256:1,>:4]",
    }


def test_looking_between_two_seconds_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(monkeypatch, "2.6.0", {})
    job.told()
    job.is_up = True
    job.clock.advance(0.1)
    assert job.settings.read() == []
    assert job.events == []


def test_each_release_reads_its_own_variables() -> None:
    both = {"PYTORCH_CUDA_ALLOC_CONF": "a:1", "PYTORCH_ALLOC_CONF": "b:1"}
    newer = {"PYTORCH_ALLOC_CONF": "b:1"}
    assert text_of_environment(both, (2, 10)) == text_of_environment(both, (2, 4)) == "a:1"
    assert text_of_environment(newer, (2, 10)) == "b:1"
    assert text_of_environment(newer, (2, 9)) == ""
    assert text_of_environment({"PYTORCH_HIP_ALLOC_CONF": "c:1"}, (2, 8)) == "c:1"
