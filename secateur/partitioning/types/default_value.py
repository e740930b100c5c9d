"""What a column gets that is not named: a constant, or the value of a function of the clock or of random numbers.

A default is kept as text. That of a constant is its literal (:mod:`~secateur.partitioning.types.literals`), so that it
is a plain value wherever the table is known; the few functions are those of :data:`FUNCTIONS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from time import time_ns
from typing import Any, Final
from uuid import UUID, uuid4

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.literals import read_literal

_RANDOM_BITS: Final = 62
"""The random bits behind the variant; those of UUIDs that are made together count up from there."""


def new_uuids(count: int) -> list[UUID]:
    """UUIDs that are made together, ascending. Costs about a microsecond each.

    UUIDs of version 7: they begin with the milliseconds since 1970, and so need no coordination and grow with time.

    Source: RFC 9562, section 5.7, and for those that count up section 6.2, method 2.
    """
    high, low = first_of(count)
    return [UUID(int=(high << 64) | (low + number)) for number in range(count)]


def first_of(count: int) -> tuple[int, int]:
    """The upper and the lower half of the first of some UUIDs: the upper is that of all, and the lower counts up."""
    now, chance = time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big")
    high = (now & (1 << 48) - 1) << 16 | 7 << 12 | chance >> 68
    low = min(chance & (1 << _RANDOM_BITS) - 1, (1 << _RANDOM_BITS) - max(count, 1))
    return high, 2 << _RANDOM_BITS | low


_RANDOM: Final[Mapping[str, Callable[[], UUID]]] = {"uuid()": uuid4, "uuidv7()": lambda: new_uuids(1)[0]}
_INSTANT: Final = frozenset({TypeKind.TIMESTAMPTZ, TypeKind.TIMESTAMP})
_CLOCKS: Final[Mapping[str, frozenset[TypeKind]]] = {
    "now()": _INSTANT,
    "current_localtimestamp()": _INSTANT,
    "current_date()": frozenset({TypeKind.DATE, *_INSTANT}),
    "current_localtime()": frozenset({TypeKind.TIME}),
}
FUNCTIONS: Final[Mapping[str, frozenset[TypeKind]]] = {
    **_CLOCKS,
    **dict.fromkeys(_RANDOM, frozenset({TypeKind.UUID, TypeKind.VARCHAR})),
}
"""The functions whose value a column may get, as DuckDB calls them, and the types that hold all of their values."""


@dataclass(frozen=True, slots=True)
class DefaultValue:
    """A default of a column; its constant is None where it is a function."""

    text: str
    type: SqlType
    constant: Any

    @classmethod
    def of(cls, text: str, type_: SqlType) -> DefaultValue:
        """Read a default of a column.

        Raises:
            DataError: It is no text that DEFAULT has been read to.
        """
        return cls(text, type_, None if text in FUNCTIONS else read_literal(text, type_))

    @property
    def is_constant(self) -> bool:
        return self.text not in FUNCTIONS

    @property
    def is_random(self) -> bool:
        """Whether each row gets another value."""
        return self.text in _RANDOM

    def values(self, count: int, now: datetime) -> list[Any]:
        """Canonical values for some rows of a statement: each row gets a UUID of its own, and all the same moment.

        The statement started at ``now``, in UTC.
        """
        make = _RANDOM.get(self.text)
        if make is None:
            return [self.constant if self.is_constant else self._at(now)] * count
        made = [make() for _ in range(count)]
        return made if self.type.kind is TypeKind.UUID else list(map(str, made))

    def _at(self, now: datetime) -> Any:
        if self.text == "current_date()":
            now = datetime.combine(now.date(), time(), UTC)
        match self.type.kind:
            case TypeKind.DATE:
                return now.date()
            case TypeKind.TIME:
                return now.time()
            case TypeKind.TIMESTAMP:
                return now.replace(tzinfo=None)
            case _:
                return now
