"""A virtual machine room: processes and threads on one virtual clock, scheduled by a seed.

Threads are greenlets of one thread of the operating system. One of them runs until it blocks: in a lock, a sleep, a
socket or the selector of an event loop. Which thread goes on, and how long everything takes, comes from one random
generator, so that the same seed gives the same run. No time passes while nobody can run: the clock jumps to the next
timer. Threads change only where they block, so a race between two instructions is not found.

Source: FoundationDB's simulator (Zhou et al., "FoundationDB: A Distributed Unbundled Transactional Key Value Store",
SIGMOD 2021, section 4) and TigerBeetle's VOPR; the real code runs here above a virtual operating system.
"""

from __future__ import annotations

import hashlib
import heapq
import random
import traceback
from array import array
from asyncio import events
from collections.abc import Callable
from typing import Any, Final, TextIO

import greenlet

__all__ = ["Machine", "Process", "StuckError", "Thread", "Timer", "machine"]

_STEP_S: Final = 30e-6
"""The longest time that a step of a thread takes."""
_TURNS: Final = 16
"""After so many steps, those who wait for something are asked whether it has come."""


class StuckError(AssertionError):
    """Nobody can run, and no timer is left."""


class Timer:
    """A call at a moment of the machine's clock."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Process:
    """A process: its threads run, stand still or are gone together, and see the same clocks.

    Attributes:
        host: Its address in the virtual network.
        pace: Its seconds per second of the machine.
        slept_s: Seconds in which its machine was suspended, which its monotonic clock has not counted.
        wall_s: What its wall clock shows at second 0.
    """

    def __init__(self, machine: Machine, name: str, host: str) -> None:
        self.machine = machine
        self.name = name
        self.host = host
        self.pace = 1 + machine.random.uniform(-0.004, 0.004)
        self.begun_s = machine.random.uniform(1_000, 1_000_000)
        self.wall_s = 1_700_000_000.0 + machine.random.uniform(-1, 1)
        self.slept_s = 0.0
        self.is_paused = False
        self.is_dead = False
        self.held: list[Thread] = []
        self.endpoints: dict[Any, None] = {}
        self.listeners: dict[tuple[str, int], Any] = {}

    def boot_time_s(self) -> float:
        return self.begun_s + self.machine.now_s * self.pace

    def monotonic_s(self) -> float:
        return self.begun_s + self.machine.now_s * self.pace - self.slept_s

    def time_s(self) -> float:
        return self.wall_s + self.machine.now_s * self.pace

    def run(self, call: Callable[[], Any], name: str) -> Thread:
        """Begin a thread of this process."""
        thread = Thread(call, name=name, process=self)
        thread.start()
        return thread

    def pause(self) -> None:
        """Stop it as SIGSTOP does: its connections stay, and data for it arrive."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self.held = self.held, []
        self.machine.ready.extend(held)

    def kill(self, *, is_silent: bool = False) -> None:
        """End it as SIGKILL does: none of its threads does anything any more, and its connections are reset.

        Args:
            is_silent: Whether its machine fails, too: nobody hears of it, and what had not left it is lost.
        """
        self.is_dead = True
        for listener in list(self.listeners.values()):
            listener.close()
        for endpoint in list(self.endpoints):
            if is_silent:
                endpoint.vanish()
            else:
                endpoint.reset()


class Thread:
    """A thread of a process, with the interface of :class:`threading.Thread`."""

    def __init__(
        self,
        target: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        daemon: bool | None = None,
        process: Process | None = None,
    ) -> None:
        world = machine()
        self.process = process or world.current.process
        self.ident = world.next_ident()
        self.name = name or f"Thread-{self.ident}"
        self.daemon = daemon
        self._target, self._args, self._kwargs = target, args, kwargs or {}
        self._joining: list[Thread] = []
        self._state = "new"
        self.is_waiting = False
        self.is_late = False
        self.locals: dict[Any, dict[str, Any]] = {}
        self.greenlet: greenlet.greenlet | None = None

    def start(self) -> None:
        world = self.process.machine
        self.greenlet = greenlet.greenlet(self._main, world.hub)
        self._state = "alive"
        world.threads[self] = None
        world.make_ready(self)

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def expire(self) -> None:
        """The time is over that it wanted to wait at most."""
        if self.is_waiting:
            self.is_late = True
            self.process.machine.unpark(self)

    def _main(self) -> None:
        events._set_running_loop(None)
        try:
            self.run()
        except greenlet.GreenletExit:
            pass
        except BaseException as error:
            self.process.machine.failures.append(
                f"{self.process.name}, thread {self.name}: {''.join(traceback.format_exception(error))}"
            )
        self._state = "ended"
        self.process.machine.threads.pop(self, None)
        for waiting in self._joining:
            self.process.machine.unpark(waiting)

    def join(self, timeout: float | None = None) -> None:
        world = self.process.machine
        if self._state != "alive":
            return
        self._joining.append(world.current)
        if not world.park(timeout) and world.current in self._joining:
            self._joining.remove(world.current)

    def is_alive(self) -> bool:
        return self._state == "alive"

    def __hash__(self) -> int:
        return self.ident  # the order of sets has to be that of the seed, not that of addresses in memory

    def __repr__(self) -> str:
        return f"<Thread {self.process.name}/{self.name}>"


