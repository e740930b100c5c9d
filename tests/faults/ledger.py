"""What clients of different processes wrote and had acknowledged, in memory that they share, so that a stale read is
seen at once.

Each key has one writer, whose values only grow. So a read is right exactly if its value is at least what had been
acknowledged when the read began, and at most what had been tried when it ended: a linearizable register.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

__all__ = ["Ledger"]


class Ledger:
    """Two counters for each key: the last value tried and the last value acknowledged.

    Args:
        path: A file that all processes of one run open.
        keys: The number of keys.
        create: Whether to make the file, with zeros.
    """

    def __init__(self, path: Path, keys: int, *, create: bool = False) -> None:
        if create:
            path.write_bytes(bytes(2 * 8 * keys))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 2 * 8 * keys)
        counters = np.frombuffer(self._memory, np.int64).reshape(2, keys)
        self.tried = counters[0]
        self.acknowledged = counters[1]
