"""Expressions that DuckDB evaluates outside of kernels: of parameters, before pruning, and CHECKs of rows to store.

Both have a database of their own, closed to files, settings and the other statements of the process, and members
evaluate alike.

DuckDB evaluates all expressions of parameters of a statement in one SELECT, in which nothing is optimised: an
expression is evaluated as it is written, so that a guard in front of a call protects it. An expression that fails has
no value, and prunes nothing: the statement itself then raises DuckDB's error, or does not evaluate the expression at
all. Clients that have DuckDB evaluate as members do. The planner admits only expressions that depend on nothing but
their parameters and whose values are bounded (:mod:`secateur.planner.prune.operands`). What an evaluation may cost is
bounded here, because nothing interrupts DuckDB within the one row that it evaluates: before anything is evaluated, from
the lengths of the texts, so that all places decide alike.

Of CHECKs, the planner admits only conditions of one row whose value is the same at any time and place
(:mod:`secateur.planner.ddl.row_expression`).
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from secateur.errors import CheckFailedError, DataError
from secateur.forks import forks_wait_for
from secateur.memory_database import ExchangeableRows, open_database
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import Evaluated, not_quick
from secateur.partitioning.tables.table import CheckDef, TableDef
from secateur.partitioning.types.arrow_layout import without_struct_offsets
from secateur.partitioning.types.sql_text import quoted

VERSION: Final = duckdb.__version__
"""Two processes whose versions are equal give an expression the same value."""

_PARAMETER_LENGTH_MAX: Final = 4096
_STEPS_MAX: Final = 1 << 24
"""The steps of one expression. A call takes at most as many as the square of the characters of its expression, as
``levenshtein`` does: some tens of milliseconds.
"""
_STEPS_TOGETHER_MAX: Final = 4 * _STEPS_MAX
"""The steps of all expressions of one evaluation."""
_TEXT: Final = re.compile(r"'(?:[^']|'')*'|\$([0-9]+)")
"""A text in an expression, or the number of a parameter."""
MADE_CHARS_MAX: Final = 256
"""The characters that a guarded call may make: a key is not longer."""
GUARD: Final = "error('too large')"
"""The SQL that DuckDB evaluates in place of a guarded call whose result would be too long; it raises an error."""
_CLOSED: Final = ("TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true")
"""No file and no setting can be reached, in this order."""
_VALUES_MEMORY_LIMIT: Final = "64MB"
_KEPT_MAX: Final = 256
_INSTANT: Final = "TIMESTAMP WITH TIME ZONE"
_PYTHON_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), int),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), int),
    **dict.fromkeys(("TIMESTAMP", _INSTANT), datetime),
    "BOOLEAN": bool,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "VARCHAR": str,
    "BLOB": bytes,
    "DATE": date,
    "UUID": UUID,
}
"""The types whose values compare by themselves as they do in the type, and the Python type of their values.

