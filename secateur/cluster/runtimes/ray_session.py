"""The connection of this process to Ray, which is started here if the user names none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import ray
from ray._raylet import Config

from secateur.cluster.runtimes.ray_actors import NAMESPACE
from secateur.errors import OperationalError, ProgrammingError

_SET_BY_RAY: Final = ("PYTHONBREAKPOINT", "RAY_AUTH_MODE")
"""Variables of the environment that Ray sets when it connects, and leaves behind."""
_AUTHENTICATION: Final = "RAY_AUTH_MODE"
_STARTER: Final = Path(__file__).with_name("ray_starter.py")
_END_S: Final = 20.0


class _PrivateRay:
    """The process that starts Ray, and ends it when told to or when this process has ended.

    Ray runs Python between the fork and the exec of each process that it starts, and Python then destroys, in the
    child, what all other threads of the parent keep in thread-local variables. A connection among them that closes
    itself says goodbye for both: those of Py4J do, so a Spark session lost the thread of its driver, and so do those of
    many databases. So the process that forks, ``ray_starter.py``, is not the user's.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", _STARTER, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is meant for this process alone
        )

    def address(self) -> str:
        """The address of Ray when it has come up, to which this process may connect then.

        Raises:
            RuntimeError: It did not come up.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that starts it ended with status {self._process.wait()}")
        reply = json.loads(line)
        if "failure" in reply:
            raise RuntimeError(reply["failure"])
        mode = reply["authentication"]
        if mode != os.environ.get(_AUTHENTICATION):
            # Ray switches its tokens on in a process that starts a Ray, and not in one that connects, which has read
            # the variable when it imported Ray.
            os.environ[_AUTHENTICATION] = mode
            Config.initialize("")
        return str(reply["address"])

    def stop(self) -> None:
        """End Ray, which may still be about to come up."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class RaySession:
    """The connection of this process to Ray, which all of its clusters share: there can be one at a time.

    A Ray that the process had connected to before is left alone. Any other is started here, private to this process, or
    connected to by the address that the user gave; it is left, or ended, with the last cluster that needs it.
    Environment variables and files of an earlier Ray that name other Rays on this machine are ignored: the user did not
    ask to join those.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._connected: RayConnecting | None = None
        self._abandoned: RayConnecting | None = None

    def enter(self, address: str | None, timeout_s: float) -> None:
        """A cluster needs Ray.

        Args:
            address: The address of the Ray to use; None for that of this process, or a private one.
            timeout_s: Seconds that this may take.

        Raises:
            ProgrammingError: The process is connected to another Ray than that.
            OperationalError: Ray did not come up, or did not answer at the address, in time.
        """
        with self._lock:
            if ray.is_initialized():
                used = ray.get_runtime_context().gcs_address
                if address not in (None, used):
                    raise ProgrammingError(
                        f"ray_address={address!r}: this process is connected to the Ray at {used}, and can be to one"
                        " only; ray.shutdown() ends that"
                    )
            else:
                self._users = 0
                self._end()  # the user has shut Ray down
                self._connected = self._connect(address, timeout_s)
            self._users += 1

    def leave(self) -> None:
        """A cluster does not need Ray any more, which ends, with all of its actors, if nobody else does."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._end()

    @property
    def is_private(self) -> bool:
        """Whether Ray was started for this process, and has no other node."""
        with self._lock:
            return self._connected is not None and self._connected.is_private

    @property
    def is_last(self) -> bool:
        """Whether Ray will end with the next cluster that leaves."""
        with self._lock:
            return self._users == 1 and self._connected is not None and self._connected.is_private

    def _end(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.undo()

    def _connect(self, address: str | None, timeout_s: float) -> RayConnecting:
        """Connect in a thread that can be given up: Ray's own time-outs are longer, and end the process."""
        if self._abandoned is not None and not self._abandoned.has_ended(timeout_s):
            raise OperationalError(
                "an abandoned attempt to connect to Ray still runs in this process: start the cluster from another one"
            )
        attempt = RayConnecting(address)
        threading.Thread(target=attempt.run, name="secateur-ray", daemon=True).start()
        failure = attempt.wait(timeout_s)
        if failure is None:
            return attempt
        self._abandoned = attempt
        where = "a private Ray did not start" if address is None else f"the Ray at {address} did not answer"
        advice = (
            "raise start_timeout_s (secateur start --start-timeout), or look for what keeps the machine busy"
            if address is None
            else "check ray_address, or leave it out for a private Ray"
        )
        cause = "" if isinstance(failure, TimeoutError) else f": {failure}"
        raise OperationalError(f"{where} within start_timeout_s = {timeout_s:g} s{cause}; {advice}") from failure


class RayConnecting:
    """One attempt to connect, in a thread of its own.

    Args:
        address: The address of a running Ray; None to start one.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._private: _PrivateRay | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._given_up = False
        self._variables = {name: os.environ.get(name) for name in _SET_BY_RAY}

    @property
    def is_private(self) -> bool:
        """Whether Ray is started for this process."""
        return self._address is None

    def run(self) -> None:
        try:
            address = self._address
            if address is None:
                self._private = _PrivateRay()
                address = self._private.address()
            ray.init(address=address, log_to_driver=False, logging_level="error", namespace=NAMESPACE)
        except BaseException as error:
            self._failure = error
        with self._lock:
            is_wanted = self._failure is None and not self._given_up
            if is_wanted:
                self._ended.set()
        if not is_wanted:
            self.undo()
            self._ended.set()

    def undo(self) -> None:
        """Disconnect, end a private Ray, and set the variables back that Ray has set."""
        ray.shutdown()
        if self._private is not None:
            self._private.stop()
        for name, value in self._variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def has_ended(self, timeout_s: float) -> bool:
        """Whether the attempt has ended, well or not, after a while at the latest."""
        return self._ended.wait(timeout_s)

    def wait(self, timeout_s: float) -> BaseException | None:
        """Why it failed; None when it did not. After a time-out the attempt is undone when it ends."""
        self._ended.wait(timeout_s)
        with self._lock:
            if not self._ended.is_set():
                self._given_up = True
                return TimeoutError()
        return self._failure


ray_session = RaySession()
