"""A disk in memory that loses, garbles and refuses bytes as real ones do; a :class:`secateur.storage.log.disk.Disk`."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BLOCK_BYTES = 64
"""Small, so that small tests tear writes in the middle."""


@dataclass
class _File:
    written: bytearray = field(default_factory=bytearray)
    synced: int = 0


class VirtualDisk:
    """The disk of one member.

    Args:
        rng: Decides what a crash leaves.
        capacity_bytes: Room for all files together.

    Attributes:
        lies: Whether ``sync`` reports success and does nothing.
        fails: How many of the next writes and syncs fail with an I/O error.
        capacity_bytes: May be changed at any time.
    """

    def __init__(
        self, rng: random.Random, capacity_bytes: int = 1 << 40, files: Mapping[str, _File] | None = None
    ) -> None:
        self.path = "virtual disk"
        self.lies = False
        self.fails = 0
        self.capacity_bytes = capacity_bytes
        self._rng = rng
        self._files = dict(files or {})
        self._lock = threading.RLock()

    def list(self) -> Sequence[str]:
        return sorted(self._files)

    def read(self, name: str) -> bytes:
        return bytes(self._files[name].written)

    def append(self, name: str, data: bytes) -> None:
        with self._lock:
            file = self._files.setdefault(name, _File())
            try:
                self._admit(len(data))
            except OSError:
                file.written += data[: self._rng.randint(0, len(data))]  # a part may have been written
                raise
            file.written += data

    def sync(self, name: str) -> None:
        with self._lock:
            self._fail()
            if not self.lies:
                file = self._files[name]
                file.synced = len(file.written)

    def replace(self, name: str, data: bytes) -> None:
        with self._lock:
            self._admit(len(data))
            self._files[name] = _File(bytearray(data), len(data))

    def truncate(self, name: str, size: int) -> None:
        file = self._files[name]
        del file.written[size:]
        file.synced = size

    def remove(self, name: str) -> None:
        with self._lock:
            self._files.pop(name, None)

    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - sum(len(file.written) for file in self._files.values()))

    def close(self) -> None:
        pass

    # -- faults

    def copy(self) -> VirtualDisk:
        """This disk at this moment; what is written to one of both is not on the other."""
        with self._lock:
            files = {name: _File(bytearray(file.written), file.synced) for name, file in self._files.items()}
            return VirtualDisk(self._rng, self.capacity_bytes, files)

    def crash(self) -> None:
        """Power is lost: of what was not synced some blocks are there, in any order, others are zeros or missing."""
        for file in self._files.values():
            end = self._rng.choice([file.synced, len(file.written), self._rng.randint(file.synced, len(file.written))])
            del file.written[end:]
            if self._rng.random() < 0.5:
                for start in range(file.synced, end, BLOCK_BYTES):
                    if self._rng.random() < 0.3:
                        stop = min(start + BLOCK_BYTES, end)
                        file.written[start:stop] = bytes(stop - start)
            file.synced = len(file.written)
        self.lies, self.fails = False, 0

    def garble(self, name: str, place: int) -> None:
        """A byte of a file is not what was written."""
        self._files[name].written[place] ^= 0x5A

    def _admit(self, size: int) -> None:
        self._fail()
        if size > self.free_bytes():
            raise OSError(errno.ENOSPC, "No space left on device")

    def _fail(self) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError(errno.EIO, "Input/output error")