FLOAT is none of them: it compares in single precision. For a value that the Python type does not have, such as a day
before the year 1, DuckDB gives a text.
"""
_ENDLESS: Final = frozenset({date.min, date.max, datetime.min, datetime.max})
"""The Python values that DuckDB also gives for infinite dates and timestamps."""

_Value = tuple[Any, ...]
"""A value alone; nothing if it is not known."""

_NOT_KNOWN: Final[_Value] = ()

_STORED: Final = "stored"
_FEW_MAX: Final = 2048
_VALUE_SHOWN_MAX: Final = 60
_ROW_SHOWN_MAX: Final = 300
_CHECKS_MEMORY_LIMIT: Final = "256MB"


def complete(params: Sequence[Any], expressions: Sequence[Evaluated]) -> list[Any]:
    """The parameters of a plan with the values of its expressions behind them.

    Args:
        params: The parameters of the statement, as many as the plan has.
        expressions: At least one of those of the plan.

    Returns:
        The parameters, then at the place of each expression a list of its value alone, which is empty if it is not
        known. Nothing behind the parameters where the quick form knows every value.

    Cost: nothing where the quick form knows every value; else about 150 microseconds, or 5 for values that were
    computed a short time before.
    """
    missing = not_quick(expressions, params)
    return _completed(params, expressions, missing, _values(missing, params)) if missing else [*params]


def complete_without_evaluation(params: Sequence[Any], expressions: Sequence[Evaluated]) -> list[Any] | None:
    """As :func:`complete` where DuckDB need not evaluate anything; None where it has to."""
    missing = not_quick(expressions, params)
    if not missing:
        return [*params]
    values = _kept.get(_key(missing, params))
    return None if values is None else _completed(params, expressions, missing, values)


def _completed(
    params: Sequence[Any], expressions: Sequence[Evaluated], missing: Sequence[Evaluated], values: Sequence[_Value]
) -> list[Any]:
    completed = [*params, *([] for _ in range(len(params), 1 + max(each.index for each in expressions)))]
    for expression, value in zip(missing, values, strict=True):
        completed[expression.index] = list(value)
    return completed


def value_of(sql: str) -> _Value:
    """The value of an expression without parameters, as a tuple of it alone; empty if it is not known."""
    expression = Evaluated(sql, sql, ())
    if not _affordable([expression], ()):
        return _NOT_KNOWN
    with _lock:
        return _evaluated([expression], ())[0]


def _values(expressions: tuple[Evaluated, ...], params: Sequence[Any]) -> Sequence[_Value]:
    if not expressions:
        return ()
    key = _key(expressions, params)
    with _lock:
        found = _kept.get(key)
        if found is None:
            fit = [each for each in expressions if all(_is_fit(params[index]) for index in each.parameters)]
            possible = _affordable(fit, params)
            known = dict(zip(possible, _evaluated(possible, params), strict=True))
            found = _kept[key] = [known.get(each, _NOT_KNOWN) for each in expressions]
            if len(_kept) > _KEPT_MAX:
                _kept.popitem(last=False)
        return found


def _key(expressions: Sequence[Evaluated], params: Sequence[Any]) -> tuple[Any, ...]:
    # Values that are equal may have other types, and other texts: 1, 1.0 and TRUE, or 1.0 and 1.00.
    return (tuple(each.sql for each in expressions), tuple(repr(params[index]) for index in _parameters(expressions)))


def _parameters(expressions: Iterable[Evaluated]) -> list[int]:
    return sorted({index for each in expressions for index in each.parameters})


def _is_fit(value: Any) -> bool:
    """Whether a parameter is a single value, known and not too long."""
    is_long = isinstance(value, (str, bytes)) and len(value) > _PARAMETER_LENGTH_MAX
    return not is_long and value is not UNKNOWN and not isinstance(value, list)


def _affordable(expressions: Sequence[Evaluated], params: Sequence[Any]) -> list[Evaluated]:
    """The expressions that may be evaluated together; of more, the first ones."""
    left = _STEPS_TOGETHER_MAX
    found = []
    for each in expressions:
        steps = _steps(each.sql, params)
        if steps <= min(_STEPS_MAX, left):
            left -= steps
            found.append(each)
    return found


def _steps(sql: str, params: Sequence[Any]) -> int:
    """The most steps that an expression may take; what its guarded calls make counts as well."""
    calls, chars = sql.count("("), sql.count(GUARD) * MADE_CHARS_MAX
    for text in _TEXT.finditer(sql):
        value = params[int(text[1]) - 1] if text[1] else text[0]
        chars += len(value) if isinstance(value, (str, bytes)) else 1
    return calls * chars * chars


def _evaluated(expressions: Sequence[Evaluated], params: Sequence[Any]) -> list[_Value]:
    """The value of each expression; one that fails has none, and does not take the others' along."""
    if not expressions:
        return []
    try:
        return _selected(expressions, params)
    except (duckdb.Error, ArithmeticError, ValueError):
        if len(expressions) == 1:
            return [_NOT_KNOWN]
    return [value for each in expressions for value in _evaluated([each], params)]


def _selected(expressions: Sequence[Evaluated], params: Sequence[Any]) -> list[_Value]:
    connection = _connection()
    given = {str(index + 1): params[index] for index in _parameters(expressions)}
    read = [each.sql for each in expressions]
    connection.execute(_select(read), given)
    types = [str(column[1]) for column in connection.description or ()]
    if _INSTANT in types:
        # In UTC, and without a zone: for a Python object with one, DuckDB needs a library that may be missing.
        read = [f"({sql})::TIMESTAMP" if kind == _INSTANT else sql for sql, kind in zip(read, types, strict=True)]
        connection.execute(_select(read), given)
    row = connection.fetchone() or ()
    return [
        _NOT_KNOWN if _is_endless(value) and not _is_finite(each, params) else _comparable(value, kind)
        for each, value, kind in zip(expressions, row, types, strict=True)
    ]


def _is_endless(value: Any) -> bool:
    return type(value) in (date, datetime) and value in _ENDLESS


def _is_finite(expression: Evaluated, params: Sequence[Any]) -> bool:
    return _selected([structs.replace(expression, sql=f"isfinite({expression.sql})")], params) == [(True,)]


def _select(expressions: Iterable[str]) -> str:
    return f"SELECT {', '.join(f'({each})' for each in expressions)}"


