"""Real Spark loses tasks, its driver and members in the middle of a load: the table is the old one or the new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from eventually import eventually
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import secateur
from secateur.cluster import Cluster
from secateur.connectors.spark import SecateurDataSource
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.write_options import load_writer
from secateur.connectors.spark.writer import LoadWriter, StagedTask
from secateur.errors import Error

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER = Path(__file__).with_name("spark_fault_driver.py")
EXECUTOR_DRIVER = Path(__file__).with_name("spark_executor_driver.py")
ROWS = 1000


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    session = spark_session()
    secateur.spark.register(session)
    return session


@pytest.fixture
def losing() -> Iterator[Cluster]:
    """A cluster of which a test may lose members."""
    with secateur.start(members=3, runtime="embedded") as running:
        yield running


@pytest.fixture
def filled(losing: Cluster) -> Iterator[secateur.Connection]:
    """A connection to it; table t has 1,000 rows with v = 1."""
    with losing.connect() as conn:
        fill(conn)
        yield conn


def fill(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1")
    conn.table("t").load({"k": list(range(ROWS)), "v": [1] * ROWS})


def values(conn: secateur.Connection) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT v, count(*) FROM t GROUP BY v").fetchall()


def nothing_is_staged(conn: secateur.Connection) -> bool:
    return conn.execute("SELECT count(*) FROM secateur.loads WHERE state <> 'published'").fetchall() == [(0,)]


def rows(spark: SparkSession, value: int, tasks: int = 4, count: int = ROWS) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("id AS k", f"{value}L AS v")


class DyingWriter(LoadWriter):
    """The first attempt at each second task is killed when a part of its rows is staged."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() % 2:
            super().write(islice(iterator, 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(iterator)


class DyingSource(SecateurDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> LoadWriter:
        made = super().writer(schema, overwrite)
        return DyingWriter(*(getattr(made, name) for name in made.__dataclass_fields__))


def test_a_task_that_is_killed_is_run_again_and_its_rows_count_once(
    spark: SparkSession, losing: Cluster, filled: secateur.Connection
) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    options = {"address": losing.address, "token": losing.token or "", "table": "t", "chunk_bytes": "1"}
    with this_environment(spark):
        spark.dataSource.register(DyingSource)
        rows(spark, 2).write.format("dying").mode("overwrite").options(**options).save()
    assert values(filled) == [(2, ROWS)]
    eventually(lambda: nothing_is_staged(filled), "rows are still staged")


def test_an_executor_that_is_killed_is_replaced_and_the_rows_of_its_tasks_count_once(
    losing: Cluster, filled: secateur.Connection, tmp_path: Path
) -> None:
    home, said, killed = tmp_path / "spark", tmp_path / "said", tmp_path / "killed"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():  # executors work in a folder of Spark's home
        (home / part.name).symlink_to(part)
    arguments = [sys.executable, str(EXECUTOR_DRIVER), losing.address, losing.token or "", "t", str(killed)]
    with said.open("w") as file:  # and not a pipe: processes of Spark may outlive the driver, and hold it open
        ended = subprocess.run(
            arguments, stdout=file, stderr=file, timeout=300, check=False, env={**os.environ, "SPARK_HOME": str(home)}
        )
    assert ended.returncode == 0, said.read_text()
    assert not Path("/proc", killed.read_text()).exists()
    assert values(filled) == [(2, ROWS)]
    eventually(lambda: nothing_is_staged(filled), "rows are still staged")


@pytest.mark.parametrize("counts", ["original", "copy"])
def test_of_a_task_and_its_speculative_copy_one_counts(
    losing: Cluster, filled: secateur.Connection, monkeypatch: pytest.MonkeyPatch, counts: str
) -> None:
    """Spark starts no copy on the host of the original. Here all of the copy runs in the middle of the original."""
    options = {"address": losing.address, "token": losing.token or "", "table": "t", "chunk_bytes": "1"}
    load = load_writer(options, StructType().add("k", "long").add("v", "long"), overwrite=True)
    batches = pa.table({"k": list(range(ROWS)), "v": [2] * ROWS}).to_batches(max_chunksize=100)
    staged = {}

    def attempt(name: str, number: int, rows: Iterator[pa.RecordBatch]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(TaskContext, "get", lambda: SimpleNamespace(taskAttemptId=lambda: number))
            staged[name] = load.write(rows)

    def with_a_copy_in_between() -> Iterator[pa.RecordBatch]:
        yield from batches[:5]
        attempt("copy", 8, iter(batches))
        yield from batches[5:]

    attempt("original", 7, with_a_copy_in_between())
    assert {name: sum(task.rows.values()) for name, task in staged.items()} == {"copy": ROWS, "original": ROWS}
    load.commit([staged[counts]])
    assert values(filled) == [(2, ROWS)]
    eventually(lambda: nothing_is_staged(filled), "rows are still staged")


@pytest.mark.parametrize(
    ("when", "value", "idle_s"),
    [("before", 1, 3.0), ("after", 2, 3600.0)],  # a slow machine may take long to stage what is to be published
)
def test_a_driver_that_is_killed_leaves_the_old_table_or_the_new_one(
    tmp_path: Path, when: str, value: int, idle_s: float
) -> None:
    with (
        secateur.start(members=3, runtime="embedded", staged_load_idle_s=idle_s) as cluster,
        cluster.connect() as conn,
    ):
        fill(conn)
        arguments = [sys.executable, str(DRIVER), cluster.address, cluster.token or "", "t", when]
        said = tmp_path / "said"  # a file: processes of Spark may outlive the driver, and hold a pipe open
        with said.open("w") as file:
            ended = subprocess.run(arguments, stdout=file, stderr=file, timeout=300, check=False)
        assert ended.returncode == -signal.SIGKILL, said.read_text()
        assert values(conn) == [(value, ROWS)]
        eventually(lambda: nothing_is_staged(conn), "rows are still staged")
        assert values(conn) == [(value, ROWS)]


def test_a_member_that_is_lost_during_a_load(spark: SparkSession, losing: Cluster, filled: secateur.Connection) -> None:
    """The rows of its partitions are staged on backups as well; whether Spark's tasks meet the loss or not."""
    staged = "SELECT count(*) FROM secateur.loads WHERE state = 'staged'"

    def lose() -> None:
        with losing.connect() as conn:
            eventually(lambda: conn.execute(staged).fetchall() != [(0,)], "no load began", 120.0)
        losing.kill_member(losing.members()[0].id)

    losing_it = threading.Thread(target=lose)
    losing_it.start()
    try:
        secateur.spark.write(rows(spark, 2, tasks=6), "t", mode="overwrite", address=losing.address, token=losing.token)
        expected = {2}
    except Error:
        expected = {1, 2}  # the answer to the publication may have been lost
    losing_it.join()
    found = values(filled)
    assert found in [[(value, ROWS)] for value in expected]
    eventually(lambda: nothing_is_staged(filled), "rows are still staged")
    assert (
        secateur.spark.write(rows(spark, 3), "t", mode="overwrite", address=losing.address, token=losing.token).rows
        == ROWS
    )
    assert values(filled) == [(3, ROWS)]


def test_of_two_loads_at_once_one_is_the_last(
    spark: SparkSession, losing: Cluster, filled: secateur.Connection
) -> None:
    def load(value: int) -> int:
        df = rows(spark, value, count=ROWS * value)
        return secateur.spark.write(df, "t", mode="overwrite", address=losing.address, token=losing.token).rows

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(load, [2, 3])) == [2 * ROWS, 3 * ROWS]
    assert values(filled) in ([(2, 2 * ROWS)], [(3, 3 * ROWS)])
    assert nothing_is_staged(filled)
