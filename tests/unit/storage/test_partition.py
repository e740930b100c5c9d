from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.engine_limits import EngineLimits
from secateur.errors import DuplicateKeyError, LoadFailedError, TopologyChangedError
from secateur.partitioning.tables import TableDef
from secateur.storage import (
    ChangeCount,
    ChangeOperation,
    DuplicateKeys,
    MemberStore,
    Partition,
    TableLayout,
    sort_rows,
)

# Small writes go to the delta, large ones merge the whole partition: everything must hold for both.
SIZES = [pytest.param(256, id="delta"), pytest.param(0, id="whole")]


@pytest.fixture(params=SIZES)
def either(request: pytest.FixtureRequest, pairs: TableDef) -> Partition:
    limits = EngineLimits(delta_rows_min=request.param, delta_rows_max=request.param)
    return Partition(TableLayout.of(pairs, limits), 0)


def test_every_operation_reports_rows_and_shows_at_once(either: Partition, rows: Any, keys: Any, tuples: Any) -> None:
    assert either.apply(ChangeOperation.APPEND, rows((2, "x", 1), (1, "x", 2))) == 2
    assert tuples(either.snapshot().table) == [(1, "x", 2), (2, "x", 1)]
    assert either.apply(ChangeOperation.UPSERT, rows((2, "x", 3), (3, "x", 4))) == 2
    assert tuples(either.snapshot().table) == [(1, "x", 2), (2, "x", 3), (3, "x", 4)]
    assert either.apply(ChangeOperation.DELETE, keys((1, "x"), (9, "x"))) == 1
    assert tuples(either.snapshot().table) == [(2, "x", 3), (3, "x", 4)]
    assert either.apply(ChangeOperation.OVERWRITE, rows((5, "x", 5))) == 1
    assert tuples(either.snapshot().table) == [(5, "x", 5)]
    assert either.rows == 1


def test_a_snapshot_never_changes(either: Partition, rows: Any, keys: Any, tuples: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1), (2, "x", 2)))
    untouched, read = either.snapshot(), either.snapshot()
    read.fold()
    either.apply(ChangeOperation.UPSERT, rows((1, "x", 9), (3, "x", 9)))
    later = either.snapshot()
    either.apply(ChangeOperation.DELETE, keys((2, "x")))
    either.apply(ChangeOperation.OVERWRITE, rows())
    assert tuples(untouched.table) == tuples(read.table) == [(1, "x", 1), (2, "x", 2)]
    assert tuples(later.table) == [(1, "x", 9), (2, "x", 2), (3, "x", 9)]
    assert (untouched.rows, later.rows, either.rows) == (2, 3, 0)


@pytest.mark.parametrize("state", ["folded", "fresh"])
def test_append_refuses_a_key_that_is_there(either: Partition, rows: Any, tuples: Any, state: str) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1), (2, "x", 2)))
    if state == "folded":
        either.snapshot().fold()
    version = either.version
    with pytest.raises(DuplicateKeyError, match=r"^t: key \(a=2, b='x'\) is already there$") as caught:
        either.apply(ChangeOperation.APPEND, rows((3, "x", 3), (2, "x", 3)))
    assert caught.value.details == {"table": "t", "key": [2, "x"]}
    assert tuples(either.snapshot().table) == [(1, "x", 1), (2, "x", 2)]
    assert either.version == version


def test_append_refuses_a_key_given_twice(either: Partition, rows: Any) -> None:
    with pytest.raises(DuplicateKeyError, match=r"key \(a=1, b='x'\) occurs more than once among the rows given"):
        either.apply(ChangeOperation.APPEND, rows((1, "x", 1), (1, "x", 2)))
    assert either.rows == 0


def test_overwrite_refuses_a_key_given_twice(either: Partition, rows: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((7, "x", 1)))
    with pytest.raises(DuplicateKeyError, match="occurs more than once"):
        either.apply(ChangeOperation.OVERWRITE, rows((1, "x", 1), (1, "x", 2)))
    assert either.rows == 1