def _comparable(value: Any, kind: str) -> _Value:
    """A value that compares by itself as it does in its type."""
    if value is None:
        return (None,)
    is_python_value = type(value) is _PYTHON_TYPES.get(kind.partition("(")[0])
    if not is_python_value:
        return _NOT_KNOWN
    return (value.replace(tzinfo=UTC),) if kind == _INSTANT else (value,)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = _database_without_threads(_VALUES_MEMORY_LIMIT)
    connection.execute("PRAGMA disable_optimizer")
    for setting in ("python_enable_replacements = false", *_CLOSED):
        connection.execute(f"SET {setting}")
    return connection


def _database_without_threads(memory_limit: str) -> duckdb.DuckDBPyConnection:
    """A database without threads of its own: a forked process that waits for its parent's ends with a fault."""
    return open_database(threads="1", async_threads="0", memory_limit=memory_limit, temp_directory="")


_lock: Final = forks_wait_for(threading.Lock())
_kept: Final[OrderedDict[tuple[Any, ...], Sequence[_Value]]] = OrderedDict()


class RowChecks:
    """The conditions of one table; made once for a table that has some.

    Args:
        table: The table.
    """

    def __init__(self, table: TableDef) -> None:
        self._table = table
        read = {name for check in table.checks for name in check.columns}
        self._columns = [column.name for column in table.columns if column.name in read]
        # Some types are others in Arrow, such as HUGEINT; where they are the same a cast does nothing.
        casts = (f"CAST({quoted(n)} AS {table.column(n).type}) AS {quoted(n)}" for n in self._columns)
        items = (f"({check.condition}) IS FALSE" for check in table.checks)
        self._sql = f"SELECT {', '.join(items)} FROM (SELECT {', '.join(casts)} FROM {_STORED})"
        self._few: _FewRows | None = None
        self._lock = forks_wait_for(threading.Lock())

    def check(self, rows: pa.Table) -> None:
        """Check rows that have all columns of the table.

        Raises:
            CheckFailedError: A condition is FALSE for one of them.
            DataError: A condition cannot be evaluated.

        Cost: half a millisecond, and that of the conditions.
        """
        if not rows.num_rows:
            return
        read = without_struct_offsets(rows.select(self._columns))
        try:
            failed = self._failed_few(read) if rows.num_rows <= _FEW_MAX else self._failed_many(read)
        except duckdb.Error as error:
            raise DataError(
                f"table {self._table.name}: a CHECK of {self._names} cannot be evaluated for the new rows: {error}",
                table=self._table.name,
            ) from error
        for check, column in zip(self._table.checks, failed.columns, strict=True):
            row = pc.index(column, True).as_py()
            if row >= 0:
                raise self._failed(check, rows.slice(row, 1))

    def _failed_few(self, rows: pa.Table) -> pa.Table:
        with self._lock:
            kept, self._few = self._few or _FewRows(self._sql, rows), None
            failed = kept.failed(rows)
            self._few = kept
        return failed

    def _failed_many(self, rows: pa.Table) -> pa.Table:
        """By a cursor of its own, so that no write of few rows waits for it."""
        with _database().cursor() as cursor:
            cursor.register(_STORED, rows)
            return cursor.sql(self._sql).to_arrow_table()

    @property
    def _names(self) -> str:
        return ", ".join(check.name for check in self._table.checks)

    def _failed(self, check: CheckDef, row: pa.Table) -> CheckFailedError:
        table = self._table
        shown = dict.fromkeys([*table.declared_key, *check.columns, *(column.name for column in table.visible_columns)])
        values = ", ".join(f"{name}: {_shown(row.column(name))}" for name in shown)
        if len(values) > _ROW_SHOWN_MAX:
            values = f"{values[:_ROW_SHOWN_MAX]}..."
        return CheckFailedError(
            f"table {table.name}: the row ({values}) fails CHECK {check.name}: {check.condition}; nothing was changed",
            table=table.name,
            constraint=check.name,
            condition=check.condition,
        )


class _FewRows:
    """A bound statement that is run over other rows each time: to bind it takes three times as long as to run it."""

    def __init__(self, sql: str, rows: pa.Table) -> None:
        self._stored = ExchangeableRows(rows.schema)  # apart from the cursor, which would be a cycle
        self._cursor = _database().cursor()
        self._cursor.register(_STORED, self._stored)
        self._relation = self._cursor.sql(sql)

    def failed(self, rows: pa.Table) -> pa.Table:
        self._stored.rows = rows
        try:
            return self._relation.to_arrow_table()
        finally:
            self._stored.rows = None


def _shown(column: pa.ChunkedArray) -> str:
    try:
        value: Any = column[0].as_py()
    except (OverflowError, ValueError):  # a moment outside of the years of Python
        value = column[0]
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[:_VALUE_SHOWN_MAX]}..."


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = _database_without_threads(_CHECKS_MEMORY_LIMIT)
    for setting in _CLOSED:
        database.execute(f"SET GLOBAL {setting}")
    return database
