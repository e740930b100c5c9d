"""Rows as notebooks and shells of Python show them: a table of HTML, or lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from secateur.drawing.quantity import count_text
from secateur.protocol.statements import ResultColumn

_HTML_CHARS_MAX: Final = 200
_TEXT_CHARS_MAX: Final = 40


def html_table(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]], left: int | None) -> str:
    """An HTML table; names and values are escaped, long values cut.

    ``left`` is how many rows can still be fetched, including those shown; None if that is not known yet.
    """
    head = _row(f"<th>{escape(column.name)}<br><small>{escape(column.type)}</small></th>" for column in columns)
    return f"{_table(head, rows)}<small>{_count_of(len(rows), left)}</small>"


def text_table(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]], left: int | None) -> str:
    """Lines with names, types and rows in columns; long values are cut, and line breaks in them escaped.

    ``left`` is as for :func:`html_table`.
    """
    lines = [[column.name for column in columns], [column.type for column in columns], *rows]
    cells = [[_cut(value, _TEXT_CHARS_MAX).replace("\n", "\\n") for value in line] for line in lines]
    widths = [max(map(len, cell)) for cell in zip(*cells, strict=True)]
    names, types, *values = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([names, types, rule, *values, _count_of(len(rows), left)])


def _count_of(shown: int, left: int | None) -> str:
    """How many rows are shown, and of how many that can still be fetched; None if that is not known yet."""
    if left is None:
        return f"the next {shown:,} rows; more are to come"
    return count_text(left, "row") if left == shown else f"the next {shown:,} of {left:,} rows"


def html_records(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table of values that are no result of a statement, under the names of their columns."""
    return _table(_row(f"<th>{escape(name)}</th>" for name in names), rows)


def _table(head: str, rows: Iterable[Sequence[Any]]) -> str:
    body = "".join(_row(f"<td>{_cell(value)}</td>" for value in row) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    return escape(_cut(value, _HTML_CHARS_MAX))


def _cut(value: Any, chars_max: int) -> str:
    """A value as text of at most so many characters."""
    text = "NULL" if value is None else str(value)
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"
