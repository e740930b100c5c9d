from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.engine.sql import RowPieces
from secateur.engine_limits import EngineLimits

LIMITS = EngineLimits()


def taken(pieces: RowPieces) -> list[pa.Table]:
    found = []
    while not pieces.is_done:
        found.append(pieces.take())
    return found


def test_pieces_together_are_the_relation_and_none_is_large() -> None:
    relation = pa.concat_tables(
        [
            pa.table({"a": list(range(start, start + 40_000)), "b": ["x" * 100] * 40_000})
            for start in range(0, 200_000, 40_000)
        ]
    )
    pieces = taken(RowPieces(relation, LIMITS))
    assert len(pieces) > 3
    assert pa.concat_tables(pieces).equals(relation)
    assert max(piece.nbytes for piece in pieces) <= 1.1 * LIMITS.piece_bytes


def test_pieces_of_which_little_remains_grow_up_to_a_bound() -> None:
    limits = EngineLimits(piece_bytes=8 << 10, piece_bytes_max=16 * (8 << 10))
    pieces = RowPieces(pa.table({"a": range(64 << 10)}), limits)
    sizes = []
    while not pieces.is_done:
        sizes.append(pieces.take().num_rows)
        pieces.answered(1000 if len(sizes) != 2 else 8 << 10)
    assert sizes[:7] == [1024 * times for times in (1, 2, 2, 4, 8, 16, 16)]
    assert sum(sizes) == 64 << 10


def test_a_small_relation_is_one_piece_and_an_empty_one_too() -> None:
    small = pa.table({"a": [1, 2, 3]})
    assert taken(RowPieces(small, LIMITS)) == [small]
    assert taken(RowPieces(small.slice(0, 0), LIMITS)) == [small.slice(0, 0)]


@pytest.mark.parametrize("rows", [0, 5])
def test_what_is_dropped_is_done(rows: int) -> None:
    pieces = RowPieces(pa.table({"a": list(range(rows))}), LIMITS)
    pieces.drop()
    assert pieces.is_done
