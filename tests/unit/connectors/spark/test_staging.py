from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.connectors.spark.schema import keys_of
from secateur.connectors.spark.staging import Stager
from secateur.errors import AuthenticationError, DataError, NullKeyError
from secateur.partitioning.schemes import IntervalPartitioning, IntervalUnit, build_scheme, with_cells
from secateur.partitioning.tables import TableDef
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology import Topology, assign
from secateur.partitioning.topology.owner_routing import split
from secateur.protocol import StageRows

Define = Callable[..., TableDef]
Start = Callable[..., Any]


@pytest.fixture
def orders(define: Define) -> TableDef:
    return define("orders", "id BIGINT NOT NULL, note VARCHAR", "id", partitions=8)


def rows(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"note": [f"note {i:04}" for i in range(start, stop)], "id": list(range(start, stop))})


def test_rows_are_staged_at_their_owners(orders: TableDef, loads_only: Start) -> None:
    cluster = loads_only(orders, token="hush")
    with Stager(orders, cluster.topology, StageRows("L", orders.table_id, 41, []), token="hush") as stager:
        stager.add(rows(0, 60))
        stager.add(rows(60, 100))
        staged = stager.finish()
    assert staged == {
        partition: piece.num_rows for partition, piece in split(conform(rows(0, 100), orders), orders).items()
    }
    (frame,) = cluster.stages["m1"]  # both batches together, as they are far from a chunk
    assert {**frame, "parts": None} == {
        "load_id": "L",
        "table_id": 7,
        "attempt": 41,
        "are_keys": False,
        "parts": None,
    }
    assert [len(frames) for frames in cluster.stages.values()] == [1, 1, 1]


def test_chunks_are_sent_when_they_are_full(orders: TableDef, loads_only: Start) -> None:
    cluster = loads_only(orders, members=1)
    with Stager(
        orders, cluster.topology, StageRows("L", orders.table_id, 0, []), chunk_bytes=rows(0, 10).nbytes + 1
    ) as stager:
        sent = []
        for start in (0, 10, 20):
            stager.add(rows(start, start + 10))
            sent.append(len(cluster.stages["m1"]))
        assert sent == [0, 1, 1]
        assert sum(stager.finish().values()) == 30
    assert [sum(rows for _, rows in frame["parts"]) for frame in cluster.stages["m1"]] == [20, 10]


def test_a_replicated_table_is_staged_at_every_member_and_counted_once(define: Define, loads_only: Start) -> None:
    cluster = loads_only(define("planes", "id BIGINT NOT NULL, note VARCHAR", "id", replicated=True))
    with Stager(cluster.table, cluster.topology, StageRows("L", cluster.table.table_id, 0, [])) as stager:
        stager.add(rows(0, 100))
        assert stager.finish() == {0: 100}
    assert [frame["parts"] for frames in cluster.stages.values() for frame in frames] == [[(0, 100)]] * 3


def test_no_rows_no_frames(orders: TableDef, loads_only: Start) -> None:
    cluster = loads_only(orders)
    with Stager(orders, cluster.topology, StageRows("L", orders.table_id, 0, [])) as stager:
        stager.add(rows(0, 0))
        assert stager.finish() == {}
    assert not any(cluster.stages.values())


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        pytest.param(pa.record_batch({"id": [1, None]}), NullKeyError, "id is NOT NULL", id="null-key"),
        pytest.param(
            pa.record_batch({"id": pa.array([2**63], pa.uint64())}),
            DataError,
            "9223372036854775808",
            id="out-of-bounds",
        ),
    ],
)
def test_bad_rows_are_found_before_anything_is_sent(
    orders: TableDef, loads_only: Start, batch: pa.RecordBatch, error: type[Exception], words: str
) -> None:
    cluster = loads_only(orders)
    with Stager(orders, cluster.topology, StageRows("L", orders.table_id, 0, [])) as stager:
        stager.add(batch)
        with pytest.raises(error, match=words):
            stager.finish()
    assert not any(cluster.stages.values())


def test_members_ask_for_the_token(orders: TableDef, loads_only: Start) -> None:
    cluster = loads_only(orders, token="hush")
    with Stager(orders, cluster.topology, StageRows("L", orders.table_id, 0, [])) as stager:
        stager.add(rows(0, 10))
        with pytest.raises(AuthenticationError):
            stager.finish()


def test_ranges_are_made_for_the_rows_that_need_them(orders: TableDef, loads_only: Start) -> None:
    every = IntervalPartitioning(10, IntervalUnit.NUMBER)
    scheme = build_scheme(
        range_columns=["id"], every=every, types={"id": orders.column("id").type}, primary_key=["id"], table="orders"
    )
    before, after = (
        structs.replace(orders, scheme_or_reference=scheme),
        structs.replace(orders, scheme_or_reference=with_cells(scheme, [0, 1], table="orders")),
    )
    cluster = loads_only(after)
    nobody = Topology(2, cluster.topology.members, {scheme.affinity_group(): assign(0, cluster.topology.member_ids, 1)})
    asked: list[frozenset[int]] = []

    def make_ranges(table: TableDef, rows: pa.Table) -> tuple[TableDef, Topology]:
        asked.append(table.scheme.missing_cells(rows))
        return after, cluster.topology

    with Stager(
        before, nobody, StageRows("L", before.table_id, 0, []), chunk_bytes=1, make_ranges=make_ranges
    ) as stager:
        stager.add(rows(5, 15))
        stager.add(rows(0, 5))
        assert stager.finish() == {0: 10, 1: 5}
    assert asked == [frozenset({0, 1})]


def test_keys_are_staged_without_the_other_columns(orders: TableDef, loads_only: Start) -> None:
    cluster = loads_only(keys_of(orders))
    with Stager(orders, cluster.topology, StageRows("L", orders.table_id, 3, [], True)) as stager:
        stager.add(rows(0, 40))
        staged = stager.finish()
    assert sum(staged.values()) == 40
    frames = [frame for frames in cluster.stages.values() for frame in frames]
    assert {frame["are_keys"] for frame in frames} == {True}
