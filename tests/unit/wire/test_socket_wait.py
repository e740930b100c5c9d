"""Bounds on how long a blocking socket waits, over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from secateur.wire import TIMEOUTS, wait_at_most


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as here,
        server.accept()[0] as there,
    ):
        yield here, there


def test_nothing_that_arrives_ends_the_wait_and_not_earlier(pair: tuple[socket.socket, socket.socket]) -> None:
    here, _ = pair
    for seconds in (0.0005, 0.05, 0.2):
        wait_at_most(here, seconds)
        began_s = time.monotonic()
        with pytest.raises(TIMEOUTS):
            here.recv(1)
        assert time.monotonic() - began_s >= seconds


def test_what_arrives_in_time_is_read(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    wait_at_most(here, 20)
    late = threading.Timer(0.1, there.sendall, [b"x"])
    late.start()
    assert here.recv(10) == b"x"
    late.join()


def test_a_peer_that_does_not_read_ends_a_send(pair: tuple[socket.socket, socket.socket]) -> None:
    here, _ = pair
    wait_at_most(here, 0.1)
    with pytest.raises(TIMEOUTS):
        here.sendall(bytes(64 << 20))


def test_a_bound_may_be_changed(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    for seconds in (0.05, 20, 0.05):
        wait_at_most(here, seconds)
        if seconds > 1:
            there.sendall(b"y")
            assert here.recv(1) == b"y"
        else:
            with pytest.raises(TIMEOUTS):
                here.recv(1)
