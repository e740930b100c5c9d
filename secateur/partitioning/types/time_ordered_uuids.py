"""UUIDs of version 7: they begin with the milliseconds since 1970, and so need no coordination and grow with time.

Source: RFC 9562, section 5.7, and for those that count up section 6.2, method 2.
"""

from __future__ import annotations

import os
import time
from typing import Final
from uuid import UUID

_RANDOM_BITS: Final = 62
"""The random bits behind the variant; those of UUIDs that are made together count up from there."""


def new_uuids(count: int) -> list[UUID]:
    """UUIDs that are made together, ascending. Costs about a microsecond each."""
    high, low = first_of(count)
    return [UUID(int=(high << 64) | (low + number)) for number in range(count)]


def first_of(count: int) -> tuple[int, int]:
    """The upper and the lower half of the first of some UUIDs: the upper is that of all, and the lower counts up."""
    now, chance = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big")
    high = (now & (1 << 48) - 1) << 16 | 7 << 12 | chance >> 68
    low = min(chance & (1 << _RANDOM_BITS) - 1, (1 << _RANDOM_BITS) - max(count, 1))
    return high, 2 << _RANDOM_BITS | low
