"""Statements prepared in DuckDB: slots, whose views read other tables in each call, and the binder, which only binds.

A text whose comparisons of rows DuckDB could not evaluate is changed before it is prepared (:func:`rows_told_apart`).

Registering an Arrow object costs more than a small statement does. Over small tables a slot therefore registers once an
object whose content is exchanged for each call. Large tables are registered anew each time: DuckDB knows the row count
only of a registered table, and orders joins by it.

Planning one statement binds dozens of texts over the same few relations, which need not exist. A binder therefore keeps
its cursor, and its relations without rows: one costs as much as binding a small text, and is made again only if a
relation of its name had other columns before.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from secateur.engine.kernels.duckdb.result_types import arrow_type, delivered_type
from secateur.errors import ParameterError, ProgrammingError
from secateur.memory_database import ExchangeableRows
from secateur.partitioning.types.arrow_layout import without_struct_offsets
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.sql_text import quoted, text_literal

_JSON: Final = pa.json_()
_EXCHANGEABLE_ROWS_MAX: Final = 20_000
"""Up to so many rows in all, relations are read through exchangeable views, because a wrong join order costs less than
a registration.
"""

Relations: TypeAlias = Mapping[str, Mapping[str, SqlType | str]]
"""From the name of a relation to the SQL type of each column, in column order."""
_VIEWS_MAX: Final = 256
_UNTYPED: Final = '"NULL"'
"""The type of a NULL of which nothing says the type; a column of a table is an INTEGER then."""
_NO_COLUMNS: Final = "rows without columns"
_PLAIN: Final = "skip_null := true, skip_empty := true, skip_default := true"
"""Fields that say nothing are left out."""


class Slot:
    """A cursor of its own, which the owner of the slot closes, for one SELECT, with the views that it reads.

    Raises:
        ProgrammingError: ``sql`` is something else.
        ParameterError: Its parameters are named and not numbered.
        duckdb.Error: It does not parse.
    """

    __slots__ = ("_parameters", "_relation", "_shown", "_statement", "_views", "cursor", "sql")

    def __init__(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
        self.cursor = cursor
        self.sql = sql
        # Parsed once: to parse a small statement again takes a tenth of its time.
        self._statement, self._parameters = parameters_of_select(cursor, sql)
        self._views: dict[str, _View] = {}
        self._shown: set[str] = set()
        self._relation: duckdb.DuckDBPyRelation | None = None

    def bound(self, params: Sequence[Any], sql: str | None = None) -> duckdb.DuckDBPyRelation:
        """Return the statement, or ``sql`` in its place, bound to its relations and parameters; not run yet.

        A fragment gets all parameters of its statement and may use some; DuckDB accepts only those that the text names.
        """
        statement = self._statement if sql is None else sql
        if self._parameters:
            return self.cursor.sql(statement, params=values_of(self._parameters, params))
        if sql is not None:
            return self.cursor.sql(statement)
        if self._relation is None:
            self._relation = self.cursor.sql(statement)
        return self._relation

    @contextmanager
    def reading(
        self, relations: Mapping[str, pa.Table], casts: Mapping[str, Sequence[tuple[str, str]]]
    ) -> Iterator[None]:
        """Let the statement see ``relations`` for the length of the block."""
        relations = {
            name: _as_json(without_struct_offsets(table), casts.get(name, ()))
            if table.num_columns
            else _with_column(table)
            for name, table in relations.items()
        }
        exchangeable = sum(table.num_rows for table in relations.values()) <= _EXCHANGEABLE_ROWS_MAX
        for name, table in relations.items():
            view = self._views.get(name)
            needed = tuple(casts.get(name, ()))
            # Statements of one text may read columns of types that are equal in Arrow: HUGEINT and DECIMAL(38,0).
            if view is not None and not (view.schema.equals(table.schema) and view.casts == needed):
                view = self._relation = None  # it is bound to columns of other types
            if exchangeable and view is not None:
                view.rows = table
                continue
            if name in self._shown:
                self._hide(name)
            self._shown.add(name)
            if exchangeable:
                self._views[name] = _View(table, needed)
            self._show(name, self._views.get(name, table), table.schema, needed)
        yield
        for name in relations:
            if exchangeable:
                self._views[name].rows = None
            else:
                self._hide(name)

    def _show(self, name: str, rows: object, schema: pa.Schema, casts: Sequence[tuple[str, str]]) -> None:
        # A column that does not lie in memory as its cast expects keeps its own type: a cast could lose something.
        needed = [
            (column, text)
            for column, text in casts
            if column in schema.names and schema.field(column).type.equals(arrow_type(text))
        ]
        if not needed:
            self.cursor.register(name, rows)
            return
        self.cursor.register(_raw(name), rows)
        replaced = ", ".join(f"CAST({quoted(column)} AS {text}) AS {quoted(column)}" for column, text in needed)
        self.cursor.execute(
            f"CREATE TEMP VIEW {quoted(name)} AS SELECT * REPLACE ({replaced}) FROM {quoted(_raw(name))}"
        )

    def _hide(self, name: str) -> None:
        self._shown.discard(name)
        self._views.pop(name, None)
        self.cursor.execute(f"DROP VIEW IF EXISTS {quoted(name)}")
        self.cursor.unregister(name)
        self.cursor.unregister(_raw(name))


class _View(ExchangeableRows):
    """The rows of a view; the casts of its columns stay."""

    __slots__ = ("casts",)

    def __init__(self, rows: pa.Table, casts: tuple[tuple[str, str], ...]) -> None:
        super().__init__(rows.schema)
        self.rows = rows
        self.casts = casts


def parameters_of_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> tuple[duckdb.Statement, tuple[str, ...]]:
    """Parse a SELECT and return the numbers of the parameters that it uses.

    Anything but one SELECT is refused: ``cursor.sql`` would run it at once.

    Raises:
        ProgrammingError: It is something else.
        ParameterError: Its parameters are named and not numbered.
        duckdb.Error: It does not parse.
    """
    statements = cursor.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        found = ", ".join(statement.type.name for statement in statements) or "no statement"
        raise ProgrammingError(f"the DuckDB kernel answers one SELECT at a time; found {found}")
    names = tuple(statements[0].named_parameters)
    if not all(name.isdecimal() for name in names):
        raise ParameterError(f"parameters of a fragment are numbered, $1 and up; found {', '.join(sorted(names))}")
    return statements[0], names


def values_of(names: Sequence[str], params: Sequence[Any]) -> dict[str, Any]:
    """The values of numbered parameters.

    Raises:
        ParameterError: There are fewer.
    """
    try:
        return {name: params[int(name) - 1] for name in names}
    except IndexError:
        raise ParameterError(
            f"the statement uses ${max(map(int, names))}, but {len(params)} parameters were given"
        ) from None


def _with_column(table: pa.Table) -> pa.Table:
    """Return a table of the same rows that has at least one column.

    DuckDB has no tables without columns, but ``count(*)`` needs no column of its relation.
    """
    return pa.table({"rows without columns": pa.nulls(table.num_rows, pa.bool_())})


def _as_json(table: pa.Table, casts: Iterable[tuple[str, str]]) -> pa.Table:
    """The table with texts that are to be cast to JSON as Arrow's JSON, which DuckDB reads without checking them again.

    Texts inside of others are cast.
    """
    for column, text in casts:
        at = table.schema.get_field_index(column) if text == TypeKind.JSON.value else -1
        if at >= 0 and table.schema.field(at).type == _JSON.storage_type:
            chunks = [pa.ExtensionArray.from_storage(_JSON, chunk) for chunk in table.column(at).chunks]
            table = table.set_column(at, pa.field(column, _JSON), pa.chunked_array(chunks, _JSON))
    return table


def _raw(name: str) -> str:
    return f"{name} (arrow)"


_ORDERING: Final = frozenset(
    {
        "COMPARE_LESSTHAN",
        "COMPARE_LESSTHANOREQUALTO",
        "COMPARE_GREATERTHAN",
        "COMPARE_GREATERTHANOREQUALTO",
        "COMPARE_BETWEEN",
    }
)
_SIDES: Final = {"COMPARISON": ("left", "right"), "BETWEEN": ("input", "lower", "upper")}


def is_about_rows(message: str) -> bool:
    """Whether a message is that of the optimizer's BETWEEN."""
    return "Invalid type for BETWEEN" in message


