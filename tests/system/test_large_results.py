"""Results that are larger than what anybody wants to hold: they come in parts, as they are read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection, Iterator

import duckdb
import pyarrow as pa
import pytest
from asked_members import ask_members, executions
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DataError,
    DeadlineError,
    InterfaceError,
    JobCancelledError,
    LimitExceededError,
    MemberLostError,
)
from secateur.protocol import GetMemberStats, MemberStats

pytestmark = pytest.mark.sampled(one_in=3)

ROWS = 400_000
DDL = "CREATE TABLE big (id BIGINT PRIMARY KEY, v DOUBLE, s VARCHAR) PARTITION BY HASH (id) PARTITIONS 24 BACKUPS 0"
PART = 4 << 20


def rows() -> pa.Table:
    ids = pa.array(range(ROWS), pa.int64())
    texts = pa.array([None if n % 11 == 0 else f"{n % 7}" + "x" * 100 for n in range(ROWS - 1)] + ["last"])
    return pa.table({"id": ids, "v": pa.array([float(n % 1000) for n in range(ROWS)]), "s": texts})


ALONE = pytest.param("1 embedded", marks=pytest.mark.sampled(one_in=3))
ON_RAY = pytest.param("3 ray", marks=[pytest.mark.ray, pytest.mark.slow])


@pytest.fixture(scope="module", params=[ALONE, "3 embedded", ON_RAY])
def large(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    members, _, runtime = request.param.partition(" ")
    with secateur.start(
        members=int(members),
        runtime=runtime,
        member_silence_s=10.0,
        result_bytes_max=64 << 20,
        gathered_bytes_max=64 << 20,
    ) as cluster:
        with cluster.connect() as conn:
            conn.execute(DDL)
            conn.execute("CREATE TABLE kinds (k DOUBLE PRIMARY KEY, name VARCHAR) REPLICATED")
            conn.table("big").load(rows())
            conn.execute("INSERT INTO kinds VALUES (1, 'one'), (2, 'two')")
        yield cluster


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.register("given", rows())
    con.execute("CREATE TABLE big AS FROM given")
    con.execute("CREATE TABLE kinds AS SELECT * FROM (VALUES (1.0::DOUBLE, 'one'), (2.0, 'two')) t(k, name)")
    return con


def stats(cluster: Cluster) -> Collection[MemberStats]:
    """What the members say of themselves."""
    return ask_members(cluster, GetMemberStats(), only_living=True).values()


def nothing_is_open(cluster: Cluster) -> bool:
    return executions(cluster, only_living=True) == 0


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM big", id="a table as it is"),
        pytest.param("SELECT id, v * 2 AS w, s FROM big WHERE v < 900", id="some columns of some rows"),
        pytest.param("SELECT upper(s) AS u, id FROM big", id="an expression that only one kernel knows"),
        pytest.param("SELECT * FROM big ORDER BY v, id", id="in order"),
        pytest.param("SELECT b.*, k.name FROM big b LEFT JOIN kinds k ON b.v = k.k", id="a join"),
        pytest.param(
            "SELECT b.id, b.s, c.v + 1 AS w FROM big b JOIN big c ON b.v = c.id", id="a join of rows that move"
        ),
        pytest.param("SELECT id, s, row_number() OVER (ORDER BY id) AS n FROM big", id="a window"),
    ],
)
def test_parts_are_the_whole(large: Cluster, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    expected = oracle.sql(f"FROM ({sql}) ORDER BY id").to_arrow_table()
    with large.connect() as conn:
        cursor = conn.execute(sql)
        assert cursor.rowcount == -1
        found = cursor.fetch_arrow_table()
        assert (
            cursor.rowcount == cursor.rownumber == ROWS if found.num_rows == ROWS else cursor.rowcount == found.num_rows
        )
        if "ORDER BY v" in sql:
            assert found.column("v").to_pylist() == sorted(found.column("v").to_pylist())
        assert found.sort_by("id").cast(expected.schema).equals(expected)
        eventually(lambda: nothing_is_open(large))


@pytest.mark.smoke
def test_a_large_rest_of_a_query_in_steps_comes_in_parts(large: Cluster) -> None:
    """Whether the member that ran the step has the rows as well, or another one."""
    sql = "SELECT id + r.range AS n, s FROM big, range(60000) r WHERE id = (SELECT v::BIGINT FROM big WHERE id = ?)"
    with large.connect() as conn:
        big = conn.table("big")
        for same in (True, False):
            keys = [1000 + key for key in range(1, 100)]
            owners = {key: {big.owner_of(big.partition_of({"id": id})) for id in (key, key % 1000)} for key in keys}
            key = next((key for key in keys if (len(owners[key]) == 1) is same), None)
            if key is not None:
                cursor = conn.execute(sql, [key])
                assert cursor.rowcount == -1
                assert cursor.stats is not None
                assert cursor.stats.members_touched == len(owners[key])
                assert set(cursor.fetch_arrow_table().column("n").to_pylist()) == set(
                    range(key % 1000, key % 1000 + 60_000)
                )
                eventually(lambda: nothing_is_open(large))


def test_every_way_to_read(large: Cluster) -> None:
    sql = "SELECT id, s FROM big"
    with large.connect() as conn:
        ids = list(range(ROWS))
        assert sorted(row for row, _ in conn.execute(sql).fetchall()) == ids
        assert sorted(row for row, _ in conn.execute(sql)) == ids
        cursor, some = conn.execute(sql), []
        first = cursor.fetchone()
        assert first is not None
        while rows := cursor.fetchmany(70_000):
            some += rows
        assert sorted(row for row, _ in [first, *some]) == ids
        assert cursor.fetchone() is None
        assert cursor.rowcount == ROWS
        reader = conn.execute(sql).fetch_record_batch(10_000)
        batches = list(reader)
        assert max(batch.num_rows for batch in batches) == 10_000
        assert sorted(pa.Table.from_batches(batches).column("id").to_pylist()) == ids
        assert len(conn.execute(sql).fetch_df()) == ROWS
    eventually(lambda: nothing_is_open(large))


@pytest.mark.parametrize("limit", [0, 10, ROWS], ids=["no rows", "few rows", "in parts"])
def test_other_libraries_take_a_cursor_as_it_is(large: Cluster, limit: int) -> None:
    """DuckDB exports a stream three times before it reads it: looking at the columns takes no rows."""
    sql = f"SELECT id, s FROM big WHERE id < {limit}"
    with large.connect() as conn:
        cursor = conn.execute(sql)
        assert duckdb.sql("SELECT count(*), count(DISTINCT id) FROM cursor").fetchall() == [(limit, limit)]
        assert cursor.fetchall() == []
        cursor = conn.execute(sql)
        assert (pa.table(cursor).num_rows, pa.table(cursor).num_rows) == (limit, 0)
        cursor = conn.execute(sql)
        reader = pa.RecordBatchReader.from_stream(cursor)
        assert reader.schema.names == ["id", "s"]
        assert sum(batch.num_rows for batch in reader) == limit


def test_a_small_result_is_one_answer(large: Cluster) -> None:
    with large.connect() as conn:
        conn.execute("SELECT count(*) FROM big").fetchall()
        before = sum(member.frames_received for member in large.members())
        cursor = conn.execute("SELECT id, v FROM big WHERE id < 20000")
        assert cursor.rowcount == 20_000
        reader = cursor.fetch_record_batch(7_000)
        assert [batch.num_rows for batch in reader] == [7_000, 7_000, 6_000]
        members = len(large.members())
        assert sum(member.frames_received for member in large.members()) - before <= 1 + 12 * (members - 1)
        assert nothing_is_open(large)


ONE_TABLE = "SELECT id, v + 1 AS w, s || s || s || s || s AS t FROM big"
ORDERED = "SELECT id, v, s || s || s || s || s AS t FROM big ORDER BY v DESC, id"
JOINED_IN_ORDER = (
    "SELECT b.id, b.v, b.s || b.s || b.s || b.s || b.s AS t FROM big b LEFT JOIN kinds k ON b.v = k.k ORDER BY b.v"
    " DESC, b.id"
)
JOINED = "SELECT b.id, k.name, b.s || b.s || b.s || b.s || b.s AS t FROM big b LEFT JOIN kinds k ON b.v = k.k"
MOVED = (
    "SELECT b.id, c.v + 1 AS w, b.s || b.s || b.s || b.s || b.s AS t FROM big b JOIN (SELECT id, v FROM big) c ON b.v ="
    " c.id"
)


@pytest.mark.parametrize("sql", ["SELECT * FROM big", JOINED_IN_ORDER], ids=["one table", "a join in order"])
@pytest.mark.parametrize("end", ["close", "execute", "forget", "hang up"])
def test_who_does_not_want_the_rest_ends_the_statement(large: Cluster, end: str, sql: str) -> None:
    conn = large.connect()
    cursor = conn.execute(sql)
    assert cursor.fetchone() is not None
    assert sum(member.open_results for member in stats(large)) == 1
    match end:
        case "close":
            cursor.close()
        case "execute":
            assert cursor.execute("SELECT 1 AS one FROM kinds WHERE k = 1").fetchall() == [(1,)]
        case "forget":
            del cursor
            gc.collect()
        case _:
            conn.close()
    eventually(lambda: nothing_is_open(large))
    conn.close()


def test_a_reader_of_a_closed_cursor_says_so(large: Cluster) -> None:
    with large.connect() as conn:
        cursor = conn.execute("SELECT * FROM big")
        reader = cursor.fetch_record_batch()
        next(reader)
        cursor.close()
        with pytest.raises(InterfaceError, match="was closed or has executed something else"):
            list(reader)
        with pytest.raises(InterfaceError, match="at least one row"):
            conn.execute("SELECT * FROM kinds").fetch_record_batch(0)


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(
    "sql", [ONE_TABLE, JOINED, MOVED, ORDERED], ids=["one table", "a join", "a join of rows that move", "in order"]
)
def test_a_slow_reader_holds_up_the_members(large: Cluster, sql: str) -> None:
    with large.connect() as conn:
        gc.collect()
        before = pa.total_allocated_bytes()
        cursor = conn.execute(sql)  # 200 MB
        for _ in range(5):
            assert cursor.fetchmany(10_000)
            # A statement that may have to be run in another form has more ready when it begins.
            assert sum(member.open_result_bytes for member in stats(large)) <= 5 * PART
            # All members are in this process: what waits at each of them, and on its way between them. It differs with
            # who is ahead of whom.
            assert pa.total_allocated_bytes() - before <= 28 * PART
        assert sum(member.open_results for member in stats(large)) == 1
        cursor.close()
        eventually(lambda: nothing_is_open(large))


@pytest.mark.parametrize("sql", [ORDERED, JOINED_IN_ORDER], ids=["one table", "a join"])
def test_more_rows_in_order_than_a_member_may_gather(large: Cluster, sql: str) -> None:
    order: list[tuple[float, int]] = []
    with large.connect() as conn:
        if len(large.members()) > 1:
            eventually(lambda: "merge " in str(conn.explain(sql)))  # once somebody has looked how large the table is
        for batch in conn.execute(sql).fetch_record_batch():
            order += zip(batch.column("v").to_pylist(), batch.column("id").to_pylist(), strict=True)
    assert order == sorted(((float(n % 1000), n) for n in range(ROWS)), key=lambda row: (-row[0], row[1]))


def test_an_error_that_comes_late_says_so(large: Cluster) -> None:
    with large.connect() as conn:
        table = conn.table("big")
        last = max(
            range(0, ROWS, 97), key=lambda n: (table.partition_of({"id": n}), n)
        )  # of the last partition, so among the last rows of a member
        cursor = conn.execute(
            JOINED.replace("b.id,", f"b.id, CAST(CASE WHEN b.id = {last} THEN 'last' ELSE '1' END AS INTEGER) AS n,")
        )
        late = "rows of the result had been read when this came up" if len(large.members()) > 1 else "last"
        with pytest.raises(DataError, match=late):
            cursor.fetchall()
        eventually(lambda: nothing_is_open(large))


def test_a_result_that_is_being_read_is_running(large: Cluster) -> None:
    def shown() -> list[tuple[str, int | None]]:
        with large.connect() as other:
            sql = "SELECT state, rows FROM secateur.statements WHERE statement = ? ORDER BY started DESC LIMIT 1"
            return [(state, rows) for state, rows in other.execute(sql, [JOINED])]

    with large.connect() as conn:
        cursor = conn.execute(JOINED)
        cursor.fetchmany(10)
        ((state, rows),) = shown()
        assert (state, 10 <= (rows or 0) < ROWS) == ("running", True)
        cursor.fetchall()
        assert shown() == [("done", ROWS)]


def test_an_error_in_the_middle_comes_where_the_rows_would(large: Cluster) -> None:
    with large.connect() as conn:
        cursor = conn.cursor()
        with pytest.raises(
            DataError, match="last"
        ):  # of several members one may be there before the first part is full
            cursor.execute(
                "SELECT id, s, CAST(CASE WHEN s = 'last' THEN s ELSE '1' END AS INTEGER) AS n FROM big"
            ).fetchall()
        if len(large.members()) == 1:
            assert (cursor.rownumber or 0) > 10_000
            with pytest.raises(DataError, match="last"):
                cursor.fetchone()
        eventually(lambda: nothing_is_open(large))
        assert cursor.execute("SELECT count(*) FROM kinds").fetchall() == [(2,)]


@pytest.mark.smoke
def test_cursors_of_one_connection_take_turns(large: Cluster) -> None:
    with large.connect() as conn:
        cursors = [conn.execute("SELECT id, s FROM big") for _ in range(3)]
        seen: list[list[int]] = [[], [], []]
        while len(seen[2]) < ROWS:
            for cursor, ids in zip(cursors, seen, strict=True):
                ids += [row for row, _ in cursor.fetchmany(90_000)]
            assert conn.execute("SELECT name FROM kinds WHERE k = 2").fetchall() == [("two",)]
        assert all(sorted(ids) == list(range(ROWS)) for ids in seen)


def test_a_statement_that_takes_long_does_not_hold_up_another(large: Cluster) -> None:
    begun, over = threading.Event(), threading.Event()
    with large.connect() as conn:

        def slow() -> None:
            begun.set()
            conn.execute(
                "SELECT count(*) FROM big a JOIN big b ON a.v = b.v AND a.id < 40000 AND b.id % 3 = 0"
            ).fetchall()
            over.set()

        thread = threading.Thread(target=slow)
        thread.start()
        begun.wait()
        for _ in range(5):
            assert conn.execute("SELECT name FROM kinds WHERE k = 1").fetchall() == [("one",)]
        thread.join()
        assert over.is_set()


def test_a_statement_that_takes_longer_than_its_client_waits_is_stopped(large: Cluster) -> None:
    with secateur.connect(large.address, timeout_s=1.5) as conn:
        with pytest.raises(DeadlineError):
            conn.execute("SELECT a.id, b.id FROM big a, big b, big c ORDER BY a.v + b.v + c.v LIMIT 3").fetchall()
        eventually(lambda: nothing_is_open(large))


def test_results_that_are_made_whole_have_a_limit(large: Cluster) -> None:
    with large.connect() as conn:
        wide = "SELECT id, s || s || s AS t FROM big"
        conn.execute("SET pruning = verify")  # which compares two results that are there
        with pytest.raises(LimitExceededError, match="result_bytes_max"):
            conn.execute(wide).fetchall()
        eventually(lambda: nothing_is_open(large))
        conn.execute("SET pruning = on")
        assert sum(batch.num_rows for batch in conn.execute(wide).fetch_record_batch()) == ROWS


def test_what_is_gathered_has_a_limit(large: Cluster) -> None:
    with large.connect() as conn:
        wide = "SELECT id, s || s || s AS t, row_number() OVER (ORDER BY s || id::VARCHAR) AS n FROM big"
        if len(large.members()) > 1:
            with pytest.raises(LimitExceededError, match="gathered_bytes_max"):
                conn.execute(wide.replace("FROM big", "FROM (SELECT DISTINCT id, s || s AS s FROM big)")).fetchall()
            eventually(lambda: nothing_is_open(large))
        else:
            assert sum(batch.num_rows for batch in conn.execute(wide).fetch_record_batch()) == ROWS


@pytest.mark.parametrize("sql", [MOVED, JOINED_IN_ORDER], ids=["a join of rows that move", "a join in order"])
def test_a_member_that_is_lost_in_the_middle_is_named(sql: str) -> None:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute(DDL)
        conn.execute("CREATE TABLE kinds (k DOUBLE PRIMARY KEY, name VARCHAR) REPLICATED")
        conn.table("big").load(rows())
        cursor = conn.execute(sql)
        assert cursor.fetchone() is not None
        cluster.kill_member("m2")
        with pytest.raises((MemberLostError, JobCancelledError), match="m2"):
            cursor.fetchall()
        eventually(lambda: nothing_is_open(cluster))


def test_a_long_value_without_a_table_travels_as_rows(conn: secateur.Connection) -> None:
    for _ in range(2):  # the second time with a plan that is known
        (row,) = conn.execute("SELECT list(i), 7 FROM range(3000000) AS r(i)").fetchall()
        assert (len(row[0]), row[0][-1], row[1]) == (3_000_000, 2_999_999, 7)
        ((text,),) = conn.execute("SELECT repeat('x', 20000000)").fetchall()
        assert len(text) == 20_000_000
