"""A virtual network: TCP connections between processes, with latencies, broken links and resets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from machine import Machine, Process, Thread, machine

__all__ = ["Endpoint", "Listener", "Network", "Socket", "connect", "network"]

_FIRST_PORT: Final = 40_000


class Listener:
    """A listening socket."""

    def __init__(self, net: Network, process: Process, address: tuple[str, int], accept: Callable[[Endpoint], None]):
        self.net, self.process, self.address, self.accept = net, process, address, accept
        net.listeners[address] = process.listeners[address] = self

    def close(self) -> None:
        if self.net.listeners.get(self.address) is self:
            del self.net.listeners[self.address]
        self.process.listeners.pop(self.address, None)


class Endpoint:
    """One end of a connection.

    Attributes:
        incoming: What has arrived and was not read.
        has_ended: Whether the other side has sent all that it will send.
        failure: Why the connection broke.
        unread: Bytes that were sent and that the other side has not read.
        loses_next: Whether the next thing that it sends is lost, and the connection with it.
        waits_for_room: Whether its process wants to know when the other side has read something.
        on_event: Called when there is something to read, when the connection has ended, and when there is room.
    """

    def __init__(self, net: Network, process: Process, address: tuple[str, int], peer_address: tuple[str, int]) -> None:
        self.net, self.process, self.address, self.peer_address = net, process, address, peer_address
        self.other: Endpoint
        self.incoming: deque[bytes] = deque()
        self.has_ended = False
        self.failure: OSError | None = None
        self.is_closed = False
        self.unread = 0
        self.loses_next = False
        self.waits_for_room = False
        self.on_event: Callable[[], None] = lambda: None
        self._due_s = 0.0
        self._stalled: deque[Callable[[], None]] = deque()
        process.endpoints[self] = None

    def send(self, data: bytes) -> None:
        if self.is_closed or self.failure is not None or self.process.is_dead:
            return
        if self.loses_next:
            self.loses_next = False
            self.net.machine.call_at(self.net.machine.now_s, self.break_now)
            return
        self.unread += len(data)
        self._dispatch(lambda: self.other._arrived(data))

    def finish(self) -> None:
        """Close it in order: what was sent still arrives."""
        if self.is_closed:
            return
        self._dispatch(self.other._finished)
        self._close()

    def reset(self) -> None:
        """Close it at once."""
        if self.is_closed:
            return
        self._dispatch(self.other._reset)
        self._close()

    def vanish(self) -> None:
        """Its machine has failed: the other side notices when it sends something, and the machine is back."""
        self._stalled.clear()
        self._close()

    def break_now(self) -> None:
        """A fault: both sides lose what is on its way."""
        for end in (self, self.other):
            end._stalled.clear()
            end._reset()

    def read(self, size: int) -> bytes:
        """Take bytes that have arrived."""
        data = self.incoming.popleft()
        if len(data) > size:
            self.incoming.appendleft(data[size:])
            data = data[:size]
        self.other.unread -= len(data)
        if self.other.waits_for_room:
            self.other.on_event()
        return data

    def _close(self) -> None:
        self.is_closed = True
        self.process.endpoints.pop(self, None)
        self.net.endpoints.pop(self, None)

    def _dispatch(self, arrive: Callable[[], None]) -> None:
        """Deliver something in order, when the network has brought it over."""
        world = self.net.machine
        self._due_s = max(self._due_s, world.now_s + self.net.latency_s(self.process.host, self.other.process.host))
        world.call_at(self._due_s, lambda: self._deliver(arrive))

    def _deliver(self, arrive: Callable[[], None]) -> None:
        if self._stalled or self.net.is_cut(self.process.host, self.other.process.host):
            self._stalled.append(arrive)
            self.net.stalled[self] = None
        else:
            arrive()

    def go_on(self) -> None:
        """The link is whole again: send what was lost once more."""
        stalled, self._stalled = self._stalled, deque()
        for arrive in stalled:
            self._dispatch(arrive)

    def _arrived(self, data: bytes) -> None:
        if self.is_closed:
            if self.other.failure is None:
                self._dispatch(self.other._reset)
            return
        if self.failure is None:
            # Not their content: Arrow's bytes below NULLs and between buffers are whatever was in memory.
            self.net.machine.note(2, len(data))
            self.incoming.append(data)
            self.on_event()

    def _finished(self) -> None:
        self.has_ended = True
        self.on_event()

    def _reset(self) -> None:
        if self.failure is None and not self.is_closed:
            self.failure = ConnectionResetError("connection reset by peer")
            self.incoming.clear()
            self.process.endpoints.pop(self, None)
            self.net.endpoints.pop(self, None)
            self.on_event()


class Network:
    """The hosts of one machine room, and the links between them.

    Attributes:
        slow: How many times as long a packet takes, by the hosts that it comes from and goes to.
        cut: Links that lose every packet; TCP sends these again when the link is back.
    """

    def __init__(self, world: Machine) -> None:
        global _network
        _network = self
        self.machine = world
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.endpoints: dict[Endpoint, None] = {}
        self.stalled: dict[Endpoint, None] = {}
        self.cut: set[tuple[str, str]] = set()
        self.slow: dict[tuple[str, str], float] = {}
        self.base_s = 0.0002
        self._waiting: list[tuple[tuple[str, str], Callable[[], None]]] = []
        self._port = _FIRST_PORT

    def latency_s(self, source: str, target: str) -> float:
        drawn = self.machine.random.random()
        late = 20.0 if drawn > 0.995 else 1.0
        return self.base_s * (0.3 + drawn) * late * self.slow.get((source, target), 1.0)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cut

    def mend(self, links: set[tuple[str, str]]) -> None:
        """Links are whole again."""
        self.cut -= links
        stalled, self.stalled = self.stalled, {}
        for endpoint in stalled:
            endpoint.go_on()
        waiting, self._waiting = self._waiting, []
        for link, call in waiting:
            self._over(link, call)

    def free_port(self) -> int:
        self._port += 1
        return self._port

    def connect(self, process: Process, address: tuple[str, int], done: Callable[[Endpoint | OSError], None]) -> None:
        """Open a connection; the answer is given outside of all processes."""
        there, back = (process.host, address[0]), (address[0], process.host)

        def arrive() -> None:
            listener = self.listeners.get(address)
            if listener is None:
                self._over(back, lambda: done(ConnectionRefusedError(f"connection to {address} refused")))
                return
            mine_address = (process.host, self.free_port())
            mine = Endpoint(self, process, mine_address, address)
            theirs = Endpoint(self, listener.process, address, mine_address)
            mine.other, theirs.other = theirs, mine
            self.endpoints[mine] = self.endpoints[theirs] = None
            listener.accept(theirs)
            self._over(back, lambda: done(mine))

        self._over(there, arrive)

    def _over(self, link: tuple[str, str], call: Callable[[], None]) -> None:
        """Bring a packet of a handshake over."""

        def arrive() -> None:
            if link in self.cut:
                self._waiting.append((link, call))
            else:
                call()

        self.machine.call_at(self.machine.now_s + self.latency_s(*link), arrive)


class Socket:
    """A blocking socket of a client."""

    def __init__(self, endpoint: Endpoint, timeout: float | None) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._reader: Thread | None = None
        endpoint.on_event = self._wake

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            self._endpoint.net.machine.unpark(reader)

    def setsockopt(self, *_: int) -> None:
        """There is nothing to set."""

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    def sendall(self, data: bytes | memoryview) -> None:
        if self._endpoint.failure is not None:
            raise self._endpoint.failure
        if self._endpoint.is_closed:
            raise BrokenPipeError("the socket was closed")
        self._endpoint.send(bytes(data))

    def recv(self, size: int) -> bytes:
        endpoint = self._endpoint
        while not endpoint.incoming:
            if endpoint.failure is not None:
                raise endpoint.failure
            if endpoint.has_ended or endpoint.is_closed:
                return b""
            world = endpoint.net.machine
            self._reader = world.current
            if not world.park(self._timeout):
                self._reader = None
                raise TimeoutError("timed out")
        return endpoint.read(size)

    def recv_into(self, target: memoryview) -> int:
        data = self.recv(len(target))
        target[: len(data)] = data
        return len(data)

    def shutdown(self, _: int) -> None:
        self._endpoint.finish()
        self._wake()

    def close(self) -> None:
        self._endpoint.finish()


_network: Network | None = None


def network() -> Network:
    """The network of the machine that this process simulates."""
    if _network is None:
        raise RuntimeError("there is no simulated network")
    return _network


def connect(address: tuple[str, int], timeout: float | None = None) -> Socket:
    """Open a connection, with the interface of :func:`socket.create_connection`."""
    world = machine()
    thread, outcome = world.current, []
    given_up: list[bool] = []

    def done(result: Endpoint | OSError) -> None:
        if given_up:
            if isinstance(result, Endpoint):
                result.reset()
        else:
            outcome.append(result)
            world.unpark(thread)

    network().connect(thread.process, address, done)
    if not world.park(timeout) and not outcome:
        given_up.append(True)
        raise TimeoutError("timed out")
    if isinstance(outcome[0], OSError):
        raise outcome[0]
    return Socket(outcome[0], timeout)
