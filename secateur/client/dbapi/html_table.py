"""Formats rows for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from secateur.drawing.quantity import count_text
from secateur.protocol.statements import ResultColumn

_CHARS_MAX: Final = 200


def html_table(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]], left: int | None) -> str:
    """An HTML table; names and values are escaped, long values cut.

    Args:
        columns: Name and type of each.
        rows: Those to show.
        left: How many rows can still be fetched, including those shown; None if that is not known yet.
    """
    head = _row(f"<th>{escape(column.name)}<br><small>{escape(column.type)}</small></th>" for column in columns)
    shown = f"{len(rows):,}"
    if left is None:
        count = f"the next {shown} rows; more are to come"
    elif left == len(rows):
        count = count_text(left, "row")
    else:
        count = f"the next {shown} of {left:,} rows"
    return f"{_table(head, rows)}<small>{count}</small>"


def html_records(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table of values that are no result of a statement, under the names of their columns."""
    return _table(_row(f"<th>{escape(name)}</th>" for name in names), rows)


def _table(head: str, rows: Iterable[Sequence[Any]]) -> str:
    body = "".join(_row(f"<td>{_cell(value)}</td>" for value in row) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return escape(text if len(text) <= _CHARS_MAX else text[: _CHARS_MAX - 1] + "…")
