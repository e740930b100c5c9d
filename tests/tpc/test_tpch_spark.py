"""The 22 queries of TPC-H by Spark, over secateur's tables: the rows that Spark finds in the same data as Parquet.

All of them at scale factor 0.1 are slow; at 0.01, a few.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import SparkSession

import secateur
from benchmarks.tpc.answers import difference
from benchmarks.tpc.data import QUERY_COUNTS, queries_of, tables_of
from benchmarks.tpc.tables import load_cluster
from benchmarks.tpch.tables import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # the first query of a scale waits for its tables

PARTITIONS = 6
SOON = (4, 16, 22)
"""An EXISTS, an anti-join with a distinct count, and two scans of one table."""


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    return spark_session({"spark.sql.shuffle.partitions": "2"})


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Makes the tables of a scale in a cluster, and a database of Spark for these and one for the files.

    That Spark writes what it reads, ``test_spark.py`` holds.
    """
    clusters: dict[str, Any] = {}

    with ExitStack() as running:

        def make(scale: str) -> None:
            if scale in clusters:
                return
            try:
                paths = tables_of("tpch", scale)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"the generators cannot be installed here: {error}")
            cluster = clusters[scale] = running.enter_context(
                secateur.start(members=3, runtime="embedded", token="", member_silence_s=10.0)
            )
            with cluster.connect() as connection:
                load_cluster(connection, TABLES, "tpch", scale, PARTITIONS)
            for kind in ("parquet", "secateur"):
                spark.sql(f"CREATE DATABASE {_database(kind, scale)}")
            for table in TABLES:
                spark.sql(
                    f"CREATE TABLE {_database('parquet', scale)}.{table.name} USING parquet"
                    f" LOCATION '{paths[table.name].as_uri()}'"
                )
                spark.sql(
                    f"CREATE TABLE {_database('secateur', scale)}.{table.name} USING secateur"
                    f" OPTIONS (address '{cluster.address}', `table` '{table.name}')"
                )

        yield make


def _database(kind: str, scale: str) -> str:
    return f"tpch_{kind}_{scale.replace('.', '_')}"


def _answer(spark: SparkSession, kind: str, scale: str, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    spark.sql(f"USE {_database(kind, scale)}")
    df = spark.sql(sql)
    return df.columns, [tuple(row) for row in df.collect()]


CASES = [
    *(pytest.param("0.01", number, id=f"sf0.01-q{number:02}") for number in SOON),
    *(
        pytest.param("0.1", number, id=f"sf0.1-q{number:02}", marks=pytest.mark.slow)
        for number in range(1, QUERY_COUNTS["tpch"] + 1)
    ),
]


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("scale", "number"), CASES)
def test_same_rows_as_in_parquet(spark: SparkSession, made: Callable[[str], None], scale: str, number: int) -> None:
    made(scale)
    sql = queries_of("tpch")[number]
    names, expected = _answer(spark, "parquet", scale, sql)
    assert expected
    got_names, got = _answer(spark, "secateur", scale, sql)
    assert got_names == names
    assert difference(sql, names, got, expected) is None
