"""asyncio's own event loop above the virtual machine: its clock, its selector and its transports."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable
from typing import Any, Final

from machine import Machine, Process, Thread, machine
from network import Endpoint, Listener, network

__all__ = ["VirtualLoop"]

_WINDOW_BYTES: Final = 256 << 10


class _Selector:
    """Waits for timers and for what comes from outside."""

    def __init__(self, world: Machine) -> None:
        self._world = world
        self._waiting: Thread | None = None
        self._events: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._is_woken = False

    def add(self, call: Callable[..., Any], *args: Any) -> None:
        self._events.append((call, args))
        self.wake()

    def wake(self) -> None:
        self._is_woken = True
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._world.unpark(waiting)

    def select(self, timeout: float | None) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        world = self._world
        if self._is_woken or (timeout is not None and timeout <= 0):
            world.pass_on()
        else:
            self._waiting = world.current
            world.park(timeout)
            self._waiting = None
        self._is_woken = False
        arrived, self._events = self._events, []
        return arrived

    def close(self) -> None:
        self._events.clear()


class _Future(asyncio.Future[Any]):
    """A future that sets order by the seed, not by its address in memory."""

    def __init__(self, *, loop: VirtualLoop) -> None:
        super().__init__(loop=loop)
        self.number = machine().next_ident()

    def __hash__(self) -> int:
        return self.number


class _Task(asyncio.Task[Any]):
    """A task that sets order by the seed."""

    def __init__(self, work: Any, *, loop: VirtualLoop, name: str | None = None, context: Any = None) -> None:
        self.number = machine().next_ident()
        super().__init__(work, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop of a process of the virtual machine."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = machine()
        self.process: Process = self.machine.current.process
        self._selector = _Selector(self.machine)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        return _Task(coro, loop=self, name=name, context=context)

    def time(self) -> float:
        return self.process.monotonic_s()

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

    def from_outside(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something on the loop; what the network does."""
        self._selector.add(call, *args)

    def _process_events(self, event_list: list[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        for call, args in event_list:
            self._ready.append(events.Handle(call, args, self))

    def _write_to_self(self) -> None:
        self._selector.wake()

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
