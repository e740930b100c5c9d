"""What processes use: processor time, and bytes that they send over TCP."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import psutil

__all__ = ["TcpBytes", "bytes_of_sockets", "processor_s", "tcp_bytes"]

_NUMBER: Final = re.compile(r"\b(bytes_sent|bytes_received):(\d+)")
_OWNER: Final = re.compile(r"pid=(\d+)")

TcpBytes = dict[int, tuple[int, int]]
"""Process -> the bytes that its connected sockets have sent and received."""


def processor_s(processes: Iterable[psutil.Process]) -> float:
    """Processor seconds that they have used, in user and system mode, to a hundredth of a second each."""
    total_s = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total_s += times.user + times.system
    return total_s


def tcp_bytes() -> TcpBytes | None:
    """What all processes of the machine have moved over sockets that are connected now, by ``ss`` of Linux.

    Returns:
        None where there is no ``ss``.
    """
    if shutil.which("ss") is None:
        return None
    told = subprocess.run(
        ["ss", "-tinHOp", "state", "established"], capture_output=True, text=True, check=False, timeout=10
    )
    return bytes_of_sockets(told.stdout.splitlines()) if told.returncode == 0 else None


def bytes_of_sockets(lines: Sequence[str]) -> TcpBytes:
    """Read what ``ss -tinHOp`` prints: a line for each socket with its counters and the processes that hold it."""
    found: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for line in lines:
        counters = {name: int(count) for name, count in _NUMBER.findall(line)}
        for owner in set(_OWNER.findall(line)):
            sent, received = found[int(owner)]
            found[int(owner)] = (
                sent + counters.get("bytes_sent", 0),
                received + counters.get("bytes_received", 0),
            )
    return dict(found)
