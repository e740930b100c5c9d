"""Real Spark into real members, embedded and on Ray; every answer is compared with DuckDB over what Spark itself
computed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter

import secateur
from secateur import errors
from secateur.cluster import Cluster
from secateur.connectors.spark.environment import activate, is_known_format

pytestmark = pytest.mark.spark

ORDERS = """
CREATE TABLE {} (customer VARCHAR, id BIGINT, day DATE NOT NULL, price DECIMAL(10, 2), made TIMESTAMP,
  PRIMARY KEY (customer, id))
PARTITION BY HASH (customer) PARTITIONS 32 BACKUPS 1
"""
QUESTION = "SELECT customer, id, day, price, made FROM {} ORDER BY customer, id"
PER_CUSTOMER = "SELECT day, count(*), sum(price) FROM {} WHERE customer = ? GROUP BY day ORDER BY day"


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., SparkSession]) -> SparkSession:
    return spark_session({"spark.sql.session.timeZone": "UTC"})


@pytest.fixture(autouse=True)
def active(spark: SparkSession) -> None:
    """Spark looks formats up in the active session of a thread of its own; that of another test may have had none."""
    activate(spark)


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def started(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime=request.param, token="hush", member_silence_s=10.0) as running:
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


def test_spark_finds_the_format_without_a_line_of_set_up(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str
) -> None:
    """It looks for modules named ``pyspark_*`` with a ``DefaultSource``."""
    assert is_known_format(spark.newSession(), "secateur")
    options = {"address": started.address, "token": "hush", "table": orders}
    some_orders(spark, 0, 100).write.format("secateur").mode("append").options(**options).save()
    assert connection.execute(QUESTION.format(orders)).fetchall() == duckdb_rows(some_orders(spark, 0, 100))


def test_importing_what_spark_imports_everywhere_loads_nothing_of_ours() -> None:
    script = "import sys, pyspark_secateur; print([name for name in sys.modules if name.split('.')[0] == 'secateur'])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"


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
    assert duplicate.value.__cause__ is None  # Spark's says no more, in many frames
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


# -- reads


@pytest.fixture
def filled(spark: SparkSession, started: Cluster, connection: secateur.Connection, orders: str) -> str:
    """A table of 5,000 orders of 50 customers."""
    connection.table(orders).load(some_orders(spark, 0, 5000).toArrow())
    return orders


def read(spark: SparkSession, cluster: Cluster, *args: Any, **options: Any) -> DataFrame:
    return secateur.spark.read(spark, *args, address=cluster.address, token="hush", **options)


def sorted_rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


def test_a_table_is_read_in_tasks_of_about_equal_bytes(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, filled: str
) -> None:
    whole = read(spark, started, filled, task_bytes=20_000)
    assert whole.rdd.getNumPartitions() >= 6
    expected = connection.execute(QUESTION.format(filled)).fetchall()
    assert sorted_rows(whole) == sorted(expected, key=repr)
    # The DataFrame keeps the rows of its moment; a new one has those of its own.
    connection.execute(f"UPDATE {filled} SET price = 0 WHERE customer = 'C7'")
    connection.execute(f"DELETE FROM {filled} WHERE customer = 'C8'")
    assert sorted_rows(whole) == sorted(expected, key=repr)
    assert whole.where("customer = 'C8'").count() == 100
    assert read(spark, started, filled, ["id"], task_bytes=20_000).count() == 4900


def test_only_owners_of_required_partitions_are_asked(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, filled: str
) -> None:
    def frames() -> dict[str, int]:
        return dict(connection.execute("SELECT id, frames_received FROM secateur.members").fetchall())

    owner = connection.table(filled).owner_of(connection.table(filled).partition_of({"customer": "C17"}))
    before = frames()
    one = read(spark, started, filled, ["id", "price"], "customer = ? AND id < ?", ["C17", 1000])
    assert one.rdd.getNumPartitions() == 1
    assert (
        sorted_rows(one)
        == connection.execute(
            f"SELECT id, price FROM {filled} WHERE customer = 'C17' AND id < 1000 ORDER BY CAST(id AS VARCHAR)"
        ).fetchall()
    )
    after = frames()
    assert {member for member in after if after[member] > before[member]} == {owner}


def test_conditions_that_nothing_satisfies(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, filled: str
) -> None:
    nothing = read(spark, started, filled, where="customer = 'C1' AND customer = 'C2'")
    assert (nothing.count(), nothing.columns) == (0, ["customer", "id", "day", "price", "made"])
    counted = read(spark, started, query=f"SELECT count(*) AS n FROM {filled} WHERE customer = 'a' AND customer = 'b'")
    assert sorted_rows(counted) == [(0,)]


def test_any_query_is_read(spark: SparkSession, started: Cluster, connection: secateur.Connection, filled: str) -> None:
    query = f"SELECT customer, count(*) AS n, sum(price) AS price FROM {filled} WHERE id >= $least GROUP BY customer"
    df = read(spark, started, query=query, params={"least": 100})
    assert df.rdd.getNumPartitions() == 1
    assert sorted_rows(df) == sorted(connection.execute(query, {"least": 100}).fetchall(), key=repr)


def test_tables_of_spark_sql(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 500, 7).write.parquet(str(tmp_path / "some"))
    spark.read.parquet(str(tmp_path / "some")).createOrReplaceTempView("some")
    with secateur.start(members=2, runtime="embedded", token="") as cluster, cluster.connect() as conn:
        for name in ("here", "there"):
            conn.execute(f"CREATE TABLE {name} (customer VARCHAR, id BIGINT, PRIMARY KEY (customer, id))")
            spark.sql(f"CREATE TABLE {name} USING secateur OPTIONS (address '{cluster.address}', `table` '{name}')")
        try:
            with pytest.raises(PySparkException, match="INSERT INTO a table of Spark's catalog has no options"):
                spark.sql("INSERT INTO here SELECT 'C' || (id % 50), id FROM range(500)")
            # ... so the statement says them.
            said = f"WITH ('address' = '{cluster.address}', 'table' = 'here')"
            spark.sql(f"INSERT INTO here {said} VALUES ('D', 1), ('D', 2)")
            spark.sql(f"INSERT OVERWRITE here {said} SELECT customer, id + 1 FROM here WHERE id > 1")
            assert conn.execute("SELECT * FROM here").fetchall() == [("D", 3)]
            conn.execute("DELETE FROM here")
            for name in ("here", "there"):
                options = f"OPTIONS (address '{cluster.address}', `table` '{name}')"
                spark.sql(f"CREATE TEMPORARY VIEW into_{name} USING secateur {options}")
            spark.sql("INSERT INTO into_here SELECT 'C' || (id % 50), id FROM range(500)")
            assert conn.execute("SELECT count(*), sum(id) FROM here").fetchall() == [(500, 124750)]
            joined = spark.sql("SELECT customer, count(*) FROM here JOIN some USING (id) GROUP BY customer")
            expected = conn.execute("SELECT customer, count(*) FROM here WHERE id % 7 = 0 GROUP BY customer").fetchall()
            assert sorted_rows(joined) == sorted(expected, key=repr)
            # Rows of one table go into the other, though Spark gives the writer columns of the one.
            spark.sql("INSERT INTO into_there SELECT * FROM here WHERE id < 10")
            spark.sql("INSERT INTO into_there (id, customer) SELECT id, customer FROM here WHERE id >= 490")
            assert conn.execute("SELECT count(*), sum(id) FROM there").fetchall() == [(20, 4990)]
            assert conn.execute("SELECT count(*) FROM here").fetchall() == [(500,)]
            # One statement filters one table in two ways; each side has its own rows.
            both = spark.sql(
                "SELECT 'a', count(*) FROM here WHERE id < 10 UNION ALL SELECT 'b', count(*) FROM here WHERE id >= 10"
            )
            assert sorted_rows(both) == [("a", 10), ("b", 490)]
            with pytest.raises(PySparkException, match="leave option token out, and set SECATEUR_TOKEN"):
                spark.sql(
                    f"CREATE TABLE x USING secateur OPTIONS (address '{cluster.address}', `table` 'x', token 'x')"
                )
        finally:
            spark.sql("DROP TABLE here")
            spark.sql("DROP TABLE there")


TYPES = {
    "a": ("TINYINT", "-5"),
    "b": ("UTINYINT", "255"),
    "c": ("UINTEGER", "4294967295"),
    "d": ("UBIGINT", "18446744073709551615"),
    "e": ("HUGEINT", "-99999999999999999999999999999999999999"),
    "f": ("FLOAT", "1.5"),
    "g": ("DECIMAL(38, 10)", "1.0000000001"),
    "h": ("VARCHAR", "'café'"),
    "i": ("BLOB", "'\\x00\\xff'::BLOB"),
    "j": ("BOOLEAN", "true"),
    "k": ("DATE", "DATE '0001-01-01'"),
    "l": ("TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
    "m": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ '2026-03-29 01:30:00+01'"),
    "n": ("UUID", "'00112233-4455-6677-8899-aabbccddeeff'::UUID"),
    "o": ("VARCHAR[][]", "[['x', NULL], NULL, []]"),
    "p": ("STRUCT(n UINTEGER, t VARCHAR[])", "{'n': 4294967295, 't': ['x', NULL]}"),
    "q": ("MAP(VARCHAR, DECIMAL(10, 2))", "MAP {'a': 1.25, 'b': NULL}"),
}


def test_types_arrive_as_the_nearest_of_spark(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, table_name: str
) -> None:
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in TYPES.items())
    connection.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, {columns})")
    connection.execute(f"INSERT INTO {table_name} SELECT 1, {', '.join(value for _, value in TYPES.values())}")
    connection.execute(f"INSERT INTO {table_name} (id) VALUES (2)")
    df = read(spark, started, table_name).orderBy("id")
    assert [kind for _, kind in df.dtypes[1:]] == [
        *("tinyint", "smallint", "bigint", "decimal(20,0)", "decimal(38,0)", "float", "decimal(38,10)", "string"),
        *("binary", "boolean", "date", "timestamp_ntz", "timestamp", "string", "array<array<string>>"),
        *("struct<n:bigint,t:array<string>>", "map<string,decimal(10,2)>"),
    ]
    first, second = df.collect()
    assert first[1:10] == (
        -5,
        255,
        4294967295,
        2**64 - 1,
        -(10**38) + 1,
        1.5,
        Decimal("1.0000000001"),
        "café",
        b"\0\xff",
    )
    assert first[10:13] == (True, date(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999))
    assert df.selectExpr("unix_micros(m)").first()[0] == 1774744200000000
    assert first[14:16] == ("00112233-4455-6677-8899-aabbccddeeff", [["x", None], None, []])
    assert first[16:] == (Row(n=4294967295, t=["x", None]), {"a": Decimal("1.25"), "b": None})
    assert second[1:] == (None,) * len(TYPES)
    with pytest.raises(errors.NotSupportedError, match=r"column 'u' is of type UUID\[\], which Spark does not have"):
        read(spark, started, query="SELECT [uuid()] AS u")


def test_what_is_never_null_is_so_in_spark(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, table_name: str, tmp_path: Path
) -> None:
    """Spark spares itself a look at each value then; it would believe so also of columns of which it is not true."""
    ddl = f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, n VARCHAR, w BIGINT {{}})"
    connection.execute(ddl.format("NOT NULL"))
    connection.execute(f"CREATE VIEW {table_name}_view AS SELECT k, v, n FROM {table_name}")
    connection.execute(f"INSERT INTO {table_name} VALUES (1, 2, NULL, 3), (4, 5, 'six', 7)")

    def nullable(df: DataFrame) -> dict[str, bool]:
        return {field.name: field.nullable for field in df.schema.fields}

    def read(**what: Any) -> DataFrame:
        return secateur.spark.read(spark, address=started.address, token="hush", **what)

    source = spark.read.format("secateur").option("address", started.address).option("token", "hush")
    whole = read(table=table_name.upper())
    assert nullable(whole) == {"k": False, "v": False, "n": True, "w": False}
    assert nullable(source.option("table", table_name).option("columns", "W, n").load()) == {"w": False, "n": True}
    assert nullable(read(table=f"{table_name}_view")) == dict.fromkeys("kvn", True)
    assert nullable(read(query=f"SELECT k, v FROM {table_name}")) == dict.fromkeys("kv", True)
    assert set(nullable(read(table="secateur.members", columns=["id", "node"])).values()) == {True}
    assert [tuple(row) for row in whole.orderBy("k").collect()] == [(1, 2, None, 3), (4, 5, "six", 7)]
    assert [tuple(row) for row in whole.where("n IS NULL AND v IS NOT NULL").collect()] == [(1, 2, None, 3)]

    late = read(table=table_name)
    connection.execute(f"CREATE OR REPLACE TABLE {table_name} {ddl.format('').partition(table_name)[2]}")
    connection.execute(f"INSERT INTO {table_name} VALUES (1, 2, NULL, NULL)")
    with pytest.raises(PySparkException, match="column 'w' has a NULL, and was NOT NULL when the DataFrame was made"):
        late.collect()
    assert [tuple(row) for row in read(table=table_name).collect()] == [(1, 2, None, None)]


def test_a_query_that_would_change_something_is_not_carried_out(
    spark: SparkSession, started: Cluster, connection: secateur.Connection, filled: str
) -> None:
    options = {"address": started.address, "token": "hush", "query": f"DROP TABLE {filled}"}
    with pytest.raises(PySparkException, match="only a query can be read"):
        spark.read.format("secateur").options(**options).load()
    assert connection.execute(f"SELECT count(*) FROM {filled}").fetchall() == [(5000,)]


def test_errors_of_a_read_are_ours(spark: SparkSession, started: Cluster, filled: str) -> None:
    with pytest.raises(errors.UnknownTableError, match="no_such"):
        read(spark, started, "no_such")
    with pytest.raises(errors.UnknownColumnError, match="nobody"):
        read(spark, started, filled, ["nobody"])
    with pytest.raises(errors.ProgrammingError, match="a table or a query, and not both"):
        read(spark, started, filled, query="SELECT 1")
    with pytest.raises(errors.AuthenticationError):
        secateur.spark.read(spark, filled, address=started.address)


class _Pushed(DataSourceReader):
    """Applies ``n = value`` itself, as a data source may that implements ``pushFilters``."""

    def __init__(self) -> None:
        self._wanted: list[int] = []

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for pushed in filters:
            if isinstance(pushed, EqualTo):
                self._wanted.append(pushed.value)
            else:
                yield pushed

    def read(self, partition: object) -> Iterator[tuple[int]]:
        return iter([(n,) for n in range(4) if not self._wanted or n in self._wanted])


class _Pushing(DataSource):
    @classmethod
    def name(cls) -> str:
        return "pushing"

    def schema(self) -> str:
        return "n INT"

    def reader(self, schema: object) -> _Pushed:
        return _Pushed()


@pytest.mark.xfail(
    reason="PySpark 4.1 to 4.3 keeps one reader for all scans of a DataFrame, with the filters of one of them"
)
@pytest.mark.slow
def test_filters_could_be_pushed_into_the_source(spark: SparkSession) -> None:
    """Once this passes, the reader may implement ``pushFilters``."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(_Pushing)
        df = spark.read.format("pushing").load()
        assert sorted(row.n for row in df.where("n = 1").unionAll(df.where("n = 2")).collect()) == [1, 2]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_dataframe_is_filtered_in_several_ways(spark: SparkSession, started: Cluster, filled: str) -> None:
    """Each way has its own rows, whatever was asked before, also where Spark would push filters into the source."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        df = read(spark, started, filled, ["id"])
        one, two = df.where("id = 1"), df.where("id = 2")
        assert [sorted_rows(each) for each in (one, two, one)] == [[(1,)], [(2,)], [(1,)]]
        assert sorted_rows(one.unionAll(two)) == [(1,), (2,)]
        assert sorted_rows(one.crossJoin(two)) == [(1, 2)]
        assert one.unionAll(df).count() == 5001
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_load_and_save_take_the_name_of_a_table(spark: SparkSession, started: Cluster, orders: str) -> None:
    def format(what: Any, **more: str) -> Any:
        return what.format("secateur").options(address=started.address, token="hush", **more)

    secateur.spark.register(spark)
    format(some_orders(spark, 0, 10).write).mode("append").save(orders)
    assert (
        format(spark.read).load(orders).count() == format(spark.read, table=orders.upper()).load(orders).count() == 10
    )
    assert format(spark.read, where="id = 7").load(orders).count() == 1
    assert format(spark.read).load("secateur.members").count() == 3
    with pytest.raises(PySparkException, match=f"option table names 'other', and load, save or start names '{orders}'"):
        format(some_orders(spark, 10, 20).write, table="other").mode("append").save(orders)
    with pytest.raises(PySparkException, match="option table names 'other'"):
        format(spark.read, table="other").load(orders)
    with pytest.raises(PySparkException, match="and option table as well: leave one out"):
        format(spark.read, query="SELECT 1").load(orders)
    assert format(spark.read, table=orders).load().count() == 10
