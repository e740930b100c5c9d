"""Tokens that are good for some tables only: every way to rows, names and statistics of other tables is closed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from raw_frames import RawConnection
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, ProgrammingError, TopologyChangedError, UnknownTableError
from secateur.protocol import (
    MEMBER_OPERATIONS,
    AbortLoad,
    BoundChanges,
    ChangeMany,
    ChangeOnePartition,
    ChangeSeveralPartitions,
    ChangeTable,
    CloseResult,
    CloseSnapshot,
    DuplicateMatchPolicy,
    Execute,
    ExecuteFirstStage,
    ExecuteMany,
    ExplainRequest,
    GetJobMetrics,
    GetJobPlan,
    GetOwnerPages,
    GetOwners,
    GetRanges,
    GetReturnedRows,
    GetRows,
    GetTables,
    GetTableVersions,
    GetTopology,
    Hello,
    ListJobs,
    MakeRanges,
    Message,
    NextRows,
    OpenSnapshot,
    Operation,
    Prepare,
    PreparedAnswer,
    Profile,
    PublishLoad,
    QueryPart,
    ReadChanges,
    ReadSnapshot,
    RefreshStatistics,
    SelectStatement,
    StageRows,
    SteppedQuery,
    Tables,
    TokenRole,
    WaitForJob,
    WriteMany,
    WriteRows,
    decode,
    encode,
    operation_of,
)
from secateur.server import HttpServer

READER, WRITER = "read on orders, seen", "write on orders; read on items"
ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "v": pa.array(range(20), pa.int64())})
LONG_LIST = ", ".join(map(str, range(2000)))

Connect = Callable[[str], secateur.Connection]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    files = tmp_path_factory.mktemp("external")
    pq.write_table(ROWS, files / "rows.parquet")
    with (
        secateur.start(
            members=2, runtime="embedded", member_silence_s=10.0, external_directories=[str(files)]
        ) as running,
        running.connect() as conn,
    ):
        for name in ("orders", "items", "secret"):
            conn.execute(
                f"CREATE TABLE {name} (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4"
                " WITH (change_feed = true)"
            )
            conn.table(name).load(ROWS)
        splits = ", ".join(map(str, range(200)))
        conn.execute(
            "CREATE TABLE hidden_ranges (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY RANGE (id)"
            f" SPLIT AT ({splits})"
        )
        conn.execute("CREATE VIEW seen AS SELECT id, v FROM orders")
        conn.execute("CREATE VIEW unseen AS SELECT id, v FROM orders")
        conn.execute("CREATE VIEW mixed AS SELECT o.id, s.v FROM orders o JOIN secret s ON o.id = s.id")
        conn.execute(f"CREATE EXTERNAL TABLE outside STORED AS PARQUET LOCATION '{files}'")
        yield running


@pytest.fixture
def bearer(own: Cluster) -> Iterator[Connect]:
    """Connects with a token of some grants."""
    with ExitStack() as stack:
        yield lambda role: stack.enter_context(secateur.connect(own.address, own.tokens.create(role).token))


ALLOWED = {
    "SELECT v FROM orders WHERE id = 3": READER,
    "SELECT v FROM ORDERS WHERE id IN (1, 2, 3, 4, 5) ORDER BY v": READER,
    "SELECT sum(v) FROM orders": READER,
    "SELECT count(*) FROM seen": READER,
    "WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o WHERE id IN (SELECT id FROM seen)": READER,
    "EXPLAIN ANALYZE SELECT sum(v) FROM orders": READER,
    "DESCRIBE orders": READER,
    "SUMMARIZE orders": READER,
    "SELECT 1": READER,
    "SET pruning = off": READER,
    "SHOW pruning": READER,
    "SELECT o.v FROM orders o JOIN items i ON o.id = i.id ORDER BY ALL": WRITER,
    "INSERT OR REPLACE INTO orders VALUES (1, 1)": WRITER,
    "INSERT OR REPLACE INTO orders SELECT id, v FROM items": WRITER,
    "UPDATE orders SET v = v WHERE id = 1": WRITER,
    "UPDATE orders SET v = v": WRITER,
    "UPDATE orders SET v = orders.v FROM items WHERE items.id = orders.id RETURNING orders.id": WRITER,
    "DELETE FROM orders WHERE id < -1": WRITER,
    "DELETE FROM orders WHERE id IN (SELECT -id - 1 FROM items)": WRITER,
    "MERGE INTO orders o USING items i ON o.id = i.id WHEN MATCHED THEN UPDATE SET v = o.v": WRITER,
    f"SELECT count(*) FROM orders WHERE id IN ({LONG_LIST})": READER,
    "SELECT count(*) FROM secateur.members": "read on secateur.members",
    "SHOW TABLES": "read on secateur.tables",
    "SHOW JOBS": "read on secateur.jobs",
    "SELECT count(*) FROM outside": "read on outside",
    "SELECT count(*) FROM mixed": "read on mixed, orders, secret",
}
READ_ELSEWHERE = [
    "SELECT * FROM secret",
    "SELECT v FROM SeCrEt WHERE id = 3",
    'SELECT count(*) FROM "secret"',
    "SELECT v FROM secret WHERE id IN (1, 2, 3)",
    "SELECT o.v FROM orders o JOIN secret s ON o.id = s.id",
    "SELECT o.v FROM orders o LEFT JOIN secret s ON o.id = s.id",
    "SELECT o.v FROM orders o, secret s",
    "WITH s AS (SELECT * FROM secret) SELECT * FROM s",
    "WITH s AS (SELECT * FROM secret) SELECT count(*) FROM orders",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, secret WHERE n < 3) SELECT * FROM r",
    "SELECT v FROM orders WHERE id IN (SELECT id FROM secret)",
    "SELECT v FROM orders WHERE id = (SELECT max(id) FROM secret)",
    "SELECT (SELECT count(*) FROM secret)",
    "SELECT v FROM orders o WHERE EXISTS (SELECT 1 FROM secret s WHERE s.id = o.id)",
    "SELECT v FROM orders UNION ALL SELECT v FROM secret",
    "SELECT v FROM orders EXCEPT SELECT v FROM secret",
    "SELECT * FROM orders o, LATERAL (SELECT v FROM secret s WHERE s.id = o.id) x",
    "SELECT count(*) FROM orders ORDER BY (SELECT max(v) FROM secret)",
    "SELECT 1 FROM secret WHERE false",
    f"SELECT count(*) FROM secret WHERE id IN ({LONG_LIST})",
    "FROM secret",
    "SELECT * FROM unseen",
    "SELECT * FROM mixed",
    "SELECT * FROM outside",
    "EXPLAIN SELECT * FROM secret",
    "EXPLAIN (FORMAT JSON) SELECT * FROM secret",
    "EXPLAIN ANALYZE SELECT * FROM secret",
    "DESCRIBE secret",
    "DESCRIBE SELECT * FROM secret",
    "SHOW CREATE TABLE secret",
    "SHOW COLUMNS FROM secret",
    "SUMMARIZE secret",
    "SUMMARIZE SELECT * FROM secret",
    "SHOW CREATE VIEW unseen",
    "SHOW STATEMENTS",
    "SELECT * FROM secateur.statements",
    "SELECT * FROM secateur.partitions",
    "SELECT * FROM secateur.loads",
    "SELECT * FROM secateur.jobs",
    "COPY secret TO 'rows.parquet'",
    "COPY (SELECT * FROM orders JOIN secret USING (id)) TO 'rows.parquet'",
    "BACKUP TO 'saved'",
    "BACKUP TABLE orders, secret TO 'saved'",
    "BACKUP TABLE secret TO 'saved'",
    "SELECT * FROM no_such_table",
]
WRITTEN_ELSEWHERE = [
    "INSERT INTO secret VALUES (100, 1)",
    "INSERT INTO items VALUES (100, 1)",
    "INSERT INTO items SELECT id + 100, v FROM orders",
    "INSERT INTO orders SELECT id + 100, v FROM secret",
    "INSERT INTO orders VALUES (100, (SELECT max(v) FROM secret))",
    "INSERT INTO items VALUES (1, 1) ON CONFLICT DO UPDATE SET v = v + 1",
    "INSERT OR REPLACE INTO items VALUES (1, 1) RETURNING v",
    "UPDATE items SET v = 0 WHERE id = 1",
    "UPDATE items SET v = 0",
    "UPDATE secret SET v = 0 WHERE id = 1",
    "UPDATE orders SET v = s.v FROM secret s WHERE s.id = orders.id",
    "UPDATE orders SET v = (SELECT max(v) FROM secret)",
    "DELETE FROM items WHERE id = 1",
    "DELETE FROM items",
    "DELETE FROM orders WHERE id IN (SELECT id FROM secret)",
    "TRUNCATE items",
    "MERGE INTO items i USING orders o ON o.id = i.id WHEN MATCHED THEN DELETE",
    "MERGE INTO orders o USING secret s ON o.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
    "COPY items FROM 'rows.parquet'",
    "EXPLAIN UPDATE items SET v = 0",
    "EXPLAIN ANALYZE DELETE FROM items",
    "WITH s AS (SELECT * FROM secret) INSERT INTO orders SELECT id + 100, v FROM s",
]
DEFINED = [
    "CREATE VIEW mine AS SELECT * FROM orders",
    "CREATE TABLE copied PRIMARY KEY (id) AS SELECT * FROM orders",
    "CREATE INDEX orders_v ON orders (v)",
    "DROP TABLE orders",
    "SET GLOBAL pruning = off",
    "KILL 'm1:1'",
    "RESTORE FROM 'saved'",
]


def state(own: Cluster) -> Any:
    with own.connect() as conn:
        tables = ("orders", "items", "secret")
        return [conn.execute(f"SELECT count(*), sum(v), sum(id) FROM {name}").fetchall() for name in tables]


@pytest.mark.parametrize("sql", [pytest.param(sql, id=sql[:80]) for sql in ALLOWED])
def test_what_was_granted_works(own: Cluster, bearer: Connect, sql: str) -> None:
    conn = bearer(ALLOWED[sql])
    with own.connect() as everything:
        expected = everything.execute(sql)
        found = conn.execute(sql)
        if expected.description is not None and "EXPLAIN" not in sql:
            assert comparable(found.fetchall()) == comparable(expected.fetchall())


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in order. SUMMARIZE gives a standard deviation as text; its last digit depends on the order of the rows."""

    def rounded(value: Any) -> Any:
        try:
            return f"{float(value):.12g}" if isinstance(value, str) and "." in value else value
        except ValueError:
            return value

    return sorted(tuple(map(rounded, row)) for row in rows)


