"""Real Spark writes to members that only take loads: what the tasks send, what is published, and which error the user
sees.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark program gives it)

from secateur.connectors.spark import register, write
from secateur.errors import (
    AuthenticationError,
    DataError,
    DuplicateKeyError,
    Error,
    InterfaceError,
    LoadFailedError,
    MemberLostError,
    NotSupportedError,
    NullKeyError,
    ProgrammingError,
    TopologyChangedError,
    UnknownColumnError,
    UnknownTableError,
    UnreachableError,
)
from secateur.partitioning.tables import TableDef

pytestmark = pytest.mark.spark

Rows = Callable[[int], DataFrame]


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    session = spark_session({"spark.sql.session.timeZone": "America/New_York", "spark.sql.timeType.enabled": "true"})
    with pytest.MonkeyPatch.context() as patch:
        # whatever the user's environment says, workers of a local Spark have to run here
        patch.setattr(session.sparkContext, "pythonExec", "no-such-python")
        register(session)
        assert session.sparkContext.pythonExec == "no-such-python"
    return session


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    """Makes so many rows in four tasks."""
    return lambda count: spark.range(0, count, 1, 4).select("id", F.concat(F.lit("note "), "id").alias("note"))


@pytest.fixture
def cluster(define: Callable[..., TableDef], loads_only: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    started = loads_only(define("orders", "id BIGINT NOT NULL, note VARCHAR, amount DOUBLE", "id"), token="hush")
    monkeypatch.setenv("SECATEUR_ADDRESS", started.address)
    monkeypatch.setenv("SECATEUR_TOKEN", "hush")
    return started


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows.column("id").to_pylist())


@pytest.mark.parametrize("mode", ["append", "overwrite", "upsert"])
def test_a_dataframe_is_published_once_and_whole(cluster: Any, rows: Rows, mode: str) -> None:
    report = write(rows(1000), "orders", missing="null", mode=mode)
    assert rows(1).sparkSession.conf.get("spark.sql.execution.arrow.maxBytesPerBatch", None) is None
    ((args, published),) = cluster.published
    assert args["mode"] == mode
    assert ids(published) == list(range(1000))
    assert set(published.column("note").to_pylist()) == {f"note {i}" for i in range(1000)}
    assert published.column("amount").null_count == 1000
    assert (report.rows, report.partitions, report.tasks) == (1000, 8, 4)
    assert 0 < report.seconds < 60
    assert cluster.aborted == []


def test_every_task_stages_under_its_own_attempt_in_the_order_of_the_dataframe(cluster: Any, rows: Rows) -> None:
    write(rows(1000), "orders", missing="null", mode="upsert")
    ((args, published),) = cluster.published
    for attempts in args["parts"].values():
        assert len(set(attempts)) == 4
    for partition in range(8):
        piece = [
            i for i in published.column("id").to_pylist() if cluster.table.scheme.partition_of({"id": i}) == partition
        ]
        assert piece == sorted(piece)


def test_tasks_gather_the_rows_of_a_partition(cluster: Any, rows: Rows) -> None:
    report = write(rows(1000), "orders", missing="null", tasks=3)
    ((args, published),) = cluster.published
    assert ids(published) == list(range(1000))
    assert report.tasks == 3
    assert {len(attempts) for attempts in args["parts"].values()} == {1}
    assert len({attempts[0] for attempts in args["parts"].values()}) == 3


def test_any_thread_may_write(cluster: Any, rows: Rows) -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(write, rows(100), "orders", missing="null").result().rows == 100


def test_any_session_may_write(cluster: Any, spark: SparkSession) -> None:
    other = spark.newSession()
    assert write(other.range(100), "orders", missing="null", mode="upsert").rows == 100
    assert write(spark.range(100), "orders", missing="null", mode="upsert").rows == 100


def test_columns_are_checked_before_rows_are_gathered(cluster: Any, rows: Rows) -> None:
    with pytest.raises(NullKeyError, match="lacks id"):
        write(rows(10).drop("id"), "orders", tasks=3)


def test_no_rows_empty_the_table(cluster: Any, rows: Rows) -> None:
    report = write(rows(1000).where("id < 0"), "orders", missing="null", mode="overwrite")
    ((args, _),) = cluster.published
    assert (args["mode"], args["parts"]) == ("overwrite", {})
    assert (report.rows, report.partitions) == (0, 0)


def test_a_task_that_is_retried_does_not_double_its_rows(cluster: Any, rows: Rows) -> None:
    cluster.stages_to_fail = 1  # answered with an error after the rows were kept
    report = write(rows(1000), "orders", missing="null")
    ((_, published),) = cluster.published
    assert ids(published) == list(range(1000))
    assert report.rows == 1000
    staged = sum(rows for frames in cluster.stages.values() for frame in frames for _, rows in frame["parts"])
    assert staged > 1000


def test_a_task_that_fails_too_often_leaves_the_table_as_it_was(cluster: Any, rows: Rows) -> None:
    cluster.stages_to_fail = 1000
    with pytest.raises(MemberLostError, match="as the test wants it"):
        write(rows(1000), "orders", missing="null")
    assert cluster.published == []
    assert cluster.aborted


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        pytest.param(
            lambda df: df.withColumn("id", F.nullif("id", F.lit(700))),
            NullKeyError,
            "orders: column id is NOT NULL, but 1 of 250",
            id="null-key",
        ),
        pytest.param(
            lambda df: df.withColumn("id", F.expr("id + 9223372036854775808")),
            DataError,
            "9223372036854775808",
            id="value-out-of-bounds",
        ),
        pytest.param(
            lambda df: df.unionAll(df), DuplicateKeyError, "orders: a key occurs twice", id="found-at-publication"
        ),
        pytest.param(lambda df: df.drop("id"), NullKeyError, "lacks id", id="missing-column"),
        pytest.param(lambda df: df.withColumn("nmae", F.lit(1)), UnknownColumnError, "'nmae'", id="unknown-column"),
        pytest.param(lambda df: df.withColumn("note", F.lit(1)), DataError, "note.*int32.*VARCHAR", id="no-conversion"),
        pytest.param(
            lambda df: df.withColumn("note", F.raise_error(F.lit("boom"))),
            LoadFailedError,
            "Spark could not write to orders.*boom",
            id="spark-fails",
        ),
    ],
)
@pytest.mark.sampled(one_in=3)
def test_bad_data_leave_the_table_as_it_was(
    cluster: Any, rows: Rows, change: Callable[[DataFrame], DataFrame], error: type[Error], words: str
) -> None:
    with pytest.raises(error, match=words):
        write(change(rows(1000)), "orders", missing="null")
    assert cluster.published == []
    if any(cluster.stages.values()):
        assert cluster.aborted


def test_the_cause_is_what_spark_said(cluster: Any, rows: Rows) -> None:
    with pytest.raises(UnknownTableError, match="'ordres'") as caught:
        write(rows(1), "ordres")
    assert caught.value.details == {"table": "ordres"}
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__  # the frames of three processes say nothing more
    assert isinstance(caught.value.__context__, AnalysisException)


@pytest.mark.slow
def test_a_moved_partition_can_be_tried_again(cluster: Any, rows: Rows) -> None:
    cluster.publish_error = TopologyChangedError("partition 3 has moved", partition=3)
    with pytest.raises(TopologyChangedError) as caught:
        write(rows(100), "orders", missing="null")
    assert caught.value.retry_safe
    assert len(set(cluster.aborted)) == 1
    cluster.publish_error = None
    assert write(rows(100), "orders", missing="null").rows == 100


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        pytest.param({"mode": "merge"}, ProgrammingError, "'merge'", id="mode"),
        pytest.param(
            {"mode": "ignore"}, ProgrammingError, "would leave out the whole DataFrame.*: use mode", id="ignore"
        ),
        pytest.param({"mode": "ErrorIfExists"}, ProgrammingError, "would refuse every table.*: use mode", id="error"),
        pytest.param({"backups": 1}, ProgrammingError, "give its primary_key as well", id="backups-of-no-new-table"),
        pytest.param({"token": "wrong"}, AuthenticationError, "token", id="token"),
        pytest.param(  # tried for 20 s; a read says the same after 10 s
            {"address": "secateur://127.0.0.1:1"},
            UnreachableError,
            "127.0.0.1:1",
            id="nobody-there",
            marks=pytest.mark.slow,
        ),
        pytest.param({"address": "127.0.0.1:1"}, InterfaceError, "secateur://host:port", id="no-address"),
    ],
)
@pytest.mark.sampled(one_in=3)
def test_bad_arguments(cluster: Any, rows: Rows, arguments: dict[str, Any], error: type[Error], words: str) -> None:
    with pytest.raises(error, match=words):
        write(rows(1), "orders", missing="null", **arguments)


def test_spark_connect_is_told_another_way() -> None:
    remote = SimpleNamespace(sparkSession=SimpleNamespace())
    with pytest.raises(NotSupportedError, match=r"Spark Connect.*df\.write\.format"):
        write(remote, "orders", address="secateur://127.0.0.1:1")


def test_an_interrupt_drops_the_load(cluster: Any, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyspark.sql.readwriter.DataFrameWriter.save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(rows(1), "orders", missing="null")
    assert len(cluster.aborted) == 1


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_save_modes_that_have_no_meaning_are_refused(cluster: Any, rows: Rows, mode: str) -> None:
    with pytest.raises(AnalysisException, match="SAVE_MODE"):
        rows(1).write.format("secateur").mode(mode).options(
            address=cluster.address, token="hush", table="orders"
        ).save()
    assert cluster.published == []


def test_every_type_arrives(
    spark: SparkSession, define: Callable[..., TableDef], loads_only: Callable[..., Any]
) -> None:
    columns = (
        "k BIGINT NOT NULL, b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INTEGER, u8 UBIGINT, h HUGEINT, f FLOAT, d DOUBLE,"
        " small DECIMAL(10,2), large DECIMAL(30,2), s VARCHAR, x BLOB, day DATE, t TIME, ts TIMESTAMP, tz TIMESTAMP"
        " WITH TIME ZONE, u UUID, l BIGINT[], st STRUCT(a INTEGER;t TIME[]), m MAP(VARCHAR;STRUCT(u UUID))"
    )
    cluster = loads_only(define("everything", columns, "k"))
    text = "6f1b4b1e-0e5f-4c7e-9a2b-1f2e3d4c5b6a"
    df = spark.sql(f"""
        SELECT 1L AS K, true AS b, -128Y AS i1, 7L AS i2, 2147483647L AS i4,
          CAST('18446744073709551615' AS DECIMAL(20,0)) AS u8, 5 AS h,
            0.5F AS f, 0.25D AS d, CAST(1.5 AS DECIMAL(10,1)) AS small, CAST(-1.50 AS DECIMAL(30,2)) AS large,
              'ünï' AS s, X'00FF' AS x,
            DATE '1969-12-31' AS day, TIME '12:34:56.789' AS t, TIMESTAMP_NTZ '2024-03-10 02:30:00' AS ts,
              TIMESTAMP '2024-03-10 03:30:00' AS tz,
            '{text.upper()}' AS u, ARRAY(1, 2) AS l,
            NAMED_STRUCT('T', ARRAY(TIME '12:34:56', null), 'a', 7L) AS st,
            MAP('x', NAMED_STRUCT('u', '{text}'), 'y', null) AS m
        UNION ALL SELECT 2L{", null" * 20}
        """)
    write(df, "everything", address=cluster.address)
    ((_, published),) = cluster.published
    first, second = sorted(published.to_pylist(), key=lambda row: row["k"])
    assert first == {
        "k": 1,
        "b": True,
        "i1": -128,
        "i2": 7,
        "i4": 2**31 - 1,
        "u8": 2**64 - 1,
        "h": Decimal(5),
        "f": 0.5,
        "d": 0.25,
        "small": Decimal("1.50"),
        "large": Decimal("-1.50"),
        "s": "ünï",
        "x": b"\x00\xff",
        "day": dt.date(1969, 12, 31),
        "t": dt.time(12, 34, 56, 789000),
        "ts": dt.datetime(2024, 3, 10, 2, 30),
        "tz": dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC),
        "u": uuid.UUID(text),
        "l": [1, 2],
        "st": {"a": 7, "t": [dt.time(12, 34, 56), None]},
        "m": [("x", {"u": uuid.UUID(text)}), ("y", None)],
    }
    assert {name for name, value in second.items() if value is not None} == {"k"}
