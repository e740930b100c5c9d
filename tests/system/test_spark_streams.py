"""Spark writes streams into real members: each batch once, also when it is tried again."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import secateur
from secateur.cluster import Cluster
from secateur.connectors.spark import SecateurDataSource
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.writer import StreamWriter

pytestmark = pytest.mark.spark

DRIVER = Path(__file__).with_name("spark_stream_driver.py")


class Dying(StreamWriter):
    """A writer whose process ends before or after a commit, if there is a file that says so."""

    folder: str

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's
        self.die_at("before", batchId)
        super().commit(messages, batchId)
        self.die_at("after", batchId)

    def die_at(self, when: str, batch: int) -> None:
        fault = Path(self.folder, f"{when}-{batch}")
        if fault.exists():
            fault.unlink()
            os._exit(1)


class DyingSource(SecateurDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        made = super().streamWriter(schema, overwrite)
        dying = Dying(made.load, made.stream)
        object.__setattr__(dying, "folder", FAULTS)
        return dying


FAULTS = ""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession], faults: Path) -> Iterator[SparkSession]:
    global FAULTS
    FAULTS = str(faults)
    session = spark_session({"spark.sql.shuffle.partitions": "2"})
    secateur.spark.register(session)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with this_environment(session):
        session.dataSource.register(DyingSource)
    yield session
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


class Files:
    """A folder of files, each of which is a batch of a stream."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        folder.mkdir()

    def add(self, *batches: Sequence[dict[str, Any]]) -> None:
        for rows in batches:
            number = len(list(self.folder.iterdir()))
            path = self.folder / f"{number:05}.json"
            path.write_text("\n".join(json.dumps(row) for row in rows))
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark orders files by their time

    def stream(self) -> DataFrame:
        return self.spark.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).json(str(self.folder))


def run(
    df: DataFrame,
    cluster: Cluster,
    table: str,
    checkpoint: Path,
    format: str = "secateur",
    output: str = "append",
    **options: str,
) -> None:
    """Process what there is, and end."""
    given = {"address": cluster.address, "token": cluster.token or "", "table": table, **options}
    writer = df.writeStream.format(format).outputMode(output).options(**given)
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def rows_of(conn: secateur.Connection, table: str) -> list[tuple[Any, ...]]:
    return conn.execute(f"SELECT k, v FROM {table} ORDER BY k").fetchall()


def batches(conn: secateur.Connection, table: str) -> list[tuple[Any, ...]]:
    sql = "SELECT stream, batch, rows FROM secateur.loads WHERE table_name = ? AND state = 'published' ORDER BY batch"
    return conn.execute(sql, [table]).fetchall()


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1"
    )
    return table_name


