"""Reflection: tables, views, columns, keys and indexes, from the system tables.

Names are found without regard to case, as statements find them.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.engine import reflection
from sqlalchemy.engine.interfaces import (
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
)
from sqlalchemy.exc import NoSuchTableError

from secateur.sqlalchemy_dialect.types import reflected_type

MAIN: Final = "main"
"""The schema of all tables and views."""


def _is_main(schema: str | None) -> bool:
    return schema is None or schema.casefold() == MAIN


class Reflection:
    """The methods that SQLAlchemy's Inspector calls. Each asks the controller once, for some milliseconds."""

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        return [MAIN]

    def has_schema(self, connection: Any, schema_name: str, **_: Any) -> bool:
        return _is_main(schema_name)

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        sql = "SELECT 1 FROM secateur.columns WHERE lower(table_name) = lower(:name) LIMIT 1"
        return _is_main(schema) and connection.execute(text(sql), {"name": table_name}).first() is not None

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def has_index(
        self, connection: Any, table_name: str, index_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        try:
            indexes = self.get_indexes(connection, table_name, schema, **kw)
        except NoSuchTableError:
            return False
        return any(str(index["name"]).casefold() == index_name.casefold() for index in indexes)

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "'BASE TABLE', 'EXTERNAL'")

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "'VIEW'")

    def _names(self, connection: Any, schema: str | None, kinds: str) -> list[str]:
        if not _is_main(schema):
            return []
        sql = f"SELECT table_name FROM secateur.tables WHERE table_type IN ({kinds}) ORDER BY table_name"
        return list(connection.execute(text(sql)).scalars())

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **_: Any) -> str:
        row = self._table(connection, view_name, schema)
        if row.table_type != "VIEW":
            raise NoSuchTableError(view_name)
        return str(row.sql)

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        return [
            {
                "name": row.column_name,
                "type": reflected_type(row.data_type),
                "nullable": row.is_nullable,
                "default": row.column_default,
                "comment": row.comment,
            }
            for row in self._columns(connection, table_name, schema)
        ]

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> ReflectedPrimaryKeyConstraint:
        rows = [row for row in self._columns(connection, table_name, schema) if row.key_position is not None]
        rows.sort(key=lambda row: int(row.key_position))
        return {"name": None, "constrained_columns": [row.column_name for row in rows]}

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedIndex]:
        self._columns(connection, table_name, schema)
        sql = "SELECT * FROM secateur.indexes WHERE lower(table_name) = lower(:name) ORDER BY index_name"
        return [
            {"name": row.index_name, "column_names": list(row.columns), "unique": False}
            for row in connection.execute(text(sql), {"name": table_name})
        ]

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_table_options(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> dict[str, Any]:
        row = self._table(connection, table_name, schema)
        options = {
            "secateur_partition_by": row.partitioning,
            "secateur_backups": row.backups,
            "secateur_replicated": row.replicated,
        }
        return {name: value for name, value in options.items() if value}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        self._columns(connection, table_name, schema)
        return []

    get_unique_constraints = get_foreign_keys

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedCheckConstraint]:
        self._columns(connection, table_name, schema)
        sql = "SELECT * FROM secateur.checks WHERE lower(table_name) = lower(:name) ORDER BY check_name"
        return [
            {"name": row.check_name, "sqltext": row.condition}
            for row in connection.execute(text(sql), {"name": table_name})
        ]

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> ReflectedTableComment:
        return {"text": self._table(connection, table_name, schema).comment}

    def _columns(self, connection: Any, table_name: str, schema: str | None) -> list[Any]:
        """The rows of the columns of a table or view.

        Raises:
            NoSuchTableError: There is none.
        """
        sql = "SELECT * FROM secateur.columns WHERE lower(table_name) = lower(:name) ORDER BY position"
        rows = list(connection.execute(text(sql), {"name": table_name})) if _is_main(schema) else []
        if not rows:
            raise NoSuchTableError(table_name)
        return rows

    def _table(self, connection: Any, table_name: str, schema: str | None) -> Any:
        """The row of a table or view.

        Raises:
            NoSuchTableError: There is none.
        """
        sql = "SELECT * FROM secateur.tables WHERE lower(table_name) = lower(:name)"
        row = connection.execute(text(sql), {"name": table_name}).first() if _is_main(schema) else None
        if row is None:
            raise NoSuchTableError(table_name)
        return row