def test_tables_with_a_grant_are_listed(own: Cluster, bearer: Connect) -> None:
    conn = bearer("read on orders, seen; write on items")
    mine = [("items",), ("orders",), ("seen",)]
    for listing in (
        "SHOW TABLES",
        "SELECT table_name FROM secateur.tables ORDER BY table_name",
        "SELECT table_name FROM information_schema.tables ORDER BY ALL",
        "SELECT DISTINCT table_name FROM secateur.columns ORDER BY ALL",
        "SELECT DISTINCT table_name FROM information_schema.columns JOIN secateur.tables USING (table_name) ORDER BY 1",
    ):
        assert conn.execute(listing).fetchall() == mine, listing
    for hidden in (
        "SELECT * FROM secateur.tables WHERE table_name = 'secret'",
        "SELECT 1 FROM secateur.tables WHERE 1 // CASE table_name WHEN 'secret' THEN 0 ELSE 1 END = 0",
        "SELECT table_name FROM secateur.checks",
    ):
        assert conn.execute(hidden).fetchall() == []
    with pytest.raises(secateur.Error, match=r"items|orders|seen"):
        conn.execute("SELECT error(table_name) FROM secateur.columns")
    assert bearer("read on secateur.jobs").execute("SHOW TABLES").fetchall() == []
    assert ("secret",) in bearer("read on secateur.tables").execute("SHOW TABLES").fetchall()


