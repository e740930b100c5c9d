"""BACKUP and RESTORE, which the client carries out.

::

    BACKUP [TABLE a, b, ...] TO 'folder'
    RESTORE [OR REPLACE] [TABLE a, b, ...] FROM 'folder'
"""

from __future__ import annotations

from collections.abc import Callable

from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.target import read_table
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import TokenKind
from secateur.protocol.statements import BackupTo, RestoreFrom


def read_backup(cursor: TokenCursor, find: Callable[[str], TableDef]) -> BackupTo:
    """Read a BACKUP statement.

    Args:
        cursor: At the word BACKUP.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
    """
    cursor.expect("BACKUP")
    tables: list[str] = []
    if cursor.accept("TABLE"):
        tables = cursor.listed(lambda cursor: read_table(cursor, find).name)
    cursor.expect("TO")
    return BackupTo(_read_folder(cursor), tuple(tables))


def read_restore(cursor: TokenCursor) -> RestoreFrom:
    """Read a RESTORE statement; the names of its tables are those of the backup, which only the client has.

    Args:
        cursor: At the word RESTORE.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
    """
    cursor.expect("RESTORE")
    or_replace = cursor.accept("OR", "REPLACE")
    tables: list[str] = []
    if cursor.accept("TABLE"):
        tables = cursor.listed(lambda cursor: cursor.name_in_main("the name of a table"))
    cursor.expect("FROM")
    return RestoreFrom(_read_folder(cursor), tuple(tables), or_replace)


def _read_folder(cursor: TokenCursor) -> str:
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.STRING:
        raise cursor.expected("the path of a folder, as 'text'")
    path = cursor.take().text
    cursor.expect_end()
    return path
