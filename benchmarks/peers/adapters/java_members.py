"""Members in Java: one process each, which says when it is ready and ends with its stdin."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.peers.environments import java_argv

__all__ = ["free_ports", "java_members"]

_HEAP = "1g"
_STOP_S = 15.0


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def java_members(main: str, arguments: Sequence[Sequence[str]], properties: Sequence[str] = ()) -> Iterator[None]:
    """Start a process for each list of arguments, all at once, and wait until each has said that it is ready.

    Raises:
        RuntimeError: One of them ended before.
    """
    with ExitStack() as stack:
        started = []
        for one in arguments:
            argv = java_argv(os.environ["PEER_CLASSPATH"], _HEAP, main, *one, properties=properties)
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(_stop, process)
            started.append(process)
        for process in started:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"a member of {main} ended with {process.wait()} before it was ready")
        yield
        for process in started:  # all at once, so that none waits for another
            assert process.stdin is not None
            process.stdin.close()


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
