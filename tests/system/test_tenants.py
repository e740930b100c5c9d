"""Tenants of one member: shares of its processor time, limits of their groups, and what they have used."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import duckdb
import httpx
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import LimitExceededError, ProgrammingError
from secateur.server import HttpServer

HEAVY = "SELECT v % 1000 AS g, count(*), sum(v), min(v), max(v) FROM numbers GROUP BY 1 ORDER BY 2, 1 LIMIT 10"
ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.v + b.v + c.v = 7"
LOOK_UP = "SELECT v FROM numbers WHERE id = ?"
ROWS = 300_000

Connect = Callable[..., secateur.Connection]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=1, runtime="embedded") as running, running.connect() as conn:
        conn.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
        rows = duckdb.sql(f"SELECT range AS id, (range * 7919) % 1000003 AS v FROM range({ROWS})").to_arrow_table()
        conn.table("numbers").load(rows)
        yield running


@pytest.fixture
def owner(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as conn:
        yield conn


@pytest.fixture
def of(cluster: Cluster, owner: secateur.Connection) -> Iterator[Connect]:
    """Connects as a tenant, with a role of its own where one is asked for."""
    with ExitStack() as stack:

        def connect(tenant: str, role: str | None = None) -> secateur.Connection:
            if role is not None:
                owner.execute(f"CREATE ROLE IF NOT EXISTS {role}")
                owner.execute(f"GRANT SELECT ON numbers TO {role}")
            made = cluster.tokens.create(role or "read", principal=tenant)
            return stack.enter_context(secateur.connect(cluster.address, made.token))

        yield connect
        for (name,) in owner.execute("SELECT name FROM secateur.resource_groups").fetchall():
            owner.execute(f"DROP RESOURCE GROUP {name}")


def ledger(owner: secateur.Connection, tenant: str, *columns: str) -> tuple[Any, ...]:
    sums = ", ".join(f"sum({column})" for column in columns)
    found = owner.execute(f"SELECT {sums} FROM secateur.tenants WHERE tenant = ?", [tenant]).fetchone()
    assert found is not None
    return found


def test_a_tenant_at_many_times_its_share_gets_no_more_than_its_share(owner: secateur.Connection, of: Connect) -> None:
    is_over = threading.Event()

    def run(conn: secateur.Connection) -> None:
        while not is_over.is_set():
            conn.execute(HEAVY).fetchall()

    mad, calm = [of("mad") for _ in range(20)], [of("calm") for _ in range(2)]
    before = {name: ledger(owner, name, "processor_ms")[0] or 0.0 for name in ("mad", "calm")}
    threads = [threading.Thread(target=run, args=(conn,)) for conn in (*mad, *calm)]
    for thread in threads:
        thread.start()
    time.sleep(3.0)  # the time over which shares are compared
    is_over.set()
    for thread in threads:
        thread.join(60)
    used = {name: ledger(owner, name, "processor_ms")[0] - before[name] for name in before}
    assert 0.5 < used["mad"] / used["calm"] < 2.0, used
    assert ledger(owner, "mad", "waiting_ms")[0] > ledger(owner, "calm", "waiting_ms")[0]


def test_the_ledger_has_what_a_tenant_has_used(owner: secateur.Connection, of: Connect) -> None:
    conn = of("counted")
    for _ in range(3):
        conn.execute(HEAVY).fetchall()
    for number in range(10):
        conn.execute(LOOK_UP, [number]).fetchall()
        conn.table("numbers").get(number)
    with pytest.raises(secateur.Error):
        conn.execute("SELECT CAST('x' || v AS INTEGER) FROM numbers").fetchall()
    columns = ("statements", "failed", "refused", "rows", "rows_read", "processor_ms", "bytes_sent")
    statements, failed, refused, rows, rows_read, processor_ms, bytes_sent = ledger(owner, "counted", *columns)
    assert (statements, failed, refused, rows) == (24, 1, 0, 40)
    assert rows_read >= 3 * ROWS
    assert processor_ms > 3.0
    assert bytes_sent > 100
    p50, p99 = ledger(owner, "counted", "p50_ms", "p99_ms")
    assert 0 < p50 <= p99


@pytest.mark.parametrize(
    ("sql", "rows_read"),
    [
        pytest.param(HEAVY, ROWS, id="a heavy one"),
        pytest.param(LOOK_UP.replace("?", "7") + " AND sqrt(v) > -1", 1, id="one row in a kernel"),
    ],
)
def test_a_statement_says_what_it_has_cost(of: Connect, sql: str, rows_read: int) -> None:
    cursor = of("curious").execute(sql)
    cursor.fetchall()
    assert cursor.stats is not None
    assert cursor.stats.cost is not None
    assert cursor.stats.cost.rows_read == rows_read
    assert 0 < cursor.stats.cost.processor_ms < 60_000


def test_a_short_statement_does_not_count_its_cost(of: Connect) -> None:
    cursor = of("curious").execute(LOOK_UP, [7])
    assert cursor.stats is not None
    assert cursor.stats.cost is None


def test_a_group_bounds_statements_of_its_roles(owner: secateur.Connection, of: Connect) -> None:
    conn, other = of("bound", "bronze"), of("free")
    owner.execute("CREATE RESOURCE GROUP small WITH (statement_timeout = '200ms', max_rows = 100) FOR bronze")
    begun = time.monotonic()
    with pytest.raises(LimitExceededError, match="statement_timeout of resource group 'small'") as raised:
        conn.execute(ENDLESS).fetchall()
    assert raised.value.retry_safe
    assert time.monotonic() - begun < 10.0
    running = "SELECT count(*) FROM secateur.members WHERE running_statements > 0"
    eventually(lambda: owner.execute(running).fetchall() == [(0,)], "the kernel goes on")
    assert len(conn.execute("SELECT * FROM numbers WHERE id < 100").fetchall()) == 100
    with pytest.raises(LimitExceededError, match="more than 100 rows, the max_rows of resource group 'small'"):
        conn.execute("SELECT * FROM numbers").fetchall()
    assert len(other.execute("SELECT * FROM numbers").fetchall()) == ROWS
    owner.execute("ALTER RESOURCE GROUP small WITH (max_rows = DEFAULT, statement_timeout = DEFAULT)")
    assert len(conn.execute("SELECT * FROM numbers").fetchall()) == ROWS
    owner.execute("ALTER RESOURCE GROUP small WITH (max_memory = '1kB')")
    with pytest.raises(LimitExceededError, match=r"max_memory"):
        conn.execute("SELECT v, count(*) FROM numbers GROUP BY v ORDER BY v LIMIT 10000").fetchall()


def test_a_rate_refuses_what_comes_too_soon(owner: secateur.Connection, of: Connect) -> None:
    conn = of("hasty", "copper")
    owner.execute("CREATE RESOURCE GROUP slow WITH (rate = 5) FOR copper")
    errors = []
    for number in range(30):
        try:
            conn.execute(LOOK_UP, [number]).fetchall()
        except LimitExceededError as error:
            errors.append(error)
    assert {(error.retry_safe, error.details["limit"]) for error in errors} == {(True, "rate")}
    assert 5 <= len(errors) <= 25
    assert ledger(owner, "hasty", "refused") == (len(errors),)


def test_the_page_and_the_metrics_show_tenants(cluster: Cluster, owner: secateur.Connection, of: Connect) -> None:
    conn = of("<shown> & told")
    conn.execute(HEAVY).fetchall()
    (used_ms,) = ledger(owner, "<shown> & told", "processor_ms")
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with HttpServer(cluster.address) as server, httpx.Client(base_url=server.url, headers=headers, timeout=60) as http:
        page = http.get("/tenants", params={"find": "shown"}).raise_for_status().text
        assert "&lt;shown&gt; &amp; told" in page
        found = re.search(
            r'^secateur_tenant_processor_seconds_total{tenant="<shown> & told"} (.*)$',
            http.get("/metrics").raise_for_status().text,
            re.MULTILINE,
        )
    assert found is not None
    assert float(found[1]) == pytest.approx(used_ms / 1000)


def test_groups_are_listed_and_named_once(owner: secateur.Connection, of: Connect) -> None:
    of("anybody", "gold")
    owner.execute("CREATE RESOURCE GROUP best WITH (weight = 2.5, max_running = 3) FOR gold")
    listed = "SELECT name, roles, weight, max_running, max_rows FROM secateur.resource_groups"
    assert owner.execute(listed).fetchall() == [("best", ["gold"], 2.5, 3, None)]
    owner.execute("CREATE RESOURCE GROUP IF NOT EXISTS best")
    for sql, message in (
        ("CREATE RESOURCE GROUP best", "'best' exists already"),
        ("CREATE RESOURCE GROUP other FOR nobody", "role 'nobody' does not exist"),
        ("ALTER RESOURCE GROUP none WITH (weight = 1)", "resource group 'none' does not exist; there is best"),
        ("DROP ROLE gold", "is that of resource group best"),
        ("DROP RESOURCE GROUP none", "'none' does not exist"),
    ):
        with pytest.raises(ProgrammingError, match=message):
            owner.execute(sql)
    owner.execute("DROP RESOURCE GROUP IF EXISTS none")
