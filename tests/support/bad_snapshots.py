"""Files that are no snapshot, are damaged, or mean harm, each with words of its refusal."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class BadFile(NamedTuple):
    """A name, the bytes, and a regular expression that the refusal matches."""

    name: str
    content: bytes | Callable[[], bytes]
    words: str

    @property
    def data(self) -> bytes:
        """The bytes, made now where that takes long."""
        return self.content if isinstance(self.content, bytes) else self.content()


class Runs:
    """Runs a program when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must never be printed",))


class Built:
    """An object with state."""

    def __init__(self) -> None:
        self.state = 1


PROTO = b"\x80\x04"
TRACE_KEY = b"\x8c\x0ddevice_traces\x94"


def snapshot(**changes: Any) -> dict[str, Any]:
    """A small snapshot as it should be, with other values at the top."""
    return {"segments": [segment()], "device_traces": [[entry()]], **changes}


def segment(**changes: Any) -> dict[str, Any]:
    """A segment as it should be, with other values."""
    good = {"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "blocks": [block()]}
    return {**good, **changes}


def block(**changes: Any) -> dict[str, Any]:
    """A block as it should be, with other values."""
    return {"address": 4096, "size": 2048, "requested_size": 1, "state": "inactive", **changes}


def entry(**changes: Any) -> dict[str, Any]:
    """A trace entry as it should be, with other values."""
    return {"action": "alloc", "addr": 1, "size": 2, "stream": 0, "time_us": 3, **changes}


def bad_files() -> Iterator[BadFile]:
    """All of them."""
    yield from foreign_files()
    yield from other_pickles()
    yield from calling_pickles()
    yield from damaged_pickles()
    yield from bombs()
    yield from wrong_fields()


def foreign_files() -> Iterator[BadFile]:
    """What people upload instead."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps({}))
    yield BadFile("empty", b"", "got an empty file")
    yield BadFile("empty gzip", gzip.compress(b""), "got an empty file")
    yield BadFile("one byte", b"\x80", "truncated: it ends after its first byte")
    yield BadFile("checkpoint", archive.getvalue(), "zip archive, as torch.save writes")
    old = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    yield BadFile("old checkpoint", old, "old files of torch.save")
    yield BadFile("json", json.dumps(snapshot()).encode(), "got JSON")
    yield BadFile("json list", b'  [{"segments": []}]', "got JSON")
    yield BadFile("html", b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML")
    yield BadFile("text", b"Traceback (most recent call last):\n", "got text")
    yield BadFile("text in gzip", gzip.compress(b"hello"), "got text")
    yield BadFile("gzip in gzip", gzip.compress(gzip.compress(b"hello")), "got other bytes")
    yield BadFile("bzip2", b"BZh91AY&SY", "bzip2 file: unpack it first")
    yield BadFile("xz", b"\xfd7zXZ\x00\x00", "xz file: unpack it first")
    yield BadFile("zstandard", b"\x28\xb5\x2f\xfd\x04", "zstandard file: unpack it first")
    yield BadFile("program", b"\x7fELF\x02\x01", "got a program")
    yield BadFile("binary", bytes(range(1, 200)), "got other bytes")
    yield BadFile("protocol 0", pickle.dumps(snapshot(), 0), "protocol 0 or 1")
    yield BadFile("protocol 1", pickle.dumps(snapshot(), 1), "protocol 0 or 1")
    yield BadFile("protocol 9", b"\x80\x09N.", "protocol 2 to 5, got 9")
    yield BadFile("damaged gzip", damaged_gzip(), "gzip data is damaged")
    yield BadFile("half a gzip", gzip.compress(bytes(10**6))[:500], "gzip data is truncated")


def other_pickles() -> Iterator[BadFile]:
    """Pickles of plain data that is something else."""
    dumps = pickle.dumps
    yield BadFile("none", dumps(None, 4), "dict of torch.cuda.memory._snapshot.., got None")
    yield BadFile("number", dumps(2.5, 4), "_snapshot.., got 2.5")
    yield BadFile("text value", dumps("x" * 99, 4), "_snapshot.., got 'xxx.*…'")
    yield BadFile("list", dumps([1, 2], 4), "_snapshot.., got a list")
    yield BadFile("segments only", dumps([segment()], 4), "list of segments.*save _snapshot")
    yield BadFile("empty dict", dumps({}, 4), "key 'segments', got a dict with no keys")
    yield BadFile("stats", dumps({"num_ooms": 0}, 4), "key 'segments', got a dict with 'num_ooms'")
    yield BadFile("numbered dict", dumps({1: 2}, 4), "its keys are texts, got 1")


def calling_pickles() -> Iterator[BadFile]:
    """Pickles that import or call something."""
    code = "which can run code"
    yield BadFile("global 2", pickle.dumps(print, 2), f"GLOBAL, {code}")
    yield BadFile("global 4", pickle.dumps(print, 4), f"STACK_GLOBAL, {code}")
    yield BadFile("reduce 2", pickle.dumps(Runs(), 2), code)
    yield BadFile("reduce 4", pickle.dumps(snapshot(x=Runs()), 4), f"STACK_GLOBAL, {code}")
    yield BadFile("ordered dict", pickle.dumps(OrderedDict(snapshot()), 4), code)
    yield BadFile("object", pickle.dumps(snapshot(x=Built()), 5), code)
    yield BadFile("bare reduce", PROTO + b"K\x01)R.", f"REDUCE, {code}")
    yield BadFile("bare build", PROTO + b"}}b.", f"BUILD, {code}")
    yield BadFile("inst", PROTO + b"(ios\nsystem\n.", f"INST, {code}")
    yield BadFile("obj", PROTO + b"(o.", f"OBJ, {code}")
    yield BadFile("newobj", PROTO + b"K\x01)\x81.", f"NEWOBJ, {code}")
    yield BadFile("newobj ex", PROTO + b"K\x01)}\x92.", f"NEWOBJ_EX, {code}")
    yield BadFile("persistent id", PROTO + b"P0\n.", f"PERSID, {code}")
    yield BadFile("binary persistent id", PROTO + b"K\x01Q.", f"BINPERSID, {code}")
    yield BadFile("extension", PROTO + b"\x82\x01.", f"EXT1, {code}")
    yield BadFile("set", pickle.dumps(snapshot(x={1}), 4), "EMPTY_SET")
    yield BadFile("bytes", pickle.dumps(snapshot(x=b"y"), 4), "SHORT_BINBYTES")
    yield BadFile("buffer", PROTO + b"\x97.", "NEXT_BUFFER")
    yield BadFile("text integer", PROTO + b"I01\n.", "pickle opcode INT")
    yield BadFile("unknown opcode", PROTO + b"\xff.", "pickle opcode 0xff")
    yield BadFile("pop", PROTO + b"NN0.", "pickle opcode POP")


def damaged_pickles() -> Iterator[BadFile]:
    """Pickles in which opcodes do not fit each other."""
    good = pickle.dumps(snapshot(), 4)
    yield BadFile("half", good[: len(good) // 2], "truncated: it ends at byte")
    yield BadFile("without end", good[:-1], "truncated: it ends at byte")
    yield BadFile("only a stop", PROTO + b".", "values left over")
    yield BadFile("two values", PROTO + b"NN.", "values left over")
    yield BadFile("open mark", PROTO + b"(N.", "values left over")
    yield BadFile("no mark", PROTO + b"]e.", "needs a mark")
    yield BadFile("no value", PROTO + b"]a.", "more values than there are")
    yield BadFile("short tuple", PROTO + b"N\x86.", "more values than there are")
    yield BadFile("half a pair", PROTO + b"}(K\x01u.", "key without a value")
    yield BadFile("append to dict", PROTO + b"}Na.", "expected a list to fill, got a dict")
    yield BadFile("item of list", PROTO + b"]NNs.", "expected a dict to fill, got a list")
    yield BadFile("same key twice", PROTO + b"}(K\x01NK\x01Nu.", "key 1 twice")
    yield BadFile("same text twice", PROTO + b"}(\x8c\x01aN\x8c\x01aNu.", "key 'a' twice")
    yield BadFile("list as key", PROTO + b"}]Ns.", "text as the key of a dict, got a list")
    yield BadFile("float as key", PROTO + b"}G" + bytes(8) + b"Ns.", "key of a dict, got 0.0")
    yield BadFile("huge key", PROTO + b"}\x8a\x09" + bytes(8) + b"\x01Ns.", "text as the key")
    yield BadFile("empty memo", PROTO + b"h\x05.", "memo index 5 is read before it is written")
    yield BadFile("memo twice", b"\x80\x02Nq\x00q\x00.", "memo index 0 is written twice")
    yield BadFile("filled later", PROTO + b"]\x94h\x00Na\x86.", "changed after it was finished")
    yield BadFile("no text", PROTO + b"\x8c\x02\xff\xfe.", "a text is not UTF-8")
    yield BadFile("long frame", PROTO + b"\x95" + struct.pack("<Q", 99) + b"N.", "truncated")


def bombs() -> Iterator[BadFile]:
    """Small files that ask for much."""
    yield BadFile("memo bomb", b"\x80\x02Nr\xff\xff\xff\x7f.", "memo index 2,147,483,647 cannot")
    yield BadFile("memo bomb 2", b"\x80\x02Nr\xff\xff\xff\xff.", "memo index 4,294,967,295 cannot")
    yield BadFile("huge text", PROTO + b"\x8d" + b"\xff" * 8 + b"x.", "truncated")
    yield BadFile("long text", PROTO + b"X\xff\xff\xff\x7fx.", "truncated")
    yield BadFile("huge integer", PROTO + b"\x8b\xff\xff\xff\x7fx.", "integer of 2,147,483,647")
    yield BadFile("negative size", PROTO + b"\x8b\xff\xff\xff\xffx.", "integer of 4,294,967,295")
    yield BadFile("long integer", PROTO + b"\x8a\x7f" + b"x" * 127 + b".", "integer of 127 bytes")
    yield BadFile("marks", PROTO + b"(" * 10**6 + b".", "nested too deeply")
    yield BadFile("lists", PROTO + b"]" * 10**6 + b".", "values left over")
    yield BadFile("deep lists", keyed(b"]" * 10**5 + b"a" * (10**5 - 1)), "nested too deeply")
    yield BadFile("deep tuples", keyed(b")" + b"\x85" * 10**5), "nested too deeply")
    yield BadFile("deep dicts", keyed(nested_dicts(70)), "nested too deeply")
    yield BadFile("laughs", keyed(laughs()), "unfolds to more than .* through shared references")
    yield BadFile("laughs in an entry", trace(b"\x8c\x01x" + laughs()), "unfolds to more than")
    yield BadFile("cycle", keyed(b"]\x94h\x00a"), "list contains itself")
    yield BadFile("cycle of two", keyed(b"]\x94(]\x94h\x00ae"), "list contains itself")
    yield BadFile("cyclic dict", keyed(b"}\x94\x8c\x01xh\x00s"), "dict contains itself")
    yield BadFile("entries without end", endless_entries(), "listed so often|outgrow the file")
    yield BadFile("gzip bomb", lambda: gzip.compress(bytes(300 << 20)), "limit 300.*gzip_ratio")
    yield BadFile("gzip bombs", lambda: gzip.compress(bytes(40 << 20)) * 5, "limit 300.*gzip_ratio")
    yield BadFile(
        "empty dicts", lambda: PROTO + b"](" + b"}" * 17_000_000 + b"e.", "too many opcodes"
    )


def wrong_fields() -> Iterator[BadFile]:
    """Snapshots with values that PyTorch cannot have written."""
    changes: list[tuple[str, dict[str, Any], str]] = [
        ("segments", {"segments": {}}, "segments: expected a list, got a dict"),
        ("segment", {"segments": [1]}, r"segments\[0\]: expected a dict, got 1"),
        ("no address", {"segments": [block()]}, r"segments\[0\]: expected the key 'total_size'"),
        ("traces", {"device_traces": 5}, "device_traces: expected a list, got 5"),
        ("trace", {"device_traces": [5]}, r"device_traces\[0\]: expected a list, got 5"),
        ("entry", {"device_traces": [[None]]}, r"device_traces\[0\]\[0\]: expected a dict"),
        ("settings", {"allocator_settings": 1}, "allocator_settings: expected a dict, got 1"),
        ("annotations", {"external_annotations": {}}, "external_annotations: expected a list"),
    ]
    wrong: list[tuple[str, Any, str]]
    wrong = [
        ("total_size", -1, "expected an integer .at least 0.*, got -1"),
        ("total_size", "2", "expected an integer .*, got '2'"),
        ("address", 1 << 64, "expected an integer .*, got 18446744073709551616"),
        ("address", True, "expected an integer .*, got True"),
        ("device", 1 << 40, "expected an integer"),
        ("stream", None, "expected an integer .*, got None"),
        ("is_expandable", 1, "expected True or False, got 1"),
        ("segment_type", 5, "expected a word, got 5"),
        ("segment_pool_id", (0, -1), "tuple of two integers of at least 0, got a tuple"),
        ("frames", {}, "expected a list of frames, got a dict"),
        ("frames", [1], "expected a dict for each frame, got 1"),
        ("frames", [{"name": "f"}], "frames.*expected the key 'filename', got 'name'"),
        ("blocks", None, "expected a list, got None"),
        ("blocks", [block(size=-5)], r"blocks\[0\].size: expected an integer"),
        ("blocks", [block(), {"size": 1}], r"blocks\[1\]: expected the key 'state'"),
        ("blocks", [7], r"segments\[0\].blocks\[0\]: expected a dict, got 7"),
    ]
    for place, (field, value, words) in enumerate(wrong):
        changes.append(
            (f"segment {place} {field}", {"segments": [segment(**{field: value})]}, words)
        )
    wrong = [
        ("action", 1, r"device_traces\[0\]\[20\].action: expected a word, got 1"),
        ("addr", -1, r"device_traces\[0\]\[20\].addr: expected an integer"),
        ("size", -512, r"device_traces\[0\]\[20\].size: expected an integer .*, got -512"),
        ("size", 1 << 63, r"device_traces\[0\]\[20\].size: expected an integer"),
        ("size", 2.0, r"device_traces\[0\]\[20\].size: expected an integer .*, got 2.0"),
        ("time_us", "now", r"device_traces\[0\]\[20\].time_us: expected an integer"),
        ("pool_id", [0, 0], r"device_traces\[0\]\[20\].pool_id: .* got a list"),
        ("compile_context", 5, r"device_traces\[0\]\[20\].compile_context: expected a text"),
        ("frames", None, r"device_traces\[0\]\[20\].frames: expected a list of frames"),
    ]
    for place, (field, value, words) in enumerate(wrong):
        entries = [entry(time_us=at) for at in range(40)]
        entries[20] = entry(**{field: value})
        changes.append((f"entry {place} {field}", {"device_traces": [entries]}, words))
    for name, change, words in changes:
        yield BadFile(name, pickle.dumps(snapshot(**change), 4), words)


def damaged_gzip() -> bytes:
    """A gzip file with other bytes in its middle."""
    data = bytearray(gzip.compress(zlib.compress(bytes(range(256)) * 9)))
    data[20:40] = bytes(20)
    return bytes(data)


def keyed(value: bytes) -> bytes:
    """A snapshot with the value of these opcodes under a key of its own; the memo is empty."""
    return PROTO + b"}(\x8c\x08segments]\x8c\x01v" + value + b"u."


def trace(pair: bytes) -> bytes:
    """A snapshot with one trace entry that has one more key and value; the memo is empty."""
    entry_opcodes = b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01" + pair + b"u"
    return PROTO + b"}(\x8c\x08segments]\x8c\x0ddevice_traces]]" + entry_opcodes + b"aau."


def nested_dicts(depth: int) -> bytes:
    """A dict in a dict in a dict."""
    return b"}\x8c\x01x" * depth + b"N" + b"s" * depth


def laughs() -> bytes:
    """Thirty lists, each of which holds the one before it ten times."""
    opcodes = b"]\x94"
    for index in range(30):
        opcodes += b"](" + bytes([ord("h"), index]) * 10 + b"e\x94"
    return b"(" + opcodes + b"t"


def endless_entries() -> bytes:
    """One trace of a thousand entries, for each of a hundred thousand devices."""
    entries = pickle.dumps([entry()] * 1000, 4)[11:-1]
    listed = b"](" + entries + b"h\x00" * 100_000 + b"e"
    return PROTO + b"}(" + b"\x8c\x08segments]\x8c\x0ddevice_traces" + listed + b"u."
