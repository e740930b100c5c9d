"""Loads: where rows are sent, and that nothing half-done is left when something fails."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secateur.client import Connection
from secateur.errors import (
    DataError,
    DuplicateKeyError,
    LoadFailedError,
    MemberLostError,
    NullKeyError,
    ProgrammingError,
    TopologyChangedError,
    UnknownColumnError,
    UnreachableError,
)


def rows_of(count: int, start: int = 1000) -> pa.Table:
    return pa.table(
        {
            "customer_id": [f"K{n % 50}" for n in range(count)],
            "id": range(start, start + count),
            "amount": [n / 2 for n in range(count)],
        }
    )


def total(conn: Connection) -> int:
    row = conn.execute("count").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda t: t, id="table"),
        pytest.param(lambda t: t.to_batches()[0], id="batch"),
        pytest.param(lambda t: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(7)), id="reader"),
        pytest.param(lambda t: t.to_pandas(), id="pandas"),
        pytest.param(pl.from_arrow, id="polars"),
        pytest.param(lambda t: t.to_pydict(), id="dict"),
    ],
)
def test_rows_of_any_form_become_visible_at_once(cluster: Any, conn: Connection, form: Any) -> None:
    table = conn.table("orders")
    assert table.load(form(rows_of(100))) == 100
    assert total(conn) == 118
    assert sorted(set(cluster.asked("stage_rows"))) == ["m1", "m2", "m3"]
    assert [(name, mode) for name, mode, _ in cluster.published] == [("Orders", "append")]
    assert cluster.staged == {}


def test_many_partitions_of_a_member_travel_in_one_frame(cluster: Any, conn: Connection) -> None:
    conn.table("orders").load(rows_of(5000))
    assert sorted(cluster.asked("stage_rows")) == ["m1", "m2", "m3"]
    assert cluster.published[0][2] == list(range(8))


def test_large_data_travel_in_pieces_with_progress(conn: Connection) -> None:
    rows = pa.table({"customer_id": [f"{n % 7}" + "x" * (1 << 20) for n in range(70)], "id": range(70)})
    seen: list[int] = []
    assert conn.table("orders").load(rows, missing="null", progress=seen.append) == 70
    assert len(seen) == 3, "70 MB are two pieces of 32 and a rest"
    assert seen == sorted(seen)
    assert seen[-1] == 70
    assert total(conn) == 88


def test_rows_that_grow_when_converted_are_cut_again(cluster: Any, conn: Connection) -> None:
    texts = ["x" * (1 << 20), "y" * (1 << 20)]
    rows = pa.table({"customer_id": pa.array(texts * 50).dictionary_encode(), "id": range(100)})
    assert rows.nbytes < 4 << 20
    assert conn.table("orders").load(rows, missing="null") == 100
    assert len(cluster.asked("stage_rows")) > 4
    assert total(conn) == 118


def test_columns_in_any_order_and_type_that_converts(conn: Connection) -> None:
    frame = pd.DataFrame({"ID": [1, 2], "Customer_Id": ["X", "Y"]})
    assert conn.table("orders").load(frame, missing="null") == 2
    assert conn.execute("one", ["X"]).fetchall() == [("X", 1, None)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("append", 118, id="append"),
        pytest.param("upsert", 118, id="upsert"),
        pytest.param("overwrite", 100, id="overwrite"),
    ],
)
def test_modes(cluster: Any, conn: Connection, mode: str, expected: int) -> None:
    conn.table("orders").load(rows_of(100), mode)
    assert total(conn) == expected
    assert cluster.published[0][1] == mode


def test_overwriting_with_nothing_empties_the_table(cluster: Any, conn: Connection) -> None:
    assert conn.table("orders").load(rows_of(0), "overwrite") == 0
    assert total(conn) == 0
    assert cluster.published == [("Orders", "overwrite", [])]


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_ranges", "upsert", "ignore"])
@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(pa.table({"nope": pa.array([], pa.int64())}), UnknownColumnError, id="unknown"),
        pytest.param(rows_of(0).drop_columns(["id"]), NullKeyError, id="no key"),
        pytest.param(rows_of(0).set_column(1, "id", pa.array([], pa.list_(pa.int8()))), DataError, id="type"),
    ],
)
@pytest.mark.parametrize("as_reader", [False, True])
def test_no_rows_have_the_columns_of_the_table(
    conn: Connection, data: pa.Table, mode: str, error: type[Exception], as_reader: bool
) -> None:
    before = total(conn)
    with pytest.raises(error):
        conn.table("orders").load(data.to_reader() if as_reader else data, mode)
    assert total(conn) == before


@pytest.mark.parametrize("data", [pd.DataFrame(), pl.DataFrame(), pa.table({}), {}])
def test_what_has_no_columns_does_not_empty_a_table(conn: Connection, data: Any) -> None:
    before = total(conn)
    with pytest.raises(DataError, match="has no columns: give those of the table, or TRUNCATE it"):
        conn.table("orders").load(data, "overwrite")
    assert total(conn) == before


def test_an_empty_list_of_rows_empties_a_table(conn: Connection) -> None:
    assert conn.table("orders").load([], "overwrite") == 0
    assert total(conn) == 0


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_no_rows_ask_nobody(cluster: Any, conn: Connection, mode: str) -> None:
    table = conn.table("orders")
    cluster.log.clear()
    assert table.load(rows_of(0), mode) == 0
    assert cluster.log == []


def test_rows_of_one_partition_are_one_write(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    cluster.log.clear()
    assert table.load({"customer_id": ["C2", "C2"], "id": [500, 501]}, "upsert", missing="null") == 2
    assert cluster.log == [(table.owner_of(table.partition_of({"customer_id": "C2"})), "write_rows")]


def test_a_replicated_table_is_staged_everywhere(cluster: Any, conn: Connection) -> None:
    assert conn.table("countries").load({"code": ["de"], "name": ["Germany"]}, "upsert") == 1
    assert sorted(cluster.asked("stage_rows")) == ["m1", "m2", "m3"]
    assert cluster.published == [("countries", "upsert", [0])]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        pytest.param({"customer_id": ["a", None], "id": [1, 2]}, NullKeyError, "customer_id", id="null key"),
        pytest.param({"customer_id": ["a"], "id": ["x"]}, DataError, "id", id="type"),
        pytest.param(
            {"customer_id": ["a"], "id": [1], "colour": [1]}, UnknownColumnError, "colour", id="unknown column"
        ),
        pytest.param({"customer_id": ["a"]}, NullKeyError, "id", id="missing key"),
        pytest.param([1], DataError, "is not a table", id="no table"),
        pytest.param(
            {"customer_id": ["taken", *"abcdefgh"], "id": range(9)},
            DuplicateKeyError,
            "has the key",
            id="duplicate, staged",
        ),
        pytest.param({"customer_id": ["taken"], "id": [1]}, DuplicateKeyError, "has the key", id="duplicate, written"),
    ],
)
def test_bad_data_leave_the_table_as_it_was(
    cluster: Any, conn: Connection, data: Any, error: type[Exception], message: str
) -> None:
    table = conn.table("orders")
    with pytest.raises(error, match=message):
        table.load(data, missing="null")
    assert total(conn) == 18
    assert cluster.staged == {}
    assert table.load(rows_of(10)) == 10


def test_an_unknown_mode(conn: Connection) -> None:
    with pytest.raises(
        ProgrammingError,
        match="load mode 'replace' does not exist; use 'append', 'overwrite', 'overwrite_ranges', 'upsert'",
    ):
        conn.table("orders").load(rows_of(1), "replace")


def test_a_member_out_of_reach_ends_the_load(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    cluster.failures["m2", "stage_rows"] = [MemberLostError("gone")]
    with pytest.raises(LoadFailedError, match="the load into Orders was aborted, and the table is unchanged: gone"):
        table.load(rows_of(100))
    assert cluster.asked("abort_load") == ["controller"]
    assert cluster.staged == {}
    assert total(conn) == 18
    assert table.load(rows_of(100)) == 100


def test_a_publication_without_an_answer_is_not_called_a_failure(cluster: Any, conn: Connection) -> None:
    cluster.failures["controller", "publish_load"] = [MemberLostError("broke")]
    conn._session.controller_wait_s = 0.0
    with pytest.raises(
        MemberLostError,
        match=r"the answer to its publication was lost: read the table to see whether its rows are visible. broke",
    ):
        conn.table("orders").load(rows_of(100))
    assert cluster.asked("abort_load") == []


def test_a_publication_that_cannot_be_asked_for_again_is_not_called_a_failure(cluster: Any, conn: Connection) -> None:
    """It was said not to have been sent, since its last attempt was not."""
    broke, gone = MemberLostError("broke"), UnreachableError("nobody listens")
    cluster.failures["controller", "publish_load"] = [broke, *[gone] * 100]
    conn._session.controller_wait_s = 0.1
    with pytest.raises(MemberLostError, match=r"answer to its publication was lost: read the table .*nobody listens"):
        conn.table("orders").load(rows_of(100))
    assert cluster.asked("abort_load") == []


def test_a_publication_whose_answer_was_lost_is_asked_for_again_under_its_id(cluster: Any, conn: Connection) -> None:
    cluster.failures["controller", "publish_load"] = [MemberLostError("broke"), MemberLostError("broke")]
    assert conn.table("orders").load(rows_of(100)) == 100
    assert cluster.asked("publish_load") == ["controller"] * 3


def test_the_wait_for_a_controller_begins_when_it_is_lost_and_not_with_the_request(
    cluster: Any, conn: Connection
) -> None:
    cluster.latch = asyncio.Event()
    cluster.failures["controller", "publish_load"] = [MemberLostError("broke")]
    conn._session.controller_wait_s = 0.2

    def lose_it() -> None:
        asked_s: float | None = None
        while asked_s is None or time.monotonic() < asked_s + 0.3:
            if asked_s is None and cluster.asked("publish_load"):
                asked_s = time.monotonic()
            time.sleep(0.01)
        cluster.call(cluster.latch.set)

    losing = threading.Thread(target=lose_it)
    losing.start()
    assert conn.table("orders").load(rows_of(100)) == 100
    losing.join()
    assert cluster.asked("publish_load") == ["controller"] * 2


def test_a_partition_that_moves_is_followed(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    cluster.topology = cluster.moved(0, next(name for name in cluster.members if name != cluster.ownership.primary(0)))
    cluster.failures["m1", "stage_rows"] = [TopologyChangedError("moved")]
    assert table.load(rows_of(100)) == 100
    assert cluster.asked("get_topology") == ["controller"]
    assert cluster.staged == {}
    assert total(conn) == 118


def test_a_write_to_a_partition_that_moved_is_followed(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    partition = table.partition_of({"customer_id": "C2"})
    after = next(name for name in cluster.members if name != cluster.ownership.primary(partition))
    cluster.topology = cluster.moved(partition, after)
    assert table.load({"customer_id": ["C2"], "id": [500]}, missing="null") == 1
    assert cluster.asked("write_rows")[-1] == after
    assert table.owner_of(partition) == after


def test_a_write_to_a_dead_member_says_that_nothing_was_loaded(cluster: Any, conn: Connection) -> None:
    conn._session.retry_s = 0.1
    table = conn.table("orders")
    cluster.kill(table.owner_of(table.partition_of({"customer_id": "C2"})))
    with pytest.raises(LoadFailedError, match="cannot be reached, and nothing was loaded"):
        table.load({"customer_id": ["C2"], "id": [500]}, missing="null")


def test_a_reader_cannot_be_read_twice(cluster: Any, conn: Connection) -> None:
    cluster.failures["m1", "stage_rows"] = [TopologyChangedError("moved")]
    data = rows_of(100)
    with pytest.raises(TopologyChangedError):
        conn.table("orders").load(pa.RecordBatchReader.from_batches(data.schema, data.to_batches()))
    assert cluster.staged == {}


def test_what_does_not_stop_moving_is_given_up(cluster: Any, conn: Connection) -> None:
    conn._session.retry_s = 0.1
    cluster.failures["m1", "stage_rows"] = [TopologyChangedError("moved, always") for _ in range(100)]
    with pytest.raises(TopologyChangedError, match="moved, always"):
        conn.table("orders").load(rows_of(100))
    assert cluster.staged == {}


def test_a_write_that_may_have_been_made_is_not_called_undone(cluster: Any, conn: Connection) -> None:
    """Its answer is lost, and afterwards the partition does not stop moving."""
    conn._session.retry_s = 0.1
    table = conn.table("orders")
    owner = table.owner_of(table.partition_of({"customer_id": "C2"}))
    cluster.failures[owner, "write_rows"] = [
        MemberLostError("the connection broke", member=owner),
        *(TopologyChangedError("moved; nothing was written") for _ in range(100)),
    ]
    with pytest.raises(MemberLostError, match="the connection broke"):
        table.load({"customer_id": ["C2"], "id": [500]}, "upsert", missing="null")


def test_a_write_whose_answer_was_lost_is_asked_for_again_under_its_id(cluster: Any, conn: Connection) -> None:
    table = conn.table("orders")
    owner = table.owner_of(table.partition_of({"customer_id": "C2"}))
    cluster.failures[owner, "write_rows"] = [MemberLostError("the connection broke", member=owner)]
    assert table.load({"customer_id": ["C2"], "id": [500]}, "append", missing="null") == 1
    assert len(cluster.write_ids) == 2
    assert len(set(cluster.write_ids)) == 1
