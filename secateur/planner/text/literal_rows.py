"""Long VALUES clauses of literals, taken out of the text of an INSERT before any parser reads it.

A tokenizer and a binder cost some hundred microseconds for each row. A scan of the text at the speed of regular
expressions therefore splits ``INSERT INTO t VALUES (1, 'a'), (2, 'b'), ...`` into the same statement with its first row
alone, which is planned as any other, and the literals of all rows, of which
:mod:`~secateur.planner.dml.literal_columns` makes columns.

Only rows of numbers, texts in quotes, dates, TRUE, FALSE and NULL are taken, all of one length, in a statement that
begins with nothing but INSERT, the table and its columns. Every other statement is planned as it is written, and so is
one in which an error is found, because the error's position must be one in the user's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

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
