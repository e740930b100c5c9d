"""INSERT of many rows of literals, which are taken out of its text before any parser reads it.

They become its rows again without DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from secateur.partitioning.tables.conform import conform, first_of_each_key
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.literals import double_of, value_of_text
from secateur.partitioning.types.python_column import as_they_stand
from secateur.protocol.statements import EvaluatedInsert, InsertMode, Statement

LITERAL_ROWS_CHARS_MIN: Final = 1024
"""The rows of a shorter text are not worth it."""

_SPACE: Final = r"[ \t\r\n\f]"
_NAME: Final = r'(?:[A-Za-z_]\w*+|"[^"]*+")'
_STRING: Final = r"'[^']*+(?:''[^']*+)*+'"
_NUMBER: Final = r"-?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)"
_CELL: Final = rf"((?:{_NUMBER}|(?:(?:DATE|TIMESTAMP){_SPACE}*+)?+{_STRING}|NULL|TRUE|FALSE)(?![\w.$'\"]))"
_HEAD: Final = re.compile(
    rf"{_SPACE}*+INSERT{_SPACE}++(?:OR{_SPACE}++(?:REPLACE|IGNORE){_SPACE}++)?+INTO{_SPACE}++{_NAME}{_SPACE}*+"
    rf"(?:\((?P<columns>{_SPACE}*+{_NAME}(?:{_SPACE}*+,{_SPACE}*+{_NAME})*+{_SPACE}*+)\){_SPACE}*+)?+"
    rf"(?<![\w$])VALUES{_SPACE}*+",
    re.IGNORECASE | re.ASCII,
)
_COLUMN: Final = re.compile(_NAME, re.ASCII)
_FIRST_CELLS: Final = re.compile(rf"\({_SPACE}*+{_CELL}(?:{_SPACE}*+,{_SPACE}*+{_CELL})*+{_SPACE}*+\)", re.IGNORECASE)
_CELLS: Final = re.compile(_CELL, re.IGNORECASE)
_INTEGER: Final = re.compile(r"-?\d{1,38}", re.ASCII)
_FIXED_POINT: Final = re.compile(r"-?(?:\d+\.\d*|\.\d+)", re.ASCII)
_DIGITS_MAX: Final = 38
"""A number of more digits is a DOUBLE."""
_TYPED: Final = re.compile(r"(DATE|TIMESTAMP)\s*('.*)", re.IGNORECASE | re.DOTALL | re.ASCII)
_BOOLEANS: Final = {"TRUE": True, "FALSE": False}


def with_literal_rows(statement: Statement, taken: LiteralRows) -> EvaluatedInsert | None:
    """An INSERT whose rows were taken out of its text, with these rows; None where DuckDB has to make a column.

    Raises:
        DataError, NullKeyError: A value that its column cannot hold.
    """
    if not isinstance(statement, EvaluatedInsert):
        return None
    insert = statement.insert
    columns = [insert.table.column(name) for name in taken.columns] or insert.table.visible_columns
    found = [
        literal_column(texts, column.type) for texts, column in zip(zip(*taken.rows, strict=True), columns, strict=True)
    ]
    if any(column is None for column in found):
        return None
    rows = without_row_ids(conform(pa.table(found, names=[column.name for column in columns]), insert.table))
    return EvaluatedInsert(insert, first_of_each_key(rows, insert.table) if insert.mode is InsertMode.UPSERT else rows)


@dataclass(frozen=True, slots=True)
class LiteralRows:
    """An INSERT whose rows were taken out.

    Attributes:
        text: The statement with its first row alone.
        columns: The columns that it names, as they are written; empty where it names none.
        rows: Each row as the texts of its literals.
    """

    text: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def take_literal_rows(sql: str) -> LiteralRows | None:
    """The rows of an INSERT with more than one, all of literals; None for any other statement.

    A tokenizer and a binder cost some hundred microseconds for each row. A scan of the text at the speed of regular
    expressions therefore splits ``INSERT INTO t VALUES (1, 'a'), (2, 'b'), ...`` into the same statement with its first
    row alone, which is planned as any other, and the literals of all rows, of which :func:`literal_column` makes
    columns.

    Only rows of numbers, texts in quotes, dates, TRUE, FALSE and NULL are taken, all of one length, in a statement that
    begins with nothing but INSERT, the table and its columns. Every other statement is planned as it is written, and so
    is one in which an error is found, because the error's position must be one in the user's text.

    Cost: a microsecond or two for each row.
    """
    head = _HEAD.match(sql)
    first = None if head is None else _FIRST_CELLS.match(sql, head.end())
    if head is None or first is None:
        return None
    scan = _row(len(_CELLS.findall(first[0])))
    rows = []
    start, end = head.end(), head.end()
    while (row := scan.match(sql, start)) is not None:
        rows.append(row.groups())
        end = row.end(row.re.groups)
        start = row.end()
        if sql[start - 1] != ",":
            break
    else:
        return None  # something else than a row follows a comma
    tail = sql.find(")", end) + 1
    if len(rows) < 2:
        return None
    named = () if head["columns"] is None else tuple(map(_name, _COLUMN.findall(head["columns"])))
    return LiteralRows(f"{sql[: first.end()]} {sql[tail:]}", named, rows)


@lru_cache(maxsize=64)
def _row(width: int) -> re.Pattern[str]:
    cells = rf"{_SPACE}*+,{_SPACE}*+".join([_CELL] * width)
    return re.compile(rf"{_SPACE}*+\({_SPACE}*+{cells}{_SPACE}*+\){_SPACE}*+,?+", re.IGNORECASE)


def _name(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text


class _UncertainError(Exception):
    """Only DuckDB knows what a literal means here; never leaves this module."""


def literal_column(texts: Sequence[str | None], type_: SqlType) -> pa.Array | None:
    """A column of a VALUES clause, of its literals as written; None where DuckDB has to make it. A text None is NULL.

    DuckDB's binder takes some hundred microseconds for each value of a long VALUES clause. A literal whose text is
    exactly a value of its column's type needs no binder: digits in the column's range, a fixed-point number that its
    scale holds, a text in quotes, a date in full. A column with any other literal is left to DuckDB, which converts it
    or reports the error.

    Cost: about half a microsecond for each.
    """
    read = _reader(type_)
    if read is None:
        return None
    try:
        return as_they_stand([None if text is None or _is_null(text) else read(text) for text in texts], type_)
    except _UncertainError:
        return None


def _reader(type_: SqlType) -> Callable[[str], Any] | None:
    if type_.is_integer:
        return _integer
    match type_.kind:
        case TypeKind.VARCHAR | TypeKind.JSON | TypeKind.ENUM:
            return _quoted
        case TypeKind.BOOLEAN:
            return _boolean
        case TypeKind.DECIMAL:
            return _decimal
        case TypeKind.DOUBLE:
            return lambda text: _double(text, type_)
        case TypeKind.DATE | TypeKind.TIMESTAMP:
            return lambda text: _moment(text, type_)
        case _:
            return None


def _is_null(text: str) -> bool:
    return len(text) == 4 and text.upper() == "NULL"


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise _UncertainError
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > _DIGITS_MAX or (_INTEGER.fullmatch(text) is None and _FIXED_POINT.fullmatch(text) is None):
        raise _UncertainError
    return Decimal(text)


def _double(text: str, type_: SqlType) -> float:
    digits = text.removeprefix("-")
    if len(text) > _DIGITS_MAX or (_INTEGER.fullmatch(digits) is None and _FIXED_POINT.fullmatch(digits) is None):
        raise _UncertainError
    value = double_of(Decimal(digits), type_)
    if value is None:
        raise _UncertainError
    return -value if value and digits is not text else value  # -0.0 is a decimal without a sign


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.upper())
    if value is None:
        raise _UncertainError
    return value


def _quoted(text: str) -> str:
    inner = text[1:-1]
    if len(text) < 2 or text[0] != "'" or text[-1] != "'" or "\0" in inner:
        raise _UncertainError
    if "'" not in inner:
        return inner
    marked = inner.replace("''", "\0")
    if "'" in marked:  # several literals
        raise _UncertainError
    return marked.replace("\0", "'")


def _moment(text: str, type_: SqlType) -> Any:
    typed = _TYPED.fullmatch(text)
    if typed is not None and typed[1].upper() != type_.kind.name:
        raise _UncertainError
    value = value_of_text(_quoted(text if typed is None else typed[2]), type_)
    if value is None or not text.isascii():
        raise _UncertainError
    return value
