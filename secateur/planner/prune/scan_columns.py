"""The columns of one scan, as input columns of a bound plan name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.shown import shown
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import within
from secateur.planner.tree.types import sql_type


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """The columns of a scan.

    Attributes:
        names: The name of each input column; one with an index behind these is another table's.
        others: The names of those behind, for messages.
        types: The types of the table's columns.
        never_null: The names of those that do not hold NULL.
    """

    names: Sequence[str]
    types: Mapping[str, SqlType]
    never_null: frozenset[str]
    others: Sequence[str] = ()

    @classmethod
    def of(cls, table: TableDef, names: Sequence[str], others: Sequence[str] = ()) -> ScanColumns:
        """The columns of a scan of a table, which reads those of these names."""
        return cls(names, {column.name: column.type for column in table.columns}, table.never_null, others)

    def shown(self, node: ex.AnyExpression) -> str:
        """The text of an expression over the columns, for a message."""
        return shown(node, [*self.names, *self.others])

    def name_of(self, node: ex.AnyExpression) -> str | None:
        """The name of the column that an expression is; None for anything else.

        A column that the plan has in another type than the table, such as under a collation, is none that is known.
        """
        name = self.spelled(node)
        return name if name is not None and sql_type(node.return_type) == self.types[name] else None

    def spelled(self, node: ex.AnyExpression) -> str | None:
        """The name of the column that an expression is in whatever type; None for anything else."""
        if not isinstance(node, ex.InputColumn) or node.index >= len(self.names):
            return None
        name = self.names[node.index]
        return name if name in self.types else None

    def named_in(self, nodes: Iterable[ex.AnyExpression]) -> Counter[str]:
        """The names of the columns in expressions, and how often each stands there."""
        return Counter(name for node in nodes for part in within(node) if (name := self.name_of(part)) is not None)
