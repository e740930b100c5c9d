"""The disks of a simulated cluster: as slow as real ones, and lost in part when power fails."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from virtual_disk import VirtualDisk

__all__ = ["SimulatedDisk"]

_WRITE_S: Final = 50e-6
_SYNC_S: Final = 1e-3


class SimulatedDisk(VirtualDisk):
    """The disk of one member. Whoever writes waits for it; nothing of a write has happened before it returns.

    Attributes:
        slowness: How many times as long everything takes.
        has_lost: Whether it has lost what it had said was written.
    """

    def __init__(self, rng: random.Random, name: str) -> None:
        super().__init__(rng)
        self.path = name
        self.slowness = 1.0
        self.has_lost = False
        self._delays = rng

    def append(self, name: str, data: bytes) -> None:
        self._wait(_WRITE_S)
        super().append(name, data)

    def sync(self, name: str) -> None:
        self._wait(_SYNC_S)
        super().sync(name)

    def replace(self, name: str, data: bytes) -> None:
        self._wait(_WRITE_S + _SYNC_S)
        super().replace(name, data)

    def crash(self) -> None:
        said = {name: self.read(name) for name in self.list()} if self.lies else {}
        super().crash()
        self.has_lost |= any(self.read(name) != data for name, data in said.items())

    def fill(self) -> None:
        """There is no room for anything more."""
        self.capacity_bytes -= self.free_bytes()

    def _wait(self, seconds: float) -> None:
        time.sleep(self._delays.uniform(0.5, 1.5) * seconds * self.slowness)
