"""What users do with secateur: each use is one small call whose answer is known, for tests in which many come at once.

Nothing is imported before it is used: what a process does first is what these tests are about.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import secateur

__all__ = ["USES", "User", "prepare"]

_ROWS: Final = 2000
_CUSTOMERS: Final = 50
_TABLES: Final = (
    """CREATE TABLE orders (
           customer_id VARCHAR, id BIGINT, qty BIGINT, amount DECIMAL(10,2), placed TIMESTAMP, tags VARCHAR[],
           PRIMARY KEY (customer_id, id)
       ) PARTITION BY HASH (customer_id) PARTITIONS 16""",
    """CREATE TABLE marks (k VARCHAR, n BIGINT, v DOUBLE, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 8
       WITH (change_feed = true)""",
)
_numbers: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a call.

    Attributes:
        conn: A connection, perhaps that of others as well.
        folder: For files.
        url: The HTTP server of the cluster.
        address: Of the cluster.
        token: Its secret.
    """

    conn: secateur.Connection
    folder: str
    url: str
    address: str
    token: str


USES: Final[dict[str, Callable[[User], None]]] = {}


def use(function: Callable[[User], None]) -> Callable[[User], None]:
    USES[function.__name__] = function
    return function


def prepare(conn: secateur.Connection) -> None:
    """Make the tables that the uses read and write."""
    import pyarrow as pa

    for table in _TABLES:
        conn.execute(table)
    columns = {
        "customer_id": [_customer(n) for n in range(_ROWS)],
        "id": range(_ROWS),
        "qty": [n % 7 for n in range(_ROWS)],
        "amount": pa.array([_amount(n) for n in range(_ROWS)], pa.decimal128(10, 2)),
        "placed": pa.array([_at(n) for n in range(_ROWS)], pa.timestamp("us")),
        "tags": [_tags(n) for n in range(_ROWS)],
    }
    conn.table("orders").load(pa.table(columns))


def _customer(number: int) -> str:
    return f"C{number % _CUSTOMERS}"


def _amount(number: int) -> Decimal:
    return Decimal(f"{number}.25")


def _at(number: int) -> datetime:
    return datetime(2024, 1, 1) + timedelta(seconds=number)


def _tags(number: int) -> list[str]:
    return [f"t{number % 3}", "all"]


def _row(number: int) -> tuple[Any, ...]:
    return (_customer(number), number, number % 7, _amount(number), _at(number), _tags(number))


def _own() -> str:
    """A key that nobody else writes."""
    return f"{os.getpid()}-{threading.get_ident()}-{next(_numbers)}"


def _number() -> int:
    return next(_numbers) * 37 % _ROWS


def _is(found: object, expected: object) -> None:
    assert found == expected, f"found {found!r}, expected {expected!r}"


def _fails(kind: type[Exception], said: str, call: Callable[[], object]) -> None:
    try:
        found = call()
    except secateur.Error as error:
        if not isinstance(error, kind) or said not in str(error):
            raise
    else:
        raise AssertionError(f"found {found!r}, expected {kind.__name__}")


def _marks(user: User, key: str) -> list[tuple[Any, ...]]:
    return user.conn.execute("SELECT n, v FROM marks WHERE k = ? ORDER BY n", [key]).fetchall()


@use
def look_up_by_key(user: User) -> None:
    number = _number()
    sql = "SELECT * FROM orders WHERE customer_id = ? AND id = ?"
    _is(user.conn.execute(sql, [_customer(number), number]).fetchall(), [_row(number)])


@use
def look_up_by_a_computed_key(user: User) -> None:
    """The client has DuckDB compute the key."""
    number = _number()
    sql = "SELECT id FROM orders WHERE customer_id = replace(upper($1), 'X', 'C') AND id = $2 + 1 - 1"
    _is(user.conn.execute(sql, [f"x{number % _CUSTOMERS}", number]).fetchall(), [(number,)])


@use
def read_rows_one_by_one(user: User) -> None:
    number = _number() % _CUSTOMERS
    with user.conn.cursor() as cursor:
        cursor.execute("SELECT id, tags FROM orders WHERE customer_id = $c ORDER BY id", {"c": _customer(number)})
        expected = [(n, _tags(n)) for n in range(number, _ROWS, _CUSTOMERS)]
        _is([column[0] for column in cursor.description or ()], ["id", "tags"])
        _is([cursor.fetchone(), *cursor.fetchmany(3), *cursor], expected)


@use
def read_as_arrow(user: User) -> None:
    _is(user.conn.execute("SELECT sum(id) AS s FROM orders").arrow().to_pydict(), {"s": [_ROWS * (_ROWS - 1) // 2]})


@use
def read_as_pandas(user: User) -> None:
    frame = user.conn.execute("SELECT id, placed FROM orders WHERE id < 3 ORDER BY id").df()
    _is([value.to_pydatetime() for value in frame["placed"]], [_at(n) for n in range(3)])


@use
def read_as_polars(user: User) -> None:
    frame = user.conn.execute("SELECT id, amount FROM orders WHERE id < 3 ORDER BY id").pl()
    _is(frame["amount"].to_list(), [_amount(n) for n in range(3)])


@use
def read_batches(user: User) -> None:
    reader = user.conn.execute("SELECT id FROM orders WHERE qty = 2").fetch_record_batch(100)
    _is(sorted(n for batch in reader for n in batch.column(0).to_pylist()), list(range(2, _ROWS, 7)))


@use
def read_a_large_result(user: User) -> None:
    """It comes in parts."""
    sql = "SELECT a.id, b.id, a.customer_id FROM orders a, orders b WHERE a.qty = b.qty AND b.id < 700"
    found = sum(batch.num_rows for batch in user.conn.execute(sql).fetch_record_batch())
    _is(found, sum((_ROWS - n % 7 + 6) // 7 for n in range(700)))


@use
def aggregate(user: User) -> None:
    sql = "SELECT qty, count(*), sum(amount) FROM orders GROUP BY qty ORDER BY qty"
    counts = Counter(n % 7 for n in range(_ROWS))
    sums = [sum((_amount(n) for n in range(qty, _ROWS, 7)), Decimal(0)) for qty in range(7)]
    _is(user.conn.execute(sql).fetchall(), [(qty, counts[qty], sums[qty]) for qty in range(7)])


@use
def join(user: User) -> None:
    sql = "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id + 1 AND a.amount > b.amount"
    _is(user.conn.execute(sql).fetchall(), [(_ROWS - 1,)])


@use
def ask_several_owners(user: User) -> None:
    sql = "SELECT count(*), max(id) FROM orders WHERE customer_id IN (?, ?, ?)"
    _is(user.conn.execute(sql, ["C1", "C2", "C3"]).fetchall(), [(120, _ROWS - _CUSTOMERS + 3)])


@use
def explain(user: User) -> None:
    plan = user.conn.explain("SELECT * FROM orders WHERE customer_id = ?", ["C1"])
    assert "1 of 16 partitions" in plan.text, plan.text
    assert plan.to_mermaid(), plan.text
    assert user.conn.execute("EXPLAIN ANALYZE SELECT max(id) FROM orders").fetchall()


@use
def verify_pruning(user: User) -> None:
    with secateur.connect(user.address, user.token) as conn:
        conn.execute("SET pruning = verify")
        _is(conn.execute("SELECT count(*) FROM orders WHERE customer_id = 'C4'").fetchall(), [(_ROWS // _CUSTOMERS,)])
        # It compares whole tables at two moments, so the table is one that nobody writes.
        _is(conn.execute("UPDATE orders SET qty = 0 WHERE customer_id = ? AND id > 1", [_own()]).rowcount, 0)


@use
def get_and_put(user: User) -> None:
    key, marks = _own(), user.conn.table("marks")
    marks.put({"k": key, "n": 1, "v": 0.5})
    _is(marks.get((key, 1)), (key, 1, 0.5))
    marks.put_many([(key, n, float(n)) for n in range(2, 40)])
    _is(marks.get_many([(key, 3), (key, 99)]), [(key, 3, 3.0), None])
    _is((marks.delete((key, 1)), marks.delete_many([(key, n) for n in range(2, 50)])), (True, 38))


@use
def load_rows_of_python(user: User) -> None:
    key = _own()
    user.conn.table("marks").load([{"k": key, "n": n, "v": n / 2} for n in range(3)])
    user.conn.table("marks").load({"k": [key], "n": [2], "v": [9.0]}, mode="upsert")
    _is(_marks(user, key), [(0, 0.0), (1, 0.5), (2, 9.0)])


@use
def load_pandas(user: User) -> None:
    import pandas as pd

    key = _own()
    user.conn.table("marks").load(pd.DataFrame({"k": key, "n": [1, 2], "v": [0.5, None]}))
    _is(_marks(user, key), [(1, 0.5), (2, None)])


@use
def load_polars(user: User) -> None:
    import polars as pl

    key = _own()
    user.conn.table("marks").load(pl.DataFrame({"k": [key, key], "n": [1, 2], "v": [0.5, None]}))
    _is(_marks(user, key), [(1, 0.5), (2, None)])


@use
def load_a_file(user: User) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    key = _own()
    parquet, csv = (Path(user.folder, f"{key}.{ending}") for ending in ("parquet", "csv"))
    pq.write_table(pa.table({"k": [key], "n": [1], "v": [0.5]}), parquet)
    csv.write_text(f"k,n,v\n{key},2,1.5\n")
    user.conn.table("marks").load(str(parquet))
    user.conn.table("marks").load(str(csv))
    _is(_marks(user, key), [(1, 0.5), (2, 1.5)])


@use
def copy_out_and_in(user: User) -> None:
    key = _own()
    file = Path(user.folder, f"{key}.csv")
    user.conn.execute(f"COPY (SELECT '{key}' AS k, id AS n, 0.5 AS v FROM orders WHERE id < 3) TO '{file}'")
    user.conn.execute(f"COPY marks FROM '{file}'")
    _is(_marks(user, key), [(0, 0.5), (1, 0.5), (2, 0.5)])


@use
def change_rows(user: User) -> None:
    key, conn = _own(), user.conn
    conn.execute("INSERT INTO marks VALUES (?, ?, ?), (?, 2, 1.0)", [key, 1, 0.5, key])
    conn.execute("INSERT INTO marks VALUES (?, 1, 7.0) ON CONFLICT DO UPDATE SET v = excluded.v + marks.v", [key])
    _is(conn.execute("DELETE FROM marks WHERE k = ? AND n = 2 RETURNING v", [key]).fetchall(), [(1.0,)])
    conn.execute("INSERT INTO marks SELECT ?, id, 0.0 FROM orders WHERE id BETWEEN 5 AND 6", [key])
    conn.execute("UPDATE marks SET v = n * 2 WHERE k = ? AND n > 4", [key])
    _is(_marks(user, key), [(1, 7.5), (5, 10.0), (6, 12.0)])


@use
def execute_many(user: User) -> None:
    key = _own()
    with user.conn.cursor() as cursor:
        cursor.executemany("INSERT INTO marks VALUES (?, ?, ?)", [(key, n, 0.5) for n in range(20)])
        cursor.executemany("UPDATE marks SET v = ? WHERE k = ? AND n = ?", [(n / 4, key, n) for n in range(20)])
        cursor.executemany("SELECT v FROM marks WHERE k = ? AND n = ?", [(key, n) for n in range(20)])
        found = cursor.fetchall()
        while cursor.nextset():
            found += cursor.fetchall()
    _is(found, [(n / 4,) for n in range(20)])


@use
def submit_a_job(user: User) -> None:
    from secateur.connectors import collect, table_source
    from secateur.dag import Param

    dag = secateur.DAG()
    dag.new_vertex("read", table_source("orders", keys=[{"customer_id": Param("customer")}]))
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    params = {"customer": "C9"}
    assert "runs on 1 of " in str(user.conn.plan(dag, params=params))
    _is(user.conn.submit(dag, params=params, light=True).result(timeout_s=60).num_rows, _ROWS // _CUSTOMERS)
    job = user.conn.submit(dag, params=params)
    _is(job.result(timeout_s=60).num_rows, _ROWS // _CUSTOMERS)
    _is(user.conn.job(job.job_id).status, secateur.JobStatus.COMPLETED)


@use
def submit_a_pipeline(user: User) -> None:
    from secateur.connectors import collect
    from secateur.processors import count_rows

    reading = secateur.Pipeline().read_table("orders", where={"customer_id": "C7"})
    counted = reading.filter(lambda batch: batch["qty"].cast("bool")).key_by("qty").aggregate(n=count_rows())
    expected = Counter(n % 7 for n in range(7, _ROWS, _CUSTOMERS) if n % 7)
    _is(
        counted.sort("qty").write_to(collect()).submit(user.conn, light=True).result(timeout_s=60).to_pylist(),
        [{"qty": qty, "n": n} for qty, n in sorted(expected.items())],
    )


@use
def follow_changes(user: User) -> None:
    key = _own()
    changes = user.conn.changes("marks")
    user.conn.execute("INSERT INTO marks VALUES (?, 1, 0.5)", [key])
    own = [row for batch in changes for row in batch.to_pylist() if row["k"] == key]
    _is([(row["_change_type"], row["v"]) for row in own], [("insert", 0.5)])
    _is(user.conn.changes("marks", since=str(changes.position)).position.table_id, changes.position.table_id)


@use
def make_a_table(user: User) -> None:
    import pyarrow as pa

    name = f"t{next(_numbers)}_{os.getpid()}_{threading.get_ident()}"
    data = pa.table({"id": [1, 2], "placed": pa.array([_at(0), _at(1)], pa.timestamp("us"))})
    made = user.conn.create_table(name, data, primary_key=["id"], partition_by="HASH (id) PARTITIONS 2")
    made.load(data)
    _is(user.conn.execute(f"SELECT max(placed) FROM {name}").fetchall(), [(_at(1),)])
    user.conn.execute(f"DROP TABLE {name}")


@use
def read_an_external_table(user: User) -> None:
    import pyarrow as pa

    from secateur.connectors import Connector, ConnectorPartition, ValueSet, between

    class Numbers(Connector):
        def schema(self, context: Any) -> Any:
            return pa.schema([("id", pa.int64())])

        def partitions(self, schema: Any, context: Any) -> list[ConnectorPartition]:
            return [ConnectorPartition(str(n), {"id": between(10 * n, 10 * n + 9)}) for n in range(4)]

        def read(self, partition: Any, request: Any, context: Any) -> Any:
            first = 10 * int(partition.key)
            yield pa.RecordBatch.from_arrays([pa.array(range(first, first + 10))], schema=request.read_schema)

    assert isinstance(between(1, 2), ValueSet)
    name = f"numbers_{next(_numbers)}_{os.getpid()}_{threading.get_ident()}"
    user.conn.register(name, Numbers())
    _is(user.conn.execute(f"SELECT sum(id) FROM {name} WHERE id >= 25").fetchall(), [(sum(range(25, 40)),)])
    user.conn.execute(f"DROP TABLE {name}")


@use
def read_system_tables(user: User) -> None:
    _is(user.conn.execute("SELECT rows FROM secateur.tables WHERE table_name = 'orders'").fetchall(), [(_ROWS,)])
    assert user.conn.execute("SHOW TABLES").fetchall()
    assert user.conn.tokens.list() is not None
    assert user.conn.jobs() is not None
    assert "orders" in user.conn._repr_html_()


@use
def make_mistakes(user: User) -> None:
    import secateur.errors as errors

    for sql, params, kind, said in [
        ("SELEC 1", [], errors.ProgrammingError, "SELEC"),
        ("SELECT nothing FROM orders", [], errors.ProgrammingError, "nothing"),
        ("SELECT * FROM nowhere", [], errors.UnknownTableError, "nowhere"),
        ("SELECT ?", [], errors.ParameterError, "parameter"),
        ("SELECT CAST(customer_id AS INTEGER) FROM orders", [], errors.DataError, "C"),
        ("INSERT INTO marks VALUES (NULL, 1, 1)", [], errors.IntegrityError, "k"),
    ]:
        _fails(kind, said, lambda sql=sql, params=params: user.conn.execute(sql, params).fetchall())


@use
def run_out_of_time(user: User) -> None:
    from secateur.errors import DeadlineError

    sql = "SELECT sum(a.id * b.id * c.id) FROM orders a, orders b, orders c"
    _fails(DeadlineError, "", lambda: user.conn.execute(sql, timeout=0.05).fetchall())


@use
def ask_over_http(user: User) -> None:
    from secateur.http import HttpClient

    with HttpClient(user.url, user.token) as http:
        _is(list(http.execute("SELECT id, amount FROM orders WHERE id = ?", [3])), [(3, _amount(3))])
        assert "orders" in [table["table_name"] for table in http.tables()]
        assert http.explain("SELECT * FROM orders").text
        _fails(secateur.ProgrammingError, "nowhere", lambda: http.execute("SELECT * FROM nowhere"))
