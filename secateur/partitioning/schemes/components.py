"""The parts of a partition scheme: hash components, range partitions and the range component.

These are descriptions; nothing in them is resolved.

Source: Apache Kudu's partition schemas ("Scan Optimization & Partition Pruning"), with hash components that a range may
replace by its own.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from secateur.partitioning.schemes.interval import IntervalPartitioning

ROW_ID: Final = "_secateur_row_id"
"""The hidden column of a table without a primary key, see :mod:`~secateur.partitioning.tables.row_ids`."""


class HashComponent(msgspec.Struct, frozen=True, array_like=True):
    """``HASH (columns) PARTITIONS partitions SEED seed``.

    Attributes:
        columns: The columns hashed, in the order written: the order matters to the hash.
        partitions: The number of buckets, at least 1.
        seed: 0, or a BIGINT that is hashed in front of the columns.
    """

    columns: tuple[str, ...]
    partitions: Annotated[int, msgspec.Meta(ge=1)]
    seed: int = 0

    @property
    def is_random(self) -> bool:
        """Whether it is ``RANDOM PARTITIONS n``: rows are spread by their hidden ids."""
        return self.columns == (ROW_ID,)


class RangePartition(msgspec.Struct, frozen=True, array_like=True):
    """One interval of the range columns, compared lexicographically.

    Attributes:
        ordinal: Its number among all ranges that the table has ever had; never reused, so no partition id changes.
        lower: The first key inside, canonical Python values (see :mod:`~secateur.partitioning.types.coerce`), or None
            where unbounded.
        upper: The first key after the range, or None where unbounded.
        name: The name to drop it by, if it was given one.
        hashes: Its own hash components; ``()`` for ``NO HASH``; None for those of the table.
    """

    ordinal: int
    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None
    name: str | None = None
    hashes: tuple[HashComponent, ...] | None = None

    def __str__(self) -> str:
        """The bounds as DDL writes them, such as ``(1) <= VALUES < (9)``."""
        lower = "" if self.lower is None else f"{_literal(self.lower)} <= "
        upper = "" if self.upper is None else f" < {_literal(self.upper)}"
        return f"{lower}VALUES{upper}"


class RetiredRange(msgspec.Struct, frozen=True, array_like=True):
    """A dropped range: its ordinal and its block of partition ids stay reserved and are never used again."""

    ordinal: int
    partitions: int


class RangeComponent(msgspec.Struct, frozen=True, array_like=True):
    """``RANGE (columns) ...``.

    Attributes:
        columns: The range columns, most significant first.
        ranges: The live ranges, sorted by lower bound, disjoint, possibly with gaps.
        retired: The dropped ranges, by ordinal.
        catch_all: The partition of the rows that no range holds, unbounded on both sides; None when such rows are
            refused. With EVERY, it covers only the keys below the start.
        every: The interval partitioning that makes ranges when rows for them arrive; None when only ALTER TABLE
            makes them.
    """

    columns: tuple[str, ...]
    ranges: tuple[RangePartition, ...]
    retired: tuple[RetiredRange, ...] = ()
    catch_all: RangePartition | None = None
    every: IntervalPartitioning | None = None

    @property
    def partitions(self) -> tuple[RangePartition, ...]:
        """The live ranges, and the catch-all behind them."""
        return self.ranges if self.catch_all is None else (*self.ranges, self.catch_all)

    @property
    def ordinals_used(self) -> int:
        """The number of ordinals given out, which is the next ordinal."""
        return len(self.ranges) + len(self.retired) + (self.catch_all is not None)


def _literal(values: tuple[Any, ...]) -> str:
    return (
        f"({', '.join(repr(value) if isinstance(value, (int, str, bytes)) else repr(str(value)) for value in values)})"
    )
