"""Statements over a few partitions of several members: each owner is asked once, and no job runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from eventually import eventually
from held_requests import Held
from raw_frames import RawConnection
from requests_of import requests_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DataError,
    DeadlineError,
    JobCancelledError,
    ParameterError,
    ProtocolError,
    TopologyChangedError,
)
from secateur.protocol import ExecuteFirstStage, Operation, ScatteredRun

KEYS = range(40)
FEW = [1, 2, 3, 4, 5, 77]
"""Keys of several members, one of them of no row."""

SALES = pa.table(
    {
        "customer": pa.array([key for key in KEYS for _ in range(5)], pa.int64()),
        "line": pa.array([line for _ in KEYS for line in range(5)], pa.int64()),
        "product": pa.array([f"p{(key + line) % 4}" for key in KEYS for line in range(5)]),
        "quantity": pa.array(
            [None if (key + line) % 3 == 0 else 2**62 + key * line for key in KEYS for line in range(5)], pa.int64()
        ),
        "price": pa.array([Decimal(key * line) / 4 for key in KEYS for line in range(5)], pa.decimal128(10, 2)),
        "weight": pa.array([0.1 * line for _ in KEYS for line in range(5)], pa.float64()),
        "note": pa.array(["7" if key != 3 else "seven" for key in KEYS for _ in range(5)]),
    }
)
PRODUCTS = pa.table({"product": [f"p{number}" for number in range(3)], "title": ["one", "two", "two"]})
CUSTOMERS = pa.table({"customer": pa.array([1, 2, 4, 30], pa.int64()), "name": ["a", "b", None, "d"]})

KEYED = "PARTITION BY HASH (customer) PARTITIONS 31"
COLUMNS = (
    "customer BIGINT, line BIGINT, product VARCHAR, quantity BIGINT, price DECIMAL(10, 2), weight DOUBLE, note VARCHAR"
)
DDL = (
    f"CREATE TABLE sales ({COLUMNS}, PRIMARY KEY (customer, line)) {KEYED}",
    "CREATE TABLE products (product VARCHAR, title VARCHAR, PRIMARY KEY (product)) REPLICATED",
    f"CREATE TABLE customers (customer BIGINT, name VARCHAR, PRIMARY KEY (customer)) {KEYED}",
)
IN_FEW = "customer IN (1, 2, 3, 4, 5, 77)"


@contextmanager
def filled(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as conn:
        for statement in DDL:
            conn.execute(statement)
        for name, rows in (("sales", SALES), ("products", PRODUCTS), ("customers", CUSTOMERS)):
            conn.table(name).load(rows)
        yield conn


@pytest.fixture(scope="module")
def mall() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shop(mall: Cluster) -> Iterator[secateur.Connection]:
    with filled(mall) as conn:
        yield conn


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        for name, rows in (("sales", SALES), ("products", PRODUCTS), ("customers", CUSTOMERS)):
            database.register(f"{name}_rows", rows)
            database.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
        yield database


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*), count(quantity), sum(quantity), avg(quantity), min(price) FROM sales WHERE {IN_FEW}",
        f"SELECT customer, sum(quantity), sum(price) FROM sales WHERE {IN_FEW} GROUP BY customer ORDER BY 1",
        f"SELECT product, count(*) FROM sales WHERE {IN_FEW} GROUP BY product HAVING count(*) > 5 ORDER BY 2 DESC, 1",
        f"SELECT * FROM sales WHERE {IN_FEW} ORDER BY customer, line",
        f"SELECT quantity, line FROM sales WHERE {IN_FEW} ORDER BY quantity DESC NULLS FIRST, line, customer LIMIT 7",
        f"SELECT customer, line FROM sales WHERE {IN_FEW} ORDER BY line, customer LIMIT 4 OFFSET 3",
        f"SELECT * FROM sales WHERE {IN_FEW} LIMIT 0",
        f"SELECT * FROM sales WHERE {IN_FEW} LIMIT 100 OFFSET 100",
        f"SELECT DISTINCT product FROM sales WHERE {IN_FEW} ORDER BY 1",
        f"SELECT count(DISTINCT product), sum(DISTINCT line) FROM sales WHERE {IN_FEW}",
        "SELECT count(*), sum(quantity), max(price) FROM sales WHERE customer IN (71, 72, 73, 74, 75)",
        "SELECT product, count(*) FROM sales WHERE customer IN (71, 72, 73, 74, 75) GROUP BY product",
        f"SELECT customer, row_number() OVER (ORDER BY customer, line) FROM sales WHERE {IN_FEW} ORDER BY 2",
        f"SELECT line, title FROM sales JOIN products USING (product) WHERE {IN_FEW} ORDER BY customer, line",
        f"SELECT title, sum(price) FROM sales LEFT JOIN products USING (product) WHERE {IN_FEW} GROUP BY 1 ORDER BY 1",
        f"SELECT s.line, c.name FROM sales s JOIN customers c USING (customer) WHERE {IN_FEW} ORDER BY customer, line",
        f"SELECT count(*) FROM sales s LEFT JOIN customers c USING (customer) WHERE {IN_FEW} AND c.name IS NULL",
        "SELECT sum(line) FROM sales WHERE customer BETWEEN 3 AND 7",
        "SELECT count(*) FROM sales WHERE customer = 1 OR customer = 2 AND line > 2 OR customer IN (3, 4)",
        f"SELECT list(line ORDER BY line) FROM sales WHERE {IN_FEW}",
    ],
)
def test_answers_are_those_of_duckdb_and_of_a_job(
    shop: secateur.Connection, oracle: duckdb.DuckDBPyConnection, sql: str
) -> None:
    expected = oracle.execute(sql).fetchall()
    modes = []
    for setting in ("SET scatter_partitions_max = default", "SET scatter_partitions_max = 0", "SET pruning = off"):
        shop.execute(setting)
        cursor = shop.execute(sql)
        assert (Counter if "ORDER BY" not in sql else list)(cursor.fetchall()) == (
            Counter if "ORDER BY" not in sql else list
        )(expected)
        modes.append(cursor.stats.execution)
    shop.execute("SET pruning = default")
    shop.execute("SET scatter_partitions_max = default")
    assert modes == ["scatter", "distributed", "distributed"]


@pytest.mark.parametrize("columns", ["*", "tags, line, customer", "tags AS line, line AS tags", "line, customer"])
@pytest.mark.parametrize(
    ("condition", "params"),
    [(IN_FEW, []), ("customer IN (?, ?, ?)", ["1", "2", "3"])],
    ids=["values as they are", "values that DuckDB converts"],
)
def test_arrow_has_the_names_of_the_columns_in_all_modes(
    shop: secateur.Connection, columns: str, condition: str, params: list[Any]
) -> None:
    """The client puts together rows that came as Arrow, too."""
    shop.execute(
        "CREATE TABLE IF NOT EXISTS tagged (customer BIGINT, line BIGINT, tags VARCHAR[], PRIMARY KEY (customer, line))"
        " PARTITION BY HASH (customer) PARTITIONS 31"
    )
    shop.execute("INSERT OR REPLACE INTO tagged SELECT customer, line, [product] FROM sales")
    sql = f"SELECT {columns} FROM tagged WHERE {condition}"
    tables = []
    for setting, mode in (("on", "scatter"), ("verify", None), ("off", "distributed")):
        shop.execute(f"SET pruning = {setting}")
        cursor = shop.execute(sql, params)
        assert cursor.stats is not None
        assert mode is None or cursor.stats.execution == mode  # verify has both
        assert cursor.description is not None
        names = [column[0] for column in cursor.description]
        tables.append(cursor.arrow())
        assert tables[-1].column_names == names
    shop.execute("SET pruning = default")
    assert tables[0].schema == tables[1].schema == tables[2].schema
    found = [Counter(map(str, table.to_pylist())) for table in tables]
    assert found[0] == found[1] == found[2]


@pytest.mark.smoke
def test_sums_of_doubles_differ_by_rounding_only(shop: secateur.Connection, oracle: duckdb.DuckDBPyConnection) -> None:
    sql = f"SELECT sum(weight), avg(weight) FROM sales WHERE {IN_FEW}"
    cursor = shop.execute(sql)
    assert cursor.fetchall()[0] == pytest.approx(oracle.execute(sql).fetchall()[0])
    assert cursor.stats.execution == "scatter"


@pytest.mark.smoke
def test_parameters_decide_at_each_execution(shop: secateur.Connection) -> None:
    sql = "SELECT count(*) FROM sales WHERE customer IN (?, ?, ?)"
    modes = []
    for keys in ([1, 1, 1], [1, 2, 3], [None, None, None]):
        cursor = shop.execute(sql, keys)
        modes.append((cursor.fetchall()[0][0], str(cursor.stats.execution)))
    assert modes == [(5, "local"), (15, "scatter"), (0, "none")]


def test_an_error_of_a_value_is_that_of_the_statement(shop: secateur.Connection) -> None:
    with pytest.raises(DataError, match="seven"):
        shop.execute(f"SELECT note::INTEGER FROM sales WHERE {IN_FEW}").fetchall()
    cursor = shop.execute(f"SELECT DISTINCT note::INTEGER FROM sales WHERE {IN_FEW} AND customer <> 3")
    assert cursor.fetchall() == [(7,)]


def test_the_members_that_are_touched_are_the_owners(shop: secateur.Connection) -> None:
    table = shop.table("sales")
    partitions = {table.partition_of({"customer": key}) for key in FEW}
    owners = {table.owner_of(partition) for partition in partitions}
    cursor = shop.execute(f"SELECT sum(line) FROM sales WHERE {IN_FEW}")
    assert (cursor.stats.members_touched, cursor.stats.partitions_read) == (len(owners), len(partitions))


@pytest.mark.parametrize(
    ("sql", "executions"),
    [
        (f"SELECT count(*), sum(quantity), sum(price), min(product) FROM sales WHERE {IN_FEW}", 0),
        (f"SELECT product, count(*) FROM sales WHERE {IN_FEW} GROUP BY product ORDER BY product DESC", 0),
        (f"SELECT DISTINCT product, line FROM sales WHERE {IN_FEW}", 0),
        (f"SELECT note, customer FROM sales WHERE {IN_FEW} AND line < 4", 0),
        (f"SELECT customer, line FROM sales WHERE {IN_FEW} ORDER BY line DESC, customer LIMIT 3 OFFSET 1", 0),
        (f"SELECT min(weight) FROM sales WHERE {IN_FEW}", 1),
        (f"SELECT count(DISTINCT product) FROM sales WHERE {IN_FEW}", 1),
        (f"SELECT title, count(*) FROM sales JOIN products USING (product) WHERE {IN_FEW} GROUP BY title", 1),
    ],
)
def test_a_client_asks_the_owners_itself_where_it_can_merge_their_rows(
    mall: Cluster, shop: secateur.Connection, sql: str, executions: int
) -> None:
    owners = shop.execute(sql).stats.members_touched
    with requests_of(mall, {Operation.EXECUTE, Operation.EXECUTE_FIRST_STAGE}) as requests:
        assert shop.execute(sql).stats.execution == "scatter"
    asked = Counter(requests)
    assert (asked[Operation.EXECUTE], asked[Operation.EXECUTE_FIRST_STAGE]) == (executions, owners - executions)
    text = "\n".join(line for (line,) in shop.execute(f"EXPLAIN {sql}").fetchall())
    assert ("and the client combines their rows" in text) is (executions == 0)


def test_a_sum_that_no_value_holds_is_the_error_of_a_member(shop: secateur.Connection) -> None:
    shop.execute("CREATE TABLE large (k BIGINT, d DECIMAL(38, 0), PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 31")
    shop.table("large").load(
        pa.table({"k": pa.array(range(9), pa.int64()), "d": pa.array([Decimal(6 * 10**37)] * 9, pa.decimal128(38, 0))})
    )
    assert shop.execute("SELECT max(d) FROM large WHERE k IN (1, 2, 3)").fetchall() == [(Decimal(6 * 10**37),)]
    with pytest.raises(DataError):
        shop.execute("SELECT sum(d) FROM large WHERE k IN (1, 2, 3, 4, 5, 6)").fetchall()
    shop.execute("DROP TABLE large")


@pytest.mark.smoke
def test_an_owner_declines_a_client_that_finds_other_partitions(mall: Cluster, shop: secateur.Connection) -> None:
    sql = "SELECT count(*) AS of_a_client FROM sales WHERE customer IN (?, ?)"
    table, first, second = shop.table("sales"), 1, 2
    partition = table.partition_of({"customer": first})
    while table.owner_of(table.partition_of({"customer": second})) == table.owner_of(partition):
        second += 1
    assert shop.execute(sql, [first, second]).fetchall() == [(10,)]
    ((plan,),) = shop.execute("SELECT plan_id FROM secateur.statements WHERE statement = ?", [sql]).fetchall()
    owners = [table.owner_of(partition), table.owner_of(table.partition_of({"customer": second}))]
    address = {member.id: member.address for member in mall.members()}[owners[0]]
    elsewhere = next(p for p in range(31) if table.owner_of(p) == owners[0] and p != partition)
    operation = Operation.EXECUTE_FIRST_STAGE
    with RawConnection(mall, address) as connection:

        def ask(partitions: list[list[int]], *, params: list[int] | None = None, read: int | None = None) -> Any:
            run = None if read is None else ScatteredRun(owners, read, 31)
            asked = ExecuteFirstStage(plan, params or [first, second], partitions, None, run)
            return operation.replies.decode(connection.ask(operation, operation.requests.encode(asked)))

        answered = ask([[partition]], read=2)
        assert (answered.is_declined, answered.values, len(answered.published)) == (False, [[5]], 1)
        assert ask([[elsewhere]]).is_declined
        assert ask([[partition, elsewhere]]).is_declined
        assert ask([[partition]], read=3).is_declined
        with pytest.raises(TopologyChangedError, match="does not own all"):
            ask([[table.partition_of({"customer": second})]])
        with pytest.raises(ProtocolError, match="has 1 scans, not 2"):
            ask([[partition], [partition]])
        with pytest.raises(ParameterError, match="2 parameters, 3 were given"):
            ask([[partition]], params=[first, second, 3])


@pytest.mark.parametrize("column", ["'listed once'", "max(line) AS listed_once"], ids=["by a member", "by the client"])
def test_a_statement_is_listed_once(shop: secateur.Connection, column: str) -> None:
    sql = f"SELECT {column}, count(*) FROM sales WHERE {IN_FEW}"
    shop.execute(sql).fetchall()
    listed = shop.execute(
        "SELECT state, execution, partitions_read, rows FROM secateur.statements WHERE statement = ?", [sql]
    ).fetchall()
    assert len(listed) == 1
    assert (listed[0][:2], listed[0][3]) == (("done", "scatter"), 1)
    modes = shop.execute("SELECT sum(statements) FROM secateur.latencies WHERE execution = 'scatter'").fetchall()
    assert modes[0][0] >= 1


def test_explain_analyze_shows_rows_and_time_of_each_member(shop: secateur.Connection) -> None:
    sql = f"SELECT product, count(*) FROM sales WHERE {IN_FEW} GROUP BY product"
    text = "\n".join(line for (line,) in shop.execute(f"EXPLAIN ANALYZE {sql}").fetchall())
    assert "scatter: each owner is asked once" in text
    assert "actual: scatter on" in text
    first, last = text.split("  stage scan sales: ")[1].split("  stage final: ")
    assert first.count("rows in") == shop.execute(sql).stats.members_touched
    assert last.startswith("4 rows")


def test_an_owner_of_many_rows_declines(shop: secateur.Connection) -> None:
    shop.execute(
        "CREATE TABLE many (k BIGINT, v BIGINT, PRIMARY KEY (k, v)) PARTITION BY HASH (k) PARTITIONS 31 BACKUPS 0"
    )
    rows = 30_000
    shop.table("many").load(
        pa.table({"k": pa.array([number % 3 for number in range(3 * rows)]), "v": pa.array(range(3 * rows))})
    )
    sql = "SELECT count(*), sum(v) FROM many WHERE k IN (0, 1, 2)"
    for _ in range(3):
        cursor = shop.execute(sql)
        assert cursor.fetchall() == [(3 * rows, sum(range(3 * rows)))]
        assert cursor.stats.execution == "distributed"
    cursor = shop.execute("SELECT count(*) FROM many WHERE k IN (0, 1, 2) AND v < 300")
    assert (cursor.fetchall(), cursor.stats.execution) == ([(300,)], "scatter")
    shop.execute("DROP TABLE many")


def test_answers_of_many_bytes_come_from_a_job(shop: secateur.Connection) -> None:
    sql = f"SELECT repeat(note, 1000000) FROM sales WHERE {IN_FEW}"
    cursor = shop.execute(sql)
    assert sum(len(text) for (text,) in cursor.fetchall()) == 20_000_000 + 5 * len("seven") * 1_000_000
    assert cursor.stats.execution == "distributed"


@contextmanager
def held_owner(cluster: Cluster) -> Iterator[list[Held]]:
    """The requests of scattered statements for other owners are held up."""
    members: Any = cluster._runtime._members  # type: ignore[attr-defined]
    held = [Held(cluster, member.handlers, Operation.EXECUTE_FIRST_STAGE) for member in members.values()]
    try:
        yield held
    finally:
        for one in held:
            one.release()


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0, replace_members=False) as cluster:
        yield cluster


BY_MEMBER = f"SELECT count(*), min(weight), max(weight) FROM sales WHERE {IN_FEW}"
BY_CLIENT = f"SELECT count(*), min(line), max(line) FROM sales WHERE {IN_FEW}"

either = pytest.mark.parametrize("sql", [BY_CLIENT, BY_MEMBER], ids=["by the client", "by a member"])


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*), min(quantity), max(quantity) FROM sales WHERE {IN_FEW}",
        f"SELECT count(*), min(weight), max(weight) FROM sales WHERE {IN_FEW}",
    ],
    ids=["by the client", "by a member"],
)
def test_a_load_that_is_published_in_between_is_seen_whole(mortal: Cluster, sql: str) -> None:
    with filled(mortal) as conn, mortal.connect() as reader, ThreadPoolExecutor(1) as threads:
        conn.execute("UPDATE sales SET weight = 1, quantity = 1")
        assert reader.execute(sql).fetchall() == [(25, 1, 1)]
        with held_owner(mortal) as held:
            answer = threads.submit(lambda: reader.execute(sql).fetchall())
            eventually(lambda: any(one.arrived.is_set() for one in held))
            replaced = SALES.set_column(5, "weight", pa.array([2.0] * len(SALES)))
            replaced = replaced.set_column(3, "quantity", pa.array([2] * len(SALES), pa.int64()))
            conn.table("sales").load(replaced, mode="overwrite")
        assert answer.result(30) == [(25, 2, 2)]


@either
def test_a_member_that_dies_in_between_is_replaced_by_the_next_owner(mortal: Cluster, sql: str) -> None:
    with filled(mortal), mortal.connect() as reader, ThreadPoolExecutor(1) as threads:
        expected = reader.execute(sql).fetchall()
        with held_owner(mortal) as held:
            answer = threads.submit(lambda: reader.execute(sql).fetchall())
            eventually(lambda: any(one.arrived.is_set() for one in held))
            lost = next(
                name
                for name, one in zip(mortal._runtime._members, held, strict=True)  # type: ignore[attr-defined]
                if one.arrived.is_set()
            )
            mortal._runtime.kill_member(lost)
        assert answer.result(60) == expected
        assert reader.execute(sql).fetchall() == expected


@either
def test_partitions_that_move_in_between_are_read_at_their_new_owners(mortal: Cluster, sql: str) -> None:
    with filled(mortal), mortal.connect() as reader, ThreadPoolExecutor(1) as threads:
        expected = reader.execute(sql).fetchall()
        with held_owner(mortal) as held:
            answer = threads.submit(lambda: reader.execute(sql).fetchall())
            eventually(lambda: any(one.arrived.is_set() for one in held))
            mortal.scale(5)
        assert answer.result(60) == expected
        cursor = reader.execute(sql)
        assert (cursor.fetchall(), cursor.stats.execution) == (expected, "scatter")


@either
def test_a_statement_that_waits_for_an_owner_is_cancelled_and_has_a_timeout(mortal: Cluster, sql: str) -> None:
    with filled(mortal), mortal.connect() as reader, ThreadPoolExecutor(1) as threads:
        expected = reader.execute(sql).fetchall()
        with held_owner(mortal) as held:
            cancelled = threads.submit(lambda: reader.execute(sql).fetchall())
            eventually(lambda: any(one.arrived.is_set() for one in held))
            reader.interrupt()
            with pytest.raises(JobCancelledError):
                cancelled.result(30)
            reader.execute("SET statement_timeout = '200ms'")
            with pytest.raises(DeadlineError):
                reader.execute(sql)
        reader.execute("SET statement_timeout = 0")
        assert reader.execute(sql).fetchall() == expected


def test_readers_never_see_two_generations(mall: Cluster, shop: secateur.Connection) -> None:
    shop.execute("CREATE TABLE series (id BIGINT, g BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 31")

    def generation(number: int) -> pa.Table:
        return pa.table({"id": pa.array(range(60), pa.int64()), "g": pa.array([number] * 60, pa.int64())})

    table, stop = shop.table("series"), threading.Event()
    table.load(generation(0))
    sql = "SELECT count(*), min(g), max(g) FROM series WHERE id IN (1, 2, 3, 4, 5, 6, 7)"

    def read() -> list[tuple[Any, ...]]:
        seen = []
        with mall.connect() as reader:
            while not stop.is_set():
                cursor = reader.execute(sql)
                seen.append((*cursor.fetchall()[0], str(cursor.stats.execution)))
        return seen

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(read) for _ in range(2)]
        for number in range(1, 15):
            table.load(generation(number), mode="overwrite")
        stop.set()
        seen = [row for reader in readers for row in reader.result(60)]
    assert {row[0] for row in seen} == {7}
    assert all(row[1] == row[2] for row in seen)
    assert {row[3] for row in seen} == {"scatter"}
    assert len({row[1] for row in seen}) > 2
