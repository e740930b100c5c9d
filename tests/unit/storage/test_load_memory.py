"""The rows of a large load are in memory once: sorted rows take the place of staged ones, some partitions at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import DuplicateKeyError, LoadFailedError
from secateur.partitioning.tables import TableDef
from secateur.storage import STEP_BYTES, ChangeOperation, MemberStore, Preparation, message_bytes

PARTITIONS = 10
ATTEMPTS = (3, 1)
"""Tasks that bring a share of each partition; a task with another number has failed."""
SHARE_ROWS = 3_000
NOTE_BYTES = 1_000
PARTS = {partition: list(ATTEMPTS) for partition in range(PARTITIONS)}


@pytest.fixture
def notes(make_table: Any) -> TableDef:
    return make_table({"k": "BIGINT", "note": "BLOB"}, ["k"], partitions=PARTITIONS, name="notes")


@pytest.fixture
def shares(notes: TableDef) -> Callable[[int], Iterator[tuple[int, int, pa.Table]]]:
    """Every partition's rows of each task, made one after the other: partition, attempt, 3 MB of rows in reverse order.

    The rows are bytes of a seed, so a later one is another load of the same keys.
    """
    keys = np.arange(2 * PARTITIONS * len(ATTEMPTS) * SHARE_ROWS)
    ids = notes.scheme.partitions_of(pa.table({"k": keys}))

    def make(seed: int) -> Iterator[tuple[int, int, pa.Table]]:
        random = np.random.default_rng(seed)
        for partition in range(PARTITIONS):
            held = keys[ids == partition]
            for number, attempt in enumerate(ATTEMPTS):
                mine = held[number * SHARE_ROWS : (number + 1) * SHARE_ROWS][::-1]
                assert len(mine) == SHARE_ROWS
                texts = random.bytes(SHARE_ROWS * NOTE_BYTES)
                offsets = pa.array(np.arange(SHARE_ROWS + 1, dtype=np.int32) * NOTE_BYTES)
                note = pa.Array.from_buffers(pa.binary(), SHARE_ROWS, [None, offsets.buffers()[1], pa.py_buffer(texts)])
                given = pa.Table.from_arrays([pa.array(mine), note], schema=notes.arrow_schema)
                yield partition, attempt, given.take(pa.array(range(SHARE_ROWS)))

    return make


@pytest.fixture
def store(notes: TableDef) -> MemberStore:
    store = MemberStore()
    store.create_table(notes, range(PARTITIONS))
    return store


def stage(store: MemberStore, load_id: str, shares: Iterator[tuple[int, int, pa.Table]]) -> int:
    """Stage a load; the bytes of its rows."""
    return sum(
        message_bytes(rows)
        for partition, attempt, rows in shares
        if store.loads.stage(load_id, 1, partition, attempt, rows)
    )


def content(store: MemberStore) -> pa.Table:
    return store.relation(1, range(PARTITIONS)).sort_by("k").combine_chunks()


def steps(store: MemberStore, preparation: Preparation) -> Iterator[int]:
    """Run a preparation as a member does; after each step the bytes of the rows that it has sorted."""
    has_more = True
    while has_more:
        has_more = preparation.run_step()
        yield sum(part.rows.own_bytes for part in preparation.sorted.values())
        if has_more:
            store.loads.keep_sorted(preparation)


@pytest.mark.parametrize(
    "mode", ["append", "upsert", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("overwrite", "ignore"))]
)
def test_a_load_is_held_once_while_it_is_prepared(
    store: MemberStore, shares: Any, allocated: Callable[[], int], mode: str
) -> None:
    raw = stage(store, "L", shares(1))
    store.loads.stage("L", 1, 0, 99, next(shares(2))[2])  # of a task that failed
    assert raw > 3 * STEP_BYTES
    assert raw <= allocated() <= 1.1 * raw
    preparation = store.loads.begin_prepare("L", 1, mode, PARTS)
    sorted_bytes, held = 0, []
    for step_bytes in steps(store, preparation):
        sorted_bytes += step_bytes
        # Sorted rows of this size have memory of their own, which Arrow's pool does not count.
        held.append(sorted_bytes + allocated())
    assert len(held) >= 3, "a load of several steps"
    assert max(held) <= 1.5 * raw, [size / raw for size in held]
    assert store.loads.finish_prepare(preparation) == PARTITIONS * len(ATTEMPTS) * SHARE_ROWS
    del preparation
    assert allocated() < 0.1 * raw
    store.loads.publish("L")
    assert content(store).equals(pa.concat_tables(rows for _, _, rows in shares(1)).sort_by("k").combine_chunks())


def test_a_load_that_fails_in_its_last_partition_leaves_the_table_and_no_rows(
    store: MemberStore, shares: Any, allocated: Callable[[], int]
) -> None:
    stage(store, "old", shares(1))
    store.loads.prepare("old", 1, "append", PARTS)
    store.loads.publish("old")
    before = content(store)
    staged = allocated()
    stage(store, "new", shares(2))
    store.loads.stage("new", 1, PARTITIONS - 1, ATTEMPTS[0], [rows for _, _, rows in shares(2)][-1])
    for _ in range(2):  # also when it is asked again, about rows that are sorted already
        with pytest.raises(DuplicateKeyError, match="occurs more than once"):
            store.loads.prepare("new", 1, "overwrite", PARTS)
    [told] = store.loads.registry.all()
    shares_of = dict.fromkeys(range(PARTITIONS), len(ATTEMPTS)) | {PARTITIONS - 1: len(ATTEMPTS) + 1}
    assert told.partition_rows == {partition: count * SHARE_ROWS for partition, count in shares_of.items()}
    store.loads.abort("new")
    assert store.loads.registry.all() == []
    assert allocated() <= staged
    assert content(store).equals(before)


def test_a_preparation_is_begun_again_after_rows_were_sorted(store: MemberStore, shares: Any) -> None:
    stage(store, "L", shares(1))
    first = store.loads.begin_prepare("L", 1, "upsert", PARTS)
    assert first.run_step()
    store.loads.keep_sorted(first)
    again = store.loads.begin_prepare("L", 1, "upsert", PARTS)
    store.apply(1, 0, ChangeOperation.APPEND, next(shares(2))[2])  # of keys that the load has
    for _ in steps(store, again):
        pass
    assert not store.loads.is_current(again)
    third = store.loads.begin_prepare("L", 1, "upsert", PARTS)
    while third.run_step():
        pass
    assert store.loads.is_current(third)
    store.loads.finish_prepare(third)
    store.loads.publish("L")
    assert content(store).equals(pa.concat_tables(rows for _, _, rows in shares(1)).sort_by("k").combine_chunks())


@pytest.mark.parametrize(
    ("mode", "parts"),
    [
        pytest.param("append", PARTS, id="another-mode"),
        pytest.param("upsert", {**PARTS, 0: [3]}, id="other-attempts"),
        pytest.param("upsert", {**PARTS, 0: [1, 3]}, id="another-order"),
    ],
)
def test_rows_that_are_sorted_are_not_prepared_otherwise(
    store: MemberStore, shares: Any, mode: str, parts: dict[int, list[int]]
) -> None:
    stage(store, "L", shares(1))
    preparation = store.loads.begin_prepare("L", 1, "upsert", PARTS)
    assert preparation.run_step()
    store.loads.keep_sorted(preparation)
    with pytest.raises(LoadFailedError, match="load L was prepared with another table, mode or partitions"):
        store.loads.prepare("L", 1, mode, parts)
    with pytest.raises(LoadFailedError, match="load L is being prepared and takes no more rows"):
        store.loads.stage("L", 1, 0, ATTEMPTS[0], next(shares(2))[2])


def test_a_load_that_is_aborted_between_two_steps(store: MemberStore, shares: Any) -> None:
    stage(store, "L", shares(1))
    preparation = store.loads.begin_prepare("L", 1, "append", PARTS)
    assert preparation.run_step()
    store.loads.abort("L")
    with pytest.raises(LoadFailedError, match="load L was aborted"):
        store.loads.keep_sorted(preparation)


def test_a_copy_is_made_of_what_is_sorted_and_of_what_is_not(store: MemberStore, notes: TableDef, shares: Any) -> None:
    stage(store, "L", shares(1))
    preparation = store.loads.begin_prepare("L", 1, "append", PARTS)
    assert preparation.run_step()
    store.loads.keep_sorted(preparation)
    copy = MemberStore()
    copy.create_table(notes, range(PARTITIONS))
    for partition in range(PARTITIONS):
        for load_id, attempt, rows, are_keys in store.loads.staged(1, partition):
            copy.loads.stage(load_id, 1, partition, attempt, rows, keys=are_keys)
    copy.loads.prepare("L", 1, "append", PARTS)
    copy.loads.publish("L")
    assert content(copy).equals(pa.concat_tables(rows for _, _, rows in shares(1)).sort_by("k").combine_chunks())


def test_many_keys_are_deleted_in_steps(store: MemberStore, notes: TableDef) -> None:
    keys = pa.table({"k": np.arange(3_000_000)}, schema=notes.arrow_schema.remove(1))
    ids = notes.scheme.partitions_of(keys)
    for partition in range(PARTITIONS):
        stored = keys.slice(0, 1_000).filter(pa.array(ids[:1_000] == partition))
        rows = [*stored.columns, pa.nulls(stored.num_rows, pa.binary())]
        store.apply(1, partition, ChangeOperation.APPEND, pa.Table.from_arrays(rows, schema=notes.arrow_schema))
        deleted = keys.slice(10).filter(pa.array(ids[10:] == partition))
        store.loads.stage("L", 1, partition, 0, deleted, keys=True)
    preparation = store.loads.begin_prepare("L", 1, "delete", {partition: [0] for partition in range(PARTITIONS)})
    assert len(list(steps(store, preparation))) > 1
    assert sum(part.changed for part in preparation.prepared or ()) == 990
    store.loads.finish_prepare(preparation)
    store.loads.publish("L")
    assert content(store)["k"].to_pylist() == list(range(10))