class Machine:
    """Everything of one run.

    Attributes:
        now_s: The true time.
        failures: What threads have raised that nobody caught.
    """

    def __init__(self, seed: int | str) -> None:
        global _machine
        _machine = self
        self.random = random.Random(f"{seed} schedule")
        self.entropy = random.Random(f"{seed} entropy")
        self.now_s = 0.0
        self.steps = 0
        self.ready: list[Thread] = []
        self.failures: list[str] = []
        self.threads: dict[Thread, None] = {}  # also those of dead processes: nothing of them may be unwound
        self.hub = greenlet.getcurrent()
        self._timers: list[tuple[float, int, Timer]] = []  # their numbers are unique, so timers are not compared
        self._count = 0
        self._idents = 0
        self._noted = array("d")
        self.outside = Thread.__new__(Thread)  # what runs in no process: timers and the network
        self.outside.process = Process(self, "outside", "0.0.0.0")
        self.outside.locals = {}
        self.outside.name, self.outside.ident, self.outside._state = "outside", 0, "alive"
        self.current = self.outside

    @property
    def trace(self) -> str:
        """A digest of everything that has happened, in its order."""
        return hashlib.blake2b(self._noted.tobytes(), digest_size=8).hexdigest()

    log: TextIO | None = None
    """Where every event is written, to compare two runs."""

    def note(self, kind: int, value: int) -> None:
        self._noted.extend((kind, self.now_s, value))
        if self.log is not None:
            me, ready = self.current, [thread.ident for thread in self.ready]
            self.log.write(f"{self.now_s:.6f} {kind} {value} {me.process.name} {me.name}, ready {ready}\n")

    def stacks_of_clients(self) -> str:
        """Where the threads of processes stand that others wait for: those without an event loop."""
        shown = []
        for thread in self.threads:
            frame = None if thread.greenlet is None else thread.greenlet.gr_frame
            if frame is not None and not thread.process.is_dead and not thread.process.listeners:
                stack = "".join(traceback.format_stack(frame, limit=12))
                shown.append(f"\n  {thread.process.name}, thread {thread.name}:\n{stack}")
        return "".join(shown)

    def next_ident(self) -> int:
        self._idents += 1
        return self._idents

    def call_at(self, when_s: float, call: Callable[[], None]) -> Timer:
        """Have something done outside of all processes."""
        self._count += 1
        timer = Timer(call)
        heapq.heappush(self._timers, (when_s, self._count, timer))
        return timer

    def park(self, timeout_s: float | None = None) -> bool:
        """Let others run until :meth:`unpark`, or for a time on the clock of the process; whether it was unparked."""
        thread = self.current
        if thread.greenlet is None:
            raise RuntimeError("only a thread of a process can wait")
        timer: Timer | None = None
        if timeout_s is not None:
            timer = self.call_at(self.now_s + max(timeout_s, 0.0) / thread.process.pace, thread.expire)
        thread.is_waiting = True
        running = events._get_running_loop()
        self.hub.switch()
        events._set_running_loop(running)
        if timer is not None:
            timer.call = None
            if thread.is_late:
                thread.is_late = False
                return False
        return True

    def pass_on(self) -> None:
        """Let others run before this thread goes on."""
        thread, timers = self.current, self._timers
        process = thread.process
        if not (self.ready or process.is_paused or process.is_dead or (timers and timers[0][0] <= self.now_s)):
            self.now_s += self.random.random() * _STEP_S  # nobody else can run, so it is the next one
            self.steps += 1
            self.note(1, thread.ident)
            return
        self.make_ready(thread)
        running = events._get_running_loop()
        self.hub.switch()
        events._set_running_loop(running)

    def unpark(self, thread: Thread) -> None:
        """Let a thread go on that waits; one that does not wait any more looks for itself."""
        if thread.is_waiting:
            thread.is_waiting = False
            self.make_ready(thread)

    def make_ready(self, thread: Thread) -> None:
        process = thread.process
        if process.is_dead:
            return
        (process.held if process.is_paused else self.ready).append(thread)

    def run(self, until: Callable[[], bool], limit_s: float) -> None:
        """Run everything until something holds.

        Raises:
            StuckError: It cannot come to hold, or has not after so many seconds.
        """
        draw = self.random.random
        timers, ready, note = self._timers, self.ready, self.note
        turns = 0
        while True:
            while timers and timers[0][0] <= self.now_s:
                call = heapq.heappop(timers)[2].call
                if call is not None:
                    call()
            if not ready:
                if until():
                    return
                if not timers:
                    raise StuckError("nobody can run, and no timer is left")
                self.now_s = max(self.now_s, timers[0][0])
                if self.now_s > limit_s:
                    raise StuckError(f"it has not come to an end within {limit_s:g} s")
                continue
            turns += 1
            if not turns % _TURNS and until():
                return
            if len(ready) > 1:
                at = int(draw() * len(ready))
                ready[at], ready[-1] = ready[-1], ready[at]
            thread = ready.pop()
            process = thread.process
            if process.is_dead:
                continue
            if process.is_paused:
                process.held.append(thread)
                continue
            self.now_s += draw() * _STEP_S
            self.steps += 1
            self.current = thread
            note(1, thread.ident)
            thread.greenlet.switch()  # type: ignore[union-attr]
            self.current = self.outside


_machine: Machine | None = None


def machine() -> Machine:
    """The machine that this process simulates."""
    if _machine is None:
        raise RuntimeError("there is no simulated machine")
    return _machine
