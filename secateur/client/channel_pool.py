"""The sockets of one connection to one member: one for each concurrent request, so that none waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

from secateur.errors import InterfaceError
from secateur.forks import free_in_forks
from secateur.wire import BLOCKING, Channel, Tls, Waits, hello


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """The options that a user has connected with.

    Attributes:
        token: The secret of the cluster, if it has one.
        timeout_s: Seconds to wait for more of an answer; None waits as long as the process that works on it shows signs
            of life.
        tls: How connections are encrypted; None for a cluster without TLS.
        waits: What requests do while they wait.
    """

    token: str | None
    timeout_s: float | None
    tls: Tls | None
    waits: Waits = BLOCKING

    def channel(self, host: str, port: int, *, timeout_s: float | None) -> Channel:
        """A channel to a process of the cluster, with another time-out; it connects at its first request."""
        return Channel(host, port, hello(self.token), timeout_s=timeout_s, tls=self.tls, waits=self.waits)


class ChannelPool:
    """Lends channels, each to one borrower at a time. Thread-safe.

    Args:
        make: Makes a channel; it connects at its first request.
        idle_max: Channels kept for the next request; a burst may make more, and several threads may keep a few more.

    Attributes:
        idle: The channels that are not lent. :meth:`borrow` and :meth:`give_back` take and add the last one, each in
            one step; a serving call does so itself.
        idle_max: As above.
    """

    def __init__(self, make: Callable[[], Channel], idle_max: int) -> None:
        self._make = make
        self.idle_max = idle_max
        self._lock = free_in_forks(
            threading.RLock()
        )  # the collector may drop a result inside, which gives its channel back
        self.idle: list[Channel] = []
        self._known: WeakSet[Channel] = WeakSet()  # a borrower that is dropped hangs up
        self._is_closed = False

    def borrow(self) -> Channel:
        """Return a channel for exclusive use; :meth:`give_back` it.

        Raises:
            InterfaceError: The pool is closed.
        """
        if not self._is_closed:
            try:
                return self.idle.pop()  # one step, of which two threads get different channels
            except IndexError:
                pass
        with self._lock:
            if self._is_closed:
                raise InterfaceError("the connection is closed; open another with secateur.connect()")
            channel = self._make()
            self._known.add(channel)
            return channel

    def give_back(self, channel: Channel) -> None:
        """End a loan."""
        if len(self.idle) < self.idle_max and not self._is_closed:
            self.idle.append(channel)  # into a pool that another thread closes now: that closes the channel as well
            return
        channel.close()

    def close(self) -> None:
        """Hang up everywhere; requests under way end with an InterfaceError."""
        with self._lock:
            self._is_closed = True
            self.idle.clear()
            channels = list(self._known)
        for channel in channels:
            channel.close()
