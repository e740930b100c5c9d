"""ALTER TABLE: adds and drops ranges.

::

    ALTER TABLE t <change> [, <change> ...]
    <change> := ADD <range>  |  DROP <range>  |  DROP PARTITION name  |  DROP DEFAULT PARTITION

Several changes are made in the order written, all or none. A range is dropped by its name or by exactly its bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from secateur.errors import SchemeError
from secateur.partitioning.schemes.range_changes import AddRange, DropNamed, DropRange, RangeChange, alter_ranges
from secateur.partitioning.tables.table import TableDef
from secateur.planner.ddl.partition_by import read_range
from secateur.planner.dml.target import read_table
from secateur.planner.statement import AlterTable
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor

_WHAT_CAN_BE_ALTERED: Final = (
    "the ranges of a table can be altered: ADD PARTITION ..., DROP PARTITION ...; for anything else create a new table"
    " and INSERT INTO it SELECT"
)
_OF_COLUMNS: Final = (
    ("ADD", "COLUMN"),
    ("DROP", "COLUMN"),
    ("RENAME",),
    ("ALTER",),
    ("SET",),
    ("RESET",),
    ("ADD", "PRIMARY"),
    ("ADD", "CONSTRAINT"),
)


class _Written(NamedTuple):
    """A change and its place in the text."""

    change: RangeChange
    start: int
    end: int


def read_alter_table(cursor: TokenCursor, find: Callable[[str], TableDef]) -> AlterTable:
    """Read an ALTER statement and check it against the table as it is.

    Args:
        cursor: At the word ALTER.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
        SchemeError: A change that cannot be, with its position.
        NotSupportedError: ALTER of something else than the ranges of a table.
    """
    cursor.expect("ALTER")
    if not cursor.accept("TABLE"):
        raise cursor.unsupported(f"ALTER {cursor.word()}", "the ranges of tables can be altered; views can be replaced")
    offset = cursor.offset
    table = read_table(cursor, find)
    for words in _OF_COLUMNS:
        if cursor.at(*words):
            raise cursor.unsupported(f"ALTER TABLE {' '.join(words)}", _WHAT_CAN_BE_ALTERED)
    component = table.scheme.range
    if component is None:
        message = (
            f"table {table.name} has no RANGE component, so it has no ranges to add or drop; create it with PARTITION"
            " BY ... RANGE (column) ..."
        )
        raise cursor.error(SchemeError, message, offset, len(table.name), table=table.name)
    written = cursor.listed(lambda cursor: _read_change(cursor, len(component.columns)))
    cursor.expect_end()
    _check(cursor.sql, table, written)
    return AlterTable(table, tuple(change for change, _, _ in written))


def _read_change(cursor: TokenCursor, columns: int) -> _Written:
    start = cursor.offset
    change: RangeChange
    if cursor.at("ADD", "PARTITION") or cursor.at("ADD", "DEFAULT", "PARTITION"):
        cursor.expect("ADD")
        change = AddRange(read_range(cursor, columns))
    elif cursor.at("DROP", "PARTITION") and not cursor.at("DROP", "PARTITION", "VALUES") and _ends(cursor, 3):
        cursor.expect("DROP", "PARTITION")
        change = DropNamed(cursor.name("the name of the partition, or its bounds"))
    elif cursor.at("DROP", "PARTITION") or cursor.at("DROP", "DEFAULT", "PARTITION"):
        cursor.expect("DROP")
        change = DropRange(read_range(cursor, columns))
    elif cursor.at("ADD") or cursor.at("DROP"):
        cursor.take()
        raise cursor.unsupported("this change", _WHAT_CAN_BE_ALTERED)
    else:
        raise cursor.expected("ADD PARTITION or DROP PARTITION")
    return _Written(change, start, cursor.offset)


def _ends(cursor: TokenCursor, ahead: int) -> bool:
    """Whether a change ends before the token that is ``ahead`` tokens away."""
    token = cursor.peek(ahead)
    return token is None or token.word == ","


def _check(sql: str, table: TableDef, written: list[_Written]) -> None:
    """Make the changes one by one, to say which of them cannot be."""
    types = {column.name: column.type for column in table.columns}
    scheme = table.scheme
    for change, start, end in written:
        try:
            scheme = alter_ranges(scheme, [change], types=types, primary_key=table.primary_key, table=table.name)
        except SchemeError as error:
            raise located(
                SchemeError, error.message, sql, start, len(sql[start:end].rstrip(" ,\n\t")), **error.details
            ) from error
