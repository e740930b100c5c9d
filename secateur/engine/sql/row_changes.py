"""Row changes: the effect of a statement on a table's rows, one line for each inserted, updated or deleted row.

Statements that one member computes for all partitions (MERGE, UPDATE ... FROM, ON CONFLICT DO UPDATE, and every other
change that has to read beyond the partition of its row) are queries for such a table. Its columns, whatever their
names: the action, the old key of the row (NULL for an insertion), and all columns of the table: the new row, or for a
deletion the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import ProgrammingError, ProtocolError
from secateur.partitioning.tables.conform import conform, first_of_each_key, first_positions
from secateur.partitioning.tables.row_ids import filled_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import comparable
from secateur.protocol.changes import DuplicateMatchPolicy


class RowAction(StrEnum):
    """The action for a row. The value is in the first column; a line without one is left out."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes, sorted by kind.

    Attributes:
        removed: Keys of rows that are removed: deleted ones, and the old keys of those that are updated to another key.
        added: Rows whose keys must be new once those are removed.
        replaced: Rows that replace those with the same keys.
        actions: The action of each changed row.
        rows: The changed rows, with the columns of the query, in the same order.
    """

    removed: pa.Table
    added: pa.Table
    replaced: pa.Table
    actions: pa.ChunkedArray
    rows: pa.Table

    @classmethod
    def of(cls, found: pa.Table, table: TableDef, duplicate_match: DuplicateMatchPolicy) -> RowChanges:
        """Sort the result of a query for row changes.

        Raises:
            ProgrammingError: A row is found twice, and that is refused.
            DataError, NullKeyError: A row that the table cannot hold.
            ProtocolError: The result has no actions: the query is not that of a change.

        Cost: vectorised, a few passes over the rows.
        """
        named = found.column(0).type if found.num_columns else pa.null()
        if not (pa.types.is_string(named) or pa.types.is_large_string(named) or pa.types.is_dictionary(named)):
            raise ProtocolError(
                f"{table.name}: the plan of a change begins with the action of each row, and this one begins with"
                f" {named}"
            )
        found = _once(found.filter(found.column(0).is_valid()), table, duplicate_match)
        actions = found.column(0)
        rows = _rows(found, table)
        deleted, inserted = pc.equal(actions, RowAction.DELETE.value), pc.equal(actions, RowAction.INSERT.value)
        moved = pc.and_(pc.equal(actions, RowAction.UPDATE.value), _differ(_keys(found, table), rows, table))
        is_new = pc.or_(inserted, moved)
        return cls(
            removed=_keys(found.filter(pc.or_(deleted, moved)), table),
            added=conform(rows.filter(is_new), table),
            replaced=conform(rows.filter(pc.invert(pc.or_(deleted, is_new))), table),
            actions=actions,
            rows=rows,
        )

    def only(self, positions: pa.Array) -> RowChanges:
        """Some of the changes, all of which are insertions."""
        added, rows = self.added.take(positions), self.rows.take(positions)
        return replace(self, added=added, actions=self.actions.take(positions), rows=rows)

    def resulting(self, table: TableDef) -> pa.Table:
        """The rows that are to be written when none goes and none moves: of rows with one key the first.

        Raises:
            ProgrammingError: One does.
        """
        if self.removed.num_rows:
            raise ProgrammingError(f"{table.name}: rows go away, which this change does not allow")
        return first_of_each_key(pa.concat_tables([self.replaced, self.added]), table)


def _once(found: pa.Table, table: TableDef, duplicate_match: DuplicateMatchPolicy) -> pa.Table:
    """The lines of rows that are there, each once, and all insertions, in the order given."""
    is_there = pc.not_equal(found.column(0), RowAction.INSERT.value)
    there = found.filter(is_there)
    first = first_positions(_keys(there, table), table)
    if first is None:
        return found
    if duplicate_match is DuplicateMatchPolicy.REFUSED:
        raise ProgrammingError(
            f"{table.name}: the statement would change a row more than once, since it matches several source rows: "
            "make the rows of the source distinct, or the condition unique",
            table=table.name,
        )
    positions = pc.indices_nonzero(is_there).take(first)
    kept = pa.concat_arrays([positions.cast(pa.int64()), pc.indices_nonzero(pc.invert(is_there)).cast(pa.int64())])
    return found.take(kept.take(pc.sort_indices(kept)))


def _keys(found: pa.Table, table: TableDef) -> pa.Table:
    """The old keys, in the types of the table."""
    schema = table.arrow_schema
    columns = [found.column(1 + position) for position in range(len(table.primary_key))]
    return pa.table(
        [column.cast(schema.field(name).type) for column, name in zip(columns, table.primary_key, strict=True)],
        names=list(table.primary_key),
    )


def _rows(found: pa.Table, table: TableDef) -> pa.Table:
    first = 1 + len(table.primary_key)
    columns = found.columns[first:]
    if table.has_row_ids:  # inserted rows have none yet
        columns = [
            filled_row_ids(ids) if column.hidden else ids for ids, column in zip(columns, table.columns, strict=True)
        ]
    return pa.table(columns, names=[column.name for column in table.columns])


def _differ(old: pa.Table, new: pa.Table, table: TableDef) -> pa.ChunkedArray:
    """Whether the new key of each row differs from the old one; NULL counts as different."""
    different = [
        pc.fill_null(pc.not_equal(comparable(old.column(name)), comparable(new.column(name))), True)
        for name in table.primary_key
    ]
    return reduce(pc.or_, different)
