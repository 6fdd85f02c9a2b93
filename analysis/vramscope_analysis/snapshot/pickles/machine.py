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
from vramscope_analysis.snapshot.pickles.stack import OperandStack
from vramscope_analysis.snapshot.runs.run import Run
from vramscope_analysis.snapshot.runs.run_reader import RunReader

Progress = Callable[[int, int], None]

_OPCODES_A_REPORT = 1 << 14
_DOUBLE = struct.Struct(">d")


class Machine(Cursor):
    """Executes the opcodes of one pickle (``pickle.Unpickler`` without everything that calls).

    It builds dict, list, tuple, str, int, float, bool and None and nothing else; in lists, a Run
    can stand for many dicts. Whatever is wrong with the pickle raises SnapshotError.
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
        self._stack = OperandStack()
        self._pool = ObjectPool()
        self._runs = RunReader(data, self._pool, limits.opcodes, self._report)
        self._with_runs = with_runs
        # Whether something that may hold runs is part of several containers.
        self.shares_runs = False
        self._frame_end = 0
        # Containers that cannot hold any, by identity.
        self._flat: set[int] = set()
        self._steps: list[Callable[[], None]] = [self._refuse] * 256
        self._fill_steps()

    def run(self) -> Any:
        """Execute until STOP and return what the pickle holds."""
        # Behind PROTO.
        self.position = 2
        spent = 0
        try:
            while spent + self._runs.cost < self._limits.opcodes:
                if self._advance(_OPCODES_A_REPORT):
                    return self._result()
                spent += _OPCODES_A_REPORT
                self._report(self.position)
        except IndexError:
            if self.position >= self.size:
                raise self.truncated() from None
            raise self.damaged("an opcode needs more values than there are") from None
        raise over("the file needs too many opcodes", self._limits.opcodes, "opcodes")

    def _result(self) -> Any:
        if self._stack.below or len(self._stack.items) != 1:
            raise self.damaged("it ends with values left over")
        self._runs.settle()
        return self._stack.items[0]

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
        steps[Op.EMPTY_LIST] = lambda: self._stack.open([])
        steps[Op.EMPTY_TUPLE] = lambda: self._push(())
        steps[Op.APPEND] = self._append
        steps[Op.APPENDS] = self._appends
        steps[Op.SETITEM] = self._setitem
        steps[Op.SETITEMS] = self._setitems
        steps[Op.TUPLE] = self._tuple
        steps[Op.TUPLE1] = lambda: self._tuple_of(1)
        steps[Op.TUPLE2] = lambda: self._tuple_of(2)
        steps[Op.TUPLE3] = lambda: self._tuple_of(3)
        steps[Op.MEMOIZE] = self._memoize
        steps[Op.BINPUT] = lambda: self._put(self.take_byte())
        steps[Op.LONG_BINPUT] = lambda: self._put(self.take_length(4))
        steps[Op.BINGET] = lambda: self._get(self.take_byte())
        steps[Op.LONG_BINGET] = lambda: self._get(self.take_length(4))
        steps[Op.BININT] = lambda: self._integer(4)
        steps[Op.BININT1] = lambda: self._push(self.take_byte())
        steps[Op.BININT2] = lambda: self._push(self.take_length(2))
        steps[Op.LONG1] = lambda: self._integer(self.take_byte())
        steps[Op.LONG4] = lambda: self._integer(self.take_length(4))
        steps[Op.BINFLOAT] = lambda: self._push(_DOUBLE.unpack(self.take(8))[0])
        steps[Op.SHORT_BINUNICODE] = lambda: self._text(self.take_byte())
        steps[Op.BINUNICODE] = lambda: self._text(self.take_length(4))
        steps[Op.BINUNICODE8] = lambda: self._text(self.take_length(8))
        steps[Op.NONE] = lambda: self._push(None)
        steps[Op.NEWTRUE] = lambda: self._push(True)
        steps[Op.NEWFALSE] = lambda: self._push(False)

    # Values

    def _push(self, value: Any) -> None:
        self._stack.items.append(value)

    def _frame(self) -> None:
        size = self.take_length(8)
        if size > self.size - self.position:
            raise self.truncated()
        self._frame_end = self.position + size

    def _integer(self, count: int) -> None:
        if count > self._limits.integer_bytes:
            what = f"byte {self.position:,}: an integer of {count:,} bytes"
            raise over(what, self._limits.integer_bytes, "integer_bytes")
        self._push(int.from_bytes(self.take(count), "little", signed=True))

    def _text(self, count: int) -> None:
        try:
            self._push(self.take(count).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise self.damaged("a text is not UTF-8") from None

    # Containers

    def _mark(self) -> None:
        if len(self._stack.below) >= self._limits.depth:
            what = f"byte {self.position:,}: containers are nested too deeply"
            raise over(what, self._limits.depth, "depth")
        self._stack.mark()

    def _empty_dict(self) -> None:
        below = self._stack.below
        if self._with_runs and below and below[-1] and type(below[-1][-1]) is list:
            taken = self._runs.take(self.position - 1, self._frame_end)
            if taken is not None:
                self._push(taken.run)
                self.position, self._frame_end = taken.position, taken.frame_end
                return
        self._stack.open({})

    def _append(self) -> None:
        self._expand(1)
        value = self._stack.items.pop()
        self._target(list).append(value)

    def _appends(self) -> None:
        items = self._pop_mark()
        self._target(list).extend(items)

    def _setitem(self) -> None:
        self._expand(2)
        value = self._stack.items.pop()
        key = self._stack.items.pop()
        self._set(self._target(dict), [key, value])

    def _setitems(self) -> None:
        items = self._pop_mark()
        self._runs.expand(items)
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

    def _tuple(self) -> None:
        items = self._pop_mark()
        self._runs.expand(items)
        self._push(tuple(items))

    def _tuple_of(self, count: int) -> None:
        self._expand(count)
        items = self._stack.items
        if len(items) < count:
            raise IndexError
        items[-count:] = [tuple(items[-count:])]

    def _pop_mark(self) -> list[Any]:
        try:
            return self._stack.pop_mark()
        except SnapshotError as error:
            raise self.damaged(str(error)) from None

    def _target(self, kind: type) -> Any:
        try:
            return self._stack.target(kind)
        except SnapshotError as error:
            raise self.damaged(str(error)) from None

    def _expand(self, count: int) -> None:
        """Runs stand for items of a list: whatever else takes the last values gets dicts."""
        if any(type(item) is Run for item in self._stack.items[-count:]):
            self._runs.expand(self._stack.items)

    # The memo

    def _memoize(self) -> None:
        if type(self._stack.items[-1]) is Run:
            self._expand(1)
        self._pool.memo.append(self._pool.add(self._stack.items[-1]))

    def _put(self, index: int) -> None:
        memo = self._pool.memo
        # What is memoized takes two bytes at least: a larger index would only waste memory.
        if index > self.position // 2:
            raise self.damaged(f"memo index {index:,} cannot be reached by this byte")
        if index < len(memo) and memo[index] != UNWRITTEN:
            raise self.damaged(f"memo index {index:,} is written twice")
        if index >= len(memo):
            memo.extend(array("i", [UNWRITTEN]) * (index + 1 - len(memo)))
        self._expand(1)
        memo[index] = self._pool.add(self._stack.items[-1])

    def _get(self, index: int) -> None:
        memo = self._pool.memo
        code = memo[index] if index < len(memo) else UNWRITTEN
        if code == UNWRITTEN:
            raise self.damaged(f"memo index {index:,} is read before it is written")
        value = self._pool.objects[code] if code >= 0 else self._runs.fetch(index)
        if is_list(value) or is_dict(value):
            self._check_shared(value)
            self._stack.push_finished(value)
        else:
            self._push(value)

    def _check_shared(self, value: list[Any] | dict[Any, Any]) -> None:
        if id(value) not in self._flat and not self.shares_runs:
            self.shares_runs = not _is_flat(value)
            self._flat.add(id(value))

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


def _is_flat(value: list[Any] | dict[Any, Any]) -> bool:
    """Whether it can hold no run, like what PyTorch shares: frames and lists of them."""
    if is_dict(value):
        return not any(is_list(part) or is_dict(part) for part in value.values())
    return not any(
        type(item) is Run or is_list(item) or (is_dict(item) and not _is_flat(item))
        for item in value
    )