def test_a_batch_that_is_tried_again_is_published_once(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table: str, tmp_path: Path, faults: Path
) -> None:
    files = Files(spark, tmp_path / "in")
    files.add(*([{"k": 10 * n + i, "v": n} for i in range(10)] for n in range(4)))
    for fault in ("before-1", "after-1", "after-2"):
        (faults / fault).touch()
    failures = 0
    while True:
        try:
            run(files.stream(), cluster, table, tmp_path / "checkpoint", format="dying")
            break
        except StreamingQueryException:
            failures += 1
    assert failures == 3
    # appended rows that came twice would be duplicate keys, and the query would never end
    assert rows_of(conn, table) == [(k, k // 10) for k in range(40)]
    found = batches(conn, table)
    assert [row[1:] for row in found] == [(n, 10) for n in range(4)]
    assert len({row[0] for row in found}) == 1


def test_rows_are_upserted_and_deleted(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table: str, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path / "in")
    files.add([{"k": 1, "v": 1}, {"k": 2, "v": 1}, {"k": 3, "v": 1}], [{"k": 2, "v": 2}, {"k": 4, "v": 2}])
    run(files.stream(), cluster, table, tmp_path / "upserts", mode="upsert")
    assert rows_of(conn, table) == [(1, 1), (2, 2), (3, 1), (4, 2)]
    gone = Files(spark, tmp_path / "gone")
    gone.add([{"k": 1}, {"k": 3}], [])
    run(gone.stream().select("k"), cluster, table, tmp_path / "deletions", mode="delete", streamId="deletions")
    assert rows_of(conn, table) == [(2, 2), (4, 2)]
    assert ("deletions", 0) in [row[:2] for row in batches(conn, table)]
    counted = files.stream().groupBy("v").count().selectExpr("v AS k", "`count` AS v")
    run(counted, cluster, table, tmp_path / "complete", output="complete")
    assert rows_of(conn, table) == [(1, 3), (2, 2)]  # each batch replaces the table


def test_a_new_query_does_not_pass_for_an_old_one(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table: str, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path / "in")
    files.add([{"k": 1, "v": 1}], [{"k": 2, "v": 1}])
    run(files.stream(), cluster, table, tmp_path / "checkpoint", streamId="orders")
    with pytest.raises(StreamingQueryException, match="has batch 1 of this stream from another query"):
        run(files.stream(), cluster, table, tmp_path / "other", streamId="orders", mode="upsert")
    files.add([{"k": 3, "v": 1}])
    run(files.stream(), cluster, table, tmp_path / "checkpoint", streamId="orders")
    assert rows_of(conn, table) == [(1, 1), (2, 1), (3, 1)]


def test_changes_of_a_table_are_a_stream(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str, tmp_path: Path
) -> None:
    """Changes flow into a second table over several runs of a query, which begin where the last one ended."""
    for name, feed in ((table_name, " WITH (change_feed = true)"), (f"{table_name}_log", "")):
        key = "k" if feed else "k, version, kind"
        conn.execute(
            f"CREATE TABLE {name} (k BIGINT, v BIGINT{'' if feed else ', kind VARCHAR, version BIGINT'},"
            f" PRIMARY KEY ({key})) PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1{feed}"
        )
    options = {"address": cluster.address, "token": cluster.token or "", "table": table_name, "changeFeed": "true"}
    conn.table(table_name).load({"k": list(range(100)), "v": [0] * 100})

    def follow() -> None:
        changes = spark.readStream.format("secateur").options(**options, startingPosition="earliest").load()
        assert changes.columns == ["k", "v", "_change_type", "_commit_version"]
        named = changes.selectExpr("k", "v", "_change_type AS kind", "_commit_version AS version")
        run(named, cluster, f"{table_name}_log", tmp_path / "checkpoint")

    follow()
    conn.execute(f"UPDATE {table_name} SET v = v + 1 WHERE k < 10")
    conn.execute(f"DELETE FROM {table_name} WHERE k = 50")
    follow()
    conn.execute(f"INSERT OR REPLACE INTO {table_name} VALUES (1, 7), (200, 7)")
    follow()
    follow()
    expected = {
        ("insert", 0): 100,
        ("update_preimage", 0): 10,
        ("update_postimage", 1): 10,
        ("delete", 0): 1,
        ("update_preimage", 1): 1,
        ("update_postimage", 7): 1,
        ("insert", 7): 1,
    }
    found = conn.execute(f"SELECT kind, v, count(*) FROM {table_name}_log GROUP BY ALL").fetchall()
    assert {(kind, v): count for kind, v, count in found} == expected
    options.pop("changeFeed")
    with pytest.raises(Exception, match="a stream is of the changes of a table"):
        run(
            spark.readStream.format("secateur").options(**options).load(),
            cluster,
            f"{table_name}_log",
            tmp_path / "refused",
        )


@pytest.mark.parametrize(
    ("limit", "value"),
    [("maxRowsPerTrigger", 40), ("maxBytesPerTrigger", 1), (None, None)],
    ids=["rows", "bytes", "none"],
)
@pytest.mark.slow
def test_a_limit_divides_changes_among_batches(
    spark: SparkSession,
    cluster: Cluster,
    conn: secateur.Connection,
    table_name: str,
    tmp_path: Path,
    limit: str | None,
    value: int | None,
) -> None:
    log = f"{table_name}_log"
    hashed = "PARTITION BY HASH (k) PARTITIONS 4"
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) {hashed} WITH (change_feed = true)")
    conn.execute(f"CREATE TABLE {log} (k BIGINT, v BIGINT, PRIMARY KEY (k, v)) {hashed}")
    for load in range(8):
        conn.table(table_name).load({"k": list(range(20 * load, 20 * load + 20)), "v": [load] * 20})
    options = {"address": cluster.address, "token": cluster.token or "", "table": table_name, "changeFeed": "true"}
    if limit is not None:
        options[limit] = str(value)

    def follow() -> list[int]:
        """The rows of each batch until now."""
        changes = spark.readStream.format("secateur").options(**options, startingPosition="earliest").load()
        run(changes.select("k", "v"), cluster, log, tmp_path / "checkpoint")
        return [row[2] for row in batches(conn, log)]

    sizes = follow()
    assert sum(sizes) == 160
    match limit:
        case "maxRowsPerTrigger":
            assert len(sizes) >= 4
            assert max(sizes) <= 40 + 20, "each partition may bring a change that is larger than its share"
        case "maxBytesPerTrigger":
            assert len(sizes) >= 8, "one load of each partition at a time"
            assert max(sizes) <= 40
        case _:
            assert sizes == [160]
    conn.table(table_name).load({"k": list(range(1000, 1020)), "v": [9] * 20})
    assert sum(follow()) == 180
    found = conn.execute(f"SELECT k, v FROM {log} ORDER BY k").fetchall()
    assert found == conn.execute(f"SELECT k, v FROM {table_name} ORDER BY k").fetchall()


def has_ended_or_written(driver: subprocess.Popen[bytes], conn: secateur.Connection, table: str, before: int) -> bool:
    return driver.poll() is not None or count(conn, table) > before


def count(conn: secateur.Connection, table: str) -> int:
    ((found,),) = conn.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(found)


@pytest.mark.slow
@pytest.mark.timeout(6000)
def test_a_driver_that_is_killed_twenty_times_neither_loses_nor_doubles_a_row(
    conn: secateur.Connection, cluster: Cluster, table_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """One of its streams writes a table, another one follows the changes of this table, and writes them to a log."""
    table, log = table_name, f"{table_name}_log"
    placed = "PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1"
    conn.execute(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY, v BIGINT) {placed} WITH (change_feed = true)")
    columns = "k BIGINT, v BIGINT, kind VARCHAR, version BIGINT, PRIMARY KEY (k, kind, version)"
    conn.execute(f"CREATE TABLE {log} ({columns}) {placed}")
    files, number = Files(spark, tmp_path / "in"), 0
    arguments = [cluster.address, cluster.token or "", table, str(files.folder), str(tmp_path / "checkpoint")]
    seed = random.randrange(1 << 30)
    chance, kills, said = random.Random(seed), 0, tmp_path / "said"
    ended = None
    while ended != 0 or kills < 20:
        files.add(*([{"k": 20 * n + i, "v": n} for i in range(20)] for n in range(number, number + 3)))
        number += 3
        watched = chance.choice([table, log])
        before = count(conn, watched)
        with said.open("w") as output:  # a file: processes of Spark may outlive the driver, and hold a pipe open
            driver = subprocess.Popen(
                [sys.executable, str(DRIVER), *arguments], start_new_session=True, stdout=output, stderr=output
            )
        try:
            if kills < 20:
                holds = partial(has_ended_or_written, driver, conn, watched, before)
                # On a busy machine Spark starts for minutes.
                eventually(holds, "nothing came", timeout_s=600, pause_s=0.2)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    driver.wait(timeout=chance.random())
            else:
                driver.wait(timeout=600)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            ended = driver.wait()
        # Spark gives its Python processes ten seconds to start, whatever the machine does besides.
        is_too_busy = "Python worker failed to connect back" in said.read_text()
        assert ended in (0, -signal.SIGKILL) or is_too_busy, said.read_text()
        kills += ended == -signal.SIGKILL
        print(f"seed {seed}: {kills} kills, {before} rows of {20 * number} before in {watched}")
    # Appended rows that came twice would be duplicate keys, and the driver would have ended with an error.
    assert rows_of(conn, table) == [(k, k // 20) for k in range(20 * number)]
    logged = conn.execute(f"SELECT k, v, kind FROM {log} ORDER BY ALL").fetchall()
    assert logged == [(k, k // 20, "insert") for k in range(20 * number)]
    for written in (table, log):
        found = batches(conn, written)  # Spark may plan a batch that was not begun with one file more
        assert [row[1] for row in found] == sorted({row[1] for row in found})
        assert sum(row[2] for row in found) == 20 * number
        assert len({row[0] for row in found}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "overwrite"}, "option mode='overwrite' does not exist for a stream; use 'append'"),
        ({"mode": "upsert", "output": "complete"}, "contradicts outputMode"),
        ({"operation": "upsert"}, "has no option operation to write a stream with; it has address"),
    ],
    ids=["no such mode", "complete", "option of batches"],
)
def test_wrong_options_are_refused(
    spark: SparkSession, cluster: Cluster, table: str, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    files = Files(spark, tmp_path / "in")
    files.add([{"k": 1, "v": 1}])
    df = files.stream()
    if "output" in options:
        df = df.groupBy("k").count().selectExpr("k", "`count` AS v")
    with pytest.raises(StreamingQueryException, match=message):
        run(df, cluster, table, tmp_path / "checkpoint", **options)
