"""Jobs that write tables of a real cluster: every copy has the rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur
from secateur.connectors import iterable_source, table_sink, table_source
from secateur.dag import ProcessorContext
from secateur.engine.processors import map_batches
from secateur.errors import DuplicateKeyError, NoRangeError, NotSupportedError, NullKeyError

ROWS = pa.table({"k": range(1000), "v": [n % 7 for n in range(1000)]})


def table(conn: secateur.Connection, name: str) -> str:
    conn.execute(
        f"CREATE TABLE {name} (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 11 BACKUPS 1"
    )
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
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
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
    job = conn.submit(
        copying(iterable_source([{"k": k, "v": 1} for k in range(100)]), table_name, "append"), secateur.JobConfig()
    )
    job.results(timeout_s=30)
    assert len(job.members_touched) == 1
    assert conn.execute(f"SELECT count(*), sum(v) FROM {table_name}").fetchall() == [(100, 200)]


def test_a_pipeline_brings_rows_to_their_owners(conn: secateur.Connection, table_name: str) -> None:
    """Each member writes what it owns itself, so no row goes between members twice."""
    table(conn, table_name)
    rows = [{"k": k, "v": 1} for k in range(100)]
    pipeline = (
        secateur.Pipeline()
        .read_generator(lambda context: rows if context.global_index == 0 else [])
        .write_to(table_sink(table_name), name="write")
    )
    job = pipeline.submit(conn)
    job.result(timeout_s=30)
    handle = conn.table(table_name)
    owned = Counter(handle.owner_of(handle.partition_of(row)) for row in rows)
    assert {entry["member"]: entry["rows_in"] for entry in job.metrics() if entry["vertex"] == "write"} == dict(owned)
    assert conn.execute(f"SELECT count(*), sum(v) FROM {table_name}").fetchall() == [(100, 100)]


def test_column_names_differ_in_case(conn: secateur.Connection, table_name: str) -> None:
    table(conn, table_name)
    secateur.Pipeline().read_rows([{"K": 1, "V": 2}]).write_to(table_sink(table_name)).submit(conn).result(timeout_s=30)
    assert conn.execute(f"SELECT * FROM {table_name}").fetchall() == [(1, 2)]


@pytest.mark.parametrize("others", ["", "HASH (k) PARTITIONS 3, "], ids=["ranges alone", "with buckets"])
def test_ranges_are_made_as_rows_need_them(conn: secateur.Connection, table_name: str, others: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT, day BIGINT, PRIMARY KEY (k, day)) PARTITION BY {others}RANGE (day)"
        " EVERY 10"
    )
    rows = secateur.Pipeline().read_rows([{"k": n, "day": n} for n in range(100)])
    for _ in range(2):  # the second time all ranges are there
        rows.write_to(table_sink(table_name)).submit(conn).result(timeout_s=30)
        assert conn.execute(f"SELECT count(*), min(day), max(day) FROM {table_name}").fetchall() == [(100, 0, 99)]
    assert conn.execute(f"SELECT count(*) FROM {table_name} WHERE day >= 20 AND day < 30").fetchall() == [(10,)]


def test_a_row_without_a_range_fails_the_job(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT, PRIMARY KEY (k)) PARTITION BY RANGE (k) (PARTITION 0 <= VALUES < 10)"
    )
    with pytest.raises(NoRangeError, match=r"vertex 'write t\d+' on member m\d"):
        secateur.Pipeline().read_rows([{"k": 5}, {"k": 10}]).write_to(table_sink(table_name)).submit(conn).result(
            timeout_s=30
        )
    with pytest.raises(NullKeyError):
        secateur.Pipeline().read_rows([{"k": None}], schema=pa.schema({"k": pa.int64()})).write_to(
            table_sink(table_name)
        ).submit(conn).result(timeout_s=30)
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(0,)]


def test_an_upsert_is_run_again_when_a_member_is_lost(tmp_path: Path) -> None:
    """What the first attempt had written is written once more, and is there once."""
    half = tmp_path / "half"

    def in_two(_: ProcessorContext) -> Iterator[pa.Table]:
        yield ROWS.slice(0, 500)
        half.touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.005)
        yield ROWS.slice(500)

    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        table(conn, "target")
        job = secateur.Pipeline().read_generator(in_two, everywhere=False).write_to(table_sink("target")).submit(conn)
        while not half.exists():
            time.sleep(0.005)
        cluster.kill_member(str(job.info.coordinator))
        (tmp_path / "go").touch()
        job.result(timeout_s=60)
        assert job.info.attempt > 1
        assert conn.execute("SELECT count(*), sum(v) FROM target").fetchall() == [
            (1000, sum(n % 7 for n in range(1000)))
        ]


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
    with pytest.raises(NotSupportedError, match="is replicated"):
        secateur.Pipeline().read_rows([{"k": 5, "v": 1}]).write_to(table_sink(table_name)).submit(conn).result(
            timeout_s=30
        )
