"""The connection of this process to Ray, which is started here if the user names none."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from typing import Any, Final

import ray

from secateur.cluster.runtimes.ray_actors import NAMESPACE
from secateur.errors import OperationalError, ProgrammingError

__all__ = ["ray_session"]

_NICENESS: Final = "RAY_worker_niceness"
"""Ray's variable. Its own default of 15 lets every other process of the machine go before the members, and clients
then wait for them behind each other.
"""
_DIRECTORY_CHARS_MAX: Final = 20


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
        self._ended_with_us = False
        self._directory: str | None = None
        self._attempt: RayConnecting | None = None

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
                self._connect(address, timeout_s)
                self._ended_with_us = True
            self._users += 1

    def leave(self) -> bool:
        """A cluster does not need Ray any more; whether Ray ended with it, and all of its actors."""
        with self._lock:
            self._users -= 1
            if self._users or not self._ended_with_us or not ray.is_initialized():
                return False
            self._ended_with_us = False
            ray.shutdown()
            self._release()
            self._forget_directory()
            return True

    @property
    def is_private(self) -> bool:
        """Whether Ray was started for this process, and has no other node."""
        with self._lock:
            return self._directory is not None

    @property
    def is_last(self) -> bool:
        """Whether Ray will end with the next cluster that leaves."""
        with self._lock:
            return self._users == 1 and self._ended_with_us and self._directory is not None

    def _connect(self, address: str | None, timeout_s: float) -> None:
        """Connect in a thread that can be given up: Ray's own time-outs are longer, and end the process."""
        if self._attempt is not None and not self._attempt.has_ended(timeout_s):
            raise OperationalError(
                "an abandoned attempt to connect to Ray still runs in this process: start the cluster from another one"
            )
        self._release()
        attempt = self._attempt = RayConnecting(address, self._new_directory() if address is None else None)
        threading.Thread(target=attempt.run, name="secateur-ray", daemon=True).start()
        failure = attempt.wait(timeout_s)
        if failure is None:
            return
        self._forget_directory()
        where = "a private Ray did not start" if address is None else f"the Ray at {address} did not answer"
        advice = (
            "raise start_timeout_s (secateur start --start-timeout), or look for what keeps the machine busy"
            if address is None
            else "check ray_address, or leave it out for a private Ray"
        )
        cause = "" if isinstance(failure, TimeoutError) else f": {failure}"
        raise OperationalError(f"{where} within start_timeout_s = {timeout_s:g} s{cause}; {advice}") from failure

    def _release(self) -> None:
        if self._attempt is not None:
            self._attempt.release()

    def _new_directory(self) -> str:
        """Make a separate directory for the files of a private Ray, so that several on one machine do not collide."""
        wanted = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
        # The paths of Ray's sockets have to fit into the 107 bytes that the operating system has for them.
        base = wanted if len(wanted) <= _DIRECTORY_CHARS_MAX else "/tmp"
        self._directory = tempfile.mkdtemp(prefix="scr-", dir=base)
        return self._directory

    def _forget_directory(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


class RayConnecting:
    """One attempt to connect, in a thread of its own, which lives for as long as Ray is needed.

    The processes of a Ray end with the thread that started them.

    Args:
        address: The address of a running Ray; None to start one.
        directory: For the files of one that is started.
    """

    def __init__(self, address: str | None, directory: str | None) -> None:
        self._address = address
        self._directory = directory
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._given_up = False
        self._released = threading.Event()

    def run(self) -> None:
        try:
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "namespace": NAMESPACE}
            if self._address is None:
                ray.init(
                    address="local",
                    include_dashboard=False,
                    _temp_dir=self._directory,
                    _system_config={"worker_niceness": int(os.environ.get(_NICENESS, "0"))},
                    **options,
                )
            else:
                ray.init(address=self._address, **options)
        except BaseException as error:
            self._failure = error
        with self._lock:
            if self._given_up:
                ray.shutdown()
                self._released.set()
            self._ended.set()
        if self._failure is None:
            self._released.wait()

    def release(self) -> None:
        """Ray has ended, or is not needed any more."""
        self._released.set()

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
