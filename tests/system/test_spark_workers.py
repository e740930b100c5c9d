"""What a task does in a Python worker of Spark, without Spark: it loads what it needs, and no client unless the rows
are not where they were.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import secateur

pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from secateur.connectors.spark.read_options import read_options
from secateur.connectors.spark.read_values import SnapshotTask
from secateur.connectors.spark.reader import QueryReader
from secateur.connectors.spark.write_options import load_writer
from secateur.errors import DataChangedError
from secateur.protocol import CloseSnapshot
from secateur.wire import Channel, hello

ROOT = Path(__file__).parents[2]
SCHEMA = StructType([StructField("k", LongType()), StructField("v", LongType())])
DDL = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 4"
ROWS = 200_000
TYPED_DDL = """
CREATE TABLE typed (name VARCHAR, day DATE, price DECIMAL(12, 2), tags VARCHAR[], at TIMESTAMP, PRIMARY KEY (name, day))
PARTITION BY HASH (name) PARTITIONS 4, RANGE (day) EVERY INTERVAL 1 MONTH
"""
TYPED = pa.table(
    {
        "name": ["a", "b", "c", "d"],
        "day": [date(2026, 1, 1), date(2026, 1, 31), date(2026, 1, 2), date(2026, 1, 3)],
        "price": pa.array([Decimal("1.50"), None, Decimal(2), Decimal(-1)], pa.decimal128(10, 1)),
        "tags": [["x", None], None, [], ["y"]],
        "at": pa.array([None, datetime(2026, 1, 1), None, None], pa.timestamp("us")),
    }
)

NEVER = (
    *("secateur.client", "secateur.cluster", "secateur.dag", "secateur.engine", "secateur.planner", "secateur.storage"),
    *("asyncio", "duckdb", "pandas", "ray"),
)
WIRE = ("secateur.wire", "secateur.partitioning", "msgpack", "ssl")

READ = """
import pickle, sys
import pyspark.worker, pyspark.sql.worker.plan_data_source_read
before = set(sys.modules)
reader, task = pickle.load(sys.stdin.buffer)
rows = sum(batch.num_rows for batch in reader.read(task))
print(rows, *sorted(set(sys.modules) - before))
"""
WRITE = """
import pickle, sys
import pyspark.worker, pyspark.sql.worker.plan_data_source_read
from pyspark import TaskContext
before = set(sys.modules)
writer, batches = pickle.load(sys.stdin.buffer)
TaskContext._getOrCreate()._taskAttemptId = 7
staged = writer.write(iter(batches))
print(sum(staged.rows.values()), *sorted(set(sys.modules) - before))
"""
PLAN = """
import gc, pickle, sys
import pyspark.sql.worker.plan_data_source_read
reader = pickle.load(sys.stdin.buffer)
plans = [reader.partitions() for _ in range(2)]
print(len(plans[0]), len(plans[1]), gc.get_freeze_count())
"""


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(DDL)
        connection.execute(TYPED_DDL)
        connection.execute("INSERT INTO typed (name, day) VALUES ('of before', DATE '2026-01-01')")  # makes the range
        connection.execute(f"INSERT INTO t SELECT range, 2 * range FROM range({ROWS})")
        yield {"address": cluster.address, "token": cluster.token, "table": "t"}


def run(code: str, value: object, **environment: str) -> tuple[int, list[str]]:
    """What a task's code prints in a process that has loaded what a worker of Spark has, and no more."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(value),
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr.decode()
    rows, *modules = done.stdout.decode().split()
    return int(rows), modules


def of(modules: list[str], names: tuple[str, ...]) -> list[str]:
    return [module for module in modules if module.startswith(tuple(f"{name}." for name in names)) or module in names]


@pytest.mark.smoke
def test_a_task_with_its_rows_loads_not_even_the_wire(options: dict[str, str]) -> None:
    endpoint, read = read_options({**options, "where": "k = 77"})
    reader = QueryReader(endpoint, read, SCHEMA)
    (task,) = reader.partitions()
    rows, modules = run(READ, (reader, task))
    assert rows == 1
    assert of(modules, (*NEVER, *WIRE)) == []


def test_a_process_that_plans_is_spared_collections_of_what_it_has_loaded(options: dict[str, str]) -> None:
    """Where Spark uses it again, and nowhere else; it ends although it keeps its connection."""
    reader = QueryReader(*read_options({**options, "where": "k = 77"}), SCHEMA)
    assert run(PLAN, reader) == (1, ["1", "0"])
    tasks, (again, frozen) = run(PLAN, reader, SPARK_REUSE_WORKER="1")
    assert (tasks, again) == (1, "1")
    assert int(frozen) > 10_000


def test_a_task_that_reads_from_a_member_loads_the_wire_and_no_client(options: dict[str, str]) -> None:
    endpoint, read = read_options(options)
    reader = QueryReader(endpoint, read, SCHEMA)
    found = [run(READ, (reader, task)) for task in reader.partitions()]
    assert sum(rows for rows, _ in found) == ROWS
    assert all(of(modules, NEVER) == [] for _, modules in found)


def test_a_task_that_writes_loads_the_wire_and_no_client(options: dict[str, str]) -> None:
    batches = pa.table({"k": [1, 2, 3], "v": [1, 2, None]}).to_batches()
    rows, modules = run(WRITE, (load_writer(options, SCHEMA, overwrite=True), batches))
    assert rows == 3
    assert of(modules, NEVER) == []


def test_neither_do_casts_nested_values_and_ranges_load_more(options: dict[str, str]) -> None:
    typed = {**options, "table": "typed"}
    writer = load_writer(typed, from_arrow_schema(TYPED.schema), overwrite=False)
    rows, modules = run(WRITE, (writer, TYPED.to_batches()))
    assert rows == TYPED.num_rows
    assert of(modules, NEVER) == []


def tasks_over_members(options: dict[str, str]) -> tuple[QueryReader, list[SnapshotTask]]:
    reader = QueryReader(*read_options(options), SCHEMA)
    tasks = [task for task in reader.partitions() if isinstance(task, SnapshotTask)]
    assert len(tasks) == 2
    return reader, tasks


def ids(reader: QueryReader, tasks: list[SnapshotTask]) -> list[int]:
    return sorted(key for task in tasks for batch in reader.read(task) for key in batch.column("k").to_pylist())


def drop_rows(options: dict[str, str], tasks: list[SnapshotTask]) -> None:
    """Have the members drop the rows of tasks, as they do when nobody has read them for long."""
    for task in tasks:
        with closing(Channel(task.rows.host, task.rows.port, hello(options["token"]))) as channel:
            channel.request(CloseSnapshot(task.rows.snapshot))


def test_rows_that_a_member_has_dropped_are_found_again(options: dict[str, str]) -> None:
    reader, tasks = tasks_over_members(options)
    drop_rows(options, tasks)
    assert ids(reader, tasks) == list(range(ROWS))


def test_a_member_that_is_out_of_reach_is_looked_for(options: dict[str, str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reader, tasks = tasks_over_members(options)
    moved = [dataclasses.replace(task, rows=dataclasses.replace(task.rows, port=port)) for task in tasks]
    assert ids(reader, moved) == list(range(ROWS))


def test_rows_of_another_moment_are_refused(options: dict[str, str]) -> None:
    reader, tasks = tasks_over_members(options)
    drop_rows(options, tasks)
    with secateur.connect(options["address"], options["token"]) as connection:
        connection.execute(f"UPDATE t SET v = 0 WHERE k < {ROWS}")
    with pytest.raises(DataChangedError, match="read the table again"):
        ids(reader, tasks)
