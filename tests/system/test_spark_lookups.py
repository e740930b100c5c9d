"""``secateur.spark.lookup`` finds what Spark's own join finds, without reading the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from secateur import errors
from secateur.cluster import Cluster

pytestmark = pytest.mark.spark

ORDERS = """
CREATE TABLE {0} (customer VARCHAR, id BIGINT, day DATE, price DECIMAL(10, 2), PRIMARY KEY (customer, id))
PARTITION BY HASH (customer) PARTITIONS 32;
INSERT INTO {0} SELECT 'C' || (i % 50), i, DATE '2024-02-27' + (i % 5)::INTEGER, i % 100 * 1.25 FROM range(5000) AS r(i)
"""
TYPES = """
CREATE TABLE {0} (id INTEGER, d DOUBLE, f FLOAT, n DECIMAL(12, 3), b BIGINT, day DATE, u UUID, PRIMARY KEY (n))
PARTITION BY HASH (n) PARTITIONS 7;
INSERT INTO {0} VALUES (1, 0.0, 0.1, 0.125, 3, '2024-01-02', '00112233-4455-6677-8899-aabbccddeeff'),
  (2, -0.0, 0.5, 1.000, 4, '2024-01-03', NULL), (3, 19.99, 2.5, 2.500, NULL, NULL, NULL),
  (4, 'nan', NULL, 3, 0, NULL, NULL)
"""


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    return spark_session({"spark.sql.session.timeZone": "UTC"})


def made(conn: secateur.Connection, table: str, script: str) -> str:
    for statement in script.format(table).split(";"):
        conn.execute(statement)
    return table


def lookup(df: DataFrame, table: str, cluster: Cluster, *args: Any, **options: Any) -> DataFrame:
    return secateur.spark.lookup(df, table, *args, address=cluster.address, **options)


def sorted_rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


def test_keys_are_looked_up(spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    orders = made(conn, table_name, ORDERS)
    keys = spark.range(0, 40, 1, 2).selectExpr(
        "if(id % 10 = 3, null, concat('C', cast(id % 60 as string))) AS Customer",
        "cast(id % 20 as int) AS id",
        "id AS n",
        "timestamp_micros(id) AS at",
        "array(id) AS list",
    )
    found = lookup(keys, orders, cluster, ["customer", "id"])
    assert found.columns == ["Customer", "id", "n", "at", "list", "day", "price"]
    table = secateur.spark.read(spark, orders, address=cluster.address).withColumnRenamed("id", "key")
    on = (keys.Customer == table.customer) & (keys.id == table.key)
    assert found.count() == 18
    assert sorted_rows(found) == sorted_rows(keys.join(table, on).select(keys["*"], "day", "price"))
    left = lookup(keys, orders, cluster, ["customer", "id"], "left", columns=["price"])
    assert sorted_rows(left) == sorted_rows(keys.join(table, on, "left").select(keys["*"], "price"))
    # A prefix of the key: each customer has many rows.
    customers = spark.sql("SELECT 'C7' AS customer UNION ALL SELECT 'C8' UNION ALL SELECT 'C7'")
    many = lookup(customers, orders, cluster, ["customer"], columns=["id"])
    assert many.groupBy("customer").count().orderBy("customer").collect() == [("C7", 200), ("C8", 100)]


def test_keys_of_other_types_match_what_is_equal(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    types = made(conn, table_name, TYPES)
    table = secateur.spark.read(spark, types, address=cluster.address)
    for column, keys, ids in [
        ("d", ["DOUBLE('-0.0')", "DOUBLE('NaN')", "DOUBLE(7)"], [1, 2, 4]),
        ("d", ["CAST(19.99 AS DECIMAL(38, 18))"], [3]),
        ("f", ["DOUBLE(0.1)", "DOUBLE(0.5)"], [2]),
        ("n", ["1", "7"], [2]),
        ("n", ["DOUBLE(0.1254)", "DOUBLE(2.5)"], [3]),
        ("n", ["CAST(1E37 AS DECIMAL(38, 0))", "CAST(1 AS DECIMAL(38, 0))"], [2]),
        ("b", ["DOUBLE(3.5)", "DOUBLE(3)"], [1]),
        ("day", ["TIMESTAMP_NTZ '2024-01-02 05:00:00'", "TIMESTAMP_NTZ '2024-01-03 00:00:00'"], [2]),
        ("u", ["'00112233-4455-6677-8899-AABBCCDDEEFF'", "'no uuid'"], [1]),
    ]:
        df = spark.sql(f"SELECT explode(array({', '.join(keys)})) AS {column}")
        found = lookup(df, types, cluster, [column], columns=["id"])
        assert sorted(row.id for row in found.collect()) == ids, (column, keys)
        if column != "u":  # a STRING for Spark
            joined = table.alias("t").join(df.alias("k"), on=table[column] == df[column]).select("id")
            assert sorted(row.id for row in joined.collect()) == ids, (column, keys)


def test_lookups_that_cannot_be(
    spark: SparkSession, cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    orders = made(conn, table_name, ORDERS)
    with pytest.raises(errors.ProgrammingError, match="how='outer'; expected 'inner' or 'left'"):
        lookup(spark.range(1), orders, cluster, ["id"], "outer")
    with pytest.raises(errors.ProgrammingError, match="on='id'; expected a list"):
        lookup(spark.range(1), orders, cluster, "id")
    with pytest.raises(errors.UnknownColumnError, match="the DataFrame has no column 'customer'"):
        lookup(spark.range(1), orders, cluster, ["customer"])
    with pytest.raises(errors.UnknownColumnError, match="has no column 'n'"):
        lookup(spark.range(1).selectExpr("id AS n"), orders, cluster, ["n"])
    with pytest.raises(errors.ProgrammingError, match=r"both the DataFrame and .* have a column 'price'"):
        lookup(spark.range(1).selectExpr("id", "1 AS price"), orders, cluster, ["id"])
    with pytest.raises(errors.DataError, match="keys of type string cannot be looked up in column 'id' of type BIGINT"):
        lookup(spark.sql("SELECT 'x' AS id"), orders, cluster, ["id"])
