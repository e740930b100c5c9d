"""A relation in pieces of bounded size, for fragments that answer row by row."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from secateur.engine_limits import EngineLimits

_KEPT_MIN: Final = 0.25
_PIECE_ROWS_MIN: Final = 1024


class RowPieces:
    """Takes a relation apart from the front, without copying.

    Args:
        relation: The rows.
        limits: How many bytes a piece has.
    """

    __slots__ = ("_limits", "_position", "_relation", "_rows_limit", "_rows_max", "_taken_bytes")

    def __init__(self, relation: pa.Table, limits: EngineLimits) -> None:
        self._limits = limits
        self._relation = relation
        self._position = 0
        self._rows_max = 0
        self._rows_limit = 0
        self._taken_bytes = 0

    @property
    def is_done(self) -> bool:
        """Whether all pieces have been taken.

        A relation without rows has one piece, which has none either: its schema is an answer too.
        """
        return self._position >= max(self._relation.num_rows, 1)

    def take(self) -> pa.Table:
        """The next piece."""
        if not self._rows_max:
            # Not earlier: counting the bytes of many partitions takes time, which the threads that take pieces have.
            first = self._limits.piece_bytes
            self._rows_max = max(_PIECE_ROWS_MIN, self._relation.num_rows * first // max(self._relation.nbytes, 1))
            self._rows_limit = self._rows_max * (self._limits.piece_bytes_max // first)
            self._taken_bytes = first
        piece = self._relation.slice(self._position, self._rows_max)
        self._position += max(piece.num_rows, 1)
        return piece

    def answered(self, nbytes: int) -> None:
        """Record the bytes of the last piece's answer; if they are few, the next piece is twice as large."""
        if nbytes < _KEPT_MIN * self._taken_bytes and self._rows_max < self._rows_limit:
            self._rows_max *= 2
            self._taken_bytes *= 2

    def drop(self) -> None:
        """Leave the rest."""
        self._position = max(self._relation.num_rows, 1)
        self._relation = self._relation.slice(0, 0)
