"""A table whose columns come, go and change while clients count in it."""

from __future__ import annotations

from typing import Final

import secateur
from call_log import CallLog, Kind
from sums import Counters

__all__ = ["Altered"]

_COLUMNS: Final = {"five": ("BIGINT", 5), "word": ("VARCHAR", "word"), "none": ("INTEGER", None)}
"""The columns that come and go, with the value of each in every row: nobody writes to them."""
_KEPT: Final = ("id", "n")


class Altered(Counters):
    """Counters, of which the table is altered: each is right by every schema, and an acknowledged one is that of now.

    Args:
        log: Of all calls.
        placement: How the table is partitioned and copied.
    """

    def __init__(self, log: CallLog, placement: str) -> None:
        super().__init__(log, placement, "altered")
        self._columns: set[str] | None = set()  # None while that is not known, or about to change
        self._altered = 0

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [*super().kinds(), (self.alter, 4), (self.read_all, 6)]

    def read_back(self, conn: secateur.Connection) -> None:
        """Read everything, and alter the table once more: whatever has happened, it can be."""
        super().read_back(conn)
        self._log.until_answered(lambda: self.alter(conn))
        self._log.until_answered(lambda: self.read_all(conn))

    def alter(self, conn: secateur.Connection) -> bool:
        """A column comes or goes, whether others alter the table as well."""
        draw = self._log.world.random
        name = draw.choice(list(_COLUMNS))
        kind, value = _COLUMNS[name]
        comes = draw.random() < 0.5
        default = "" if value is None else f" DEFAULT {value!r}"
        change = f"ADD COLUMN IF NOT EXISTS {name} {kind}{default}" if comes else f"DROP COLUMN IF EXISTS {name}"
        before, self._columns = self._columns, None
        self._altered += 1
        number = self._altered
        answered = self._log.execute(conn, "alter table", f"ALTER TABLE {self._table} {change}", [])
        if answered and before is not None and number == self._altered:
            self._columns = before | {name} if comes else before - {name}
        return answered

    def read_all(self, conn: secateur.Connection) -> bool:
        """Every row has the columns of one moment, with their values."""
        altered, expected = self._altered, self._columns
        with self._log.call("read altered") as answered:
            cursor = conn.execute(f"SELECT * FROM {self._table}")
            rows = cursor.fetchall()
            names = [column[0] for column in cursor.description or ()]
            if expected is not None and altered == self._altered and set(names) != {*_KEPT, *expected}:
                self._differs(f"{self._table} has the columns {names}, and those of now are {sorted(expected)}")
            for row in rows:
                found = dict(zip(names, row, strict=True))
                wrong = [name for name in found if name in _COLUMNS and found[name] != _COLUMNS[name][1]]
                if wrong or not set(_KEPT) <= set(found):
                    self._differs(f"a row of {self._table} is {found}")
        return bool(answered)
