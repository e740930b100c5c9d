"""The Python client of the HTTP server returns and raises what the client of the cluster does."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest
from eventually import eventually
from raw_http import RawHttp

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, iterable_source
from secateur.errors import (
    AuthenticationError,
    DagError,
    DeadlineError,
    DuplicateKeyError,
    Error,
    InterfaceError,
    JobCancelledError,
    JobFailedError,
    LimitExceededError,
    NotSupportedError,
    ParameterError,
    ProgrammingError,
    ProtocolError,
    SqlSyntaxError,
    UnknownColumnError,
    UnknownJobError,
    UnknownTableError,
    UnreachableError,
)
from secateur.http import HttpClient, StatementState
from secateur.processors import map_batches
from secateur.server import HttpServer, ServerLimits
from secateur.server.dag_forms import JobConfigForm

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"


@pytest.fixture(scope="module")
def client(cluster: Cluster, server: HttpServer) -> Iterator[HttpClient]:
    with HttpClient(server.url, cluster.token) as opened:
        yield opened


@pytest.fixture(scope="module")
def table(client: HttpClient) -> str:
    client.execute(
        "CREATE TABLE http_client (customer VARCHAR, id INTEGER, amount DECIMAL(10, 2), PRIMARY KEY (customer, id))"
        " PARTITION BY HASH (customer) PARTITIONS 16"
    )
    client.execute("INSERT INTO http_client SELECT 'C' || range % 10, range, range / 4 FROM range(1000)")
    return "http_client"


def states_of(conn: secateur.Connection, sql: str) -> list[str]:
    found = conn.execute("SELECT state FROM secateur.statements WHERE statement = ?", [sql]).fetchall()
    return [state for (state,) in found]


def test_rows_are_those_of_a_cursor(client: HttpClient, conn: secateur.Connection, table: str) -> None:
    sql = f"SELECT * FROM {table} WHERE customer = $who ORDER BY id DESC"
    expected = conn.execute(sql, {"who": "C3"})
    result = client.execute(sql, {"who": "C3"})
    assert [(column.name, column.type) for column in result.columns] == [entry[:2] for entry in expected.description]
    rows = expected.fetchall()
    assert (list(result), len(result), result[0], result[-1], result[1:3]) == (rows, 100, rows[0], rows[-1], rows[1:3])
    assert result.dicts()[0] == {"customer": "C3", "id": 993, "amount": Decimal("248.25")}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        2**70,
        -1.5,
        float("inf"),
        "ä\u0000'",
        b"\x00\xff",
        Decimal("12.50"),
        date(2024, 1, 31),
        datetime(2024, 1, 31, 12, 0, 0, 1),
        datetime(2024, 1, 31, 12, tzinfo=UTC),
        time_of_day(1, 2, 3, 4),
        timedelta(days=-1, microseconds=3),
        UUID(int=7),
        [1, None],
        {"a": 1, "b": [date(2024, 1, 31)]},
        {"type": "DATE", "value": "2024-01-31"},
    ],
    ids=str,
)
def test_a_parameter_of_any_type_comes_back_as_from_a_cursor(
    client: HttpClient, conn: secateur.Connection, value: Any
) -> None:
    (expected,) = conn.execute("SELECT ? AS x, typeof(?) AS t", [value, value]).fetchall()
    assert list(client.execute("SELECT ? AS x, typeof(?) AS t", [value, value])) == [expected]


def test_a_map_is_a_parameter(client: HttpClient, conn: secateur.Connection, table_name: str) -> None:
    client.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, m MAP(INTEGER, VARCHAR))")
    client.execute(f"INSERT INTO {table_name} VALUES (1, ?)", [{1: "a", 2: None}])
    assert list(client.execute(f"SELECT m FROM {table_name}")) == [({1: "a", 2: None},)]
    assert conn.execute(f"SELECT m FROM {table_name}").fetchall() == [({1: "a", 2: None},)]


def test_a_value_that_no_column_holds_is_refused_before_it_is_sent(client: HttpClient) -> None:
    with pytest.raises(ParameterError, match=r"parameter 2 is a builtins\.object"):
        client.execute("SELECT ?, ?", [1, object()])


def test_other_libraries_take_a_result_as_it_is(client: HttpClient, conn: secateur.Connection, table: str) -> None:
    sql = f"SELECT * FROM {table} ORDER BY id"
    result, expected = client.execute(sql), conn.execute(sql).fetch_arrow_table()
    assert result.arrow() == expected
    assert pa.table(result) == expected
    assert result.arrow().schema.metadata is None
    assert pl.DataFrame(result).equals(result.pl())
    assert result.df().equals(conn.execute(sql).df())
    assert "<th>customer" in result._repr_html_()
    assert "1,000 rows" in result._repr_html_()


def test_columns_of_one_name_stay_as_many(client: HttpClient, conn: secateur.Connection) -> None:
    sql = "SELECT 1 AS v, 2 AS v, 3 AS v_1"
    result = client.execute(sql)
    assert result.dicts() == [{"v": 1, "v_1": 2, "v_1_1": 3}]
    assert list(result.df().columns) == result.pl().columns == conn.execute(sql).pl().columns == ["v", "v_1", "v_1_1"]
    assert result.arrow().column_names == ["v", "v", "v_1"]


def test_rows_as_they_arrive(client: HttpClient, conn: secateur.Connection) -> None:
    sql = "SELECT range AS n, CAST(['lo', 'hi'][range % 2 + 1] AS VARCHAR) AS s FROM range(200000)"
    batches = list(client.batches(sql))
    assert [batch.num_rows for batch in batches] == [65536, 65536, 65536, 3392]
    assert pa.Table.from_batches(batches) == conn.execute(sql).fetch_arrow_table()
    assert [info.sql for info in client.statements() if info.sql == sql] == []  # the server keeps nothing of it


def test_a_statement_without_rows_has_none(client: HttpClient, table: str) -> None:
    started = client.submit_statement(f"UPDATE {table} SET amount = amount WHERE id < 10")
    assert (list(started.result()), started.info.row_count) == ([], 10)
    assert list(started.batches()) == []


def test_a_statement_is_waited_for_and_says_what_it_cost(
    client: HttpClient, conn: secateur.Connection, table: str
) -> None:
    sql = f"SELECT sum(amount) FROM {table} WHERE customer = 'C3'"
    started = client.submit_statement(sql)
    info = started.wait(60)
    assert (info.state, info.sql, info.row_count, info.error) == (StatementState.DONE, sql, 1, None)
    cursor = conn.execute(sql)
    assert info.stats is not None
    assert cursor.stats is not None
    pruned = [(one.partitions_read, one.partitions_total, one.members_touched) for one in (info.stats, cursor.stats)]
    assert pruned == [(1, 16, 1)] * 2
    assert info.submitted <= info.started <= info.ended  # type: ignore[operator]
    assert abs(time.time() - info.submitted.timestamp()) < 300
    assert list(client.statement(started.id).result()) == cursor.fetchall()
    assert client.statements(limit=1)[0].id == started.id
    started.forget()
    with pytest.raises(ProgrammingError, match="there is no statement"):
        client.statement(started.id).wait()


def test_settings_are_of_one_statement(client: HttpClient, table: str) -> None:
    sql = f"SELECT count(*) FROM {table} WHERE customer = 'C3'"
    stats = client.submit_statement(sql, settings={"pruning": "off"}).wait().stats
    assert stats is not None
    assert (stats.pruning, stats.partitions_read) == ("off", 16)
    plan = client.explain(sql)
    assert plan.to_dict()["pruning"]["scans"][0]["partitions_total"] == 16
    assert "1 of 16 partitions" in str(plan)
    assert "pruning: off" in str(client.explain(sql, settings={"pruning": "off"}))


@pytest.mark.parametrize(
    ("sql", "params", "kind"),
    [
        ("SELEC 1", (), SqlSyntaxError),
        ("SELECT amuont FROM http_client", (), UnknownColumnError),
        ("SELECT * FROM no_such", (), UnknownTableError),
        ("SELECT ?", (), ParameterError),
        ("INSERT INTO http_client VALUES ('C1', 1, 2)", (), DuplicateKeyError),
        ("SELECT CAST(? AS INTEGER)", ["x"], Error),
    ],
)
def test_an_error_is_the_one_of_a_cursor(
    client: HttpClient, conn: secateur.Connection, table: str, sql: str, params: Any, kind: type[Error]
) -> None:
    with pytest.raises(kind) as expected:
        conn.execute(sql, params).fetchall()
    started = client.submit_statement(sql, params)
    for act in (lambda: client.execute(sql, params), started.result, started.result):
        with pytest.raises(kind) as found:
            act()
        assert type(found.value) is type(expected.value)
        assert (found.value.message, found.value.details, found.value.retry_safe) == (
            expected.value.message,
            expected.value.details,
            expected.value.retry_safe,
        )
    assert started.state is StatementState.FAILED


def test_what_concerns_the_servers_own_process_is_refused(client: HttpClient) -> None:
    with pytest.raises(NotSupportedError, match="SET"):
        client.execute("SET pruning = off")


def test_a_statement_that_takes_too_long_is_cancelled_on_the_members(
    client: HttpClient, conn: secateur.Connection
) -> None:
    with pytest.raises(DeadlineError, match=r"not ended within 1\.5 s, and was cancelled"):
        client.execute(ENDLESS, timeout_s=1.5)
    eventually(lambda: states_of(conn, ENDLESS) and "running" not in states_of(conn, ENDLESS), timeout_s=20)


def test_waiting_ends_and_the_statement_goes_on(client: HttpClient) -> None:
    started = client.submit_statement(f"{ENDLESS} -- waited for")
    with pytest.raises(DeadlineError, match=r"not ended within 0\.2 s; it goes on"):
        started.result(timeout_s=0.2)
    assert not started.state.is_final
    assert started.cancel().state is StatementState.CANCELLED
    assert started.cancel().state is StatementState.CANCELLED
    with pytest.raises(JobCancelledError):
        started.result()


def test_with_a_key_a_statement_is_executed_once(client: HttpClient, table_name: str) -> None:
    client.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, n INTEGER)")
    client.execute(f"INSERT INTO {table_name} VALUES (1, 0)")
    change = f"UPDATE {table_name} SET n = n + 1"
    for _ in range(3):
        client.execute(change, idempotency_key=f"{table_name}-1")
    assert list(client.execute(f"SELECT n FROM {table_name}")) == [(1,)]
    with pytest.raises(ProgrammingError, match="Idempotency-Key"):
        client.execute(f"{change} WHERE k = 1", idempotency_key=f"{table_name}-1")
    first, again = (client.submit("SELECT 1", idempotency_key=f"{table_name}-2") for _ in range(2))
    assert first.job_id == again.job_id


def with_function(function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> secateur.DAG:
    dag = secateur.DAG()
    read = dag.new_vertex("read", iterable_source([{"n": 1}, {"n": 2}]))
    mapped = dag.new_vertex("mapped", map_batches(function))
    result = dag.new_vertex("result", collect())
    dag.edge(secateur.between(read, mapped)).edge(secateur.between(mapped, result).distributed())
    return dag


def test_a_dag_is_the_same_job_for_both_clients(client: HttpClient, conn: secateur.Connection, table: str) -> None:
    dag = {
        "vertices": [
            {"name": "read", "processor": "table_source", "table": table, "where": "customer = 'C3'"},
            {"name": "result", "processor": "collect"},
        ],
        "edges": [{"source": "read", "destination": "result", "distributed": True}],
    }
    job = client.submit(dag, secateur.JobConfig(name="over-http", timeout_s=60))
    result = job.result(60)
    assert sorted(result) == conn.execute(f"SELECT * FROM {table} WHERE customer = 'C3' ORDER BY ALL").fetchall()
    assert pa.Table.from_batches(job.batches(sink="result")) == result.arrow()
    same = conn.job(job.job_id)
    seen, info = client.job("over-http").info, same.info
    assert (seen.job_id, seen.name, seen.status, seen.attempt, seen.reason) == (
        info.job_id,
        "over-http",
        info.status,
        1,
        None,
    )
    assert seen.submitted_s == pytest.approx(info.submitted_s, abs=0.001)
    assert job.metrics() == same.metrics()
    assert {entry["member"] for entry in job.metrics() if entry["vertex"] == "read"} == {job.metrics()[0]["member"]}
    assert job.job_id in [one.job_id for one in client.jobs()]
    with pytest.raises(ProgrammingError, match="has no result 'no_such'; it has result"):
        job.result(sink="no_such")


def test_functions_of_a_job_run_and_their_logs_and_errors_come_back(client: HttpClient) -> None:
    def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
        import logging

        logging.getLogger("mine").warning("%d rows", rows.num_rows)
        return rows.append_column("m", pa.array([2 * n for n in rows.column("n").to_pylist()]))

    job = client.submit(with_function(doubled))
    assert sorted(job.result(60)) == [(1, 2), (2, 4)]
    lines = job.logs()
    assert {(line.logger, line.vertex, line.level) for line in lines} == {("mine", "mapped", "WARNING")}
    assert abs(lines.lines[0].time.timestamp() - time.time()) < 300

    failed = client.submit(with_function(lambda rows: rows.no_such_method()))
    with pytest.raises(JobFailedError, match="mapped") as error:
        failed.result(60)
    assert "no_such_method" in "".join(error.value.__notes__)
    assert failed.info.reason is not None


def test_a_pipeline_is_a_job(client: HttpClient, table: str) -> None:
    pipeline = secateur.Pipeline().read_table(table, where="customer = ?", params=["C4"]).write_to(collect())
    assert len(client.submit(pipeline).result(60)) == 100


def test_a_configuration_travels_whole(client: HttpClient, conn: secateur.Connection, table: str) -> None:
    assert set(JobConfigForm.model_fields) == {field.name for field in dataclasses.fields(secateur.JobConfig)}
    pipeline = secateur.Pipeline().read_table(table, where="customer = 'C4'").write_to(collect())
    partition = conn.table(table).partition_of({"customer": "C4"})
    config = secateur.JobConfig(
        name="whole",
        required_partitions={table: frozenset({partition})},
        timeout_s=60,
        result_bytes_max=10_000_000,
        on_member_lost="fail",
        kernel_bytes_max=100_000_000,
    )
    read = {}
    for chosen in (config, secateur.JobConfig(pruning=False)):
        job = client.submit(pipeline, chosen)
        assert len(job.result(60)) == 100
        read[job.info.name] = {entry["member"] for entry in job.metrics() if entry["vertex"].startswith("read")}
    assert (len(read["whole"]), len(read[None])) == (1, 3)


def test_a_statement_is_a_job(client: HttpClient) -> None:
    job = client.submit(f"{ENDLESS} -- a job")
    with pytest.raises(DeadlineError, match="goes on"):
        job.wait(0.2)
    assert job.cancel().status == "cancelled"
    with pytest.raises(JobCancelledError):
        job.result()


def test_what_is_no_job_is_refused(client: HttpClient) -> None:
    with pytest.raises(ParameterError, match="a int is not a job"):
        client.submit(7)  # type: ignore[arg-type]
    with pytest.raises(UnknownJobError):
        client.job("no-such").wait()
    with pytest.raises(DagError):
        client.submit(secateur.DAG())


def test_the_cluster_is_that_of_the_system_tables(client: HttpClient, conn: secateur.Connection, table: str) -> None:
    def ids(sql: str) -> list[Any]:
        return [value for (value,) in conn.execute(sql).fetchall()]

    assert [row["id"] for row in client.members()] == ids("SELECT id FROM secateur.members ORDER BY id")
    assert [row["name"] for row in client.settings()] == ids("SELECT name FROM secateur.settings ORDER BY name")
    assert table in [row.get("table_name", row.get("name")) for row in client.tables()]
    owners = conn.execute(
        "SELECT partition, primary_member, rows FROM secateur.partitions WHERE table_name = ? ORDER BY 1", [table]
    )
    told = [(row["partition"], row["primary_member"], row["rows"]) for row in client.partitions(table)]
    assert told == owners.fetchall()
    assert len(client.partitions()) == ids("SELECT count(*) FROM secateur.partitions")[0]
    assert len(client.columns(table)) == 3
    assert [row["number"] for row in client.events()] == ids("SELECT number FROM secateur.events ORDER BY number DESC")
    assert [row["id"] for row in client.loads() if row["table_name"] == table] == ids(
        f"SELECT id FROM secateur.loads WHERE table_name = '{table}'"
    )
    assert client.latencies()


def test_pages_are_followed_to_their_end(cluster: Cluster, table: str) -> None:
    with (
        HttpServer(cluster.address, limits=ServerLimits(page_bytes_max=2000)) as server,
        HttpClient(server.url, cluster.token) as client,
    ):
        assert [row["partition"] for row in client.partitions(table)] == list(range(16))


def test_the_newest_results_are_kept(cluster: Cluster) -> None:
    limits = ServerLimits(kept_bytes_max=2_000_000)
    with HttpServer(cluster.address, limits=limits) as server, HttpClient(server.url, cluster.token) as client:
        first = client.submit_statement("SELECT range FROM range(200000)")
        assert first.wait().row_count == 200_000
        client.execute("SELECT range FROM range(200000)")
        with pytest.raises(LimitExceededError, match="dropped for newer ones"):
            first.result()


def test_a_token_is_asked_for_at_each_request(cluster: Cluster, server: HttpServer, tmp_path: Path) -> None:
    first, second = cluster.tokens.create("read", "first"), cluster.tokens.create("read", "second")
    file = tmp_path / "token"
    file.write_text(first.token)
    with HttpClient(server.url, lambda: file.read_text()) as rotating:
        assert list(rotating.execute("SELECT 1 AS x")) == [(1,)]
        file.write_text(second.token)
        cluster.tokens.revoke(first.id)
        assert list(rotating.execute("SELECT 1 AS x")) == [(1,)]
        with pytest.raises(AuthenticationError, match="role"):
            rotating.execute("CREATE TABLE not_allowed (k INTEGER PRIMARY KEY)")
    with HttpClient(server.url, first.token) as revoked, pytest.raises(AuthenticationError, match="revoked"):
        eventually(lambda: revoked.members() and None, timeout_s=20)
    cluster.tokens.revoke(second.id)


def test_the_token_may_come_from_the_environment(
    cluster: Cluster, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECATEUR_TOKEN", cluster.token or "")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # nobody is there: the client goes to the server itself
    with HttpClient(server.url) as client:
        assert len(client.members()) == 3
    with HttpClient(server.url, "") as without, pytest.raises(AuthenticationError):
        without.members()


def test_https_is_checked(cluster: Cluster, tls: secateur.Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpServer(cluster.address, tls=tls) as server:
        with HttpClient(server.url, cluster.token, tls=secateur.Tls(ca=tls.ca)) as client:
            assert list(client.execute("SELECT 1 AS x")) == [(1,)]
        with HttpClient(server.url, cluster.token) as strict, pytest.raises(AuthenticationError, match="certificate"):
            strict.members()
        with (
            HttpClient(server.url, cluster.token, tls=secateur.Tls(ca=tls.ca, server_name="other")) as elsewhere,
            pytest.raises(AuthenticationError, match="certificate"),
        ):
            elsewhere.members()
        monkeypatch.setenv("SECATEUR_TLS_CA", str(tls.ca))
        with HttpClient(server.url, cluster.token) as by_environment:
            assert len(by_environment.members()) == 3
        plain = server.url.replace("https", "http")
        with HttpClient(plain, cluster.token) as client, pytest.raises(ProtocolError, match="speaks HTTPS alone"):
            client.members()


def test_https_at_a_server_without_is_refused_in_a_sentence(cluster: Cluster, server: HttpServer) -> None:
    url = server.url.replace("http", "https")
    with HttpClient(url, cluster.token) as client, pytest.raises(ProtocolError, match=f"the URL is {server.url}"):
        client.members()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("secateur://127.0.0.1:1", r"address of a cluster, for secateur\.connect"),
        ("127.0.0.1:8080", "http://host:port"),
        ("http://user:secret@host", "http://host:port"),
        ("", "http://host:port"),
    ],
)
def test_a_wrong_url_is_refused(url: str, said: str) -> None:
    with pytest.raises(InterfaceError, match=said):
        HttpClient(url, "x")


def test_nobody_is_there() -> None:
    with HttpClient("http://127.0.0.1:1", "x") as client, pytest.raises(UnreachableError, match="no HTTP server") as e:
        client.execute("SELECT 1")
    assert e.value.retry_safe


def test_a_read_is_repeated_when_its_connection_breaks() -> None:
    with RawHttp(None, b'{"items": [], "next_offset": null}') as raw, HttpClient(raw.url, "x") as client:
        assert client.members() == []
        assert [line.split()[0] for line in raw.seen] == ["GET", "GET"]


def test_what_may_have_been_done_is_repeated_with_a_key_alone() -> None:
    with RawHttp(None, None, None, None) as raw, HttpClient(raw.url, "x") as client:
        with pytest.raises(UnreachableError, match="may have been done") as error:
            client.execute("UPDATE t SET n = 1")
        assert not error.value.retry_safe
        assert len(raw.seen) == 1
        with pytest.raises(UnreachableError) as error:
            client.execute("UPDATE t SET n = 1", idempotency_key="k")
        assert error.value.retry_safe
        assert len(raw.seen) == 4


def test_a_silent_server_is_not_waited_for() -> None:
    with (
        RawHttp(...) as raw,
        HttpClient(raw.url, "x", silence_s=0.3) as client,
        pytest.raises(DeadlineError, match=r"not answered within 0\.3 s"),
    ):
        client.members()


@pytest.mark.parametrize("body", [b"<html>Hello</html>", b"[]", b'{"items": 7}', b"\xff"])
def test_another_service_is_noticed(body: bytes) -> None:
    with RawHttp(body) as raw, HttpClient(raw.url, "x") as client, pytest.raises(ProtocolError, match="belong to it"):
        client.members()


@pytest.mark.parametrize(
    "table", [pa.table({"x": [1]}), pa.table({"x": [1]}).replace_schema_metadata({"secateur": "no"})]
)
def test_arrow_of_another_service_is_noticed(table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    body = sink.getvalue().to_pybytes()
    for sent in (body, body[:-30]):
        with (
            RawHttp(sent, kind="application/vnd.apache.arrow.stream") as raw,
            HttpClient(raw.url, "x") as client,
            pytest.raises(ProtocolError),
        ):
            client.execute("SELECT 1")


def test_it_loads_no_planner_engine_or_server() -> None:
    never = ["duckdb", "fastapi", "pyspark", "ray", "secateur.engine", "secateur.planner", "secateur.server"]
    code = (
        f"import sys; from secateur.http import HttpClient; print([name for name in {never!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
