"""Real Spark into real members, embedded and on Ray; every answer is compared with DuckDB over what Spark itself
computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from secateur import errors
from secateur.cluster import Cluster

pytestmark = pytest.mark.spark

ORDERS = """
CREATE TABLE {} (customer VARCHAR, id BIGINT, day DATE NOT NULL, price DECIMAL(10, 2), made TIMESTAMP,
  PRIMARY KEY (customer, id))
PARTITION BY HASH (customer) PARTITIONS 32 BACKUPS 1
"""
QUESTION = "SELECT customer, id, day, price, made FROM {} ORDER BY customer, id"
PER_CUSTOMER = "SELECT day, count(*), sum(price) FROM {} WHERE customer = ? GROUP BY day ORDER BY day"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", tmp_path_factory.mktemp("warehouse").as_uri())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=pytest.mark.ray)])
def started(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime=request.param, token="hush") as running:
        yield running


@pytest.fixture
def connection(started: Cluster) -> Iterator[secateur.Connection]:
    with started.connect() as connection:
        yield connection


@pytest.fixture
def orders(connection: secateur.Connection, table_name: str) -> str:
    """An empty table."""
    connection.execute(ORDERS.format(table_name))
    return table_name


def some_orders(spark: SparkSession, start: int, stop: int, *, price: str = "1.25") -> DataFrame:
    return spark.range(start, stop, 1, 3).selectExpr(
        "concat('C', cast(id % 50 as string)) AS customer",
        "id",
        "date_add(DATE '2024-02-27', cast(id % 5 as int)) AS day",
        f"cast(id % 100 * {price} as decimal(10, 2)) AS price",
        "if(id % 7 = 0, null, timestamp_micros(1700000000000000 + id * 1000001)) AS made",
    )


def write(df: DataFrame, table: str, cluster: Cluster, **options: Any) -> secateur.spark.LoadReport:
    return secateur.spark.write(df, table, address=cluster.address, token="hush", **options)


def duckdb_rows(expected: DataFrame) -> list[tuple[Any, ...]]:
    with duckdb.connect() as oracle:
        oracle.register(
            "orders",
            expected.selectExpr("customer", "id", "day", "price", "cast(made as timestamp_ntz) AS made").toArrow(),
        )
        return oracle.execute(QUESTION.format("orders")).fetchall()


@pytest.mark.parametrize("tasks", [None, 2], ids=["from-the-tasks-as-they-are", "gathered"])
def test_spark_loads_and_pruned_statements_read_back(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str, tasks: int | None
) -> None:
    df = some_orders(spark, 0, 20_000)
    report = write(df, orders, started, tasks=tasks)
    assert (report.rows, report.tasks) == (20_000, tasks or 3)
    assert 0 < report.partitions <= 32
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(df)
    with duckdb.connect() as oracle:
        oracle.register("orders", df.toArrow())
        for customer in ("C0", "C17", "C49", "nobody"):
            cursor = connection.execute(PER_CUSTOMER.format(orders), [customer])
            assert cursor.fetchall() == oracle.execute(PER_CUSTOMER.format("orders"), [customer]).fetchall()
            assert cursor.stats is not None
            assert (cursor.stats.members_touched, cursor.stats.partitions_read) == (1, 1)
    assert sum(member.partitions_backup for member in started.members()) > 0


def test_modes(spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str) -> None:
    write(some_orders(spark, 0, 300), orders, started)
    write(some_orders(spark, 300, 400), orders, started, mode="append")
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(some_orders(spark, 0, 400))
    write(some_orders(spark, 200, 500, price="2.50"), orders, started, mode="upsert")
    expected = some_orders(spark, 0, 200).unionAll(some_orders(spark, 200, 500, price="2.50"))
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(expected)
    write(some_orders(spark, 7, 9), orders, started, mode="overwrite")
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(some_orders(spark, 7, 9))
    assert write(some_orders(spark, 0, 0), orders, started, mode="overwrite").rows == 0
    assert connection.execute(QUESTION.format(orders)).fetchall() == []


def test_of_several_rows_with_one_key_the_last_of_the_dataframe_stays(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str
) -> None:
    twice = some_orders(spark, 0, 1000).unionAll(some_orders(spark, 0, 1000, price="2.50"))
    assert twice.rdd.getNumPartitions() == 6
    write(twice, orders, started, mode="upsert")
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(
        some_orders(spark, 0, 1000, price="2.50")
    )


def test_a_failed_load_leaves_the_table_as_it_was(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str
) -> None:
    write(some_orders(spark, 0, 1000), orders, started)
    before = connection.execute(QUESTION.format(orders)).fetchall()
    with pytest.raises(errors.DuplicateKeyError, match=rf"{orders}: key \(customer='C49', id=999\)") as duplicate:
        write(some_orders(spark, 999, 2000), orders, started)
    assert duplicate.value.__cause__ is not None
    with pytest.raises(errors.DuplicateKeyError):
        write(some_orders(spark, 1000, 1100).unionAll(some_orders(spark, 1050, 1060)), orders, started)
    with pytest.raises(errors.NullKeyError, match=r"customer"):
        write(
            some_orders(spark, 1000, 2000).selectExpr(
                "nullif(customer, 'C7') AS customer", "id", "day", "price", "made"
            ),
            orders,
            started,
            mode="overwrite",
        )
    with pytest.raises(errors.LoadFailedError, match="boom"):
        write(
            some_orders(spark, 1000, 60_000).selectExpr(
                "customer", "if(id = 59999, raise_error('boom'), id) AS id", "day", "price", "made"
            ),
            orders,
            started,
        )
    assert connection.execute(QUESTION.format(orders)).fetchall() == before
    assert write(some_orders(spark, 1000, 2000), orders, started).rows == 1000


def test_a_row_that_no_range_covers(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, table_name: str
) -> None:
    connection.execute(
        f"CREATE TABLE {table_name} (k VARCHAR, n BIGINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 4, RANGE"
        " (n) (PARTITION low 0 <= VALUES < 100, PARTITION high 200 <= VALUES < 300)"
    )
    covered = spark.range(100).selectExpr("concat('k', id) AS k", "if(id < 50, id, id + 200) AS n")
    assert write(covered, table_name, started).rows == 100
    with pytest.raises(errors.NoRangeError, match="150"):
        write(spark.sql("SELECT 'k' AS k, 150L AS n"), table_name, started)
    assert connection.execute(f"SELECT count(*), min(n), max(n) FROM {table_name}").fetchall() == [(100, 0, 299)]


@pytest.mark.parametrize("tasks", [None, 2], ids=["from-the-tasks-as-they-are", "gathered"])
def test_ranges_are_made_for_the_rows_that_come(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, table_name: str, tasks: int | None
) -> None:
    connection.execute(
        f"CREATE TABLE {table_name} (day DATE, id BIGINT, PRIMARY KEY (day, id)) PARTITION BY HASH (id) PARTITIONS 2,"
        " RANGE (day) EVERY INTERVAL 1 DAY"
    )
    df = spark.range(0, 300, 1, 3).selectExpr("date_add(DATE '2024-02-27', cast(id % 10 as int)) AS day", "id")
    assert write(df, table_name, started, tasks=tasks).rows == 300
    assert len(connection.table(table_name).scheme.ranges()) == 10
    one = connection.execute(f"SELECT count(*), min(id) FROM {table_name} WHERE day = DATE '2024-03-01'")
    assert one.fetchall() == [(30, 3)]
    assert one.stats is not None
    assert one.stats.partitions_read == 2


@pytest.mark.parametrize("tasks", [None, 2], ids=["from-the-tasks-as-they-are", "gathered"])
def test_a_replicated_table(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, table_name: str, tasks: int | None
) -> None:
    connection.execute(f"CREATE TABLE {table_name} (code VARCHAR, name VARCHAR, PRIMARY KEY (code)) REPLICATED")
    df = spark.range(0, 200, 1, 4).selectExpr("cast(id as string) AS code", "concat('n', id) AS name")
    assert write(df, table_name, started, tasks=tasks).rows == 200
    assert connection.execute(f"SELECT count(*), count(DISTINCT code), max(name) FROM {table_name}").fetchall() == [
        (200, 200, "n99")
    ]


def test_the_token_is_asked_for(spark: SparkSession, started: Cluster, orders: str) -> None:
    with pytest.raises(errors.AuthenticationError):
        secateur.spark.write(some_orders(spark, 0, 1), orders, address=started.address)


def test_a_secret_made_at_random_goes_along_and_is_not_shown(spark: SparkSession) -> None:
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        assert cluster.token is not None
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        assert secateur.spark.write(spark.range(100), "t", address=cluster.address).rows == 100
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(100,)]
        executions = spark._jsparkSession.sharedState().statusStore().executionsList()
        shown = [executions.apply(index) for index in range(executions.size())]
        texts = [
            text
            for execution in shown
            for text in (
                execution.description(),
                execution.physicalPlanDescription(),
                execution.modifiedConfigs().toString(),
            )
        ]
        assert texts
        assert not any(cluster.token in text for text in texts)