def rows_told_apart(sql: str, serialized: str) -> str | None:
    """Return the text with a different constant in each comparison of rows, and two of them for each BETWEEN.

    ``(a, b) >= (1, 1) AND (a, b) < (1, 3)``, the bounds of a primary key, becomes ``(a, b) BETWEEN ...`` when filters
    are pushed down, and DuckDB 2.0 cannot evaluate BETWEEN over rows. An additional constant field, the same on both
    sides, changes no result: rows compare field by field, and this one is always equal. A different constant in each
    comparison makes them comparisons of different rows, which are not combined.

    Args:
        sql: A statement.
        serialized: The result of ``json_serialize_sql`` for it: DuckDB's parse tree, with positions in bytes.

    Returns:
        The changed text; None when fewer than two rows are compared by order, or a row is not at the position that
        DuckDB reports.
    """
    text = sql.encode()
    numbers = itertools.count()
    edits: list[tuple[int, int, bytes]] = []
    compared = 0
    for comparison in _row_comparisons(json.loads(serialized)):
        sides = [_span(comparison[name]) for name in _SIDES[comparison["class"]]]
        if any(text[end - 1 : end] != b")" for _, end in sides):
            return None
        number = b", %d)" % next(numbers)
        if len(sides) == 2:
            compared += 1
            edits += [(end - 1, end, number) for _, end in sides]
            continue
        compared += 2
        (start, between), (least, and_), (most, end) = sides
        again = text[start : between - 1] + (second := b", %d)" % next(numbers))
        opening = b"(NOT (" if b"NOT" in text[between:least].upper() else b"(("
        edits += [
            (start, start, opening),
            (between - 1, least, number + b" >= "),
            (and_ - 1, most, number + b" AND " + again + b" <= "),
            (end - 1, end, second + b"))"),
        ]
    if compared < 2:
        return None
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text.decode()


