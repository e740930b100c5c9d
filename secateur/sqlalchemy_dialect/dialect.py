"""The dialect itself: connections, transactions, what secateur can do, and reflection."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import exc, text
from sqlalchemy import schema as sa_schema
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.interfaces import (
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
)
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import NoSuchTableError

import secateur
from secateur.errors import UnreachableError
from secateur.sqlalchemy_dialect.compiler import (
    SecateurCompiler,
    SecateurDdlCompiler,
    SecateurIdentifierPreparer,
)
from secateur.sqlalchemy_dialect.types import COLSPECS, SecateurTypeCompiler, reflected_type
from secateur.wire.tls import Tls

_AUTOCOMMIT: Final = "AUTOCOMMIT"
_SECONDS: Final = ("timeout_s", "connect_timeout_s")
_MAIN: Final = "main"
"""The schema of all tables and views."""


class SecateurExecutionContext(default.DefaultExecutionContext):
    """One execution. Every result comes in parts as it is read, so a cursor of the server is one as any other."""

    def create_server_side_cursor(self) -> Any:
        return self._dbapi_connection.cursor()


class SecateurDialect(default.DefaultDialect):
    """``secateur://host:port/?token=...``.

    Every statement commits by itself. ``commit()`` does nothing, and ``rollback()`` is an error where something was
    changed since the transaction began; with ``create_engine(..., skip_autocommit_rollback=True)`` it does nothing
    either.

    Args:
        leave_out_constraints: Whether FOREIGN KEY and UNIQUE are left out of CREATE TABLE. By default they are
            an error, since nobody checks them.
        json_serializer: Writes values of the type JSON; by default ``json.dumps``.
        json_deserializer: Reads them; by default ``json.loads``.
        **kwargs: Those of SQLAlchemy's own dialects.
    """

    name = "secateur"
    driver = "secateur"
    default_paramstyle = "qmark"

    statement_compiler = SecateurCompiler
    ddl_compiler = SecateurDdlCompiler
    type_compiler_cls = SecateurTypeCompiler
    preparer = SecateurIdentifierPreparer
    execution_ctx_cls = SecateurExecutionContext
    colspecs = COLSPECS
    construct_arguments = [  # noqa: RUF012 - the class of SQLAlchemy declares it as a list
        (sa_schema.Table, {"partition_by": None, "backups": None, "replicated": False, "change_feed": False})
    ]

    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    returns_native_bytes = True
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    supports_default_values = True
    supports_comments = True
    supports_empty_insert = False
    supports_alter = False
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    update_returning_multifrom = True
    delete_returning_multifrom = True
    tuple_in_values = False
    div_is_floordiv = False
    default_schema_name = _MAIN
    _backslash_escapes = False  # asked for by the compiler of PostgreSQL

    def __init__(
        self,  # SQLAlchemy finds arguments by their places: none is for a keyword alone
        leave_out_constraints: bool = False,
        json_serializer: Callable[[Any], str] | None = None,
        json_deserializer: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._json_serializer, self._json_deserializer = json_serializer, json_deserializer
        self.leaves_out_constraints = leave_out_constraints

    @classmethod
    def import_dbapi(cls) -> Any:
        return secateur

    def create_connect_args(self, url: URL) -> tuple[Sequence[str], MutableMapping[str, Any]]:
        """The arguments of :func:`secateur.connect` for a URL.

        The token is the parameter ``token`` or, where logs are not to show it, the password; ``tls_ca`` names the file
        of ``Tls(ca=...)``. What is missing comes from the environment.

        Raises:
            ArgumentError: The URL has a user or a database, or a parameter that is not known.
        """
        given = {name: value for name, value in url.query.items() if isinstance(value, str)}
        unknown = sorted(set(url.query) - {"token", "tls_ca", *_SECONDS})
        if url.username or url.database or unknown:
            extra = unknown[0] if unknown else url.username or url.database
            raise exc.ArgumentError(
                f"{extra!r} in the URL of the engine is not known: write secateur://host:port/?token=..., with the"
                f" parameters token, tls_ca, {' and '.join(_SECONDS)}"
            )
        host = f"[{url.host}]" if url.host and ":" in url.host else url.host
        arguments: dict[str, Any] = {name: float(given[name]) for name in _SECONDS if name in given}
        if "tls_ca" in given:
            arguments["tls"] = Tls(ca=given["tls_ca"])
        return (), {
            "address": f"secateur://{host}:{url.port}" if host else None,
            "token": given.get("token", url.password),
            "autocommit_only": True,
            **arguments,
        }

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        return isinstance(e, UnreachableError) or (connection is not None and connection.closed)

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return _AUTOCOMMIT

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        return [_AUTOCOMMIT]

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """There is one, which is always set."""

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return True

    def _get_default_schema_name(self, connection: Any) -> str:
        return _MAIN

    # -- reflection, from the system tables: what SQLAlchemy's Inspector calls. Names are found without regard to case,
    # as statements find them; each call asks the controller once, for some milliseconds.

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        return [_MAIN]

    def has_schema(self, connection: Any, schema_name: str, **_: Any) -> bool:
        return _is_main(schema_name)

    @reflection.cache  # type: ignore[misc, unused-ignore]
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        return bool(_rows(connection, "columns", table_name, schema))

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
        return [
            {"name": row.index_name, "column_names": list(row.columns), "unique": False}
            for row in _rows(connection, "indexes", table_name, schema, "index_name")
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
        return [
            {"name": row.check_name, "sqltext": row.condition}
            for row in _rows(connection, "checks", table_name, schema, "check_name")
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
        rows = _rows(connection, "columns", table_name, schema, "position")
        if not rows:
            raise NoSuchTableError(table_name)
        return rows

    def _table(self, connection: Any, table_name: str, schema: str | None) -> Any:
        """The row of a table or view.

        Raises:
            NoSuchTableError: There is none.
        """
        rows = _rows(connection, "tables", table_name, schema)
        if not rows:
            raise NoSuchTableError(table_name)
        return rows[0]


def _rows(connection: Any, relation: str, table_name: str, schema: str | None, order: str = "table_name") -> list[Any]:
    """The rows of a system table about a table or view; none where there is no such schema."""
    sql = f"SELECT * FROM secateur.{relation} WHERE lower(table_name) = lower(:name) ORDER BY {order}"
    return list(connection.execute(text(sql), {"name": table_name})) if _is_main(schema) else []


def _is_main(schema: str | None) -> bool:
    return schema is None or schema.casefold() == _MAIN


with suppress(ImportError):  # Alembic is not installed
    import secateur.sqlalchemy_dialect.alembic_impl
