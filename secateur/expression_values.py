"""The values of expressions of parameters, computed by DuckDB before the partitions of a statement are selected.

DuckDB evaluates all expressions of a statement in one SELECT. It is a database of its own, closed to files, settings
and the other statements of the process, in which nothing is optimised: an expression is evaluated as it is written, so
that a guard in front of a call protects it. An expression that fails has no value, and prunes nothing: the statement
itself then raises DuckDB's error, or does not evaluate the expression at all.

Members and clients that have DuckDB evaluate alike. The planner admits only expressions that depend on nothing but
their parameters and whose values are bounded (:mod:`secateur.planner.prune.operands`). What an evaluation may
cost is bounded here, because nothing interrupts DuckDB within the one row that it evaluates: before anything is
evaluated, from the lengths of the texts, so that all places decide alike.
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
from msgspec import structs

from secateur.forks import forks_wait_for
from secateur.memory_database import open_database
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import Evaluated, not_quick

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
_MEMORY_LIMIT: Final = "64MB"
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
    connection = open_database(
        threads="1",
        async_threads="0",  # a forked process ends with a segmentation fault when it waits for its parent's
        memory_limit=_MEMORY_LIMIT,
        temp_directory="",
    )
    connection.execute("PRAGMA disable_optimizer")
    for setting in (
        "python_enable_replacements = false",
        "TimeZone = 'UTC'",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


_lock: Final = forks_wait_for(threading.Lock())
_kept: Final[OrderedDict[tuple[Any, ...], Sequence[_Value]]] = OrderedDict()
