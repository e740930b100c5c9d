"""Day-time intervals go from Spark into tables and back; what has months has no type there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import secateur
from secateur import errors
from secateur.cluster import Cluster

pytestmark = pytest.mark.spark

SPARK = "interval day to second"


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    return spark_session({"spark.sql.session.timeZone": "UTC"})


def write(df: DataFrame, table: str, cluster: Cluster, **options: Any) -> secateur.spark.LoadReport:
    return secateur.spark.write(df, table, address=cluster.address, token=cluster.token, **options)


def read(spark: SparkSession, cluster: Cluster, *what: str, **options: Any) -> DataFrame:
    return secateur.spark.read(spark, *what, address=cluster.address, token=cluster.token, **options)


def test_what_spark_has_comes_back(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    df = spark.sql("""
        SELECT * FROM VALUES
          (1, INTERVAL '1 02:03:04.567890' DAY TO SECOND), (2, INTERVAL '-0 00:00:00.000001' DAY TO SECOND), (3, NULL),
          (4, INTERVAL '106751991 04:00:54.775807' DAY TO SECOND), (5, INTERVAL '-106751991' DAY),
          (6, INTERVAL '49' HOUR), (7, INTERVAL '0' SECOND) AS t(id, took)
    """).selectExpr("id", "took", "array(took, NULL) AS all", "named_struct('a', took) AS s", "map('k', took) AS m")
    df = df.withColumn("took", df.took.cast(SPARK))
    write(df, table_name, cluster, primary_key=["id"])
    described = conn.execute(f"DESCRIBE {table_name}").fetchall()
    assert [row[1] for row in described[1:]] == [
        *("INTERVAL", "INTERVAL[]", "STRUCT(a INTERVAL)", "MAP(VARCHAR, INTERVAL)")
    ]
    long = conn.execute(f"SELECT id FROM {table_name} WHERE took > INTERVAL 26 HOURS ORDER BY id").fetchall()
    assert long == [(1,), (4,), (6,)]
    assert conn.execute(f"SELECT took FROM {table_name} WHERE id = 1").fetchall() == [
        (timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=567890),)
    ]
    back = read(spark, cluster, table_name)
    assert [kind for _, kind in back.dtypes[1:]] == [
        SPARK,
        f"array<{SPARK}>",
        f"struct<a:{SPARK}>",
        f"map<string,{SPARK}>",
    ]
    assert sorted(back.collect()) == sorted(df.collect())


def test_what_a_table_has_arrives_in_days_of_24_hours(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY, took INTERVAL)")
    conn.execute(
        f"INSERT INTO {table_name} VALUES (1, INTERVAL 2 DAY - INTERVAL 1 HOUR), (2, NULL), (3, INTERVAL 1 MONTH)"
    )
    short = read(spark, cluster, table_name, where="id < 3").orderBy("id")
    assert short.collect() == [Row(id=1, took=timedelta(hours=47)), Row(id=2, took=None)]
    keys = spark.sql("SELECT * FROM VALUES (INTERVAL '47' HOUR), (INTERVAL '1' HOUR) AS t(took)")
    found = secateur.spark.lookup(keys, table_name, on=["took"], address=cluster.address, token=cluster.token)
    assert found.collect() == [Row(took=timedelta(hours=47), id=1)]
    by_id = secateur.spark.lookup(
        spark.sql("SELECT 1 AS id"), table_name, on=["id"], address=cluster.address, token=cluster.token
    )
    assert by_id.collect() == [Row(id=1, took=timedelta(hours=47))]
    assert read(spark, cluster, table_name, where="id > 5").collect() == []


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("INTERVAL 1 MONTH", "it has months", id="months"),
        pytest.param("[INTERVAL 13 MONTHS]", "it has months", id="months in a list"),
        pytest.param("INTERVAL 1 MONTH - INTERVAL 30 DAY", "it has months", id="equal to nothing"),
        pytest.param("INTERVAL 106751992 DAY", "it is longer than 292,000 years", id="beyond 64 bits"),
        pytest.param("INTERVAL '-213503982 DAY'", "it is longer than 292,000 years", id="a multiple of 64 bits"),
    ],
)
def test_values_that_spark_does_not_have(spark: SparkSession, cluster: Cluster, value: str, message: str) -> None:
    df = read(spark, cluster, query=f"SELECT {value} AS i")
    with pytest.raises(PySparkException, match=f"column 'i' of type INTERVAL.*{message}.*casts it to VARCHAR"):
        df.collect()


def test_months_of_spark_are_refused_before_a_row_is_computed(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY, took INTERVAL)")
    df = spark.sql("SELECT 1 AS id, INTERVAL '1' MONTH AS took")
    with pytest.raises(errors.DataError, match="column took: a table column cannot hold interval month"):
        write(df, table_name, cluster)
    assert conn.execute(f"SELECT * FROM {table_name}").fetchall() == []