def _span(node: dict[str, Any]) -> tuple[int, int]:
    start: int = node["query_location"]
    return start, start + node["query_location_length"]


def _row_comparisons(data: Any) -> Iterator[dict[str, Any]]:
    pending = [data]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item.get("type") in _ORDERING and all(_is_row(item[side]) for side in _SIDES[item["class"]]):
                yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _is_row(node: Any) -> bool:
    return node.get("class") == "FUNCTION" and node.get("function_name") == "row" and bool(node.get("arguments"))


class Binder:
    """A cursor of its own for binding alone, which the owner of the binder closes. Not thread-safe.

    Relations are views, in which a row has no number, or tables: a plan shows the columns that it reads of a table,
    where a view would be opened in it. To make a table takes DuckDB 0.2 milliseconds, and whatever is prepared takes
    0.25 more then: who binds texts over the same tables again and again keeps a binder for them.

    Attributes:
        cursor, has_tables: As given.
        relations: Those of the last call; None where it failed.
    """

    __slots__ = ("_prepared", "_shown", "cursor", "has_tables", "relations")

    def __init__(self, cursor: duckdb.DuckDBPyConnection, *, has_tables: bool = False) -> None:
        self.cursor = cursor
        self.has_tables = has_tables
        self.relations: Relations | None = None
        self._prepared: set[str] = set()
        self._shown: dict[str, tuple[tuple[str, str], ...] | None] = {}

    def describe(self, sql: str, relations: Relations, params: Sequence[Any]) -> tuple[tuple[str, str], ...]:
        """As :meth:`DuckDBKernel.describe`."""
        statement, names = parameters_of_select(self.cursor, sql)
        self._show(sql, relations)
        relation = self.cursor.sql(statement, params=values_of(names, params)) if names else self.cursor.sql(statement)
        texts = (delivered_type(text) if text == _UNTYPED else text for text in map(str, relation.types))
        return tuple(zip(relation.columns, texts, strict=True))

    def plan(self, sql: str, relations: Relations) -> bytes:
        """As :meth:`DuckDBKernel.plan`."""
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

    def _show(self, sql: str, relations: Relations) -> None:
        """Let the next text see the relations, and none that it could only mean by mistake."""
        if self.has_tables and relations == self.relations:
            return
        self.relations = None  # if this fails half-way, nobody knows
        folded = sql.casefold()
        made = {
            name: tuple((column, str(kind)) for column, kind in schema.items()) for name, schema in relations.items()
        }
        strange = [
            name
            for name in self._shown
            if name not in made and (self.has_tables or len(self._shown) > _VIEWS_MAX or name.casefold() in folded)
        ]
        changed = [name for name, schema in made.items() if self._shown.get(name) != schema]
        if strange or changed:
            kind = "TABLE" if self.has_tables else "VIEW"
            texts = [f"DROP {kind} IF EXISTS {quoted(name)}" for name in strange]
            for name in changed:
                texts.append(f"CREATE OR REPLACE TEMP {kind} {quoted(name)} {self._defined(made[name])}")
                self._shown[name] = None  # if the statements fail half-way, there may be one
            self.cursor.execute("; ".join(texts))
            for name in strange:
                del self._shown[name]
            self._shown.update(made)
        self.relations = {name: dict(schema) for name, schema in relations.items()}

    def _defined(self, schema: tuple[tuple[str, str], ...]) -> str:
        """The columns of a relation; of a table by their types, which takes a third of the time of a query."""
        columns = schema or ((_NO_COLUMNS, "INTEGER"),)
        if self.has_tables:
            own = [(name, "INTEGER" if kind == _UNTYPED else kind) for name, kind in columns]
            return f"({', '.join(f'{quoted(name)} {kind}' for name, kind in own)})"
        return f"AS SELECT {', '.join(f'CAST(NULL AS {kind}) AS {quoted(name)}' for name, kind in columns)}"
