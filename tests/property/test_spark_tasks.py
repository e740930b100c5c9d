"""How snapshots are divided: each row once, tasks and requests of about equal bytes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from secateur.client.execution import SnapshotPart
from secateur.connectors.spark.read_plan import pieces_of, tasks_of
from secateur.protocol import SnapshotPiece

PARTS = st.lists(st.tuples(st.sampled_from(["m1", "m2"]), st.integers(1, 50), st.integers(1, 1000)), max_size=12).map(
    lambda drawn: [SnapshotPart(member, number, 0, 0, rows, size) for number, (member, rows, size) in enumerate(drawn)]
)


@given(parts=PARTS, task_bytes=st.integers(1, 600), request_bytes=st.integers(1, 600))
def test_law_each_row_is_read_once_from_its_member(
    parts: list[SnapshotPart], task_bytes: int, request_bytes: int
) -> None:
    read: Counter[tuple[int, int]] = Counter()
    for owned, pieces in tasks_of(parts, task_bytes):
        assert len({part.member for part in owned}) == 1
        assert {piece.partition for piece in pieces} == {part.partition for part in owned}
        for request in pieces_of(owned, pieces, request_bytes):
            assert request
            read.update(
                (piece.partition, row) for piece in request for row in range(piece.offset, piece.offset + piece.rows)
            )
    assert read == Counter((part.partition, row) for part in parts for row in range(part.rows))


def test_large_partitions_are_split_and_small_ones_joined() -> None:
    parts = [SnapshotPart("m1", number, 0, 0, 10, 100) for number in range(4)]
    parts.append(SnapshotPart("m2", 4, 0, 0, 1000, 1000))
    tasks = [[tuple(piece) for piece in pieces] for _, pieces in tasks_of(parts, 250)]
    assert tasks == [
        [(0, 0, 10), (1, 0, 10)],
        [(2, 0, 10), (3, 0, 10)],
        *([(4, start, 250)] for start in (0, 250, 500, 750)),
    ]
    requests = pieces_of(parts[4:], [SnapshotPiece(4, 0, 250)], 100)
    assert [[tuple(piece) for piece in request] for request in requests] == [
        [(4, 0, 100)],
        [(4, 100, 100)],
        [(4, 200, 50)],
    ]
