"""A table that was created for rows goes again if these do not come, unless somebody else has begun to use it."""

from __future__ import annotations

import datetime
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import secateur
from secateur.client.connect import parse_address
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.errors import Error, LimitExceededError
from secateur.protocol import StageRows
from secateur.wire import encode_table

ROWS = pa.table({"k": [1, 2, 3], "v": [1, 2, 3]})
TRIES = round(12 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))


class WentWrongError(Exception):
    """Of a test."""


def created(conn: secateur.Connection, name: str, backups: int = 1) -> secateur.TableHandle:
    return conn.create_table(name, ROWS, primary_key=["k"], partition_by="HASH (k) PARTITIONS 4", backups=backups)


def first_load(table: secateur.TableHandle, meanwhile: Callable[[], object]) -> None:
    """Fails, and something happens before it does."""
    with table.dropped_on_failure():
        meanwhile()
        raise WentWrongError


def fail(table: secateur.TableHandle, meanwhile: Callable[[], object] = lambda: None) -> None:
    with pytest.raises(WentWrongError):
        first_load(table, meanwhile)


def is_there(conn: secateur.Connection, name: str) -> bool:
    return conn.execute("SELECT count(*) FROM secateur.tables WHERE table_name = ?", [name]).fetchone() == (1,)


@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param("HASH (k) PARTITIONS 4", id="hash"),
        pytest.param("RANGE (d) EVERY INTERVAL 1 DAY", id="ranges that are made for the rows"),
        pytest.param(None, id="replicated"),
    ],
)
@pytest.mark.smoke
def test_a_load_that_fails_half_way_leaves_no_table(
    conn: secateur.Connection, table_name: str, scheme: str | None
) -> None:
    rows = pa.table({"k": range(20), "d": [datetime.date(2024, 1, day) for day in range(1, 21)]})

    def fails(_: int) -> None:
        staged = conn.execute("SELECT sum(rows) FROM secateur.loads WHERE table_name = ?", [table_name]).fetchone()
        assert staged == (20,)
        raise WentWrongError

    def create() -> secateur.TableHandle:
        return conn.create_table(
            table_name, rows, primary_key=["k", "d"], partition_by=scheme, replicated=scheme is None
        )

    table = create()
    with pytest.raises(WentWrongError), table.dropped_on_failure():
        table.load(rows, progress=fails)
    assert not is_there(conn, table_name)
    with create().dropped_on_failure() as table:
        assert table.load(rows) == 20
    assert is_there(conn, table_name)


def insert(conn: secateur.Connection, name: str) -> None:
    conn.execute(f"INSERT INTO {name} VALUES (7, 7)")


def insert_and_delete(conn: secateur.Connection, name: str) -> None:
    insert(conn, name)
    conn.execute(f"DELETE FROM {name} WHERE k = 7")


def load(conn: secateur.Connection, name: str) -> None:
    conn.table(name).load(ROWS)


def load_nothing(conn: secateur.Connection, name: str) -> None:
    conn.table(name).load(ROWS.slice(0, 0), mode="overwrite")


def index(conn: secateur.Connection, name: str) -> None:
    conn.execute(f"CREATE INDEX {name}_v ON {name} (v)")


def view(conn: secateur.Connection, name: str) -> None:
    conn.execute(f"CREATE VIEW {name}_view AS SELECT v FROM {name}")


def replace(conn: secateur.Connection, name: str) -> None:
    conn.execute(f"DROP TABLE {name}")
    created(conn, name)


@pytest.mark.parametrize("use", [insert, insert_and_delete, load, load_nothing, index, view, replace])
@pytest.mark.smoke
def test_a_table_that_somebody_uses_stays(
    cluster: Cluster, conn: secateur.Connection, table_name: str, use: Callable[[secateur.Connection, str], None]
) -> None:
    with cluster.connect() as other:
        fail(created(conn, table_name), lambda: use(other, table_name))
        before = other.execute(f"SELECT * FROM {table_name} ORDER BY ALL").fetchall()
    assert len(before) == {insert: 1, load: 3}.get(use, 0)
    assert conn.execute(f"SELECT * FROM {table_name} ORDER BY ALL").fetchall() == before
    conn.table(table_name).put({"k": 70, "v": 70})  # nothing is closed any more


def test_a_table_for_which_another_load_waits_stays(
    cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    other = Session(*parse_address(cluster.address), token=cluster.token, timeout_s=30.0)
    table = created(conn, table_name)
    partition = table.partition_of({"k": 1})
    staged = StageRows("another", table.definition.table_id, 0, [(partition, 1)])
    rows = encode_table(ROWS.slice(0, 1).cast(table.schema))
    fail(table, lambda: other.ask_member(table.owner_of(partition), staged, rows))
    other.close()
    assert is_there(conn, table_name)


def test_a_row_is_acknowledged_or_the_table_goes(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    """Somebody writes at the moment at which the table is looked at, sometimes a little later."""
    outcomes: Counter[bool] = Counter()
    with cluster.connect() as other, ThreadPoolExecutor(1) as writer:
        for number in range(TRIES):
            name = f"{table_name}_{number}"
            table, theirs, both = created(conn, name), other.table(name), threading.Barrier(2)

            def write(theirs: secateur.TableHandle, both: threading.Barrier, pauses: int) -> bool:
                both.wait()
                for _ in range(pauses):
                    other.execute("SELECT 1")
                try:
                    theirs.put({"k": 7, "v": 7})
                except Error:
                    return False
                return True

            writing = writer.submit(write, theirs, both, number % 6)
            fail(table, both.wait)
            is_acknowledged = writing.result()
            assert is_there(conn, name) == is_acknowledged
            if is_acknowledged:
                assert conn.execute(f"FROM {name}").fetchall() == [(7, 7)]
            outcomes[is_acknowledged] += 1
    print(f"{outcomes[True]} tables had a row, {outcomes[False]} went again")


def test_a_member_that_is_lost_meanwhile_does_not_keep_the_table() -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        fail(created(conn, "t"), lambda: cluster.kill_member(cluster.members()[-1].id))
        assert not is_there(conn, "t")
        fail(created(conn, "u", backups=0), lambda: cluster.kill_member(cluster.members()[-1].id))
        assert is_there(conn, "u"), "nobody knows whether the lost member had a row"


def test_a_table_of_a_query_goes_again_if_its_rows_do_not_fit() -> None:
    kernel = 1 << 30  # that of this process is shared with other tests
    limits = {"memory_limit": kernel + (16 << 20), "kernel_memory_bytes_max": kernel}
    with secateur.start(members=2, runtime="embedded", **limits) as cluster, cluster.connect() as conn:
        with pytest.raises(LimitExceededError):
            conn.execute(
                "CREATE TABLE t PRIMARY KEY (k) PARTITION BY HASH (k) PARTITIONS 4"
                " AS SELECT range AS k, repeat('x', 1000) || range AS v FROM range(60000)"
            )
        assert not is_there(conn, "t")