def test_of_a_key_upserted_twice_the_last_row_wins(either: Partition, rows: Any, tuples: Any) -> None:
    either.apply(ChangeOperation.UPSERT, rows((1, "x", 1), (1, "x", 2), (0, "x", 0), (1, "x", 3)))
    assert tuples(either.snapshot().table) == [(0, "x", 0), (1, "x", 3)]
    assert either.rows == 2


def test_a_deleted_key_can_come_back(either: Partition, rows: Any, keys: Any, tuples: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    assert either.apply(ChangeOperation.DELETE, keys((1, "x"), (1, "x"))) == 1
    assert either.apply(ChangeOperation.DELETE, keys((1, "x"))) == 0
    either.apply(ChangeOperation.APPEND, rows((1, "x", 2)))
    assert tuples(either.snapshot().table) == [(1, "x", 2)]


def test_delete_takes_whole_rows_too(either: Partition, rows: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    assert either.apply(ChangeOperation.DELETE, rows((1, "x", 99))) == 1


@pytest.mark.parametrize("operation", [ChangeOperation.APPEND, ChangeOperation.UPSERT, ChangeOperation.DELETE])
def test_nothing_given_changes_nothing(either: Partition, rows: Any, operation: ChangeOperation) -> None:
    assert either.apply(operation, rows()) == 0
    assert either.version == 0


def test_versions_grow_with_changes_only(layout: TableLayout, rows: Any, keys: Any) -> None:
    changes = ChangeCount()
    counted = Partition(layout, 0, changes)
    counted.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    counted.apply(ChangeOperation.DELETE, keys((5, "x")))
    counted.snapshot().fold()
    counted.apply(ChangeOperation.OVERWRITE, rows())
    assert counted.version == changes.total == 2


def test_a_partition_that_is_built_anew_has_no_version_of_the_one_before(make_table: Any) -> None:
    """What was worked out from the rows before, such as a load that is prepared, is not taken for what it has now."""
    store, table = MemberStore(), make_table({"k": "BIGINT"}, ["k"], partitions=1, table_id=1)
    store.create_table(table, [0])
    seen = set()
    for key in range(3):
        one = pa.table({"k": [key]}, schema=table.arrow_schema)
        store.begin_copy(1, 0)
        seen.add(store.partition(1, 0).version)
        store.install_copy(1, 0, sort_rows(TableLayout.of(table), [one], DuplicateKeys.REFUSED))
        seen.add(store.partition(1, 0).version)
    assert len(seen) == 6


def test_snapshots_are_shared_until_a_write(either: Partition, rows: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    first = either.snapshot()
    assert either.snapshot() is first
    either.apply(ChangeOperation.APPEND, rows((2, "x", 1)))
    assert either.snapshot() is not first


def test_a_fold_that_a_reader_paid_for_is_kept(partition: Partition, rows: Any) -> None:
    partition.apply(ChangeOperation.APPEND, rows(*[(n, "x", n) for n in range(300)]))
    partition.apply(ChangeOperation.UPSERT, rows((5, "x", 0)))
    paid = partition.snapshot().fold()
    partition.apply(ChangeOperation.UPSERT, rows((6, "x", 0)))
    base, overlay = partition.snapshot()._state
    assert base is paid
    assert overlay is not None
    assert overlay.keys == ((6, b"x"),)


def test_the_delta_is_bounded_also_for_one_key(partition: Partition, rows: Any) -> None:
    partition.apply(ChangeOperation.APPEND, rows(*[(n, "x", n) for n in range(300)]))
    before = partition.nbytes
    for value in range(1000):
        partition.apply(ChangeOperation.UPSERT, rows((5, "x", value)))
    assert partition.nbytes < before + 256 * 100
    assert partition.snapshot().read(None, (5,))["v"].to_pylist() == [999]
    assert partition.rows == 300


def test_a_large_partition_allows_a_larger_delta(partition: Partition, rows: Any) -> None:
    numbers = pa.array(range(40_000))
    partition.apply(
        ChangeOperation.APPEND,
        pa.Table.from_arrays([numbers, numbers.cast(pa.string()), numbers], schema=rows().schema),
    )
    for value in range(300):
        partition.apply(ChangeOperation.UPSERT, rows((value, "new", 0)))
    _, overlay = partition.snapshot()._state
    assert overlay is not None
    assert len(overlay.keys) == 300


def test_rows_of_another_partition_are_refused(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"k": "BIGINT"}, ["k"], partitions=16))
    right = layout.tdef.scheme.partition_of({"k": 5})
    with pytest.raises(TopologyChangedError, match="belongs to partition"):
        Partition(layout, (right + 1) % 16).apply(ChangeOperation.APPEND, pa.table({"k": [5]}, schema=layout.schema))


@pytest.mark.parametrize("operation", [ChangeOperation.APPEND, ChangeOperation.UPSERT, ChangeOperation.OVERWRITE])
def test_reserved_keys_are_refused_until_released(
    either: Partition, rows: Any, sorted_of: Any, operation: ChangeOperation
) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    either.reserve("load-1", sorted_of(rows((5, "x", 0), (6, "x", 0))))
    with pytest.raises(
        LoadFailedError,
        match=(
            r"key \(a=6, b='x'\) belongs to load load-1, which is about to be published; nothing was written, try again"
        ),
    ) as caught:
        either.apply(operation, rows((2, "x", 1), (6, "x", 1)))
    assert caught.value.retry_safe
    assert either.rows == 1
    either.release("load-1")
    either.release("load-1")
    assert either.apply(operation, rows((2, "x", 1), (6, "x", 1))) == 2


def test_other_keys_and_deletions_pass_a_reservation(either: Partition, rows: Any, keys: Any, sorted_of: Any) -> None:
    either.apply(ChangeOperation.APPEND, rows((1, "x", 1)))
    either.reserve("load-1", sorted_of(rows((5, "x", 0))))
    assert either.apply(ChangeOperation.UPSERT, rows((4, "x", 1))) == 1
    assert either.apply(ChangeOperation.DELETE, keys((5, "x"))) == 0
    assert either.apply(ChangeOperation.DELETE, keys((1, "x"))) == 1


def test_a_slice_written_small_does_not_keep_its_parent(partition: Partition, allocated: Any) -> None:
    numbers = pa.array(range(100_000))
    parent = pa.Table.from_arrays(
        [numbers, numbers.cast(pa.string()), numbers], schema=partition.snapshot().table.schema
    )
    partition.apply(ChangeOperation.APPEND, parent.slice(500, 3))
    del parent, numbers
    assert allocated() < 10_000


def test_find_sees_what_a_snapshot_sees(partition: Partition, rows: Any, keys: Any, layout: TableLayout) -> None:
    partition.apply(ChangeOperation.OVERWRITE, rows(*((a, "x", a) for a in range(0, 40, 2))))
    for step in range(60):
        key = (step * 7) % 41
        if step % 3:
            partition.apply(ChangeOperation.UPSERT, rows((key, "x", 100 + step)))
        else:
            partition.apply(ChangeOperation.DELETE, keys((key, "x")))
        if step % 20 == 0:
            partition.snapshot()  # which puts batches together
        for a in range(42):
            found = partition.find([a, "x"])
            row = None if found is None else tuple(column[found[1]].as_py() for column in found[0])
            seen = partition.snapshot().read(None, (a, b"x")).to_pylist() if step % 5 == 0 else None
            assert seen is None or seen == ([] if row is None else [dict(zip("abv", row, strict=True))])
    assert partition.find([0, "other"]) is None
    assert partition.find([None, "x"]) is None


def test_the_bytes_of_recent_changes_are_counted(partition: Partition, rows: Any) -> None:
    empty = partition.nbytes
    for key in range(40):
        partition.apply(ChangeOperation.UPSERT, rows((key, "x" * 1000, key)))
    assert partition.nbytes - empty >= 40_000
    partition.snapshot()
    assert 40_000 <= partition.nbytes - empty <= 60_000