@pytest.mark.parametrize("sql", [pytest.param(sql, id=sql[:80]) for sql in READ_ELSEWHERE])
def test_nothing_else_is_read(
    own: Cluster, bearer: Connect, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while nobody has planned it, nor when the cluster knows the plan."""
    monkeypatch.chdir(tmp_path)
    conn = bearer(READER)
    expect_refused(conn, sql)
    if "TO '" not in sql:
        with own.connect() as everything:
            try:
                everything.execute(sql).fetchall()
            except UnknownTableError:
                assert "no_such_table" in sql
        expect_refused(conn, sql)
        expect_refused(bearer(READER), sql)
    assert conn.execute("SELECT v FROM orders WHERE id = 3").fetchall() == [(3,)], "the connection goes on"
    assert not list(tmp_path.iterdir())


def expect_refused(conn: secateur.Connection, sql: str) -> None:
    with pytest.raises(AuthenticationError, match=r"read on orders, seen") as refused:
        conn.execute(sql).fetchall()
    assert "needs a token" in str(refused.value)
    with pytest.raises(AuthenticationError):
        conn.explain(sql)


@pytest.mark.parametrize("sql", [pytest.param(sql, id=sql[:80]) for sql in [*WRITTEN_ELSEWHERE, *DEFINED]])
def test_nothing_else_is_changed(
    own: Cluster, bearer: Connect, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    before = state(own)
    for role in (READER, WRITER):
        with pytest.raises(AuthenticationError, match="needs a token"):
            bearer(role).execute(sql).fetchall()
    assert state(own) == before


def test_who_may_only_insert_adds_rows_and_learns_none(own: Cluster, bearer: Connect) -> None:
    with own.connect() as everything:
        everything.execute("CREATE TABLE inbox (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 4")
        conn = bearer("insert on inbox; read on orders")
        assert conn.execute("INSERT INTO inbox VALUES (1, 1)").rowcount == 1
        assert conn.execute("INSERT INTO inbox VALUES (?, ?)", [2, 2]).rowcount == 1
        assert conn.execute("INSERT INTO inbox SELECT id + 10, v FROM orders WHERE id < 2").rowcount == 2
        conn.executemany("INSERT INTO inbox VALUES (?, ?)", [(20, 20), (21, 21)])
        conn.table("inbox").load({"id": [30], "v": [30]})
        for sql in (
            "SELECT count(*) FROM inbox",
            "EXPLAIN SELECT v FROM inbox WHERE id = 1",
            "INSERT INTO inbox VALUES (3, 3) RETURNING id",
            "INSERT INTO inbox SELECT id + 100, v FROM inbox",
            "INSERT INTO inbox SELECT id + 100, (SELECT max(v) FROM inbox) FROM orders",
            "INSERT INTO inbox VALUES (1, 7) ON CONFLICT DO NOTHING",
            "INSERT INTO inbox VALUES (1, 7) ON CONFLICT DO UPDATE SET v = 7",
            "INSERT OR IGNORE INTO inbox VALUES (1, 7)",
            "INSERT OR REPLACE INTO inbox VALUES (1, 7)",
            "UPDATE inbox SET v = 7 WHERE id = 1",
            "DELETE FROM inbox WHERE id = 1",
            "MERGE INTO inbox USING orders ON inbox.id = orders.id WHEN NOT MATCHED THEN INSERT VALUES (id, v)",
            "SUMMARIZE inbox",
            "COPY inbox TO 'inbox.csv'",
        ):
            with pytest.raises(AuthenticationError, match="on inbox"):
                conn.execute(sql).fetchall()
        with pytest.raises(AuthenticationError, match="on inbox"):
            conn.table("inbox").get(1)
        with pytest.raises(AuthenticationError, match="on inbox"):
            conn.table("inbox").delete([1])
        with pytest.raises(AuthenticationError, match="update on inbox"):
            conn.table("inbox").load({"id": [1], "v": [7]}, mode="upsert")
        kept = everything.execute("SELECT id, v FROM inbox ORDER BY id").fetchall()
        assert kept == [(1, 1), (2, 2), (10, 0), (11, 1), (20, 20), (21, 21), (30, 30)]
        everything.execute("DROP TABLE inbox")


@pytest.mark.smoke
def test_an_error_names_table_right_and_who_can_give_it(bearer: Connect) -> None:
    with pytest.raises(AuthenticationError) as refused:
        bearer(WRITER).execute("UPDATE items SET v = 0")
    text = str(refused.value)
    assert "'update on items'" in text
    assert "'read on items; write on orders'" in text
    assert "who has a token with the role 'admin' can make one by tokens.create('update on items')" in text


def test_the_other_doors_of_python(own: Cluster, bearer: Connect) -> None:
    conn = bearer(WRITER)
    orders = conn.table("orders")
    assert orders.get(3) is not None
    orders.put({"id": 3, "v": 3})
    orders.load(ROWS, mode="upsert")
    assert conn.table("items").get(3) == (3, 3)
    with pytest.raises(AuthenticationError, match="'read on secret'"):
        conn.table("secret")
    items = conn.table("items")
    for work in (
        lambda: items.put({"id": 1, "v": 5}),
        lambda: items.put_many([{"id": n, "v": 5} for n in range(9)]),
        lambda: items.delete(1),
        lambda: items.delete_many(list(range(9))),
        lambda: items.load(ROWS, mode="upsert"),
        lambda: items.load(ROWS, mode="overwrite"),
    ):
        with pytest.raises(AuthenticationError, match=r"'[a-z, ]+ on items'"):
            work()
    assert list(conn.changes("orders", "earliest"))
    with pytest.raises(AuthenticationError, match="'read on secret'"):
        list(conn.changes("secret", "earliest"))
    with pytest.raises(AuthenticationError, match="all tables"):
        conn.jobs()
    with pytest.raises(AuthenticationError, match="role 'admin'"):
        conn.tokens.create("read")
    job = secateur.Pipeline().read_table("orders").write_to(secateur.connectors.collect())
    with pytest.raises(AuthenticationError, match="role 'code'"):
        conn.submit(job)


# -- past every client of ours


class Plans:
    """Plans that a client without limits has had made, and that every member knows."""

    def __init__(self, own: Cluster) -> None:
        self._own = own

    def of(self, sql: str) -> str:
        with RawConnection(self._own, self._own.address) as raw:
            answer = decode(raw.ask(Operation.PREPARE, encode(Prepare(sql, []))), PreparedAnswer)
        statement = answer.statement
        select = statement if isinstance(statement, SelectStatement) else getattr(statement, "select", None)
        assert isinstance(select, SelectStatement)
        return select.plan_id


def test_requests_past_our_clients_are_refused(own: Cluster) -> None:
    """Each request that a client with the role WRITE may make, about a table that its token does not cover."""
    plans, load, table = Plans(own), secrets.token_hex(8), table_ids(own)
    scheme = reference_of(own, "hidden_ranges")
    read = plans.of("SELECT v FROM secret WHERE id = 3")
    allowed = plans.of("SELECT v FROM orders WHERE id = 3")
    changed, changed_all = plans.of("UPDATE items SET v = 0 WHERE id = 1"), plans.of("UPDATE items SET v = 0")
    stepped = SteppedQuery((), QueryPart(read))
    nested = SteppedQuery((), QueryPart(allowed, SteppedQuery((), QueryPart(read))))
    asked: list[Message[Any]] = [
        Execute(read, [], pruning=True),
        Execute(allowed, [], pruning=True, steps=stepped),
        Execute(allowed, [], pruning=True, steps=nested),
        Profile(Execute(read, [], pruning=True), has_rows=True),
        ExecuteFirstStage(read, [], [[0]], None),
        ExecuteMany(read, [[], []]),
        OpenSnapshot("mine", Execute(read, [], pruning=True), [0], 10.0),
        GetRows(table["secret"], 1, [[3]]),
        ReadChanges(table["secret"], [(0, -2)], 1000),
        BoundChanges(table["secret"], [(0, -2)], 1000, in_rows=True),
        WriteRows(table["items"], 0, "upsert"),
        WriteMany(table["items"], "delete", load, []),
        StageRows(load, table["items"], 0, []),
        ChangeOnePartition(changed, [], pruning=True, operation="upsert", change_id=load),
        ChangeMany(changed, [[]], "upsert", load),
        GetRanges(scheme, []),
        ChangeSeveralPartitions(load, changed_all, [], pruning=True, operation="upsert"),
        ChangeTable(load, "items", table["items"], 1, changed_all, [], True, DuplicateMatchPolicy.FIRST, None, False),
        ChangeTable(load, "orders", table["orders"], 1, read, [], True, DuplicateMatchPolicy.FIRST, None, False),
        ChangeTable(load, "orders", table["orders"], 1, allowed, [], True, DuplicateMatchPolicy.FIRST, read, False),
        MakeRanges("hidden_ranges", table["hidden_ranges"], [1]),
        PublishLoad(load, "items", "overwrite", {}),
        RefreshStatistics("secret"),
        GetTables("secret"),
        Prepare("SELECT * FROM secret", []),
        ExplainRequest("SELECT * FROM secret", []),
        ListJobs(),
        GetJobPlan("none"),
        GetJobMetrics("none"),
        WaitForJob("none", 0),
        ReadSnapshot("theirs", []),
        CloseSnapshot("theirs"),
    ]
    harmless = [
        Hello(),
        GetTopology(),
        GetTableVersions(list(table.values())),
        GetOwners(),
        GetOwnerPages(b"", []),
        NextRows(1),
        CloseResult(),
        GetReturnedRows("none"),
        AbortLoad("none"),
    ]
    covered = {operation_of(message) for message in [*asked, *harmless]}
    assert covered == {operation for operation in Operation if operation.role <= TokenRole.WRITE}
    made = own.tokens.create(WRITER)
    before = state(own)
    for member in own.members():
        with (
            RawConnection(own, member.address) as theirs,
            RawConnection(own, member.address, token=made.token) as at_member,
            RawConnection(own, own.address, token=made.token) as at_controller,
        ):
            owned = plans.of("SELECT v FROM secret")
            theirs.ask(Operation.OPEN_SNAPSHOT, encode(OpenSnapshot("theirs", Execute(owned, [], True), [], 60.0)))
            for message in asked:
                operation = operation_of(message)
                places = [at_member] if operation.code in MEMBER_OPERATIONS else [at_controller]
                if isinstance(message, GetRanges):
                    places = [at_member, at_controller]
                for raw in places:
                    with pytest.raises(AuthenticationError, match="needs a token"):
                        raw.ask(operation, encode(message))
            answer = decode(at_controller.ask(Operation.GET_TABLES, encode(GetTables())), Tables)
            assert sorted(definition.table.name for definition in answer.tables) == ["items", "orders"]
    assert state(own) == before


def definitions(own: Cluster) -> Tables:
    with RawConnection(own, own.address) as raw:
        return decode(raw.ask(Operation.GET_TABLES, encode(GetTables())), Tables)


def table_ids(own: Cluster) -> dict[str, int]:
    return {definition.table.name: definition.table.table_id for definition in definitions(own).tables}


def reference_of(own: Cluster, name: str) -> str:
    (found,) = [one for one in definitions(own).tables if one.table.name == name]
    return found.table.scheme.reference or ""


# -- how they are made


def test_who_may_insert_replaces_no_row_by_the_plan_of_an_insert(own: Cluster) -> None:
    """Its rows are all new, which is looked at where they are published: a member is asked to write them at once."""
    made = own.tokens.create("select, insert on orders")
    before = state(own)
    for number, conflict in enumerate(("", "ON CONFLICT DO NOTHING")):
        plan = Plans(own).of(f"INSERT INTO orders SELECT id, v + 100 FROM orders WHERE id = 3 {conflict} RETURNING id")
        asked = ChangeOnePartition(plan, [], pruning=True, operation="effects", change_id=f"replaces {number}")
        for member in own.members():
            with RawConnection(own, member.address, token=made.token) as raw, suppress(TopologyChangedError):
                raw.ask(operation_of(asked), encode(asked))
        assert state(own) == before


@pytest.mark.parametrize(
    ("role", "error", "said"),
    [
        ("read on nothing_there", UnknownTableError, "does not exist"),
        ("admin on orders", ProgrammingError, "or for some tables only as in"),
        ("read on", ProgrammingError, "or for some tables only as in"),
        ("read on orders items", ProgrammingError, "or for some tables only as in"),
        ("read on orders, write on items", ProgrammingError, "or for some tables only as in"),
        ("write on secateur.tables", ProgrammingError, "nobody changes the system table"),
        ("", ProgrammingError, "it is one of"),
    ],
)
def test_wrong_grants_are_explained(own: Cluster, role: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        own.tokens.create(role)


def test_grants_are_listed(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    made = own.tokens.create('write ON "Orders";READ on items , secateur.tables', "the shop")
    (listed,) = [token for token in own.tokens.list() if token.id == made.id]
    assert listed.title == "read on items, secateur.tables; write on orders"
    monkeypatch.setenv("SECATEUR_ADDRESS", own.address)
    monkeypatch.setenv("SECATEUR_TOKEN", own.token or "")
    told = json.loads(CliRunner().invoke(app, ["token", "list", "--json"]).stdout)
    assert listed.title in [one["role"] for one in told]


def test_grants_outlive_controllers_and_reach_new_members(own: Cluster) -> None:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as cluster, cluster.connect() as conn:
        for name in ("orders", "secret"):
            conn.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 4")
            conn.table(name).load(ROWS)
        made = cluster.tokens.create("read on orders")
        cluster.kill_controller()
        cluster.scale(3)
        with secateur.connect(cluster.address, made.token) as reader:
            assert reader.execute("SELECT count(*) FROM orders").fetchall() == [(20,)]
            with pytest.raises(AuthenticationError, match="'read on secret'"):
                reader.execute("SELECT count(*) FROM secret")


def test_over_http(own: Cluster) -> None:
    made = own.tokens.create(READER)
    with (
        HttpServer(own.address, own.token) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {made.token}"}, timeout=60) as http,
    ):

        def run(sql: str) -> httpx.Response:
            return http.post("/api/v1/statements", json={"sql": sql})

        assert run("SELECT count(*) FROM orders").json()["rows"] == [[20]]
        assert run("SELECT count(*) FROM secret").status_code == 403
        assert "read on secret" in run("SELECT count(*) FROM secret").json()["detail"]
        for path in ("/", "/tables", "/statements", "/metrics", "/api/v1/jobs", "/events", "/sql"):
            assert http.get(path).status_code == 403, path
        plan = {"sql": "SELECT * FROM secret", "mode": "explain"}
        assert http.post("/plan", json=plan).status_code == 403
