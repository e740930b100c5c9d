"""Positions in the user's text: how an error shows them, and where they are in a text in which spans are replaced."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from secateur.errors import Error, SqlSyntaxError

_EXCERPT_CHARS_MAX: Final = 120

_E = TypeVar("_E", bound=Error)
Splice: TypeAlias = tuple[int, int, str]
"""First offset, end offset, and the replacement."""


def position_of(sql: str, offset: int) -> tuple[int, int]:
    """Line and column, both counted from 1, of a character offset."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def excerpt(sql: str, offset: int, length: int = 1) -> str:
    """The line of the offset with carets under ``length`` characters; a long line is cut around them."""
    start = sql.rfind("\n", 0, offset) + 1
    stop = sql.find("\n", offset)
    line = sql[start : len(sql) if stop < 0 else stop]
    column = offset - start
    if len(line) > _EXCERPT_CHARS_MAX:
        first = max(0, column - _EXCERPT_CHARS_MAX // 2)
        line, column = line[first : first + _EXCERPT_CHARS_MAX], column - first
    marker = "".join("\t" if character == "\t" else " " for character in line[:column])
    return f"  {line}\n  {marker}{'^' * max(1, min(length, len(line) - column))}"


def located(kind: type[_E], message: str, sql: str, offset: int, length: int = 1, **details: object) -> _E:
    """Make an error with its position: in ``details`` as ``line`` and ``column``, in the message with an excerpt."""
    line, column = position_of(sql, offset)
    return kind(
        f"{message} (line {line}, column {column})\n{excerpt(sql, offset, length)}", line=line, column=column, **details
    )


def syntax_error(message: str, sql: str, offset: int, length: int = 1) -> SqlSyntaxError:
    """A :class:`SqlSyntaxError` with its position."""
    return located(SqlSyntaxError, message, sql, offset, length)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the spliced text: its start there, and the span of the user's text that it is or replaces."""

    at: int
    start: int
    end: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class Spliced:
    """A made text, and its parts in order."""

    sql: str
    pieces: tuple[Piece, ...]

    def origin(self, offset: int, length: int = 1) -> tuple[int, int]:
        """Map a span of this text to the user's text: offset and length.

        A replacement maps to the whole span that it replaced.
        """
        first = self._origin(offset)
        last = self._origin(max(offset, offset + length - 1))
        return first[0], max(1, last[1] - first[0])

    def _origin(self, offset: int) -> tuple[int, int]:
        """The span in the user's text of one character."""
        piece = self.pieces[max(0, bisect_right(self.pieces, offset, key=lambda piece: piece.at) - 1)]
        if not piece.is_own:
            return piece.start, piece.end
        start = min(piece.start + max(offset - piece.at, 0), piece.end)
        return start, start + 1


def splice(text: str, first: int, last: int, splices: Sequence[Splice]) -> Spliced:
    """The text from ``first`` to before ``last`` with the spans that lie inside replaced. Spans do not overlap."""
    parts: list[str] = []
    pieces: list[Piece] = []
    position = first
    written = 0
    for start, end, replacement in [
        *sorted(item for item in splices if first <= item[0] and item[1] <= last),
        (last, last, ""),
    ]:
        for part, piece in (
            (text[position:start], Piece(written, position, start, True)),
            (replacement, Piece(written + start - position, start, end, False)),
        ):
            if part:
                parts.append(part)
                pieces.append(piece)
                written += len(part)
        position = end
    return Spliced("".join(parts), tuple(pieces) or (Piece(0, first, last, True),))


def spliced(text: str, first: int, last: int, splices: Sequence[Splice]) -> str:
    """The text of :func:`splice` alone."""
    return splice(text, first, last, splices).sql
