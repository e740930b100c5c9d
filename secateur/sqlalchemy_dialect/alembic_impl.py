"""What Alembic asks of a dialect: importing this registers it.

CREATE and DROP of tables and indexes and COMMENT ON are what there is; ALTER TABLE knows only ranges, and Alembic's own
operations on columns are refused when they are compiled.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Column, MetaData, Table
from sqlalchemy.exc import CompileError
from sqlalchemy.schema import SetColumnComment


class SecateurImpl(DefaultImpl):
    """Migrations. Each statement commits by itself, so a migration that fails stays half done."""

    __dialect__ = "secateur"
    transactional_ddl = False

    def add_column(self, table_name: str, column: Any, **_: Any) -> NoReturn:
        raise _refused(table_name, f"add column {column.name!r}")

    def drop_column(self, table_name: str, column: Any, **_: Any) -> NoReturn:
        raise _refused(table_name, f"drop column {column.name!r}")

    def alter_column(
        self, table_name: str, column_name: str, *, comment: str | Literal[False] | None = False, **options: Any
    ) -> None:
        """Change the comment of a column, which is all that can be changed of it."""
        changes = [options.get(name) for name in ("nullable", "name", "type_")]
        if comment is False or options.get("server_default", False) is not False or changes != [None] * len(changes):
            raise _refused(table_name, f"alter column {column_name!r}")
        column: Column[Any] = Column(column_name, comment=comment)
        Table(table_name, MetaData(), column, schema=options.get("schema"))
        self._exec(SetColumnComment(column))

    def rename_table(self, old_table_name: str, new_table_name: Any, schema: Any = None) -> NoReturn:
        raise _refused(old_table_name, f"rename it to {str(new_table_name)!r}")


def _refused(table: str, what: str) -> CompileError:
    return CompileError(
        f"table {table!r}: secateur cannot {what}, because ALTER TABLE only adds and drops ranges. Create a new table,"
        f" and copy the rows with op.execute('INSERT INTO ... SELECT ... FROM {table}')"
    )
