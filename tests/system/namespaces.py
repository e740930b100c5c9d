"""Machines of a test: network namespaces of this one, each with an address and a link of its own that can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Machines", "machines", "why_not"]

_SUBNET = "10.213.77"
_IN_OWN_FOLDER = 'mkdir -p "$0" && mount -t tmpfs none "$0" && exec "$@"'
"""``ip netns exec`` gives each program a mount namespace."""


@dataclass(slots=True)
class Machines:
    """Namespaces on one bridge, and what was started in them.

    Attributes:
        names: Their names.
    """

    names: list[str]
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def address(self, number: int) -> str:
        return f"{_SUBNET}.{number + 2}"

    def start(
        self, number: int, *command: str, own_folder: str | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        """Start a program on a machine. It ends with the machines, and so does all that it starts.

        Args:
            number: The machine.
            command: The program and its arguments.
            own_folder: A folder that is empty and its own for the program and what it starts, as on another machine.
            environment: Further variables.
        """
        inside = [] if own_folder is None else ["sh", "-c", _IN_OWN_FOLDER, own_folder]
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[number], *inside, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def cut(self, number: int) -> None:
        """Cut the link of a machine: nothing that is sent arrives, and nobody is told."""
        _ip("link", "set", f"{self.names[number]}b", "down")

    def join(self, number: int) -> None:
        """Undo :meth:`cut`."""
        _ip("link", "set", f"{self.names[number]}b", "up")

    def kill(self, number: int) -> None:
        """End all processes of a machine at once."""
        listed = subprocess.run(["ip", "netns", "pids", self.names[number]], capture_output=True, text=True, check=True)
        for pid in listed.stdout.split():
            subprocess.run(["kill", "-9", pid], check=False, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        for number in range(len(self.names)):
            self.kill(number)
        for process in self._started:
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()
            process.wait()


def why_not() -> str | None:
    """Why this process cannot make namespaces; None if it can."""
    if shutil.which("ip") is None:
        return "the command ip (iproute2) is not installed"
    probe = ["unshare", "--net", "ip", "link", "add", "probe", "type", "bridge"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"this user may not make network namespaces: {tried.stderr.strip()}"


@contextmanager
def machines(count: int) -> Iterator[Machines]:
    """Make machines, and remove them with all of their processes."""
    bridge = f"sct{os.getpid()}"
    made = Machines([f"{bridge}n{number}" for number in range(count)])
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for number, name in enumerate(made.names):
            _ip("netns", "add", name)
            _ip("link", "add", f"{name}b", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"{name}b", "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{made.address(number)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "route", "add", "default", "dev", "eth0")
        yield made
    finally:
        made.close()
        for name in made.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
