"""Memory at rest, measured by the allocator rather than by what tables say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.partitioning.split import split
from secateur.partitioning.table import TableDef
from secateur.storage.member_store import MemberStore

ROWS = 100_000


@pytest.fixture
def events(make_table: Any) -> TableDef:
    columns = {"tail": "VARCHAR", "at": "TIMESTAMP", "n": "INTEGER", "x": "DOUBLE", "flag": "BOOLEAN", "amount": "DECIMAL(18,2)", "note": "VARCHAR"}
    return make_table(columns, ["tail", "at", "n"], partitions=271, name="events")


def rows_of(events: TableDef) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.Table.from_arrays(
        [
            pa.array([f"N{n}" for n in random.integers(10_000, 14_000, ROWS)]),
            pa.array(random.integers(0, 10**15, ROWS), pa.timestamp("us")),
            pa.array(np.arange(ROWS), pa.int32()),
            pa.array(random.random(ROWS), mask=random.random(ROWS) < 0.1),
            pa.array(random.random(ROWS) < 0.5),
            pa.array(random.integers(0, 10**9, ROWS)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 2)),
            pa.array([f"note {n}" for n in random.integers(0, 100, ROWS)]),
        ],
        schema=events.arrow_schema,
    )


@pytest.mark.parametrize("mode", ["append", "overwrite", "upsert"])
def test_at_rest_at_most_1_3_times_the_raw_table(events: TableDef, mode: str, allocated: Any) -> None:
    store = MemberStore()
    store.create_table(events, range(271))
    table = rows_of(events)
    raw = table.nbytes
    parts = split(table, events)
    for partition, rows in parts.items():
        # Two frames for each partition, as a loader sends them; every slice keeps the whole table alive until publication.
        store.stage("L", 1, partition, 0, rows.slice(0, 100))
        store.stage("L", 1, partition, 0, rows.slice(100))
    attempts = dict.fromkeys(parts, [0])
    del parts, rows, table
    assert store.prepare("L", 1, mode, attempts) == ROWS
    assert allocated() <= 1.1 * raw
    store.publish("L")
    at_rest = allocated()
    assert raw < at_rest <= 1.1 * raw
    assert store.stats()[0].nbytes == pytest.approx(at_rest, rel=0.05)
    for partition in range(271):
        store.partition(1, partition).snapshot().lookup(["N10000"])
    assert allocated() <= 1.1 * raw


def test_a_dropped_table_frees_its_memory(events: TableDef, allocated: Any) -> None:
    store = MemberStore()
    store.create_table(events, range(271))
    for partition, rows in split(rows_of(events), events).items():
        store.write(1, partition, rows, "append")
    store.drop_table(1)
    del rows
    assert allocated() < 1000
