"""Searches on a snapshot answer the same whether rows lie in the sorted base or in recent writes beside it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import DataError, ParameterError
from secateur.partitioning.pruning import KeyBoundary, KeyRange
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, KeyColumn, KeyOrder, Partition, PartitionSnapshot, TableLayout

KEPT = [(a, b, 10 * a) for a in range(5) for b in ("a", "b", "c")]
EXPECTED = sorted(
    [row for row in KEPT if row[:2] not in {(2, "b"), (4, "c")}]
    + [(2, "aa", 7), (2, "d", 7), (5, "a", 7), (-1, "z", 7)]
)
EXPECTED = [(a, b, 99 if (a, b) == (1, "b") else v) for a, b, v in EXPECTED]


ORDER = KeyOrder(
    "t", tuple(KeyColumn.of("t", name, parse_type(text)) for name, text in (("a", "BIGINT"), ("b", "VARCHAR")))
)


def lookup(snapshot: PartitionSnapshot, prefix: Sequence[Any]) -> pa.Table:
    return snapshot.read(None, ORDER.cells(prefix))


def between(snapshot: PartitionSnapshot, keys: KeyRange) -> pa.Table:
    found = snapshot.read_windows(None, [ORDER.window(keys)])
    return found[0] if found else snapshot.read(None, None)


def before(*values: Any) -> KeyBoundary:
    return KeyBoundary(values, after=False)


def after(*values: Any) -> KeyBoundary:
    return KeyBoundary(values, after=True)


@pytest.fixture(params=["folded", "overlaid"])
def snapshot(request: pytest.FixtureRequest, partition: Partition, rows: Any, keys: Any) -> PartitionSnapshot:
    """The rows of EXPECTED, the last changes merged in or beside the sorted rows."""
    partition.apply(ChangeOperation.APPEND, rows(*KEPT))
    partition.snapshot().fold()
    partition.apply(ChangeOperation.UPSERT, rows((1, "b", 99), (2, "d", 7), (2, "aa", 7)))
    partition.apply(ChangeOperation.DELETE, keys((2, "b"), (4, "c"), (8, "x")))
    partition.apply(ChangeOperation.APPEND, rows((5, "a", 7), (-1, "z", 7)))
    taken = partition.snapshot()
    if request.param == "folded":
        taken.fold()
    assert (taken.folded is not None) == (request.param == "folded")
    return taken


def test_table(snapshot: PartitionSnapshot, tuples: Any, pairs: Any) -> None:
    assert tuples(snapshot.table) == EXPECTED
    assert snapshot.rows == len(EXPECTED)
    assert snapshot.table.schema.equals(pairs.arrow_schema, check_metadata=True)
    assert [column.num_chunks for column in snapshot.table.columns] == [1, 1, 1]


@pytest.mark.parametrize("a", [-2, -1, 0, 1, 2, 4, 5, 6])
def test_lookup_by_prefix(snapshot: PartitionSnapshot, tuples: Any, a: int) -> None:
    assert tuples(lookup(snapshot, [a])) == [row for row in EXPECTED if row[0] == a]


@pytest.mark.parametrize(
    "key", [(1, "b"), (2, "aa"), (2, "b"), (2, "c"), (4, "c"), (-1, "z"), (3, ""), (9, "a")], ids=str
)
def test_lookup_by_key(snapshot: PartitionSnapshot, tuples: Any, key: tuple[Any, ...]) -> None:
    assert tuples(lookup(snapshot, key)) == [row for row in EXPECTED if row[:2] == key]


@pytest.mark.parametrize("prefix", [[None], [1, None], [None, "a"]], ids=str)
def test_null_equals_nothing(snapshot: PartitionSnapshot, prefix: list[Any], pairs: Any) -> None:
    assert lookup(snapshot, prefix).num_rows == 0
    assert lookup(snapshot, prefix).schema == pairs.arrow_schema


def test_lookup_with_wrong_values(snapshot: PartitionSnapshot) -> None:
    with pytest.raises(DataError, match=r"t\.a: 'x' \(str\) is not a value of type BIGINT"):
        lookup(snapshot, ["x"])
    with pytest.raises(ParameterError, match="3 key values given"):
        lookup(snapshot, [1, "a", 2])


CUTS = [(), (-9,), (-1,), (1,), (2,), (4,), (9,), (1, "b"), (2, ""), (2, "b"), (2, "c"), (2, "zz"), (4, "c"), (5, "a")]


@pytest.mark.parametrize("after_lower", [True, False])
@pytest.mark.parametrize("after_upper", [True, False])
@pytest.mark.parametrize("lower", CUTS, ids=str)
def test_slice_is_a_filter(
    snapshot: PartitionSnapshot, tuples: Any, lower: tuple[Any, ...], after_lower: bool, after_upper: bool
) -> None:
    for upper in CUTS:
        found = between(snapshot, KeyRange(KeyBoundary(lower, after_lower), KeyBoundary(upper, after_upper)))
        expected = [
            row
            for row in EXPECTED
            if (row[: len(lower)] > lower or (row[: len(lower)] == lower and not after_lower))
            and (row[: len(upper)] < upper or (row[: len(upper)] == upper and after_upper))
        ]
        assert tuples(found) == expected, upper


def test_upper_bound_of_a_key_prefix_leaves_out_all_rows_with_that_prefix_kudu_2173(
    snapshot: PartitionSnapshot, tuples: Any
) -> None:
    assert tuples(between(snapshot, KeyRange(before(1), before(2)))) == [row for row in EXPECTED if row[0] == 1]
    assert tuples(between(snapshot, KeyRange(before(1), after(2)))) == [row for row in EXPECTED if row[0] in (1, 2)]


def test_bounds_at_the_ends_of_the_type_do_not_overflow_kudu_1766(partition: Partition, rows: Any, tuples: Any) -> None:
    low, high = (-(2**63), "", 1), (2**63 - 1, "\U0010ffff", 2)
    partition.apply(ChangeOperation.APPEND, rows(low, high))
    snapshot = partition.snapshot()
    assert tuples(lookup(snapshot, [2**63 - 1])) == [high]
    assert tuples(between(snapshot, KeyRange(before(2**63 - 1), after()))) == [high]
    assert tuples(between(snapshot, KeyRange(after(2**63 - 1), after()))) == []
    assert tuples(between(snapshot, KeyRange(before(), after(-(2**63))))) == [low]


def test_crossed_bounds_are_empty(snapshot: PartitionSnapshot) -> None:
    assert between(snapshot, KeyRange(before(4), before(1))).num_rows == 0


def test_a_bound_with_null_is_refused(snapshot: PartitionSnapshot) -> None:
    with pytest.raises(DataError, match="holds NULL"):
        between(snapshot, KeyRange(before(None), after()))


def test_lookup_copies_nothing_where_nothing_was_written(partition: Partition, rows: Any) -> None:
    partition.apply(ChangeOperation.APPEND, rows(*[(n, "x", n) for n in range(300)]))
    base = partition.snapshot().table["a"].chunk(0).buffers()[1].address
    partition.apply(ChangeOperation.UPSERT, rows((7, "x", 0)))
    assert lookup(partition.snapshot(), [5])["a"].chunk(0).buffers()[1].address == base
    assert lookup(partition.snapshot(), [7])["a"].chunk(0).buffers()[1].address != base


@pytest.mark.parametrize("makes", ["fold", "settle", "large change"])
@pytest.mark.parametrize("is_searched", [True, False])
def test_merged_rows_are_as_ready_for_look_ups_as_those_before(
    partition: Partition, layout: TableLayout, rows: Any, makes: str, is_searched: bool
) -> None:
    partition.apply(ChangeOperation.APPEND, rows(*[(n, "x", n) for n in range(300)]))
    before = partition.snapshot().fold()
    if is_searched:
        found = partition.find([7, "x"])
        assert found is not None
        before.columns.row(found[1])
    partition.apply(
        ChangeOperation.UPSERT, rows(*[(n, "x", 0) for n in range(7, 20_000 if makes == "large change" else 8)])
    )
    if makes == "large change":
        merged = partition.base
    else:
        snapshot = partition.snapshot()
        snapshot.fold() if makes == "fold" else snapshot.settle()
        assert snapshot.folded is not None
        merged = snapshot.folded
    assert merged is not before
    # A write of one row has searched for its key.
    assert (merged.is_searched, merged.is_read) == (is_searched or makes != "large change", is_searched)
    at = merged.position(layout.order.cells([7, "x"]) or ())
    assert at is not None
    assert merged.columns.row(at) == [7, "x", 0]


def test_read_some_columns(snapshot: PartitionSnapshot) -> None:
    assert snapshot.read([2, 0], (1, b"b")).to_pydict() == {"v": [99], "a": [1]}
    assert snapshot.read([2]).num_rows == len(EXPECTED)
    assert snapshot.read([2], None).to_pydict() == {"v": []}


def test_many_threads_fold_and_search_one_snapshot(partition: Partition, rows: Any, tuples: Any) -> None:
    partition.apply(ChangeOperation.APPEND, rows(*[(n, "x", n) for n in range(1000)]))
    partition.snapshot().fold()
    partition.apply(ChangeOperation.UPSERT, rows((3, "x", -3), (2000, "x", 0)))
    snapshot = partition.snapshot()
    found: list[Any] = []

    def read() -> None:
        found.append(
            (
                tuples(lookup(snapshot, [3])),
                snapshot.table.num_rows,
                tuples(lookup(snapshot, [2000, "x"])),
                tuples(lookup(snapshot, [5])),
            )
        )

    threads = [Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [([(3, "x", -3)], 1001, [(2000, "x", 0)], [(5, "x", 5)])] * 8


def test_rows_are_new_whose_keys_are_not_there_and_of_equal_ones_the_first(
    snapshot: PartitionSnapshot, rows: Any, tuples: Any
) -> None:
    given = rows((9, "z", 1), (2, "d", 2), (2, "b", 3), (1, "b", 4), (9, "z", 5), (-1, "z", 6), (9, "a", 7))
    numbered = given.append_column("number", pa.array(range(7)))
    assert tuples(snapshot.new_among(given)) == [(2, "b", 3), (9, "a", 7), (9, "z", 1)]
    assert snapshot.new_among(numbered).column("number").to_pylist() == [2, 6, 0]
    assert snapshot.new_among(given.slice(1, 1)).num_rows == 0


def test_empty_partition(partition: Partition, pairs: Any) -> None:
    snapshot = partition.snapshot()
    assert snapshot.rows == 0
    assert snapshot.table.schema == pairs.arrow_schema
    assert lookup(snapshot, [1]).num_rows == 0
    assert between(snapshot, KeyRange(before(1), before(2))).num_rows == 0
    assert isinstance(snapshot.table, pa.Table)
