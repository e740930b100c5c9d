"""Memory at rest, measured by what the buffers keep alive rather than by what tables say of themselves."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.partitioning.pruning import KeyPrefix
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.storage import ChangeOperation, MemberStore
from secateur.storage.block import gather

pytestmark = pytest.mark.slow  # what the allocator does changes with it, and not with most of our changes

ROWS = 100_000


@pytest.fixture
def make_events(make_table: Any) -> Callable[[int], TableDef]:
    columns = {
        "tail": "VARCHAR",
        "at": "TIMESTAMP",
        "n": "INTEGER",
        "x": "DOUBLE",
        "flag": "BOOLEAN",
        "amount": "DECIMAL(18,2)",
        "note": "VARCHAR",
    }
    return lambda partitions: make_table(columns, ["tail", "at", "n"], partitions=partitions, name="events")


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


def memory_behind(store: MemberStore) -> int:
    """Bytes of everything that the rows of a store keep alive: whole parents, also where a buffer shows a part of
    them.
    """
    roots = {}
    for partition in store.hosted(1):
        for column in store.partition(1, partition).snapshot().table.columns:
            for buffer in filter(None, column.chunk(0).buffers()):
                while buffer.parent is not None:
                    buffer = buffer.parent
                roots[buffer.address] = buffer.size
    return sum(roots.values())


@pytest.mark.parametrize(
    ("partitions", "pool_share"),
    [(271, 1.1), (3, 0.1)],
    ids=["small-partitions-in-the-pool", "large-partitions-in-blocks"],
)
@pytest.mark.parametrize("mode", ["append", "overwrite", "upsert"])
def test_at_rest_at_most_1_3_times_the_raw_table(
    make_events: Any, partitions: int, pool_share: float, mode: str, allocated: Any
) -> None:
    events = make_events(partitions)
    store = MemberStore()
    store.create_table(events, range(partitions))
    table = rows_of(events)
    raw = table.nbytes
    parts = split(table, events)
    for partition, rows in parts.items():
        # Two frames for each partition, as a loader sends them; every slice keeps the whole table alive until it is
        # prepared.
        store.loads.stage("L", 1, partition, 0, rows.slice(0, 100))
        store.loads.stage("L", 1, partition, 0, rows.slice(100))
    attempts = {partition: [0] for partition in parts}
    del parts, rows, table
    assert store.loads.prepare("L", 1, mode, attempts) == ROWS
    in_pool = allocated()
    store.loads.publish("L")
    for partition in range(partitions):
        store.relation(1, [partition], keys=KeyPrefix(("N10000",)))
    behind = memory_behind(store)
    assert raw < behind <= 1.1 * raw
    assert max(in_pool, allocated()) <= pool_share * raw
    assert store.stats()[0].nbytes == pytest.approx(behind, rel=0.05)


def test_a_dropped_table_frees_its_memory(make_events: Any, allocated: Any) -> None:
    events = make_events(271)
    store = MemberStore()
    store.create_table(events, range(271))
    for partition, rows in split(rows_of(events), events).items():
        store.apply(1, partition, ChangeOperation.APPEND, rows)
    store.drop_table(1)
    del rows
    assert allocated() < 1000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_aborted_load_gives_its_memory_back_to_the_system(make_events: Any) -> None:
    events = make_events(271)
    store = MemberStore()
    store.create_table(events, range(271))
    parts = split(rows_of(events), events)
    for load in range(20):
        for partition, rows in parts.items():
            store.loads.stage("L", 1, partition, load, gather([rows]))
    staged = store.loads.registry.all()[0].nbytes
    before = resident_bytes()
    store.loads.abort("L")
    assert before - resident_bytes() > 0.7 * staged


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
