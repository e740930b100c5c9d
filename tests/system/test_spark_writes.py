"""What real Spark writes into real members: every mode, tables that are created, nested types, and refusals."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType, TimestampType

import secateur
from secateur import errors
from secateur.cluster import Cluster
from secateur.connectors.spark.columns import partition_id

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    session = spark_session({"spark.sql.session.timeZone": "America/New_York", "spark.sql.timeType.enabled": "true"})
    secateur.spark.register(session)
    return session


def write(df: DataFrame, table: str, cluster: Cluster, **options: Any) -> secateur.spark.LoadReport:
    return secateur.spark.write(df, table, address=cluster.address, token=cluster.token, **options)


def rows_of(conn: secateur.Connection, sql: str) -> list[tuple[Any, ...]]:
    return conn.execute(sql).fetchall()


def test_a_table_is_created_with_the_columns_of_the_dataframe(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    df = spark.range(0, 100, 1, 3).selectExpr(
        "concat('C', id % 7) AS customer",
        "id",
        "CAST(id AS DECIMAL(38, 3)) AS price",
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS ts",
        "TIMESTAMP '2024-01-01 00:00:00' AS tz",
        "TIME '12:34:56.789' AS clock",
        "IF(id % 3 = 0, NULL, NAMED_STRUCT('Site', IF(id % 5 = 0, NULL, 'x'), 'racks', ARRAY(id, NULL))) AS place",
        "IF(id % 4 = 0, NULL, MAP('a', NAMED_STRUCT('b', CAST('z' AS BINARY)), 'c', NULL)) AS labels",
    )
    options = {"primary_key": ["customer", "id"], "partition_by": "HASH (customer) PARTITIONS 4", "backups": 1}
    report = write(df, table_name, cluster, **options)
    assert (report.rows, report.tasks) == (100, 3)
    described = [row[:3] for row in rows_of(conn, f"DESCRIBE {table_name}")]
    assert described == [
        ("customer", "VARCHAR", "NO"),
        ("id", "BIGINT", "NO"),
        ("price", "DECIMAL(38,3)", "YES"),
        ("ts", "TIMESTAMP", "YES"),
        ("tz", "TIMESTAMP WITH TIME ZONE", "YES"),
        ("clock", "TIME", "YES"),
        ("place", "STRUCT(Site VARCHAR, racks BIGINT[])", "YES"),
        ("labels", "MAP(VARCHAR, STRUCT(b BLOB))", "YES"),
    ]
    found = rows_of(
        conn,
        f"SELECT id, place, labels, price::TEXT, ts::TEXT, tz::TEXT, clock::TEXT FROM {table_name} ORDER BY id",
    )
    for number, place, labels, price, ts, tz, clock in found:
        site = None if number % 5 == 0 else "x"
        assert place == (None if number % 3 == 0 else {"Site": site, "racks": [number, None]})
        assert labels == (None if number % 4 == 0 else {"a": {"b": b"z"}, "c": None})
        assert (price, ts, clock) == (f"{number}.000", "2024-01-01 00:00:00", "12:34:56.789")
        assert tz == "2024-01-01 05:00:00+00"
    # the table is there by now
    assert write(df.where("id < 10"), table_name, cluster, mode="upsert", **options).rows == 10
    with pytest.raises(errors.ProgrammingError, match=r"with the primary key \(customer, id\) and not \(id\)"):
        write(df, table_name, cluster, primary_key=["id"])
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(100,)]


def test_progress_is_told_while_rows_arrive(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str, tmp_path: Path
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 4")
    reports: list[secateur.spark.ProgressReport] = []
    told = tmp_path / "told"

    def second_task_waits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            end_s = time.monotonic() + 120
            while batch.column(0)[0].as_py() >= 500 and not told.exists() and time.monotonic() < end_s:
                time.sleep(0.02)
            yield batch

    def report(progress: secateur.spark.ProgressReport) -> None:
        reports.append(progress)
        if progress.rows == 500:  # before, those of a part of the members
            told.touch()

    df = spark.range(0, 1000, 1, 2).mapInArrow(second_task_waits, "id BIGINT")
    assert write(df, table_name, cluster, progress=report).rows == 1000
    assert (table_name, 500, 4, False) in {(one.table, one.rows, one.partitions, one.is_publishing) for one in reports}
    assert reports[0].rows_per_s > 0


def test_the_options_of_the_format_create_a_table(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    options = {
        "address": cluster.address,
        "token": cluster.token or "",
        "table": table_name,
        "createTable": "true",
        "primaryKey": "day, id",
        "partitionBy": "RANGE (day) EVERY INTERVAL 1 DAY",
        "backups": "0",
        "changeFeed": "true",
    }
    df = spark.range(10).selectExpr("date_add(DATE '2024-01-01', CAST(id AS INT)) AS day", "id")
    df.write.format("secateur").mode("append").options(**options).save()
    assert len(conn.table(table_name).scheme.ranges()) == 10
    df.where("id < 4").write.format("secateur").mode("append").options(**options, operation="delete").save()
    assert rows_of(conn, f"SELECT id FROM {table_name} ORDER BY id") == [(number,) for number in range(4, 10)]
    changes = [row["_change_type"] for batch in conn.changes(table_name, since="earliest") for row in batch.to_pylist()]
    assert sorted(changes) == ["delete"] * 4 + ["insert"] * 10
    conn.create_table(f"{table_name}_plain", df.limit(0).toArrow(), primary_key=["id"])
    with pytest.raises(errors.ProgrammingError, match="without the change feed that is asked for"):
        write(df, f"{table_name}_plain", cluster, primary_key=["id"], change_feed=True)


def inserting(address: str, token: str | None, table: str) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    """Rows of which the first task inserts another row itself."""

    def insert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 0 in batch.column(0).to_pylist():
                with secateur.connect(address, token or "") as connection:
                    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES (-1, NULL)")  # tasks may run again
            yield batch

    return insert


@pytest.mark.parametrize("is_used", [False, True], ids=["unused", "used"])
@pytest.mark.parametrize("by_options", [False, True], ids=["write", "options"])
@pytest.mark.slow
def test_a_table_that_is_created_goes_again_with_a_load_that_fails(
    spark: SparkSession,
    cluster: Cluster,
    conn: secateur.Connection,
    table_name: str,
    by_options: bool,
    is_used: bool,
) -> None:
    df = spark.range(0, 100, 1, 3).selectExpr("IF(id = 7, NULL, id) AS id", "id AS v")
    if is_used:
        df = df.mapInArrow(inserting(cluster.address, cluster.token, table_name), df.schema)
    if by_options:
        options = {"address": cluster.address, "token": cluster.token or "", "table": table_name}
        writer = df.write.format("secateur").mode("append").options(**options, createTable="true", primaryKey="id")
        with pytest.raises(Exception, match="NULL"):
            writer.save()
    else:
        with pytest.raises(errors.NullKeyError):
            write(df, table_name, cluster, primary_key=["id"])
    there = rows_of(conn, f"SELECT count(*) FROM secateur.tables WHERE table_name = '{table_name}'")
    assert there == [(int(is_used),)]
    if is_used:
        assert rows_of(conn, f"FROM {table_name}") == [(-1, None)]


def test_a_table_is_not_left_behind_by_options_that_do_not_fit_it(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    df = spark.range(10)
    with pytest.raises(errors.ProgrammingError, match="has no range partitions"):
        write(df, table_name, cluster, mode="overwrite", overwrite_scope="partitions", primary_key=["id"])
    options = {"address": cluster.address, "token": cluster.token or "", "table": table_name}
    writer = df.write.format("secateur").mode("overwrite").options(**options, createTable="true", primaryKey="id")
    with pytest.raises(Exception, match="has no range partitions"):
        writer.option("overwriteScope", "partitions").save()
    with pytest.raises(errors.UnknownTableError):
        conn.table(table_name)


def test_keys_are_deleted(spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (b VARCHAR, a BIGINT, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (b)"
        " PARTITIONS 5"
    )
    df = spark.range(0, 200, 1, 3).selectExpr("CAST(id % 10 AS STRING) AS b", "id AS a", "id AS v")
    write(df, table_name, cluster)
    gone = spark.range(150, 400, 1, 2).selectExpr("id AS A", "CAST(id % 10 AS STRING) AS b")
    deleted = write(gone, table_name, cluster, mode="delete")
    assert (deleted.partitions, deleted.rows) == (5, 50)  # of 250 keys
    assert rows_of(conn, f"SELECT count(*), max(a) FROM {table_name}") == [(150, 149)]
    # with its other columns, others that the table lacks, and in two tasks
    others = df.where("a < 100").selectExpr("*", "'late' AS reason", "INTERVAL '1' DAY AS age", "struct(a) AS `a b`")
    assert write(others, table_name, cluster, mode="delete", tasks=2).rows == 100
    assert write(df.where("a < 100"), table_name, cluster, mode="delete").rows == 0
    assert rows_of(conn, f"SELECT count(*), min(a) FROM {table_name}") == [(50, 100)]
    with pytest.raises(errors.NullKeyError, match="the DataFrame lacks b, which must not be NULL; it has a, v"):
        write(df.select("a", "v"), table_name, cluster, mode="delete")
    with pytest.raises(errors.NullKeyError, match="column b"):
        write(df.selectExpr("a", "NULLIF(b, '3') AS b"), table_name, cluster, mode="delete")
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(50,)]


def test_an_upsert_keeps_what_the_dataframe_lacks(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT, name VARCHAR, price DOUBLE, PRIMARY KEY (id))")
    write(spark.range(0, 100, 1, 2).selectExpr("id", "'old' AS name", "1.0D AS price"), table_name, cluster)
    changed = spark.range(50, 150, 1, 3).selectExpr("id", "2.0D AS Price")
    assert write(changed, table_name, cluster, mode="upsert", tasks=2).rows == 100
    options = {"address": cluster.address, "token": cluster.token, "table": table_name, "operation": "upsert"}
    spark.range(5).selectExpr("id", "'new' AS name").write.format("secateur").mode("append").options(**options).save()
    assert rows_of(conn, f"SELECT name, price, count(*) FROM {table_name} GROUP BY ALL ORDER BY ALL") == [
        ("new", 1.0, 5),
        ("old", 1.0, 45),
        ("old", 2.0, 50),
        (None, 2.0, 50),
    ]
    for mode in ("append", "overwrite"):
        with pytest.raises(
            errors.DataError, match="the DataFrame lacks name: give the columns, or pass missing='null'"
        ):
            write(changed, table_name, cluster, mode=mode)
    write(changed.where("id = 50"), table_name, cluster, mode="upsert", missing="null")
    assert rows_of(conn, f"SELECT * FROM {table_name} WHERE id = 50") == [(50, None, 2.0)]
    text_key = spark.range(5).selectExpr("CAST(id AS STRING) AS id", "'x' AS name", "CAST(id AS STRING) AS price")
    with pytest.raises(errors.DataError, match="column id: it is a part of the partitioning key"):
        write(text_key, table_name, cluster, mode="upsert")
    assert (
        write(text_key.selectExpr("CAST(id AS BIGINT) AS id", "name", "price"), table_name, cluster, mode="upsert").rows
        == 5
    )


def test_what_the_dataframe_lacks_is_the_default(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL DEFAULT 'new', u UUID DEFAULT uuid(),"
        " made TIMESTAMPTZ DEFAULT now(), price DOUBLE CHECK (price < 50), note VARCHAR)"
    )
    df = spark.range(0, 20, 1, 2).selectExpr("id", "CAST(id AS DOUBLE) AS price")
    with pytest.raises(errors.DataError, match="the DataFrame lacks note: give"):
        write(df, table_name, cluster)
    assert write(df.selectExpr("*", "'x' AS note"), table_name, cluster).rows == 20
    before = rows_of(conn, f"SELECT id, u, made FROM {table_name} ORDER BY id")
    assert write(spark.range(10, 30).selectExpr("id", "1.0D AS price"), table_name, cluster, mode="upsert").rows == 20
    assert rows_of(conn, f"SELECT id, u, made FROM {table_name} WHERE id < 20 ORDER BY id") == before
    counted = f"SELECT name, note, count(*), count(DISTINCT u), count(made) FROM {table_name} GROUP BY ALL ORDER BY 2"
    assert rows_of(conn, counted) == [
        ("new", "x", 20, 20, 20),
        ("new", None, 10, 10, 10),
    ]
    with pytest.raises((errors.CheckFailedError, errors.LoadFailedError), match="fails CHECK"):
        write(spark.range(30, 60).selectExpr("id", "CAST(id AS DOUBLE) AS price", "'y' AS note"), table_name, cluster)
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(30,)]


def test_a_created_table_has_the_defaults_and_comments_of_spark(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    schema = (
        StructType()
        .add("id", LongType())
        .add("v", IntegerType(), True, {"CURRENT_DEFAULT": "5", "comment": "it's v"})
        .add("made", TimestampType(), True, {"CURRENT_DEFAULT": "current_timestamp()"})
    )
    write(spark.createDataFrame([], schema), table_name, cluster, primary_key=["id"])
    conn.execute(f"INSERT INTO {table_name} (id) VALUES (1)")
    assert rows_of(conn, f"SELECT id, v, made IS NULL FROM {table_name}") == [(1, 5, False)]
    told = f"SELECT column_default, comment FROM secateur.columns WHERE table_name = '{table_name}' ORDER BY position"
    assert rows_of(conn, told) == [(None, None), ("5", "it's v"), ("now()", None)]


def test_only_the_range_partitions_of_the_rows_are_overwritten(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (day DATE, id BIGINT, v BIGINT, PRIMARY KEY (day, id)) PARTITION BY HASH (id)"
        " PARTITIONS 3, RANGE (day) EVERY INTERVAL 1 DAY"
    )
    df = spark.range(0, 300, 1, 3).selectExpr(
        "date_add(DATE '2024-01-01', CAST(id % 3 AS INT)) AS day", "id", "id AS v"
    )
    write(df, table_name, cluster)
    one = spark.sql("SELECT DATE '2024-01-02' AS day, 1000L AS id, 1L AS v UNION ALL SELECT DATE '2024-02-01', 1L, 2L")
    assert write(one, table_name, cluster, mode="overwrite", overwrite_scope="partitions").rows == 2
    assert rows_of(conn, f"SELECT day, count(*), sum(v) FROM {table_name} GROUP BY day ORDER BY day") == [
        (date(2024, 1, 1), 100, sum(range(0, 300, 3))),
        (date(2024, 1, 2), 1, 1),
        (date(2024, 1, 3), 100, sum(range(2, 300, 3))),
        (date(2024, 2, 1), 1, 2),
    ]
    nothing = write(one.where("id < 0"), table_name, cluster, mode="overwrite", overwrite_scope="partitions")
    assert (nothing.rows, nothing.partitions) == (0, 0)
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(202,)]
    with pytest.raises(errors.DuplicateKeyError):
        write(one.unionAll(one), table_name, cluster, mode="overwrite", overwrite_scope="partitions")
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(202,)]
    # the same without Spark
    conn.table(table_name).load({"day": [date(2024, 1, 3)], "id": [5], "v": [5]}, mode="overwrite_ranges")
    assert rows_of(conn, f"SELECT count(*), sum(v) FROM {table_name} WHERE day >= DATE '2024-01-03'") == [(2, 7)]
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(103,)]


def test_a_table_without_ranges_has_none_to_overwrite(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3")
    with pytest.raises(errors.ProgrammingError, match="has no range partitions, of which some could be overwritten"):
        write(spark.range(3), table_name, cluster, mode="overwrite", overwrite_scope="partitions")
    with pytest.raises(errors.ProgrammingError, match="has no range partitions, of which some could be overwritten"):
        conn.table(table_name).load({"id": [1]}, mode="overwrite_ranges")


def test_errors_name_the_column_before_the_first_row(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, s STRUCT(a INTEGER, b DATE[])) PARTITION BY HASH (id)"
        " PARTITIONS 3"
    )
    never = "IF(id = 0, raise_error('a row was computed'), id) AS id"
    df = spark.range(10)
    for columns, error, words in [
        (["NAMED_STRUCT('a', 1) AS s"], errors.NullKeyError, "lacks id"),
        ([never, "id AS x"], errors.UnknownColumnError, "no column 'x'"),
        (
            [never, "NAMED_STRUCT('b', ARRAY(1)) AS s"],
            errors.DataError,
            r"column s\.b\[\]: the data are int32, .* DATE",
        ),
        ([never, "NAMED_STRUCT('z', 1) AS s"], errors.DataError, "column s: the data are struct<z: int32>"),
        (["NULL AS id"], errors.NullKeyError, "column id is NOT NULL, and the DataFrame has only NULLs there"),
    ]:
        with pytest.raises(error, match=words) as caught:
            write(df.selectExpr(*columns), table_name, cluster)
        assert caught.value.__cause__ is None
        assert "\n" not in str(caught.value)
    with pytest.raises(errors.DataError, match=r"column s, row \d+: .*3000000000.* does not fit STRUCT"):
        write(df.selectExpr("id", "NAMED_STRUCT('a', 3000000000L) AS s"), table_name, cluster)
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(0,)]


@pytest.mark.parametrize("mode", ["ignore", "errorifexists"])
def test_modes_that_spark_does_not_pass_on_are_refused(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str, mode: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3")
    with pytest.raises(errors.ProgrammingError, match="use mode 'append', 'overwrite', 'upsert' or 'delete'"):
        write(spark.range(3), table_name, cluster, mode=mode)
    options = {"address": cluster.address, "token": cluster.token or "", "table": table_name}
    with pytest.raises(PySparkException, match="SAVE_MODE"):
        spark.range(3).write.format("secateur").mode(mode).options(**options).save()
    assert rows_of(conn, f"SELECT count(*) FROM {table_name}") == [(0,)]


TYPES = {
    "BOOLEAN": "r % 2 = 0",
    "TINYINT": "CAST(r % 100 AS TINYINT)",
    "SMALLINT": "CAST(r % 30000 AS SMALLINT)",
    "INTEGER": "CAST(r AS INT)",
    "BIGINT": "r * 4611686018",
    "UTINYINT": "abs(r % 250)",
    "UBIGINT": "CAST(CAST(abs(r) AS DECIMAL(20,0)) * 8589934590 AS DECIMAL(20,0))",
    "DECIMAL(9,2)": "CAST(r / 1000 AS DECIMAL(9,2))",
    "DECIMAL(18,0)": "CAST(r * 4611686 AS DECIMAL(18,0))",
    "DECIMAL(38,4)": "CAST(r AS DECIMAL(38,4)) * 100000000000000000000",
    "VARCHAR": "concat('é', r, repeat('x', CAST(abs(r) % 40 AS INT)))",
    "BLOB": "CAST(concat('b', r) AS BINARY)",
    "DATE": "date_add(DATE '1970-01-01', CAST(r % 500000 AS INT))",
    "TIMESTAMP": "CAST(timestamp_micros(r * 1000001) AS TIMESTAMP_NTZ)",
    "TIMESTAMP WITH TIME ZONE": "timestamp_micros(r * 999999)",
    "UUID": "concat(substr(md5(CAST(r AS STRING)), 1, 8), '-1111-2222-3333-', substr(md5(CAST(r AS STRING)), 1, 12))",
}


@pytest.mark.parametrize("half", [0, 1])
def test_spark_and_secateur_agree_on_the_partition_of_every_row(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str, half: int
) -> None:
    """Spark computes the partitions by which rows are sent; members refuse rows of other partitions."""
    rng = random.Random(int(os.environ.get("SECATEUR_SEED", "20261123")))
    kinds = rng.sample(list(TYPES), len(TYPES))
    ranged = rng.choice([kind for kind in kinds if "INT" in kind])
    columns = [(f"c{index} d", kind) for index, kind in enumerate([*kinds[half::2], ranged])]
    quoted = [f'"{column}"' for column, _ in columns]
    declared = ", ".join(f'"{column}" {kind}' for column, kind in columns)
    hashed = [f"HASH ({', '.join(pair)}) PARTITIONS 3 SEED {seed}" for seed, pair in enumerate(batched(quoted[:-1], 2))]
    conn.execute(
        f"CREATE TABLE {table_name} ({declared}, id BIGINT, note STRUCT(a MAP(VARCHAR, DATE)),"
        f" PRIMARY KEY ({', '.join(quoted)}, id))"
        f" PARTITION BY {', '.join(hashed)}, RANGE ({quoted[-1]}) SPLIT AT (0, 40)"
    )
    df = spark.range(0, 400, 1, 2).selectExpr("id", "xxhash64(id) % 2000000000 AS r")
    df = df.selectExpr(
        *(f"{TYPES[kind]} AS `{column}`" for column, kind in columns), "id", "NAMED_STRUCT('a', MAP('x', NULL)) AS note"
    )
    assert write(df, table_name, cluster, tasks=2).rows == 400
    scheme = conn.table(table_name).scheme
    ids = dict(map(tuple, df.select("id", partition_id(scheme).alias("p")).collect()))
    stored = conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetch_arrow_table()
    assert ids == dict(zip(stored["id"].to_pylist(), scheme.partitions_of(stored).tolist(), strict=True))
    assert len(set(ids.values())) > 80
    for row in stored.slice(0, 20).to_pylist():
        assert conn.table(table_name).partition_of({column: row[column] for column, _ in columns}) == ids[row["id"]]


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]


@pytest.mark.parametrize("partition_by", [None, "HASH (kind) PARTITIONS 5"])
def test_a_table_without_a_key_keeps_each_row_of_the_dataframe(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str, partition_by: str | None
) -> None:
    df = spark.range(0, 300, 1, 4).selectExpr("concat('k', id % 3) AS kind", "IF(id % 2 = 0, NULL, id % 5) AS v")
    options = {"address": cluster.address, "token": cluster.token, "table": table_name}
    created = {"createTable": "true"} if partition_by is None else {"createTable": "true", "partitionBy": partition_by}
    df.write.mode("append").options(**options, **created).format("secateur").save()
    report = write(df, table_name, cluster, tasks=2)
    assert (report.rows, report.tasks) == (300, 2)
    assert [row[:3] for row in rows_of(conn, f"DESCRIBE {table_name}")] == [
        ("kind", "VARCHAR", "YES" if partition_by is None else "NO"),
        ("v", "BIGINT", "YES"),
    ]
    read = spark.read.format("secateur").options(**options).load()
    assert read.columns == ["kind", "v"]
    assert sorted(map(tuple, read.groupBy("kind", "v").count().collect()), key=repr) == sorted(
        ((kind, v, 2 * count) for kind, v, count in map(tuple, df.groupBy("kind", "v").count().collect())), key=repr
    )
    assert read.filter("kind = 'k1'").count() == 200
    assert write(df, table_name, cluster, mode="overwrite", primary_key=[]).rows == 300
    for mode in ("upsert", "delete"):
        with pytest.raises(errors.ProgrammingError, match=f"no primary key, so {mode} cannot find its rows"):
            write(df, table_name, cluster, mode=mode)
    hidden = df.selectExpr("kind", "v", "uuid() AS _SECATEUR_ROW_ID")
    with pytest.raises(errors.UnknownColumnError, match="no column '_secateur_row_id'"):
        write(hidden, table_name, cluster)
    assert rows_of(conn, f"SELECT count(*), count(v) FROM {table_name}") == [(300, 150)]
