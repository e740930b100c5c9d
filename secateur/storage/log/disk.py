"""The disk of one member: a folder of files that are appended to, or replaced as a whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from secateur.errors import DiskError

_LOCK: Final = "LOCK"
_TEMPORARY: Final = ".tmp"


class Disk(Protocol):
    """The operations that the log needs. They block, so they are called in threads.

    All but ``list`` and ``read`` raise ``OSError`` when the disk is full or fails. After a failed ``append`` or
    ``sync`` nothing is known about the end of the file: the caller goes on in another one.
    """

    path: str

    def list(self) -> Sequence[str]:
        """The names of all files."""

    def read(self, name: str) -> bytes:
        """A whole file."""

    def append(self, name: str, data: bytes) -> None:
        """Write behind the end of a file, which is made if it is not there. Survives the end of the process."""

    def sync(self, name: str) -> None:
        """Have everything that was appended to a file survive a loss of power, and its name as well."""

    def replace(self, name: str, data: bytes) -> None:
        """Make or replace a file, durably: after a crash there is the old file as a whole, or the new one."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off, durably."""

    def remove(self, name: str) -> None:
        """Delete a file; nothing happens if there is none."""

    def free_bytes(self) -> int:
        """Room for further bytes."""

    def close(self) -> None:
        """Let go of everything."""


class LocalDisk(Disk):
    """A directory of this machine, which belongs to one process at a time.

    Args:
        directory: The directory; it is made if it is not there.

    Raises:
        DiskError: It cannot be made, or another process uses it.
    """

    def __init__(self, directory: Path) -> None:
        self.path = str(directory)
        self._directory = directory
        self._open: dict[str, int] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DiskError(f"data directory {directory} cannot be used: {error}", path=self.path) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise DiskError(
                f"data directory {directory} is in use by another process: a directory belongs to one cluster; stop"
                " that one, or choose another directory",
                path=self.path,
            ) from error

    def list(self) -> Sequence[str]:
        return sorted(
            entry.name
            for entry in self._directory.iterdir()
            if entry.is_file() and entry.name != _LOCK and not entry.name.endswith(_TEMPORARY)
        )

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def append(self, name: str, data: bytes) -> None:
        descriptor = self._open.get(name)
        if descriptor is None:
            path = self._directory / name
            is_new = not path.exists()
            descriptor = self._open[name] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if is_new:
                self._sync_directory()
        _write_all(descriptor, data)

    def sync(self, name: str) -> None:
        descriptor = self._open.get(name)
        if descriptor is not None:
            os.fdatasync(descriptor)

    def replace(self, name: str, data: bytes) -> None:
        temporary = self._directory / f"{name}{_TEMPORARY}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            os.close(descriptor)
        temporary.rename(self._directory / name)
        self._sync_directory()

    def truncate(self, name: str, size: int) -> None:
        with (self._directory / name).open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def remove(self, name: str) -> None:
        self._close(name)
        (self._directory / name).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def _close(self, name: str) -> None:
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
