"""The module globals, type constructors and type objects of PEP 249."""

from __future__ import annotations

import time as _time
from datetime import date, datetime, time
from typing import Any, Final, Protocol

apilevel: Final = "2.0"
threadsafety: Final = 2
"""Threads may share the module and connections, not cursors."""
paramstyle: Final = "qmark"
"""``?``; ``$1`` and ``$name`` work as well."""

Date = date
Time = time
Timestamp = datetime
Binary = bytes


class CursorConnection(Protocol):
    """The part of PEP 249's connection interface that a cursor uses."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - PEP 249 gives the name
    """The local date at a number of seconds since the epoch."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802 - PEP 249 gives the name
    """The local time of day at a number of seconds since the epoch."""
    return time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - PEP 249 gives the name
    """The local time at a number of seconds since the epoch."""
    return datetime.fromtimestamp(ticks)


class _TypeObject:
    """Equals the type codes of one group of types.

    A type code is the SQL text of a column's type, such as ``DECIMAL(10,2)``.
    """

    def __init__(self, name: str, *kinds: str) -> None:
        self._name = name
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self._kinds and not other.endswith("]")  # a list of decimals is none
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING: Final = _TypeObject("STRING", "VARCHAR", "UUID", "ENUM", "JSON", "BIT", "TIME WITH TIME ZONE")
"""Also the types whose values arrive as text."""
BINARY: Final = _TypeObject("BINARY", "BLOB")
NUMBER: Final = _TypeObject(
    "NUMBER",
    *(
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UHUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
    ),
)
DATETIME: Final = _TypeObject(
    "DATETIME",
    *("DATE", "TIME", "INTERVAL"),
    *("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
)
ROWID: Final = _TypeObject("ROWID")
"""Equals nothing: rows have keys, not numbers."""
