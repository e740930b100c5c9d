"""What a partition with a change feed keeps of its changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from secateur.engine_limits import EngineLimits
from secateur.errors import ChangesDroppedError
from secateur.partitioning.tables import TableDef
from secateur.storage import ChangeOperation, Partition, TableLayout, feed_table

# Small writes look keys up, large ones sort them: both find the same changes.
SIZES = [pytest.param(256, id="delta"), pytest.param(0, id="whole")]


@pytest.fixture(params=SIZES)
def partition(request: pytest.FixtureRequest, pairs: TableDef) -> Partition:
    limits = EngineLimits(delta_rows_min=request.param, delta_rows_max=request.param)
    return Partition(TableLayout.of(msgspec.structs.replace(pairs, change_feed=True), limits), 0)


def changes(partition: Partition, after: int) -> list[tuple[Any, ...]]:
    assert partition.feed is not None
    entries, _ = partition.feed.since(after, 1 << 20)
    if not entries:
        return []
    return [tuple(row.values()) for row in feed_table(partition.snapshot().table.schema, entries).to_pylist()]


def apply(partition: Partition, number: int, operation: ChangeOperation, given: Any) -> None:
    partition.apply(operation, given)
    assert partition.feed is not None
    partition.feed.changed(0, number)


def test_each_operation_has_its_changes(partition: Partition, rows: Any, keys: Any) -> None:
    apply(partition, 1, ChangeOperation.APPEND, rows((1, "x", 1), (2, "x", 2)))
    apply(partition, 2, ChangeOperation.UPSERT, rows((2, "x", 5), (3, "x", 3), (3, "x", 4)))
    apply(partition, 3, ChangeOperation.IGNORE, rows((3, "x", 9), (4, "x", 1), (4, "x", 2)))
    apply(partition, 4, ChangeOperation.DELETE, keys((1, "x"), (1, "x"), (9, "x")))
    assert changes(partition, 0) == [
        (1, "x", 1, "insert", 1),
        (2, "x", 2, "insert", 1),
        (2, "x", 2, "update_preimage", 2),
        (2, "x", 5, "update_postimage", 2),
        (3, "x", 4, "insert", 2),
        (4, "x", 1, "insert", 3),
        (1, "x", 1, "delete", 4),
    ]
    assert changes(partition, 3) == [(1, "x", 1, "delete", 4)]
    assert changes(partition, 4) == []


def test_a_change_that_is_refused_is_none(partition: Partition, rows: Any) -> None:
    apply(partition, 1, ChangeOperation.APPEND, rows((1, "x", 1)))
    with pytest.raises(Exception, match="is already there"):
        partition.apply(ChangeOperation.APPEND, rows((2, "x", 2), (1, "x", 9)))
    apply(partition, 2, ChangeOperation.DELETE, rows((7, "x", 1)).select([0, 1]))
    assert [row[:4] for row in changes(partition, 0)] == [(1, "x", 1, "insert")]


def test_what_is_not_kept_any_more_is_an_error(pairs: TableDef, rows: Any) -> None:
    layout = TableLayout.of(msgspec.structs.replace(pairs, change_feed=True), EngineLimits(change_feed_bytes_max=2000))
    partition = Partition(layout, 0)
    for number in range(1, 11):
        apply(partition, number, ChangeOperation.APPEND, rows((number, "x", number)))
    feed = partition.feed
    assert feed is not None
    assert 0 < feed.start < 10
    assert [row[0] for row in changes(partition, feed.start)] == list(range(feed.start + 1, 11))
    with pytest.raises(ChangesDroppedError, match=f"the oldest version to follow from is {feed.start}"):
        feed.since(feed.start - 1, 1 << 20)


@pytest.mark.parametrize(
    ("rows_max", "until", "found", "cut_at"),
    [
        pytest.param(1, None, [1], 1, id="one-is-given"),
        pytest.param(5, None, [1, 2], 2, id="none-is-divided"),
        pytest.param(6, None, [1, 2, 3], 3, id="exact"),
        pytest.param(10, None, [1, 2, 3, 4], None, id="all"),
        pytest.param(99, 3, [1, 2, 3], None, id="until"),
    ],
)
def test_changes_are_counted_in_rows(
    partition: Partition, rows: Any, rows_max: int, until: int | None, found: list[int], cut_at: int | None
) -> None:
    for number in range(1, 5):
        apply(partition, number, ChangeOperation.APPEND, rows(*((number, f"{n}", 1) for n in range(number))))
    assert partition.feed is not None
    entries, at = partition.feed.since(0, rows_max, until, in_rows=True)
    assert ([entry.version for entry in entries], at) == (found, cut_at)


def test_another_copy_takes_the_changes_over(pairs: TableDef, rows: Any) -> None:
    layout = TableLayout.of(msgspec.structs.replace(pairs, change_feed=True))
    one, other = Partition(layout, 0), Partition(layout, 0)
    for number in range(1, 5):
        apply(one, number, ChangeOperation.UPSERT, rows((1, "x", number)))
    assert one.feed is not None
    assert other.feed is not None
    entries = one.feed.entries()
    schema = layout.schema
    other.feed.receive(one.feed.start, [feed_table(schema, entries[:1]), feed_table(schema, entries[1:])])
    other.feed.go_on(4)
    assert changes(other, 1) == changes(one, 1)
    other.feed.note(None)
    other.feed.replaced(10)
    assert other.feed.start == 14
