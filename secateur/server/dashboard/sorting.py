"""Tables that a link in their header sorts: ``?sort=rows`` upwards, ``?sort=-rows`` downwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SortedColumn:
    """A column of a table.

    Attributes:
        key: Its field in a row.
        title: Its heading.
        is_number: Whether it stands at the right, and begins with the largest.
        hint: What it means, as a tooltip.
    """

    key: str
    title: str
    is_number: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class TableSort:
    """The order of one table.

    Attributes:
        columns: Its columns.
        key: The field that rows are ordered by.
        descending: Whether the largest comes first.
        query: The other parameters of the page.
    """

    columns: tuple[SortedColumn, ...]
    key: str
    descending: bool
    query: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, columns: Sequence[SortedColumn], query: Mapping[str, str], default: str, *, names: Sequence[str] = ()
    ) -> TableSort:
        """The order that a page was asked for.

        Args:
            columns: The columns of the table.
            query: The parameters of the page.
            default: The value of ``sort`` when there is none, or a wrong one.
            names: The parameters that links keep.
        """
        wanted = query.get("sort", default)
        if wanted.removeprefix("-") not in {column.key for column in columns}:
            wanted = default
        kept = tuple((name, query[name]) for name in names if name in query)
        return cls(tuple(columns), wanted.removeprefix("-"), wanted.startswith("-"), kept)

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """The rows in this order; those without a value last."""
        filled = [row for row in rows if row[self.key] is not None]
        filled.sort(key=lambda row: _natural(row[self.key]), reverse=self.descending)
        return filled + [row for row in rows if row[self.key] is None]

    def state(self, column: SortedColumn) -> str:
        """``ascending``, ``descending`` or ``none``, as ``aria-sort`` wants it."""
        if column.key != self.key:
            return "none"
        return "descending" if self.descending else "ascending"

    def link(self, column: SortedColumn) -> str:
        """Returns the link of a column's heading: to the order by it, or to the opposite one."""
        downwards = not self.descending if column.key == self.key else column.is_number
        return "?" + urlencode([*self.query, ("sort", f"{'-' if downwards else ''}{column.key}")])

    def link_from(self, first: int) -> str:
        """Returns the link to the rows from this one on, in the same order."""
        order = f"{'-' if self.descending else ''}{self.key}"
        return "?" + urlencode([*self.query, ("sort", order), ("from", first)])


def _natural(value: Any) -> Any:
    """``m2`` before ``m10``."""
    if not isinstance(value, str):
        return value
    letters = value.rstrip("0123456789")
    return (letters, int(value[len(letters) :] or -1), value)
