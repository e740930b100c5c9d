"""DEFAULT and CHECK for every way in which rows enter, with copies, restarts and backups.

What single statements do is compared with DuckDB in ``tests/sql/defaults_and_checks.test``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from eventually import eventually
from held_requests import Held
from stored_copies import copies_of

import secateur
from secateur import JobConfig, Pipeline
from secateur.cluster import Cluster
from secateur.connectors import table_sink
from secateur.errors import CheckFailedError, DataError, IntegrityError, NullKeyError
from secateur.protocol import Operation

COLUMNS = (
    "(id INTEGER PRIMARY KEY, price DOUBLE CHECK (price < 100), name VARCHAR DEFAULT 'new' NOT NULL, u UUID DEFAULT"
    " uuid(), made TIMESTAMPTZ DEFAULT now(), tags VARCHAR[] DEFAULT ['t'], CONSTRAINT odd CHECK (id % 2 = 1 OR name <>"
    " 'new'))"
)
KINDS = {
    "hash": "PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 1",
    "replicated": "REPLICATED",
    "feed": "PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 1 WITH (change_feed = true)",
}
GIVEN = {"id": [1, 3, 5, 701], "price": [9.0, None, 9.5, 1.0]}
BAD = {"id": [11, 13, 15, 703], "price": [9.0, None, 100.0, 1.0]}


def rows_in(given: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return pa.table(given).to_pylist()


def file_of(given: dict[str, list[Any]], folder: Path) -> Path:
    path = folder / "rows.csv"
    pd.DataFrame(given).to_csv(path, index=False)
    return path


def copied(conn: secateur.Connection, table: str, given: dict[str, list[Any]], folder: Path) -> None:
    conn.execute(f"COPY {table} (id, price) FROM '{file_of(given, folder)}' (HEADER)")


def jobs(conn: secateur.Connection, table: str, given: dict[str, list[Any]]) -> None:
    pipeline = Pipeline().read_batches(pa.table(given)).write_to(table_sink(table, mode="append"))
    pipeline.submit(conn, JobConfig(on_member_lost="fail")).result()


Way = Callable[[secateur.Connection, str, dict[str, list[Any]], Path], object]
PAIRS = "INSERT INTO {} (id, price) VALUES (?, ?)"
WAYS: dict[str, Way] = {
    "dict": lambda conn, table, given, _: conn.table(table).load(given),
    "rows": lambda conn, table, given, _: conn.table(table).load(rows_in(given)),
    "arrow": lambda conn, table, given, _: conn.table(table).load(pa.table(given)),
    "reader": lambda conn, table, given, _: conn.table(table).load(pa.table(given).to_reader(1)),
    "pandas": lambda conn, table, given, _: conn.table(table).load(pd.DataFrame(given)),
    "polars": lambda conn, table, given, _: conn.table(table).load(pl.DataFrame(given)),
    "file": lambda conn, table, given, folder: conn.table(table).load(file_of(given, folder)),
    "overwrite": lambda conn, table, given, _: conn.table(table).load(given, "overwrite"),
    "ignore": lambda conn, table, given, _: conn.table(table).load(given, "ignore", missing="null"),
    "upsert": lambda conn, table, given, _: conn.table(table).load(given, "upsert"),
    "null": lambda conn, table, given, _: conn.table(table).load(given, missing="null"),
    "put_many": lambda conn, table, given, _: conn.table(table).put_many(rows_in(given)),
    "put_many null": lambda conn, table, given, _: conn.table(table).put_many(rows_in(given), missing="null"),
    "values": lambda conn, table, given, _: conn.execute(
        f"INSERT INTO {table} (id, price) VALUES (?, ?), (?, ?), (?, ?), (?, ?)",
        [value for row in rows_in(given) for value in row.values()],
    ),
    "select": lambda conn, table, given, _: conn.execute(
        f"INSERT INTO {table} (id, price) SELECT * FROM (VALUES (?, ?), (?, ?), (?, ?), (?, ?))",
        [value for row in rows_in(given) for value in row.values()],
    ),
    "returning": lambda conn, table, given, _: conn.execute(
        f"INSERT INTO {table} (id, price) VALUES (?, ?), (?, ?), (?, ?), (?, ?) RETURNING id",
        [value for row in rows_in(given) for value in row.values()],
    ).fetchall(),
    "merge": lambda conn, table, given, _: conn.execute(
        f"MERGE INTO {table} AS t USING (VALUES (?, CAST(? AS DOUBLE)), (?, ?), (?, ?), (?, ?)) AS s(id, price)"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, price) VALUES (s.id, s.price)",
        [value for row in rows_in(given) for value in row.values()],
    ),
    "copy": copied,
    "job": lambda conn, table, given, _: jobs(conn, table, given),
}
ONE_BY_ONE: dict[str, Way] = {
    "put": lambda conn, table, given, _: [conn.table(table).put(row) for row in rows_in(given)],
    "execute": lambda conn, table, given, _: [
        conn.execute(PAIRS.format(table), list(row.values())) for row in rows_in(given)
    ],
    "executemany": lambda conn, table, given, _: conn.executemany(
        f"{PAIRS.format(table)} ON CONFLICT DO UPDATE SET price = excluded.price",
        [list(row.values()) for row in rows_in(given)],
    ),
}


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [*WAYS, *ONE_BY_ONE])
def test_what_a_row_does_not_name_is_its_default(
    conn: secateur.Connection, cluster: Cluster, table_name: str, tmp_path: Path, way: str, kind: str
) -> None:
    if way == "job" and kind == "replicated":
        pytest.skip("a job writes into no replicated table")
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS[kind]}")
    (WAYS | ONE_BY_ONE)[way](conn, table_name, GIVEN, tmp_path)
    found = conn.execute(
        f"SELECT id, price, name, tags, u IS NULL, made IS NULL FROM {table_name} ORDER BY id"
    ).fetchall()
    assert found == [(id_, price, "new", ["t"], False, False) for id_, price in zip(*GIVEN.values(), strict=True)]
    ((us, ats),) = conn.execute(f"SELECT count(DISTINCT u), count(DISTINCT made) FROM {table_name}").fetchall()
    assert us == 4, "each row has a UUID of its own"
    assert way in ONE_BY_ONE or ats == 1, "all rows of a statement are of one moment"
    if way in ("job", "executemany"):  # its errors are of its own kind, or come after rows that were written before
        return
    with pytest.raises(CheckFailedError, match=f"table {table_name}: .*price: 100.0.* fails CHECK") as caught:
        (WAYS | ONE_BY_ONE)[way](conn, table_name, BAD, tmp_path)
    assert isinstance(caught.value, IntegrityError)
    assert caught.value.details["constraint"] == f"{table_name}_price_check"
    left = [11, 13] if way in ONE_BY_ONE else []
    ids = [id_ for (id_,) in conn.execute(f"SELECT id FROM {table_name} ORDER BY id").fetchall()]
    assert ids == sorted([*GIVEN["id"], *left]), "nothing is changed by a statement that fails"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, 2_000])
def test_an_upsert_keeps_what_it_does_not_name_and_all_copies_agree(
    conn: secateur.Connection, cluster: Cluster, table_name: str, kind: str, count: int
) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS[kind]}")
    table = conn.table(table_name)
    odd = [2 * number + 1 for number in range(count)]
    table.load({"id": odd, "price": [1.0] * count, "name": ["old"] * count, "tags": [None] * count})
    before = {row["id"]: row for row in conn.execute(f"FROM {table_name}").fetch_arrow_table().to_pylist()}
    table.load({"id": [*odd, 9001, 9003], "price": [2.0] * (count + 2)}, "upsert")
    after = {row["id"]: row for row in conn.execute(f"FROM {table_name}").fetch_arrow_table().to_pylist()}
    assert {id_: after[id_] for id_ in odd} == {id_: {**row, "price": 2.0} for id_, row in before.items()}
    new = [after[9001], after[9003]]
    assert [(row["name"], row["tags"]) for row in new] == [("new", ["t"])] * 2
    assert len({row["u"] for row in after.values()}) == count + 2
    assert len({row["made"] for row in new}) == 1
    with pytest.raises(CheckFailedError, match="odd"):
        table.load({"id": [*odd, -2], "price": [3.0] * (count + 1)}, "upsert")
    with pytest.raises(CheckFailedError, match="odd"):
        table.put({"id": -2})
    if kind != "replicated":
        copies = [rows for rows in copies_of(cluster, table_name).values() if len(rows) > 1]
        assert copies
        assert all(rows == rows_there for rows, rows_there in copies), "a backup has what its primary has"


def test_a_put_has_defaults_where_the_row_is_new(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS}")
    table = conn.table(table_name)

    def row() -> dict[str, Any]:
        (found,) = conn.execute(f"FROM {table_name} WHERE id = 1").fetch_arrow_table().to_pylist()
        return dict(found)

    table.put({"id": 1})
    first = row()
    table.put({"id": 1, "price": 3.0})
    assert row() == {**first, "price": 3.0}
    table.put({"id": 1}, missing="null")
    last = row()
    assert (last["price"], last["name"], last["tags"]) == (None, "new", ["t"])
    assert last["u"] != first["u"]
    assert last["made"] > first["made"]
    table.put_many([{"id": 3, "name": "x"}, {"id": 5, "price": 1.0}], missing="null")
    read = f"SELECT name, price FROM {table_name} WHERE id > 1 ORDER BY id"
    assert conn.execute(read).fetchall() == [("x", None), ("new", 1.0)]


def test_all_defaults_of_one_call_have_the_same_time(conn: secateur.Connection, table_name: str) -> None:
    clocks = [f"c{number} TIMESTAMPTZ DEFAULT now()" for number in range(30)]
    conn.execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY, {', '.join(clocks)})")
    table = conn.table(table_name)
    all_but_one = {f"c{number}": None for number in range(29)}
    table.put({"id": 1})
    table.load([{"id": 2}, {"id": 3, **all_but_one}])  # one column is named by no row
    conn.execute(f"INSERT INTO {table_name} (id) VALUES (4)")
    conn.execute(f"INSERT INTO {table_name} (id) VALUES (length(repeat('a', 5)))")
    conn.execute(f"INSERT INTO {table_name} (id) SELECT 6")
    conn.execute(f"INSERT INTO {table_name} (id, c0) VALUES (7, NULL) ON CONFLICT (id) DO UPDATE SET c0 = excluded.c0")
    for number, *times in conn.execute(f"SELECT * FROM {table_name} WHERE id <> 3 ORDER BY id").fetchall():
        assert len({time for time in times if time is not None}) == 1, number


def test_rows_of_a_load_that_name_other_columns_than_others(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS}")
    table = conn.table(table_name)
    table.load([{"id": 1, "name": "a", "price": 1.0}, {"id": 3, "price": 2.0}])
    assert conn.execute(f"SELECT id, name FROM {table_name} ORDER BY id").fetchall() == [(1, "a"), (3, "new")]
    with pytest.raises(DataError, match="'price'"):
        table.load([{"id": 7, "price": 1.0}, {"id": 9}])
    with pytest.raises(NullKeyError, match="name"):
        table.load([{"id": 7, "price": 1.0, "name": None}])
    with pytest.raises(DataError, match="the data lack price:"):
        table.load({"id": [7]})


def test_asyncio(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    async def write() -> None:
        async with await secateur.aio.connect(cluster.address, token=cluster.token) as other:
            table = await other.table(table_name)
            await table.load({"id": [1], "price": [1.0]})
            await table.put({"id": 3})
            await other.execute(f"INSERT INTO {table_name} (id) VALUES (?)", [5])
            with pytest.raises(CheckFailedError):
                await table.put({"id": 2})

    conn.execute(f"CREATE TABLE {table_name} {COLUMNS}")
    asyncio.run(write())
    read = f"SELECT id, name, count(DISTINCT u), count(made) FROM {table_name} GROUP BY ALL ORDER BY id"
    assert conn.execute(read).fetchall() == [(1, "new", 1, 1), (3, "new", 1, 1), (5, "new", 1, 1)]


def test_a_key_with_a_default(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k UUID DEFAULT uuidv7() PRIMARY KEY, v INTEGER)")
    table = conn.table(table_name)
    conn.execute(f"INSERT INTO {table_name} (v) VALUES (1), (2)")
    for number in range(3):
        conn.execute(f"INSERT INTO {table_name} (v) VALUES (?)", [number])
    conn.execute(f"INSERT INTO {table_name} (v) SELECT 7 FROM range(3) ON CONFLICT DO UPDATE SET v = 8")
    conn.execute(f"INSERT INTO {table_name} DEFAULT VALUES")
    table.load({"v": [1, 2]})
    table.load({"v": [1, 2]}, "upsert")
    table.put({"v": 1})
    rows = conn.execute(f"SELECT k, v FROM {table_name}").fetchall()
    assert len(rows) == len({key for key, _ in rows}) == 14
    assert {key.version for key, _ in rows} == {7}
    for key, v in rows:
        assert table.get(key) == (key, v), "it is where its key says"


def test_the_clock_of_a_default_alone_leaves_a_change_its_stages(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, v BIGINT, made TIMESTAMPTZ DEFAULT now())")
    merge = (
        f"MERGE INTO {table_name} t USING (SELECT id + 1 AS id, count(*) AS v FROM {table_name} GROUP BY ALL) s"
        " USING (id) WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    conn.execute(f"INSERT INTO {table_name} (id, v) VALUES (1, 1)")
    shown = "\n".join(line for (line,) in conn.execute(f"EXPLAIN {merge}").fetchall())
    assert "do not bind" not in shown
    assert conn.execute(merge).rowcount == 1
    assert conn.execute(f"SELECT id FROM {table_name} WHERE made <= now() ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_row_that_is_sent_again_after_a_loss_is_the_same() -> None:
    """The first backup has the row when the primary dies, and the other one has not: the client sends it again."""
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        runtime: Any = cluster._runtime
        with cluster.connect() as conn, cluster.connect() as other, ThreadPoolExecutor(1) as pool:
            conn.execute(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, u UUID DEFAULT uuid(), made TIMESTAMPTZ DEFAULT now())"
                " PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 2"
            )
            insert = "INSERT INTO t (id) VALUES (?)"
            other.execute(insert, [-1])
            table = conn.table("t")
            key = next(key for key in range(1000) if table.owner_of(table.partition_of({"id": key})) == "m1")
            partition = table.partition_of({"id": key})
            topology = conn._session.topology
            _, first, second = topology.ownership(table.scheme.affinity_group()).holders(partition)
            held = Held(cluster, runtime._members[second].handlers, Operation.WRITE_COPY)
            inserting = pool.submit(other.execute, insert, [key])
            assert held.arrived.wait(20)

            async def read() -> list[dict[str, Any]]:
                store = runtime._members[first]._storage.store
                rows: pa.Table = store.relation(store.tables()[0].table_id, [partition])
                return [row for row in rows.to_pylist() if row["id"] == key]

            eventually(lambda: bool(runtime._loop.run(read())), "the first backup has the row")
            (stored,) = runtime._loop.run(read())
            cluster.kill_member("m1")
            held.drop()
            assert inserting.result(30).rowcount == 1
            ((u, made),) = conn.execute("SELECT u, made FROM t WHERE id = ?", [key]).fetchall()
            assert (u, made) == (stored["u"], stored["made"])


def test_they_outlive_restarts(tmp_path: Path) -> None:
    create = f"CREATE TABLE t {COLUMNS} {KINDS['hash']} COMMENT 'it''s'"
    told = ("FROM t", "SHOW CREATE TABLE t")
    before: list[list[Any]] = []
    for turn in range(2):
        running = secateur.start(members=2, runtime="embedded", data_directory=tmp_path)
        with running as cluster, cluster.connect() as conn:
            if not turn:
                conn.execute(create)
                conn.execute("COMMENT ON COLUMN t.price IS 'in euros'")
                conn.execute("INSERT INTO t (id) VALUES (1)")
                before = [conn.execute(sql).fetchall() for sql in told]
            assert [conn.execute(sql).fetchall() for sql in told] == before
            with pytest.raises(CheckFailedError):
                conn.execute("INSERT INTO t (id) VALUES (2)")
            with pytest.raises(CheckFailedError):
                conn.execute("UPDATE t SET price = 100 WHERE id = ?", [1])


def test_they_are_in_backups_and_in_the_system_tables(
    conn: secateur.Connection, table_name: str, tmp_path: Path
) -> None:
    conn.execute(f"CREATE TABLE {table_name} {COLUMNS} {KINDS['hash']}")
    conn.execute(f"COMMENT ON TABLE {table_name} IS 'a table'")
    conn.execute(f"COMMENT ON COLUMN {table_name}.name IS 'its name'")
    conn.execute(f"COMMENT ON COLUMN {table_name}.tags IS 'x'")
    conn.execute(f"COMMENT ON COLUMN {table_name}.tags IS NULL")
    conn.execute(f"INSERT INTO {table_name} (id) VALUES (1)")
    of_it = f"WHERE table_name = '{table_name}'"
    told = [
        f"FROM {table_name}",
        f"DESCRIBE {table_name}",
        f"SELECT sql, comment FROM secateur.tables {of_it}",
        f"SELECT column_name, column_default, comment FROM secateur.columns {of_it}",
        f"SELECT * FROM secateur.checks {of_it}",
        f"SELECT constraint_name, constraint_type FROM information_schema.table_constraints {of_it}",
    ]
    before = [conn.execute(sql).fetchall() for sql in told]
    assert [row[4] for row in before[1]] == [None, None, "'new'", "uuid()", "now()", "['t']"]
    assert before[2][0][1] == "a table"
    assert [row for row in before[3] if row[2]] == [("name", "'new'", "its name")]
    assert before[4] == [
        (table_name, f"{table_name}_price_check", "price < 100", ["price"]),
        (table_name, "odd", "id % 2 = 1 OR name <> 'new'", ["id", "name"]),
    ]
    conn.execute(f"BACKUP TABLE {table_name} TO '{tmp_path / 'backup'}'")
    conn.execute(f"DROP TABLE {table_name}")
    conn.execute(f"RESTORE TABLE {table_name} FROM '{tmp_path / 'backup'}'")
    assert [conn.execute(sql).fetchall() for sql in told] == before
    with pytest.raises(CheckFailedError):
        conn.execute(f"INSERT INTO {table_name} (id) VALUES (2)")


def test_a_check_that_cannot_be_evaluated_is_an_error(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, v VARCHAR CHECK (CAST(v AS INTEGER) > 0))")
    conn.execute(f"INSERT INTO {table_name} VALUES (1, '5')")
    with pytest.raises(DataError, match=f"CHECK of {table_name}_v_check cannot be evaluated"):
        conn.execute(f"INSERT INTO {table_name} VALUES (2, 'five')")
    with pytest.raises(DataError, match="cannot be evaluated"):
        conn.execute(f"UPDATE {table_name} SET v = ?", ["five"])
    assert conn.execute(f"FROM {table_name}").fetchall() == [(1, "5")]
