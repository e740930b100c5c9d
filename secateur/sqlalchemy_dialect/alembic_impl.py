"""What Alembic asks of a dialect: importing this registers it.

Its own operations on tables and columns are ALTER TABLE as secateur has it, and COMMENT ON.
"""

from __future__ import annotations

from typing import Any, Literal

from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Column, MetaData, Table
from sqlalchemy.schema import SetColumnComment


class SecateurImpl(DefaultImpl):
    """Migrations. Each statement commits by itself, so a migration that fails stays half done."""

    __dialect__ = "secateur"
    transactional_ddl = False

    def alter_column(
        self, table_name: str, column_name: str, *, comment: str | Literal[False] | None = False, **options: Any
    ) -> None:
        """Change a column; its comment first, by which Alembic's own statement differs."""
        if comment is not False:
            column: Column[Any] = Column(column_name, comment=comment)
            Table(table_name, MetaData(), column, schema=options.get("schema"))
            self._exec(SetColumnComment(column))
        super().alter_column(table_name, column_name, **options)
