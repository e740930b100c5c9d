"""Sort keys: a column, its direction and the place of NULLs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from secateur.errors import DagError


class SortKey(msgspec.Struct, frozen=True, array_like=True):
    """One column of an order. NaN is greater than every number, text is compared by code points, as in SQL.

    Attributes:
        column: Its name.
        descending: Largest first.
        nulls_first: NULL before all values; otherwise after them, whichever the direction.
    """

    column: str
    descending: bool = False
    nulls_first: bool = False


def desc(column: str, *, nulls_first: bool = False) -> SortKey:
    """A column with its largest values first."""
    return SortKey(column, descending=True, nulls_first=nulls_first)


def sort_keys(by: Sequence[str | SortKey], what: str) -> tuple[SortKey, ...]:
    """Names and keys as keys.

    Raises:
        DagError: There is none, or a column comes twice.
    """
    keys = tuple(SortKey(key) if isinstance(key, str) else key for key in by)
    if not keys or len({key.column for key in keys}) < len(keys):
        raise DagError(f"{what} is ordered by {[key.column for key in keys]}; name at least one column, each once")
    return keys


def order_by(keys: Sequence[SortKey]) -> str:
    """The ORDER BY list over the columns ``k0``, ``k1``, ... and ``row``: a stable order."""
    items = [
        f"k{i} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for i, key in enumerate(keys)
    ]
    return ", ".join([*items, "row"])
