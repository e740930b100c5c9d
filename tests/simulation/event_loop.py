"""asyncio's own event loop above the virtual machine: its clock, its selector and its transports."""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final

from machine import Machine, Process, Thread, machine
from network import Endpoint, Listener, network

__all__ = ["VirtualLoop"]

_WINDOW_BYTES: Final = 256 << 10
_RESOLUTION_S: Final = 1e-9


class _Selector:
    """Waits for timers and for what comes from outside."""

    def __init__(self, world: Machine) -> None:
        self._world = world
        self._waiting: Thread | None = None
        self._arrived: list[_Handle] = []
        self._is_woken = False

    def add(self, call: Callable[..., Any], *args: Any) -> None:
        self._arrived.append(_Handle(call, args, None))
        self.wake()

    def wake(self) -> None:
        self._is_woken = True
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._world.unpark(waiting)

    def select(self, timeout_s: float | None) -> list[_Handle]:
        world = self._world
        if self._is_woken or (timeout_s is not None and timeout_s <= 0):
            world.pass_on()
        else:
            self._waiting = world.current
            world.park(timeout_s)
            self._waiting = None
        self._is_woken = False
        arrived, self._arrived = self._arrived, []
        return arrived

    def close(self) -> None:
        self._arrived.clear()


def _number(thing: Any) -> int:
    """What orders it in sets: the seed, not its address in memory."""
    number: int | None = thing.number
    if number is None:
        number = thing.number = machine().next_ident()
    return number


class _Future(asyncio.Future[Any]):
    number: int | None = None
    __hash__ = _number


class _Task(asyncio.Task[Any]):
    number: int | None = None
    __hash__ = _number


class _Handle:
    """A call that is due, or will be, with what users of :class:`asyncio.Handle` ask it for.

    Attributes:
        when_s: When it is due, on the clock of the loop.
    """

    __slots__ = ("args", "call", "context", "when_s")

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], context: Context | None, when_s: float = 0.0
    ) -> None:
        self.call: Callable[..., Any] | None = call
        self.args = args
        self.context = copy_context() if context is None else context
        self.when_s = when_s

    def cancel(self) -> None:
        self.call = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.call is None

    def when(self) -> float:
        return self.when_s


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop of a process of the virtual machine.

    It does what :class:`asyncio.BaseEventLoop` does, in a third of the time: most of what a simulation does are calls
    of event loops.
    """

    def __init__(self) -> None:
        super().__init__()
        self.machine = machine()
        self.process: Process = self.machine.current.process
        self._selector = _Selector(self.machine)
        self._due: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []  # their numbers are unique, so handles are not compared
        self._timer_count = 0

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        return _Task(coro, loop=self, name=name, context=context)

    def time(self) -> float:
        process = self.process
        return process.begun_s + self.machine.now_s * process.pace - process.slept_s

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, context)
        self._due.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        handle = self.call_soon(callback, *args, context=context)
        self._selector.wake()
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, context, when)
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def run_forever(self) -> None:
        # As BaseEventLoop.run_forever, but the hooks of asynchronous generators belong to all loops of the machine.
        self._check_closed()
        self._check_running()
        self._thread_id = self.machine.current.ident
        try:
            events._set_running_loop(self)
            while True:
                self._run_once()
                if self._stopping:
                    break
        finally:
            self._stopping = False
            self._thread_id = None
            events._set_running_loop(None)

    def close(self) -> None:
        super().close()
        self._due.clear()
        self._timers.clear()

    def _run_once(self) -> None:
        due, timers = self._due, self._timers
        while timers and timers[0][2].call is None:
            heapq.heappop(timers)
        timeout_s: float | None = None
        if due or self._stopping:
            timeout_s = 0.0
        elif timers:
            timeout_s = timers[0][0] - self.time()
        due.extend(self._selector.select(timeout_s))
        if timers:
            end_s = self.time() + _RESOLUTION_S
            while timers and timers[0][0] < end_s:
                due.append(heapq.heappop(timers)[2])
        for _ in range(len(due)):  # what these add comes after the next look at the selector
            handle = due.popleft()
            call = handle.call
            if call is None:
                continue
            try:
                handle.context.run(call, *handle.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler({"message": f"exception in {call}", "exception": error})

    def from_outside(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something on the loop; what the network does."""
        self._selector.add(call, *args)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.machine.failures.append(f"{self.process.name}: {context.get('message')}: {error!r}")

    async def create_server(self, factory: Any, host: Any = None, port: Any = 0, **_: Any) -> Any:  # type: ignore[override]
        address = (host, port or network().free_port())
        if address in network().listeners:
            raise OSError(98, f"address {address} already in use")
        listener = Listener(
            network(), self.process, address, lambda endpoint: self.from_outside(self._accept, factory, endpoint)
        )
        return _Server(listener)

    def _accept(self, factory: Callable[[], Any], endpoint: Endpoint) -> None:
        _Transport(self, endpoint, factory())

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        connecting: asyncio.Future[Endpoint] = self.create_future()

        def answered(result: Endpoint | OSError) -> None:
            if connecting.done():
                if isinstance(result, Endpoint):
                    result.reset()
            elif isinstance(result, OSError):
                connecting.set_exception(result)
            else:
                connecting.set_result(result)

        network().connect(self.process, (host, int(port)), lambda result: self.from_outside(answered, result))
        endpoint = await connecting
        protocol = factory()
        return _Transport(self, endpoint, protocol), protocol


