"""Child processes that speak lines of JSON, and that end with the harness whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

__all__ = ["JsonProcess", "PeerFailedError", "json_process"]

_STOP_S = 20.0


class PeerFailedError(Exception):
    """A process of a peer ended, did not answer in time, or said that it could not."""


class JsonProcess:
    """A child process with lines of JSON on its stdin and stdout.

    Args:
        argv: What to run.
        environment: Its environment variables.
        log: Where its stderr is appended.
        folder: Its working directory.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stderr:
            # A session of its own: Ctrl-C in a terminal is the harness's to handle, which then stops what it started.
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tree(self) -> list[psutil.Process]:
        """The process and all that it has started; empty once it is gone."""
        try:
            root = psutil.Process(self._process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a line.

        Raises:
            PeerFailedError: The process is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._gone() from error

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Wait for a line.

        Raises:
            PeerFailedError: There was none in this time (the process is killed then), the process ended, or its reply
                says that it failed.
        """
        assert self._process.stdout is not None
        timed_out = threading.Event()
        timer = threading.Timer(timeout_s, self._time_out, [timed_out])
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line and timed_out.is_set():
            raise PeerFailedError(f"no answer in {timeout_s:g} s; see {self._log}")
        if not line:
            raise self._gone()
        reply: dict[str, Any] = json.loads(line)
        if "failed" in reply:
            raise PeerFailedError(reply["failed"])
        return reply

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a line and wait for one."""
        self.send(request)
        return self.receive(timeout_s)

    def stop(self) -> None:
        """Close its stdin, at which it stops what it runs; kill what is left of it after a while."""
        tree = self.tree()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        _kill_all(tree)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _time_out(self, timed_out: threading.Event) -> None:
        timed_out.set()
        _kill_all(self.tree())

    def _gone(self) -> PeerFailedError:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return PeerFailedError(f"the process ended{last}; see {self._log}")


def _kill_all(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        # psutil compares when the process was created, so a process that has taken over a number is left alone.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, _STOP_S)


@contextlib.contextmanager
def json_process(
    argv: Sequence[str], log: Path, *, folder: Path, extra: Mapping[str, str] | None = None
) -> Iterator[JsonProcess]:
    """A process that is stopped at the end, after a failure and Ctrl-C as well."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}
    process = JsonProcess(argv, environment, log, folder)
    try:
        yield process
    finally:
        process.stop()
