"""ALTER TABLE and COMMENT ON: change the ranges, the columns or the description of a table.

::

    ALTER TABLE [IF EXISTS] t <range change> [, <range change> ...]
    <range change> := ADD <range>  |  DROP <range>  |  DROP PARTITION name  |  DROP DEFAULT PARTITION

    ALTER TABLE [IF EXISTS] t <change> [, <change> ...]
    <change> := ADD [COLUMN] [IF NOT EXISTS] c <type> [DEFAULT <value>] [NOT NULL]
              | DROP [COLUMN] [IF EXISTS] c
              | RENAME [COLUMN] a TO b  |  RENAME TO u
              | ALTER [COLUMN] c { SET DEFAULT <value> | DROP DEFAULT | SET NOT NULL | DROP NOT NULL
                                 | [SET DATA] TYPE <wider type> }

    ALTER TABLE [IF EXISTS] t { ENABLE | DISABLE } ROW LEVEL SECURITY

    COMMENT ON { TABLE t | COLUMN t.c } IS { 'text' | NULL }

Several changes are made in the order written, all or none. A range is dropped by its name or by exactly its bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from secateur.errors import SchemeError, UnknownColumnError, UnknownTableError
from secateur.partitioning.schemes.range_changes import AddRange, DropNamed, DropRange, RangeChange, alter_ranges
from secateur.partitioning.tables.alteration import (
    AddColumn,
    ColumnChange,
    DropColumn,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNullable,
    SetType,
    altered,
)
from secateur.partitioning.tables.table import Column, NamedType, TableDef
from secateur.planner.ddl.access import read_row_security
from secateur.planner.ddl.column_type import read_type
from secateur.planner.ddl.partition_by import read_range
from secateur.planner.ddl.row_expression import read_default
from secateur.planner.dml.target import FindTable, found, read_relation
from secateur.planner.dml.values import read_column
from secateur.planner.statement import AlterColumns, AlterTable, CommentOn, SecureTable
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.statements import Done

_WHAT_CAN_BE_ALTERED: Final = (
    "the columns of a table, its name and its ranges can be altered: ADD, DROP, RENAME and ALTER COLUMN, RENAME TO, ADD"
    " and DROP PARTITION; for anything else create a new table and INSERT INTO it SELECT"
)
_REFUSED: Final = (
    ("SET",),
    ("RESET",),
    ("ADD", "PRIMARY"),
    ("ADD", "CONSTRAINT"),
    ("ADD", "CHECK"),
    ("ADD", "UNIQUE"),
    ("ADD", "FOREIGN"),
    ("DROP", "CONSTRAINT"),
)


def read_alter_table(
    cursor: TokenCursor, find: FindTable, types: Mapping[str, NamedType]
) -> AlterTable | AlterColumns | SecureTable | Done:
    """Read an ALTER statement and check it against the table as it is.

    Args:
        cursor: At the word ALTER.
        find: Finds the table.
        types: The named types, by case-folded name.

    Raises:
        UnknownTableError: With the position of the name.
        UnknownColumnError: There is no such column.
        SchemeError: A change that cannot be, with its position.
        NotSupportedError: ALTER of something else.
    """
    cursor.expect("ALTER")
    if not cursor.accept("TABLE"):
        raise cursor.unsupported(f"ALTER {cursor.word()}", "tables can be altered; views can be replaced")
    if_exists = cursor.accept("IF", "EXISTS")
    offset = cursor.offset
    try:
        table = read_relation(cursor, find)
    except UnknownTableError:
        if if_exists:
            return Done("no such table")
        raise
    if cursor.at("ENABLE") or cursor.at("DISABLE"):
        return read_row_security(cursor, table)
    for words in _REFUSED:
        if cursor.at(*words):
            raise cursor.unsupported(f"ALTER TABLE {' '.join(words)}", _WHAT_CAN_BE_ALTERED)
    if not _is_of_ranges(cursor):
        return _read_columns(cursor, table, types)
    component = table.scheme.range
    if component is None:
        message = (
            f"table {table.name} has no RANGE component, so it has no ranges to add or drop; create it with PARTITION"
            " BY ... RANGE (column) ..."
        )
        raise cursor.error(SchemeError, message, offset, len(table.name), table=table.name)
    return _read_ranges(cursor, table, len(component.columns))


def _is_of_ranges(cursor: TokenCursor) -> bool:
    """Whether the next change is one of ranges; anything unknown is read as one of columns, which says what it may be.

    PARTITION may be the name of a column where a type follows.
    """
    return any(
        cursor.at(verb, *words) for verb in ("ADD", "DROP") for words in (("PARTITION",), ("DEFAULT", "PARTITION"))
    )


@contextmanager
def _placed(cursor: TokenCursor, start: int) -> Iterator[None]:
    """Say of a change that cannot be where it stands: from ``start`` on."""
    try:
        yield
    except (SchemeError, UnknownColumnError) as error:
        text = cursor.sql[start : cursor.offset].rstrip(" ,\n\t;")
        raise located(type(error), error.message, cursor.sql, start, len(text), **error.details) from error


def _read_ranges(cursor: TokenCursor, table: TableDef, columns: int) -> AlterTable:
    types = {column.name: column.type for column in table.columns}
    scheme = table.scheme

    def change(cursor: TokenCursor) -> RangeChange:
        nonlocal scheme
        start = cursor.offset
        change = _read_change(cursor, columns)
        with _placed(cursor, start):
            scheme = alter_ranges(scheme, [change], types=types, primary_key=table.primary_key, table=table.name)
        return change

    changes = cursor.listed(change)
    cursor.expect_end()
    return AlterTable(table, tuple(changes))


def _read_columns(cursor: TokenCursor, table: TableDef, types: Mapping[str, NamedType]) -> AlterColumns:
    now = datetime.now(UTC)
    changes: list[ColumnChange] = []
    changed = table
    while not changes or cursor.accept(","):
        start = cursor.offset
        changes.append(_read_column_change(cursor, changed, types))
        with _placed(cursor, start):
            changed = altered(table, changes, now).table
    cursor.expect_end()
    return AlterColumns(table, tuple(changes))


def _read_column_change(cursor: TokenCursor, table: TableDef, types: Mapping[str, NamedType]) -> ColumnChange:
    """One change of a table as those before it leave it."""
    if cursor.accept("RENAME"):
        if cursor.accept("TO"):
            return RenameTable(cursor.name_in_main("the new name of the table"))
        cursor.accept("COLUMN")
        name = cursor.name("the name of a column")
        cursor.expect("TO")
        return RenameColumn(name, cursor.name("the new name of the column"))
    if cursor.accept("DROP"):
        cursor.accept("COLUMN")
        if_exists = cursor.accept("IF", "EXISTS")
        drop = DropColumn(cursor.name("the name of a column"), if_exists)
        if cursor.at("CASCADE"):
            raise cursor.unsupported("CASCADE", "views that read the column stay, and say so when they are read")
        cursor.accept("RESTRICT")
        return drop
    if cursor.accept("ADD"):
        cursor.accept("COLUMN")
        return _read_add(cursor, types)
    if not cursor.accept("ALTER"):
        raise cursor.expected("ADD, DROP, RENAME or ALTER")
    cursor.accept("COLUMN")
    column = table.column(read_column(cursor, table))
    if cursor.accept("SET", "DEFAULT"):
        return SetDefault(column.name, read_default(cursor, column.name, column.type))
    if cursor.accept("DROP", "DEFAULT"):
        return SetDefault(column.name, None)
    if cursor.accept("SET", "NOT", "NULL"):
        return SetNullable(column.name, nullable=False)
    if cursor.accept("DROP", "NOT", "NULL"):
        return SetNullable(column.name, nullable=True)
    if not (cursor.accept("TYPE") or cursor.accept("SET", "DATA", "TYPE")):
        raise cursor.expected("SET DEFAULT, DROP DEFAULT, SET NOT NULL, DROP NOT NULL or TYPE")
    type_ = read_type(cursor, column.name, types)
    if cursor.at("USING") or cursor.at("COLLATE"):
        raise cursor.unsupported(
            cursor.word(), "a type may become a wider one; for another value add a column, UPDATE it and drop this one"
        )
    return SetType(column.name, type_)


def _read_add(cursor: TokenCursor, types: Mapping[str, NamedType]) -> AddColumn:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a column")
    column = Column(name, read_type(cursor, name, types))
    while not (cursor.at_end or cursor.at(",")):
        if cursor.accept("DEFAULT"):
            column = replace(column, default=read_default(cursor, name, column.type))
        elif cursor.accept("NOT", "NULL"):
            column = replace(column, nullable=False)
        elif not cursor.accept("NULL"):
            raise cursor.unsupported(
                cursor.word(), "a column that is added may have DEFAULT and NOT NULL; a TABLE is created with the rest"
            )
    return AddColumn(column, if_not_exists)


def _read_change(cursor: TokenCursor, columns: int) -> RangeChange:
    if cursor.at("ADD", "PARTITION") or cursor.at("ADD", "DEFAULT", "PARTITION"):
        cursor.expect("ADD")
        return AddRange(read_range(cursor, columns))
    if cursor.at("DROP", "PARTITION") and not cursor.at("DROP", "PARTITION", "VALUES") and _ends(cursor, 3):
        cursor.expect("DROP", "PARTITION")
        return DropNamed(cursor.name("the name of the partition, or its bounds"))
    if cursor.at("DROP", "PARTITION") or cursor.at("DROP", "DEFAULT", "PARTITION"):
        cursor.expect("DROP")
        return DropRange(read_range(cursor, columns))
    raise cursor.unsupported(
        cursor.word() or "this change", "a statement changes either the ranges or the columns of a table: write two"
    )


def _ends(cursor: TokenCursor, ahead: int) -> bool:
    """Whether a change ends before the token that is ``ahead`` tokens away."""
    token = cursor.peek(ahead)
    return token is None or token.word == ","


def read_comment_on(cursor: TokenCursor, find: FindTable) -> CommentOn:
    """Read a COMMENT ON statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        NotSupportedError: It is about something else than a table or a column of one.
    """
    cursor.expect("COMMENT", "ON")
    column = None
    if cursor.accept("TABLE"):
        table = read_relation(cursor, find)
    elif cursor.accept("COLUMN"):
        if cursor.at("MAIN", ".") and cursor.at_ahead(3, "."):
            cursor.expect("MAIN", ".")
        table = found(cursor, cursor.name("the name of a table"), find)
        cursor.expect(".")
        column = read_column(cursor, table)
    else:
        raise cursor.unsupported(f"COMMENT ON {cursor.word()}", "tables and their columns have comments")
    cursor.expect("IS")
    comment = (
        None if cursor.accept("NULL") else cursor.string("a text in single quotes, or NULL", may_have_dollars=True)
    )
    cursor.expect_end()
    return CommentOn(table, column, comment)
