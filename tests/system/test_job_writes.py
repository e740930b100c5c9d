"""Jobs that write tables of a real cluster: every copy has the rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur
from secateur.connectors import iterable_source, table_sink, table_source
from secateur.engine.processors import map_batches
from secateur.errors import DuplicateKeyError, NotSupportedError

ROWS = pa.table({"k": range(1000), "v": [n % 7 for n in range(1000)]})


def table(conn: secateur.Connection, name: str) -> str:
    conn.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 11 BACKUPS 1")
    return name


def copying(source: object, target: str, mode: str) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", source)  # type: ignore[arg-type]
    dag.new_vertex("double", map_batches(lambda batch: batch.set_column(1, "v", pc.multiply(batch["v"], 2))))
    dag.new_vertex("write", table_sink(target, mode=mode))
    dag.edge(secateur.between("read", "double"))
    dag.edge(secateur.between("double", "write"))
    return dag


def test_every_copy_has_the_rows() -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        source, target = table(conn, "source"), table(conn, "target")
        conn.table(source).load(ROWS)
        job = conn.submit(copying(table_source(source), target, "upsert"), secateur.JobConfig())
        assert job.results(timeout_s=30) == {}
        expected = [(1000, 2 * sum(n % 7 for n in range(1000)))]
        assert conn.execute(f"SELECT count(*), sum(v) FROM {target}").fetchall() == expected
        cluster.kill_member("m2")
        assert conn.execute(f"SELECT count(*), sum(v) FROM {target}").fetchall() == expected


def test_one_member_writes_for_owners_that_take_no_part(conn: secateur.Connection, table_name: str) -> None:
    table(conn, table_name)
    job = conn.submit(copying(iterable_source([{"k": k, "v": 1} for k in range(100)]), table_name, "append"), secateur.JobConfig())
    job.results(timeout_s=30)
    assert len(job.members_touched) == 1
    assert conn.execute(f"SELECT count(*), sum(v) FROM {table_name}").fetchall() == [(100, 200)]


def test_an_append_of_a_key_that_is_there_fails_the_job(conn: secateur.Connection, table_name: str) -> None:
    table(conn, table_name)
    conn.table(table_name).load(ROWS)
    job = conn.submit(copying(iterable_source([{"k": 5, "v": 1}]), table_name, "append"), secateur.JobConfig())
    with pytest.raises(DuplicateKeyError, match="vertex 'write'"):
        job.results(timeout_s=30)
    assert conn.execute(f"SELECT v FROM {table_name} WHERE k = 5").fetchall() == [(5,)]


def test_a_replicated_table_is_refused(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT, v BIGINT, PRIMARY KEY (k)) REPLICATED")
    job = conn.submit(copying(iterable_source([{"k": 5, "v": 1}]), table_name, "append"), secateur.JobConfig())
    with pytest.raises(NotSupportedError, match="is replicated"):
        job.results(timeout_s=30)
