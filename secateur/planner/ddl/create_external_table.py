"""CREATE EXTERNAL TABLE, as written.

::

    CREATE [OR REPLACE] EXTERNAL TABLE [IF NOT EXISTS] t [(col TYPE, ...)] STORED AS {PARQUET | CSV}
        [PARTITIONED BY (col [TYPE], ...)] LOCATION '/path'

The columns are those in the files; without them the first file determines them. The columns of PARTITIONED BY are in
the names of folders. DROP TABLE drops it.
"""

from __future__ import annotations

from typing import Final

from secateur.connectors.external.folder import FolderConnector, FolderFormat
from secateur.errors import NotSupportedError, SqlSyntaxError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import TEXTUAL, UNIT_TIMESTAMPS, SqlType
from secateur.planner.ddl.column_type import read_type
from secateur.planner.statement import CreateExternalTable
from secateur.planner.text.token_cursor import TokenCursor

_FORMATS: Final = {form.value.upper(): form for form in FolderFormat}


def read_create_external_table(cursor: TokenCursor) -> CreateExternalTable:
    """Read a CREATE EXTERNAL TABLE statement.

    Raises:
        NotSupportedError: A type or a format that is not supported.
    """
    or_replace, if_not_exists = cursor.creates("EXTERNAL", "TABLE")
    name = cursor.name_in_main("the name of a table")
    names: set[str] = set()
    columns: list[Column] = []
    if cursor.accept("("):
        columns = [Column(column, _expected(cursor, kind)) for column, kind in _read_columns(cursor, names)]
    cursor.expect("STORED", "AS")
    form = _FORMATS.get(cursor.word())
    if form is None:
        raise cursor.unsupported(f"STORED AS {cursor.word()}", f"use {' or '.join(_FORMATS)}, or connection.register()")
    cursor.take()
    hive: tuple[tuple[str, SqlType | None], ...] | None = None
    if cursor.accept("PARTITIONED", "BY"):
        cursor.expect("(")
        hive = tuple(_read_columns(cursor, names))
    cursor.expect("LOCATION")
    path = cursor.string("the path of a folder in quotes")
    cursor.expect_end()
    connector = FolderConnector(path, form, tuple(columns), hive)
    return CreateExternalTable(name, connector.encoded(), if_not_exists, or_replace, cursor.sql.strip().rstrip(";"))


def _read_columns(cursor: TokenCursor, names: set[str]) -> list[tuple[str, SqlType | None]]:
    """``col [TYPE], ...)``; the names are added to those before."""

    def column(cursor: TokenCursor) -> tuple[str, SqlType | None]:
        offset = cursor.offset
        name = cursor.name("the name of a column")
        if name.casefold() in names:
            message = f"column {name!r} is declared twice (names are compared without regard to case)"
            raise cursor.error(SqlSyntaxError, message, offset, len(name))
        names.add(name.casefold())
        if cursor.at(",") or cursor.at(")"):
            return name, None
        offset, kind = cursor.offset, read_type(cursor, name, {})
        if kind.contains(UNIT_TIMESTAMPS | TEXTUAL):  # the schema of a connector is Arrow's, which does not tell these
            other = "TIMESTAMP" if kind.contains(UNIT_TIMESTAMPS) else "VARCHAR"
            message = f"column {name!r}: the type {kind.shown} in an external table is not supported: use {other}"
            raise cursor.error(NotSupportedError, message, offset, cursor.offset - offset)
        return name, kind

    found = cursor.listed(column)
    cursor.expect(")")
    return found


def _expected(cursor: TokenCursor, kind: SqlType | None) -> SqlType:
    if kind is None:
        raise cursor.expected("the type of each column in the files")
    return kind
