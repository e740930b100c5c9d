"""Texts in which spans of the user's text are replaced, and the mapping of their positions back to the user's text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Splice: TypeAlias = tuple[int, int, str]
"""First offset, end offset, and the replacement."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the spliced text: its start there, and the span of the user's text that it is or replaces."""

    at: int
    start: int
    end: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class Spliced:
    """A made text.

    Attributes:
        sql: The text.
        pieces: Its parts, in order.
    """

    sql: str
    pieces: tuple[_Piece, ...]

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
        start = min(piece.start + offset - piece.at, piece.end)
        return start, start + 1


def splice(text: str, first: int, last: int, splices: Sequence[Splice]) -> Spliced:
    """The text from ``first`` to before ``last`` with the spans that lie inside replaced. Spans do not overlap."""
    parts: list[str] = []
    pieces: list[_Piece] = []
    position = first
    written = 0
    for start, end, replacement in [
        *sorted(item for item in splices if first <= item[0] and item[1] <= last),
        (last, last, ""),
    ]:
        for part, piece in (
            (text[position:start], _Piece(written, position, start, True)),
            (replacement, _Piece(written + start - position, start, end, False)),
        ):
            if part:
                parts.append(part)
                pieces.append(piece)
                written += len(part)
        position = end
    return Spliced("".join(parts), tuple(pieces) or (_Piece(0, first, last, True),))


def spliced(text: str, first: int, last: int, splices: Sequence[Splice]) -> str:
    """The text of :func:`splice` alone."""
    return splice(text, first, last, splices).sql
