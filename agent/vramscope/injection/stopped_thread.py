"""A thread of another process, stopped for a moment to run a function of its own in it.

Whatever happens to this process, SIGKILL included, at whatever moment: the thread runs on as if
nothing had been. Before its registers are touched, a signal frame with everything it had lies on
its stack, and all that it is made to run returns into that frame. As long as this process lives,
it restores the thread itself, which is more exact: a system call that was interrupted goes on as
it would after any stop, where the frame can only make it begin again or return EINTR.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from vramscope.injection import ptrace
from vramscope.injection.errors import InjectionError
from vramscope.injection.machine import (
    Call,
    Landings,
    Machine,
    SignalFrame,
    ThreadState,
    UnsupportedState,
)
from vramscope.injection.memory import TargetMemory
from vramscope.injection.stages import AtStage, no_stage

_STOP_TIMEOUT_S: Final = 10.0
_CALL_TIMEOUT_S: Final = 2.0
_TOO_LONG: Final = "its main thread takes too long; it goes on by itself"
# Never blocked: what the thread's own instructions raise (SIGILL, SIGTRAP, SIGBUS, SIGFPE,
# SIGSEGV, SIGSYS), and SIGKILL and SIGSTOP, which can't be.
_OWN_FAULTS: Final = (4, 5, 7, 8, 11, 31)
_ALL_BLOCKED: Final = (1 << 64) - 1 - sum(1 << (number - 1) for number in (*_OWN_FAULTS, 9, 19))

# struct rseq and struct rseq_cs (include/uapi/linux/rseq.h).
_RSEQ_CS_OFFSET: Final = 8
_RSEQ_CS: Final = struct.Struct("<QQQQ")


class BadMoment(Exception):
    """Nothing can be run in the thread just now; let go and tried again, it will work.

    Attributes:
        lasting: what it means if it never does.
    """

    def __init__(self, reason: str, kind: str = "busy") -> None:
        super().__init__(reason)
        self.lasting = InjectionError(reason, kind)


class StoppedThread:
    """Stop a thread; at the end of the ``with`` block it runs on, restored.

    To be used on a thread of its own: the end of that thread makes the kernel let go of a target
    that cannot be stopped (because a driver holds it, say).

    Args:
        thread: its number; that of the process for the main thread.
        memory: of its process, writable.
        at_stage: called at each of :data:`vramscope.injection.stages.STAGES`.
        stack: addresses of its own stack; on another one (a signal handler's, a coroutine's) there
            may be no room for a frame, and something else below it.

    Attributes:
        stopped_us: how long the thread stood or ran on our account, in us; an upper bound.

    Raises:
        BadMoment: another one traces it, or there is no room on its stack just now.
        InjectionError: ``permission``, ``gone``, ``busy`` (it does not stop), ``memory`` (no room
            on its stack) or ``failed``.
    """

    def __init__(
        self,
        thread: int,
        memory: TargetMemory,
        machine: Machine,
        landings: Landings,
        at_stage: AtStage = no_stage,
        stack: range | None = None,
    ) -> None:
        self._thread = thread
        self._memory = memory
        self._machine = machine
        self._landings = landings
        self._stack = stack
        self._at_stage = at_stage
        self._state: ThreadState | None = None
        self._frame: SignalFrame | None = None
        self._masked = False
        self._stands = False
        self._at_system_call = False
        self._in_function = False
        self._runs_on_by_itself = False
        self.stopped_us = 0.0
        self._start_s = 0.0

    def __enter__(self) -> StoppedThread:
        try:
            ptrace.seize(self._thread)
        except ProcessLookupError as error:
            raise InjectionError("the process has ended", "gone") from error
        except OSError as error:
            # Its memory could be opened, which takes the same right: another one was faster.
            raise BadMoment("the kernel does not allow to trace it", "permission") from error
        self._at_stage("seized")
        self._start_s = time.perf_counter()
        ptrace.interrupt(self._thread)
        self._wait_for_plain_stop()
        self._at_stage("stopped")
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._stands:
            return
        if self._frame is not None and not self._runs_on_by_itself:
            self._go_home()
            self._restore()
        self._at_stage("restored")
        ptrace.detach(self._thread)
        self.stopped_us = (time.perf_counter() - self._start_s) * 1e6
        self._at_stage("detached")

    def call(self, call: Call) -> int | None:
        """Run a function of the process; its result, None if this machine cannot tell it.

        Raises:
            BadMoment: it would have waited for a lock, which the thread itself may hold.
            InjectionError: it faulted (``failed``), or takes too long: then it goes on by itself
                (``busy``).
        """
        state, frame = self._prepared()
        self._run_from(self._machine.to_call(state, frame, self._landings, call))
        self._at_stage("calling")
        self._in_function = True
        self._run_into_frame(frame, call)
        self._in_function = False
        self._at_stage("called")
        if self._machine.result_survives:
            return self._machine.result(self._registers())
        if not call.result or not self._landings.store_result:
            return None
        return int.from_bytes(self._memory.read(call.result, 8), "little", signed=True)

    def system_call(self, number: int, arguments: Sequence[int]) -> int:
        """Make a system call in the process; its result, negative for an error."""
        state, frame = self._prepared()
        machine = self._machine
        self._run_from(machine.to_system_call(state, frame, self._landings, number, arguments))
        self._at_stage("before system call")
        self._run_to_border()
        self._at_stage("in system call")
        self._run_to_border()
        self._at_system_call = False
        self._at_stage("after system call")
        return machine.result(self._registers())

    def write(self, address: int, content: bytes) -> None:
        """Write into the memory of the process.

        Raises:
            InjectionError: it is not mapped (``memory``).
        """
        try:
            self._memory.write(address, content)
        except OSError as error:
            raise InjectionError(f"its memory cannot be written ({error})", "memory") from error

    # -- what the thread had, and how it gets it back -------------------------------------------

    def _prepared(self) -> tuple[ThreadState, SignalFrame]:
        """The saved state and the frame that holds it, made at the first use."""
        if self._state is None or self._frame is None:
            self._state = self._read_state()
            self._refuse_restartable_sequence(self._state)
            try:
                self._machine.check(self._thread)
                frame = self._machine.frame(self._state, self._landings)
            except UnsupportedState as error:
                raise InjectionError(str(error), "failed") from error
            self._write_frame(frame)
            self._frame = frame
            self._at_stage("framed")
        return self._state, self._frame

    def _write_frame(self, frame: SignalFrame) -> None:
        if self._stack is not None and frame.stack_pointer not in self._stack:
            raise BadMoment("its main thread is on a stack that is not its own", "memory")
        try:
            self._memory.write(frame.address, frame.content)
        except OSError as error:
            # Deeper than ever: the kernel lets a stack grow for the thread itself, not for us.
            reason = f"there is no room on the stack of its main thread ({error})"
            raise BadMoment(reason, "memory") from error

    def _read_state(self) -> ThreadState:
        vectors: dict[int, bytes] = {}
        for number in self._machine.vector_sets:
            content = ptrace.read_registers(self._thread, number)
            if content is not None:
                vectors[number] = content
        mask = ptrace.read_signal_mask(self._thread)
        return ThreadState(self._registers(), vectors, mask)

    def _refuse_restartable_sequence(self, state: ThreadState) -> None:
        """A jump out of such a sequence would make the kernel forget to start it again."""
        area = ptrace.rseq_area(self._thread)
        if not area:
            return
        sequence = int.from_bytes(self._memory.read(area + _RSEQ_CS_OFFSET, 8), "little")
        if not sequence:
            return
        _, start, length, _ = _RSEQ_CS.unpack(self._memory.read(sequence, _RSEQ_CS.size))
        if 0 <= self._machine.instruction(state.registers) - start < length:
            raise BadMoment("its main thread is always in a restartable sequence")

    def _registers(self) -> bytes:
        content = ptrace.read_registers(self._thread, ptrace.NT_PRSTATUS)
        if content is None:
            raise InjectionError("its registers cannot be read", "failed")
        return content

    def _write_registers(self, content: bytes) -> None:
        ptrace.write_registers(self._thread, ptrace.NT_PRSTATUS, content)

    def _run_from(self, registers: bytes) -> None:
        if self._runs_on_by_itself:
            raise InjectionError(_TOO_LONG, "busy")
        if self._at_system_call:
            self._go_home()
        self._write_registers(registers)
        if not self._masked:
            # Only now: until here, a thread left alone would have kept this mask for ever.
            ptrace.write_signal_mask(self._thread, _ALL_BLOCKED)
            self._masked = True
            self._at_stage("masked")

    def _restore(self) -> None:
        """Put everything back, registers last: up to then the frame still holds for the rest."""
        state, _ = self._prepared()
        for number, content in state.vectors.items():
            ptrace.write_registers(self._thread, number, content)
        ptrace.write_signal_mask(self._thread, state.signal_mask)
        self._write_registers(state.registers)

    def _go_home(self) -> None:
        """Bring the thread to a plain stop, about to take its frame, outside of system calls."""
        _, frame = self._prepared()
        self._write_registers(self._machine.to_frame(self._registers(), frame, self._landings))
        if self._at_system_call:
            self._machine.skip_system_call(self._thread)
        self._at_stage("returning")
        ptrace.interrupt(self._thread)
        self._resume()
        self._wait_for_plain_stop()
        self._at_stage("home")

    # -- letting it run and catching it again ----------------------------------------------------

    def _resume(self, *, deliver: int = 0, to_system_call: bool = False) -> None:
        self._stands = False
        ptrace.resume(self._thread, deliver=deliver, to_system_call=to_system_call)

    def _wait(self, deadline_s: float) -> ptrace.Stop | None:
        stop = ptrace.wait_for_stop(self._thread, deadline_s - time.perf_counter())
        self._stands = stop is not None
        return stop

    def _wait_for_plain_stop(self) -> None:
        """Wait for the stop that was asked for, delivering signals that come before it."""
        deadline_s = time.perf_counter() + _STOP_TIMEOUT_S
        while (stop := self._wait(deadline_s)) is not None:
            if stop.kind == "event":
                self._at_system_call = False
                return
            # Any other stop takes the place of the one that was asked for.
            ptrace.interrupt(self._thread)
            self._resume(deliver=stop.signal)
        raise InjectionError("it did not stop: its main thread is held inside the kernel", "busy")

    def _run_to_border(self) -> None:
        """Run to the next border of a system call."""
        deadline_s = time.perf_counter() + _CALL_TIMEOUT_S
        self._resume(to_system_call=True)
        if self._in_function:
            self._at_stage("running")
        while (stop := self._wait(deadline_s)) is not None:
            if stop.kind == "syscall":
                return
            if stop.signal in _OWN_FAULTS:
                raise InjectionError(f"its own function failed with signal {stop.signal}", "failed")
            self._resume(deliver=stop.signal, to_system_call=True)
        self._leave()

    def _run_into_frame(self, frame: SignalFrame, call: Call) -> None:
        """Run until the function has returned and the frame is about to be taken."""
        while True:
            self._run_to_border()
            self._at_system_call = True
            registers = self._registers()
            if self._machine.takes_frame(registers, frame):
                return
            if call.waits_at_once and self._machine.waits_for_lock(registers):
                raise BadMoment("a lock that its function needs is never free")
            self._run_to_border()
            self._at_system_call = False

    def _leave(self) -> None:
        """Give up on a function that does not come back: the thread brings itself home."""
        ptrace.interrupt(self._thread)
        self._wait_for_plain_stop()
        self._runs_on_by_itself = True
        raise InjectionError(_TOO_LONG, "busy")
