"""The opcode machine: executes a pickle that holds plain data, and refuses any other."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from typing import Any, NoReturn

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict, is_list
from vramscope_analysis.snapshot.limits import Limits, over
from vramscope_analysis.snapshot.pickles.cursor import Cursor
from vramscope_analysis.snapshot.pickles.object_pool import UNWRITTEN, ObjectPool
from vramscope_analysis.snapshot.pickles.opcodes import Op, is_call, opcode_name
from vramscope_analysis.snapshot.pickles.source import Data
from vramscope_analysis.snapshot.runs.run import Run
from vramscope_analysis.snapshot.runs.run_reader import RunReader

Progress = Callable[[int, int], None]

_OPCODES_A_REPORT = 1 << 16
_SETTLEMENT_OPCODES = 1000
_DOUBLE = struct.Struct(">d")


class Machine(Cursor):
    """Executes the opcodes of one pickle (``pickle.Unpickler`` without everything that calls).

    It builds dict, list, tuple, str, int, float, bool and None and nothing else. Whatever is
    wrong with the pickle raises SnapshotError.
    """

    def __init__(
        self,
        data: Data,
        limits: Limits,
        progress: Progress | None = None,
        *,
        with_runs: bool = True,
    ) -> None:
        """``with_runs=False`` executes everything opcode by opcode."""
        super().__init__(data)
        self._limits = limits
        self._progress = progress
        # Behind PROTO.
        self.position = 2
        self._stack: list[Any] = []
        # The stacks below the open marks.
        self._below: list[list[Any]] = []
        self._pool = ObjectPool()
        self._runs = RunReader(data, self._pool, self._report)
        self._with_runs = with_runs
        # Whether something that may hold runs is part of several containers.
        self.shares_runs = False
        self._frame_end = 0
        # Lists that hold runs, by identity.
        self._lists_of_runs: dict[int, list[Any]] = {}
        # Places (marks below, place above the mark) of containers that came from the memo.
        self._finished: set[tuple[int, int]] = set()
        self._steps: list[Callable[[], None]] = [self._refuse] * 256
        self._fill_steps()

    def run(self) -> Any:
        """Execute until STOP and return what the pickle holds."""
        try:
            return self._run()
        except IndexError:
            if self.position >= self.size:
                raise self.truncated() from None
            raise self.damaged("an opcode needs more values than there are") from None

    def _run(self) -> Any:
        spent = 0
        while spent + _SETTLEMENT_OPCODES * self._runs.settlements < self._limits.opcodes:
            if self._advance(_OPCODES_A_REPORT):
                if self._below or len(self._stack) != 1:
                    raise self.damaged("it ends with values left over")
                self._runs.settle()
                return self._stack[0]
            spent += _OPCODES_A_REPORT
            self._report(self.position)
        raise over("the file needs too many opcodes", self._limits.opcodes, "opcodes")

    def _report(self, position: int) -> None:
        if self._progress is not None:
            self._progress(position, self.size)

    def _advance(self, opcodes: int) -> bool:
        """Execute so many opcodes, or fewer: True when STOP was among them."""
        data, steps = self.data, self._steps
        for _ in range(opcodes):
            code = data[self.position]
            self.position += 1
            if code == Op.STOP:
                return True
            steps[code]()
        return False

    def _fill_steps(self) -> None:
        steps = self._steps
        steps[Op.FRAME] = self._frame
        steps[Op.MARK] = self._mark
        steps[Op.EMPTY_DICT] = self._empty_dict
        steps[Op.EMPTY_LIST] = self._empty_list
        steps[Op.EMPTY_TUPLE] = lambda: self._stack.append(())
        steps[Op.APPEND] = self._append
        steps[Op.APPENDS] = self._appends
        steps[Op.SETITEM] = self._setitem
        steps[Op.SETITEMS] = self._setitems
        steps[Op.TUPLE] = self._tuple
        steps[Op.TUPLE1] = lambda: self._tuple_of(1)
        steps[Op.TUPLE2] = lambda: self._tuple_of(2)
        steps[Op.TUPLE3] = lambda: self._tuple_of(3)
        steps[Op.MEMOIZE] = self._memoize
        steps[Op.BINPUT] = lambda: self._put(self.take_length(1))
        steps[Op.LONG_BINPUT] = lambda: self._put(self.take_length(4))
        steps[Op.BINGET] = self._binget
        steps[Op.LONG_BINGET] = lambda: self._get(self.take_length(4))
        steps[Op.BININT] = lambda: self._integer(4)
        steps[Op.BININT1] = lambda: self._stack.append(self.take_length(1))
        steps[Op.BININT2] = lambda: self._stack.append(self.take_length(2))
        steps[Op.LONG1] = lambda: self._integer(self.take_length(1))
        steps[Op.LONG4] = lambda: self._integer(self.take_length(4))
        steps[Op.BINFLOAT] = lambda: self._stack.append(_DOUBLE.unpack(self.take(8))[0])
        steps[Op.SHORT_BINUNICODE] = lambda: self._text(self.take_length(1))
        steps[Op.BINUNICODE] = lambda: self._text(self.take_length(4))
        steps[Op.BINUNICODE8] = lambda: self._text(self.take_length(8))
        steps[Op.NONE] = lambda: self._stack.append(None)
        steps[Op.NEWTRUE] = lambda: self._stack.append(True)
        steps[Op.NEWFALSE] = lambda: self._stack.append(False)

    # Reading

    def _frame(self) -> None:
        size = self.take_length(8)
        if size > self.size - self.position:
            raise self.truncated()
        self._frame_end = self.position + size

    def _integer(self, count: int) -> None:
        if count > self._limits.integer_bytes:
            raise over(
                f"byte {self.position:,}: an integer of {count:,} bytes",
                self._limits.integer_bytes,
                "integer_bytes",
            )
        self._stack.append(int.from_bytes(self.take(count), "little", signed=True))

    def _text(self, count: int) -> None:
        try:
            self._stack.append(self.take(count).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise self.damaged("a text is not UTF-8") from None

    # Building

    def _mark(self) -> None:
        if len(self._below) >= self._limits.depth:
            raise over(
                f"byte {self.position - 1:,}: containers are nested too deeply",
                self._limits.depth,
                "depth",
            )
        self._below.append(self._stack)
        self._stack = []

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        if not self._below:
            raise self.damaged("an opcode needs a mark and there is none")
        self._stack = self._below.pop()
        return items

    def _empty_dict(self) -> None:
        if (
            self._with_runs
            and self._below
            and self._below[-1]
            and type(self._below[-1][-1]) is list
        ):
            taken = self._runs.take(self.position - 1, self._frame_end)
            if taken is not None:
                self._stack.append(taken.run)
                self.position, self._frame_end = taken.position, taken.frame_end
                return
        self._open({})

    def _empty_list(self) -> None:
        self._open([])

    def _open(self, container: Any) -> None:
        if self._finished:
            self._finished.discard((len(self._below), len(self._stack)))
        self._stack.append(container)

    def _append(self) -> None:
        self._expand_top()
        value = self._stack.pop()
        self._target(list).append(value)

    def _appends(self) -> None:
        items = self._pop_mark()
        target = self._target(list)
        target.extend(items)
        if any(type(item) is Run for item in items):
            self._lists_of_runs[id(target)] = target

    def _setitem(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set(self._target(dict), [key, value])

    def _setitems(self) -> None:
        items = self._pop_mark()
        self._set(self._target(dict), items)

    def _set(self, target: dict[Any, Any], items: list[Any]) -> None:
        if len(items) % 2:
            raise self.damaged("a dict has a key without a value")
        for place in range(0, len(items), 2):
            key = items[place]
            if type(key) is not str and not _is_small_integer(key):
                raise self.damaged(f"expected text as the key of a dict, got {shown(key)}")
            if key in target:
                raise self.damaged(f"a dict has the key {shown(key)} twice")
            target[key] = items[place + 1]

    def _target(self, kind: type) -> Any:
        """The container to be filled: the one on top of the stack, if it was opened there."""
        target = self._stack[-1]
        if type(target) is not kind:
            raise self.damaged(f"expected a {kind.__name__} to fill, got {shown(target)}")
        if self._finished and (len(self._below), len(self._stack) - 1) in self._finished:
            raise self.damaged(f"a {kind.__name__} is changed after it was finished")
        return target

    def _tuple(self) -> None:
        items = self._pop_mark()
        self._runs.expand(items)
        self._stack.append(tuple(items))

    def _tuple_of(self, count: int) -> None:
        self._runs.expand(self._stack)
        if len(self._stack) < count:
            raise IndexError
        self._stack[-count:] = [tuple(self._stack[-count:])]

    # The memo

    def _memoize(self) -> None:
        self._expand_top()
        self._pool.memo.append(self._pool.add(self._stack[-1]))

    def _put(self, index: int) -> None:
        memo = self._pool.memo
        if index == len(memo):
            self._memoize()
            return
        # What is memoized takes two bytes at least: a larger index would only waste memory.
        if index > self.position // 2:
            raise self.damaged(f"memo index {index:,} cannot be reached by this byte")
        if index > len(memo):
            memo.extend(array("i", [UNWRITTEN]) * (index + 1 - len(memo)))
        elif memo[index] != UNWRITTEN:
            raise self.damaged(f"memo index {index:,} is written twice")
        self._expand_top()
        memo[index] = self._pool.add(self._stack[-1])

    def _binget(self) -> None:
        self._get(self.take_length(1))

    def _get(self, index: int) -> None:
        memo = self._pool.memo
        code = memo[index] if index < len(memo) else UNWRITTEN
        if code == UNWRITTEN:
            raise self.damaged(f"memo index {index:,} is read before it is written")
        value = self._pool.objects[code] if code >= 0 else self._runs.fetch(index)
        if is_list(value) or is_dict(value):
            self._finished.add((len(self._below), len(self._stack)))
            self.shares_runs = self.shares_runs or not _is_flat(value)
            if id(value) in self._lists_of_runs:
                self._runs.expand(self._lists_of_runs.pop(id(value)))
        self._stack.append(value)

    def _expand_top(self) -> None:
        """Runs stand for the items of a list: whatever else takes one gets its last dict."""
        if self._stack and type(self._stack[-1]) is Run:
            self._runs.expand(self._stack)

    # Refusing

    def _refuse(self) -> NoReturn:
        at = self.position - 1
        code = self.data[at]
        name = opcode_name(code)
        if is_call(code):
            raise SnapshotError(
                f"byte {at:,}: pickle opcode {name}, which can run code: expected plain data "
                "(dict, list, tuple, text and numbers), as a memory snapshot is; refused"
            )
        raise SnapshotError(
            f"byte {at:,}: pickle opcode {name}: expected only those that build plain data; "
            "the file is damaged or no memory snapshot"
        )


def _is_small_integer(value: object) -> bool:
    # Larger ones could be made to share one hash: a dict of them would take hours to build.
    return type(value) is int and -(1 << 62) < value < 1 << 62


def _is_flat(value: object) -> bool:
    """Whether a container can hold no run: frames and lists of frames are all that is shared."""
    if is_list(value):
        return all(not is_list(item) and not (is_dict(item) and _is_nested(item)) for item in value)
    return not (is_dict(value) and _is_nested(value))


def _is_nested(value: dict[Any, Any]) -> bool:
    return any(is_list(part) or is_dict(part) for part in value.values())
