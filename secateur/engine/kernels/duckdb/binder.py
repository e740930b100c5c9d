"""The binder: asks DuckDB to bind a statement without running it, over relations that need not exist.

Planning one statement binds dozens of texts over the same few relations. A binder therefore keeps its cursor, and its
relations as views without rows: a view costs as much as binding a small text, and is made again only if a relation of
its name had other columns before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import duckdb

from secateur.engine.kernels.duckdb.result_types import delivered_type
from secateur.engine.kernels.duckdb.slot import parameters_of_select, values_of
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import quoted, text_literal

_VIEWS_MAX: Final = 256
_PLAIN: Final = "skip_null := true, skip_empty := true, skip_default := true"
"""Fields that say nothing are left out."""


class Binder:
    """A cursor of its own for binding alone. Not thread-safe.

    Args:
        cursor: Used by this binder only; the owner of the binder closes it.
    """

    __slots__ = ("_kind", "_prepared", "_rows", "_shown", "_tables", "cursor")

    def __init__(self, cursor: duckdb.DuckDBPyConnection, *, has_tables: bool = False) -> None:
        self.cursor = cursor
        self._kind, self._rows = ("TABLE", " WITH NO DATA") if has_tables else ("VIEW", "")
        self._tables: Binder | None = None
        self._prepared: set[str] = set()
        self._shown: dict[str, tuple[tuple[str, str], ...] | None] = {}

    def describe(
        self, sql: str, relations: Mapping[str, Mapping[str, SqlType | str]], params: Sequence[Any]
    ) -> tuple[tuple[str, str], ...]:
        """As :meth:`DuckDBKernel.describe`."""
        statement, names = parameters_of_select(self.cursor, sql)
        self._show(sql, relations)
        relation = self.cursor.sql(statement, params=values_of(names, params)) if names else self.cursor.sql(statement)
        texts = (delivered_type(text) if text == '"NULL"' else text for text in map(str, relation.types))
        return tuple(zip(relation.columns, texts, strict=True))

    def plan(self, sql: str, relations: Mapping[str, Mapping[str, SqlType | str]]) -> bytes:
        """As :meth:`DuckDBKernel.plan`."""
        if self._kind == "VIEW":
            # A plan shows the columns that it reads of a table; a view would be opened in it.
            self._tables = self._tables or Binder(self.cursor.cursor(), has_tables=True)
            return self._tables.plan(sql, relations)
        self._show(sql, relations)
        return self._said("json_serialize_plan", ", optimize := false", sql).encode()

    def trees(self, statements: Sequence[str]) -> tuple[str, ...]:
        """As :meth:`DuckDBKernel.trees`."""
        return tuple(self._said("json_serialize_sql", "", sql) for sql in statements)

    def _said(self, function: str, options: str, sql: str) -> str:
        """What a function says of a text. To bind its call each time would cost as much as a short text."""
        if function not in self._prepared:
            self.cursor.execute(f"PREPARE {function} AS SELECT {function}($1, {_PLAIN}{options})")
            self._prepared.add(function)
        ((said,),) = self.cursor.execute(f"EXECUTE {function}({text_literal(sql)})").fetchall()
        return str(said)

    def _show(self, sql: str, relations: Mapping[str, Mapping[str, SqlType | str]]) -> None:
        """Let the next text see the relations, and none that it could only mean by mistake."""
        folded = sql.casefold()
        made = {
            name: tuple((column, str(kind)) for column, kind in schema.items()) for name, schema in relations.items()
        }
        strange = [
            name
            for name in self._shown
            if name not in made and (len(self._shown) > _VIEWS_MAX or name.casefold() in folded)
        ]
        changed = [name for name, schema in made.items() if self._shown.get(name) != schema]
        if not strange and not changed:
            return
        texts = [f"DROP {self._kind} IF EXISTS {quoted(name)}" for name in strange]
        for name in changed:
            columns = (
                ", ".join(f"CAST(NULL AS {kind}) AS {quoted(column)}" for column, kind in made[name])
                or 'NULL AS "rows without columns"'
            )
            texts.append(f"CREATE OR REPLACE TEMP {self._kind} {quoted(name)} AS SELECT {columns}{self._rows}")
            self._shown[name] = None  # if the statements fail half-way, there may be a view
        self.cursor.execute("; ".join(texts))
        for name in strange:
            del self._shown[name]
        self._shown.update(made)
