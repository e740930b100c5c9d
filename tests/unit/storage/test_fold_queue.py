"""Partitions that were written and are quiet again are merged with their changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from secateur.partitioning.tables import TableDef
from secateur.storage import ChangeOperation, MemberStore


def due_of(store: MemberStore, read: Collection[int] = (0,), owners_version: int = 1) -> list[Any]:
    return store.folds.due(lambda _table, partition: partition in read, owners_version)


def many(rows: Any, value: int) -> Any:
    """Enough rows for a merge to be worth it as soon as nothing else is written."""
    return rows(*((key, "x", value) for key in range(40)))


def test_a_partition_is_due_once_it_is_quiet(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    assert due_of(store) == []
    store.apply(1, 0, ChangeOperation.UPSERT, many(rows, 1))
    assert due_of(store) == []
    store.apply(1, 0, ChangeOperation.UPSERT, rows((2, "x", 2)))
    assert due_of(store) == []
    due = due_of(store)
    assert due == [store.partition(1, 0)]
    assert due_of(store) == []
    before = due[0].snapshot()
    before.settle()
    assert due[0].snapshot() is before
    assert before.folded is not None
    assert not due[0].pays_to_fold or due[0].snapshot().folded is not None


def test_a_partition_with_few_changes_is_quiet_for_longer(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    store.apply(1, 0, ChangeOperation.UPSERT, rows((1, "x", 1)))
    assert [due_of(store) for _ in range(5)] == [[]] * 5
    store.apply(1, 0, ChangeOperation.UPSERT, rows((2, "x", 1)))
    calls = [due_of(store) for _ in range(20)]
    assert [number for number, due in enumerate(calls) if due] == [11]


def test_changes_that_were_merged_or_dropped_are_not_due(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    store.apply(1, 0, ChangeOperation.UPSERT, rows((1, "x", 1)))
    store.apply(1, 0, ChangeOperation.OVERWRITE, rows((1, "y", 1)))
    assert [due_of(store) for _ in range(20)] == [[]] * 20
    store.apply(1, 0, ChangeOperation.UPSERT, many(rows, 2))
    assert due_of(store) == []
    store.drop_table(1)
    assert due_of(store) == []


def test_a_large_partition_waits_for_more_changes(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    store.apply(1, 0, ChangeOperation.OVERWRITE, rows(*((key, "x", 0) for key in range(70_000))))
    store.apply(1, 0, ChangeOperation.UPSERT, rows((1, "x", 1)))
    assert [due_of(store) for _ in range(20)] == [[]] * 20
    store.apply(1, 0, ChangeOperation.UPSERT, rows(*((key, "x", 1) for key in range(200))))
    assert due_of(store) == []
    assert len(due_of(store)) == 1


def test_a_merge_keeps_older_snapshots_and_makes_indexes_again(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    partition = store.partition(1, 0)
    store.apply(1, 0, ChangeOperation.OVERWRITE, rows(*((key, "x", -key) for key in range(100))))
    older = partition.snapshot()
    older.fold().index(partition._layout.index_order(["v"]))
    store.apply(1, 0, ChangeOperation.UPSERT, rows((1, "x", 7)))
    pinned = partition.snapshot()
    pinned.settle()
    store.apply(1, 0, ChangeOperation.UPSERT, rows((1, "x", 8)))
    assert pinned.fold().indexed == [("v",)]
    key = partition._layout.order.cells([1, "x"])
    assert [snapshot.read(None, key).column("v").to_pylist() for snapshot in (older, pinned, partition.snapshot())] == [
        [-1],
        [7],
        [8],
    ]


def test_backups_are_due_once_they_are_read(pairs: TableDef, rows: Any) -> None:
    store = MemberStore()
    store.create_table(pairs, [0])
    store.apply(1, 0, ChangeOperation.UPSERT, many(rows, 1))
    assert [due_of(store, read=()) for _ in range(3)] == [[], [], []]
    assert [due_of(store) for _ in range(3)] == [[], [], []], "the owners are the same"
    assert due_of(store, owners_version=2) == []
    assert due_of(store, owners_version=2) == [store.partition(1, 0)]
    store.apply(1, 0, ChangeOperation.UPSERT, many(rows, 2))
    assert due_of(store, read=(), owners_version=2) == due_of(store, read=(), owners_version=2) == []
    store.drop_table(1)
    assert due_of(store, owners_version=3) == []
