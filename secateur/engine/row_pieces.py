"""A relation in pieces of bounded size, for fragments that answer row by row."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["PIECE_BYTES", "RowPieces"]

PIECE_BYTES: Final = 4 << 20
"""What one call of a kernel reads: enough that starting the call does not matter, little enough to be held many times."""
_PIECE_ROWS_MIN: Final = 1024


class RowPieces:
    """Takes a relation apart from the front, without copying.

    Args:
        relation: The rows.
    """

    __slots__ = ("_position", "_relation", "_rows_max")

    def __init__(self, relation: pa.Table) -> None:
        self._relation = relation
        self._position = 0
        self._rows_max = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left. A relation without rows has one piece, which has none either: its schema is an answer too."""
        return self._position >= max(self._relation.num_rows, 1)

    def take(self) -> pa.Table:
        """The next piece."""
        if not self._rows_max:
            # Not before: counting the bytes of many partitions takes its time, which the threads that take pieces have.
            self._rows_max = max(_PIECE_ROWS_MIN, self._relation.num_rows * PIECE_BYTES // max(self._relation.nbytes, 1))
        piece = self._relation.slice(self._position, self._rows_max)
        self._position += max(piece.num_rows, 1)
        return piece

    def drop(self) -> None:
        """Leave the rest."""
        self._position = max(self._relation.num_rows, 1)
        self._relation = self._relation.slice(0, 0)
