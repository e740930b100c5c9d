"""The claims of placement about the texts of the stages of a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.planner.binding.query import TableReference
from secateur.planner.checks.select_node import Node
from secateur.planner.fragments.partial_final import PartialFinal


@dataclass(frozen=True, slots=True)
class Source:
    """A scan of the statement.

    Attributes:
        columns: The names of those columns that the statement may need, in the order of the table.
        never_null: The names of those that have no NULLs.
        rows: Equal for scans that read the same rows.
    """

    columns: tuple[str, ...]
    never_null: frozenset[str]
    rows: object

    @classmethod
    def of(cls, scan: TableReference, rows: object = None) -> Source:
        """Make the source of a scan; ``rows`` identifies the rows that it reads."""
        return cls(scan.columns, frozenset(column.name for column in scan.table.columns if not column.nullable), rows)


@dataclass(frozen=True, slots=True)
class Cutting:
    """The claim about a relation of which a SELECT is the final part.

    Attributes:
        whole: The SELECT before it was split.
        partial_final: The two parts.
        star: The columns that a ``*`` of its SELECT list stands for.
    """

    whole: str
    partial_final: PartialFinal
    star: Callable[[Node], Sequence[Node]]

    @property
    def texts(self) -> list[str]:
        """The texts that are compared: the whole and, where the final only passes rows on, both parts."""
        parts = self.partial_final
        return [self.whole, *([parts.partial, parts.final, parts.passing] if parts.passing is not None else [])]


@dataclass(frozen=True, slots=True)
class PlacedText:
    """The text of a stage.

    Attributes:
        sql: The text.
        columns: The names of its columns.
        scans: Whether its rows are those of a scan.
        cutting: The split of which it is the partial part, or None.
        keyed: The decorrelated query whose rows by key it has, or None.
        order: The order of its rows, for a merge.
        limit: How many of its rows are the answer, if its text does not contain the limit.
    """

    sql: str
    columns: tuple[str, ...]
    scans: bool = False
    cutting: Cutting | None = None
    keyed: str | None = None
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None
