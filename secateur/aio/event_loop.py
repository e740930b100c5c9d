"""The waits of a call that stands still on an event loop, while its thread goes on with others.

A call runs in a greenlet, by the code of callers that block. Where that waits, the greenlet hands a future to the task
that it runs for, and goes on where the future is done; if the task is cancelled, the wait ends with a
:class:`~asyncio.CancelledError`. So what decides (routes, retries, time-outs, rows) is written once. Source: the
asyncio extension of SQLAlchemy.

A second implementation of what decides, in coroutines, was not tried: 13,000 lines of client wait in seven places.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from secateur.errors import InterfaceError
from secateur.wire import Waits

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ModuleNotFoundError:
    raise ModuleNotFoundError('secateur.aio needs greenlet: pip install "secateur[aio]"', name="greenlet") from None

P = ParamSpec("P")
R = TypeVar("R")

_LATER: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""The errors of a socket that would have to wait."""


class _Call(greenlet):
    """Runs calls for tasks, one after the other: to make a greenlet for each costs 10 us, for the stack of Python's.

    Attributes:
        control: What :meth:`LoopWaits.local` has of the call.
        result: What the last call has returned.
        error: What it has raised; None for nothing.
    """

    control: Any = None
    result: Any = None
    error: BaseException | None = None

    def run(self, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        while True:
            try:
                self.result = work(*args, **kwargs)
            except GreenletExit:
                raise
            except BaseException as error:
                self.error = error
            del work, args, kwargs  # which may be large
            work, args, kwargs = self.parent.switch(self)


def _call() -> Any:
    """The greenlet of the call that runs now, ours or SQLAlchemy's; None in a thread that may block."""
    current = getcurrent()
    if type(current) is _Call or getattr(current, "__sqlalchemy_greenlet_provider__", False):
        return current
    return None


def _awaited(future: asyncio.Future[R]) -> R:
    """Have the task of the running call wait for a future.

    Raises:
        Exception: That of the future.
        CancelledError: The task was cancelled.
    """
    task = getcurrent().parent
    assert task is not None
    result: R = task.switch(future)
    return result


class _Local(threading.local):
    """Its attributes are those of the running call, or of the thread where none runs."""

    _of_thread: Any = None

    @property
    def control(self) -> Any:
        current = getcurrent()
        if type(current) is _Call:  # asked some times for each statement
            return current.control
        call = _call()
        return self._of_thread if call is None else getattr(call, "control", None)

    @control.setter
    def control(self, value: Any) -> None:
        call = _call()
        if call is None:
            self._of_thread = value
        else:
            call.control = value


class LoopWaits(Waits):
    """The waits of calls that run on one event loop.

    In threads beside it, where work of a call is done apart, they block.
    """

    idle_max = 256

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle: list[_Call] = []

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a call of code that blocks, for this task.

        Raises:
            InterfaceError: Another event loop runs here.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise InterfaceError("the connection belongs to another event loop: connect in each of them")
        task = getcurrent()
        call = self._idle.pop() if self._idle else _Call()
        call.parent = task
        call.gr_context = task.gr_context  # what spans and other context variables the task has
        call.control = None
        waited = call.switch(work, args, kwargs)
        while waited is not call:
            try:
                value = await waited
            except GeneratorExit as error:  # the loop has ended: nothing can be waited for
                call.throw(error)
                raise
            except BaseException as error:
                waited = call.throw(error)
            else:
                waited = call.switch(value)
        result, raised = call.result, call.error
        call.result = call.gr_context = None
        if len(self._idle) < self.idle_max:
            self._idle.append(call)
        if raised is not None:
            call.error = None
            try:
                raise raised
            finally:
                del raised  # else its frames would keep themselves, with all that is in them
        return result

    def connect(self, host: str, port: int, timeout_s: float) -> LoopSocket:
        if _call() is None:
            connected = socket.create_connection((host, port), timeout=timeout_s)
        else:
            connected = self._connected(host, port, self._loop.time() + timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setblocking(False)
        return LoopSocket(connected, self._loop)

    def encrypt(self, connected: LoopSocket, context: ssl.SSLContext, server_name: str, timeout_s: float) -> LoopSocket:
        return connected.encrypted(context, server_name, timeout_s)

    def lock(self) -> LoopLock:
        return LoopLock(self._loop)

    def sleep(self, seconds: float) -> None:
        if _call() is None:
            time.sleep(seconds)
        else:
            _awaited(self._loop.create_task(asyncio.sleep(seconds)))

    def local(self) -> _Local:
        return _Local()

    def apart(self, work: Callable[[], R], give_up: Callable[[], object]) -> R:
        if _call() is None:
            return work()
        done = self._loop.run_in_executor(None, copy_context().run, work)
        try:
            return _awaited(asyncio.shield(done))
        except asyncio.CancelledError:
            give_up()
            done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # which nobody hears
            raise

    def _connected(self, host: str, port: int, end_s: float) -> socket.socket:
        """Connect within a call, which owns the socket throughout.

        As the result of a task it would be lost, and stay open, if the call is cancelled as the task ends.
        """
        found = self._until(end_s, partial(self._loop.getaddrinfo, host, port, type=socket.SOCK_STREAM))
        for number, (family, kind, protocol, _, address) in enumerate(found, 1):
            connecting = socket.socket(family, kind, protocol)
            connecting.setblocking(False)
            try:
                self._until(end_s, partial(self._loop.sock_connect, connecting, address))
            except OSError:
                connecting.close()
                if number == len(found):
                    raise
            except BaseException:
                connecting.close()
                raise
            else:
                return connecting
        raise OSError(f"{host} has no address")

    def _until(self, end_s: float, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        async def bounded() -> R:
            async with asyncio.timeout_at(end_s):
                return await work()

        result: R = _awaited(self._loop.create_task(bounded()))
        return result


class LoopLock:
    """A lock that calls wait for while their thread goes on. The first that waits gets it first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __enter__(self) -> None:
        if not self._acquire(False):
            self._wait()

    def __exit__(self, *_: object) -> None:
        self._release()
        if self._waiting:
            if asyncio._get_running_loop() is self._loop:
                self._wake()
            else:
                self._loop.call_soon_threadsafe(self._wake)

    def _wait(self) -> None:
        while not self._acquire(False):
            if _call() is None:
                self._acquire()
                return
            turn = self._loop.create_future()
            self._waiting.append(turn)
            if not self._lock.locked():  # released by a thread beside, which found nobody waiting
                self._wake()
            try:
                _awaited(turn)
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._wake()  # the next one, in the place of this one
                else:
                    turn.cancel()
                raise

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


class LoopSocket:
    """A connected socket, which does not block, for one call at a time.

    The event loop watches it from the first answer on, not anew for each. Bytes that come while no call waits for them
    stay where they are, and end that.
    """

    def __init__(self, connected: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = connected
        self._loop = loop
        self._timeout_s = 0.0
        self._is_watched = False
        self._is_encrypted = isinstance(connected, ssl.SSLSocket)
        self._waiting: asyncio.Future[Any] | None = None
        self._receive: Callable[[Any], Any] | None = None  # of a wait for bytes, with what it is called with
        self._wanted: Any = None
        self._end_s = 0.0  # of the wait
        self._timer: asyncio.TimerHandle | None = None
        self._process = os.getpid()

    def settimeout(self, value: float, /) -> None:
        """Set for how many seconds each of the following calls waits at most."""
        self._timeout_s = value

    def recv(self, bufsize: int, /) -> bytes:
        """The next bytes; none at the end.

        Raises:
            TimeoutError: None came in time.
            OSError: The connection broke.
        """
        received: bytes = self._received(self._socket.recv, bufsize)
        return received

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive the next bytes into a buffer; returns their number, 0 at the end. Raises as :meth:`recv`."""
        count: int = self._received(self._socket.recv_into, buffer)
        return count

    def sendall(self, data: bytes | memoryview, /) -> None:
        """Send all bytes. Raises as :meth:`recv`, where the peer does not take them."""
        rest = data if type(data) is bytes else memoryview(data).cast("B")
        while rest:
            try:
                sent = self._socket.send(rest)
                if sent == len(rest):
                    return
                rest = memoryview(rest)[sent:]
            except ssl.SSLWantReadError:
                self._until_ready(select.POLLIN)
            except _LATER:
                self._until_ready(select.POLLOUT)

    def encrypted(self, context: ssl.SSLContext, server_name: str, timeout_s: float) -> LoopSocket:
        """Begin TLS, as the client; returns what takes the place of this socket.

        Raises:
            OSError: The handshake fails, or takes longer.
        """
        inner = context.wrap_socket(self._socket, server_hostname=server_name, do_handshake_on_connect=False)
        made = LoopSocket(inner, self._loop)
        made.settimeout(timeout_s)
        while True:
            try:
                inner.do_handshake()
            except ssl.SSLWantReadError:
                made._until_ready(select.POLLIN)
            except ssl.SSLWantWriteError:
                made._until_ready(select.POLLOUT)
            except BaseException:
                made.close()
                raise
            else:
                return made

    def shutdown(self, how: int, /) -> None:
        """End the connection, also for a call that waits."""
        socket.socket.shutdown(self._socket, how)  # of the socket below TLS

    def close(self) -> None:
        """Close it. In a process that was forked, the parent's event loop goes on with it."""
        if self._is_watched and self._process == os.getpid() and not self._loop.is_closed():
            self._is_watched = False
            if asyncio._get_running_loop() is self._loop:
                self._loop.remove_reader(self._socket)
            else:
                self._loop.call_soon_threadsafe(self._let_go, self._socket)
                return
        self._socket.close()

    def _let_go(self, watched: socket.socket) -> None:
        self._loop.remove_reader(watched)
        watched.close()

    def _received(self, receive: Callable[[Any], Any], wanted: Any) -> Any:
        """What a way to receive returns once there are bytes."""
        if _call() is None:
            return self._received_by_thread(receive, wanted)
        if not self._is_watched or self._is_encrypted:  # TLS may have bytes that it has read
            with suppress(*_LATER):
                return receive(wanted)
            self._watch()
        return self._in_time(receive, wanted)

    def _watch(self) -> None:
        if not self._is_watched:
            self._loop.add_reader(self._socket, self._readable)
            self._is_watched = True

    def _in_time(self, receive: Callable[[Any], Any] | None = None, wanted: Any = None) -> Any:
        """Wait, at most as long as was set, for what a way to receive returns, or for the socket to be writable."""
        self._receive, self._wanted = receive, wanted
        waiting = self._waiting = self._loop.create_future()
        end_s = self._end_s = self._loop.time() + self._timeout_s
        if self._timer is None or self._timer.when() > end_s:
            self._look_later()
        try:
            return _awaited(waiting)
        finally:
            self._waiting = self._receive = self._wanted = None

    def _look_later(self) -> None:
        """Look at the end of this wait whether it goes on: one look for many waits, which all end sooner."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._end_s, self._look)

    def _look(self) -> None:
        self._timer = None
        waiting = self._waiting
        if waiting is None or waiting.done():
            return
        if self._loop.time() >= self._end_s:
            waiting.set_exception(TimeoutError())
        else:
            self._look_later()

    def _readable(self) -> None:
        waiting, receive = self._waiting, self._receive
        if waiting is None or receive is None or waiting.done():
            self._is_watched = False
            self._loop.remove_reader(self._socket)
            return
        try:
            found = receive(self._wanted)
        except _LATER:
            return
        except Exception as error:
            waiting.set_exception(error)
        else:
            waiting.set_result(found)

    def _writable(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _until_ready(self, event: int) -> None:
        if _call() is None:
            self._poll(event, time.monotonic() + self._timeout_s)
        elif event == select.POLLIN:
            self._watch()
            self._in_time(bytes, 0)
        else:
            self._loop.add_writer(self._socket, self._writable)
            try:
                self._in_time()
            finally:
                self._loop.remove_writer(self._socket)

    def _received_by_thread(self, receive: Callable[[Any], Any], wanted: Any) -> Any:
        end_s = time.monotonic() + self._timeout_s
        while True:
            try:
                return receive(wanted)
            except ssl.SSLWantWriteError:
                self._poll(select.POLLOUT, end_s)
            except _LATER:
                self._poll(select.POLLIN, end_s)

    def _poll(self, event: int, end_s: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        if not poll.poll(max(end_s - time.monotonic(), 0) * 1000):
            raise TimeoutError