class _ListeningSocket:
    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address


class _Server:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.sockets = [_ListeningSocket(listener.address)]

    def close(self) -> None:
        self._listener.close()

    async def wait_closed(self) -> None:
        """It is closed at once."""


class _NoOptions:
    def setsockopt(self, *_: int) -> None:
        """There is nothing to set."""


class _Transport(asyncio.Transport):
    """A connection as protocols see it."""

    def __init__(self, loop: VirtualLoop, endpoint: Endpoint, protocol: Any) -> None:
        super().__init__()
        self._loop = loop
        self._endpoint = endpoint
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self._is_closing = False
        self._reads = True
        self._high, self._low = 64 << 10, 16 << 10
        self._is_due = False
        protocol.connection_made(self)
        endpoint.on_event = self._on_event
        self._on_event()

    def _on_event(self) -> None:
        if not self._is_due and not self._loop.is_closed():
            self._is_due = True
            self._loop.from_outside(self._look)

    def _look(self) -> None:
        self._is_due = False
        endpoint = self._endpoint
        if self._is_closing:
            return
        if endpoint.failure is not None:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, endpoint.failure)
            return
        if endpoint.waits_for_room and endpoint.unread <= _WINDOW_BYTES + self._low:
            endpoint.waits_for_room = False
            self._protocol.resume_writing()
        if not self._reads:
            return
        if endpoint.incoming:
            if self._is_buffered:
                buffer = self._protocol.get_buffer(-1)
                data = endpoint.read(len(buffer))
                buffer[: len(data)] = data
                self._protocol.buffer_updated(len(data))
            else:
                self._protocol.data_received(endpoint.read(_WINDOW_BYTES))
            if endpoint.incoming or endpoint.has_ended:
                self._on_event()
        elif endpoint.has_ended:
            self._protocol.eof_received()
            self.close()

    def write(self, data: Any) -> None:
        if self._is_closing:
            return
        endpoint = self._endpoint
        endpoint.send(bytes(data))
        if endpoint.unread > _WINDOW_BYTES + self._high and not endpoint.waits_for_room:
            endpoint.waits_for_room = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return max(0, self._endpoint.unread - _WINDOW_BYTES)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 64 << 10 if high is None else high
        self._low = self._high // 4 if low is None else low

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._on_event()

    def is_reading(self) -> bool:
        return self._reads

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._endpoint.finish()
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._endpoint.reset()
            self._loop.call_soon(self._protocol.connection_lost, None)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "socket":
                return _NoOptions()
            case "peername":
                return self._endpoint.peer_address
            case "sockname":
                return self._endpoint.address
            case _:
                return default
