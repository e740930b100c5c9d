"""Statements over HTTP: rows, ids, pages, Arrow, cancellation, keys that make a request safe to repeat."""

from __future__ import annotations

import json
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pytest
from eventually import eventually

from secateur.cluster import Cluster
from secateur.errors import NotSupportedError
from secateur.server import HttpServer, ServerLimits

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 1"


def run(http: httpx.Client, sql: str, params: Any = (), **more: Any) -> dict[str, Any]:
    answer = http.post("/api/v1/statements", json={"sql": sql, "params": params, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def table(http: httpx.Client, table_name: str) -> str:
    name = f"http_{table_name}"
    run(http, f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, s VARCHAR) PARTITION BY HASH (k) PARTITIONS 8")
    run(http, f"INSERT INTO {name} SELECT range, 's' || range FROM range(100)")
    return name


@pytest.mark.smoke
def test_rows_come_with_their_columns_and_their_cost(http: httpx.Client, table: str) -> None:
    answer = run(http, f"SELECT k, s FROM {table} WHERE k = ?", [7])
    assert answer["columns"] == [{"name": "k", "type": "INTEGER"}, {"name": "s", "type": "VARCHAR"}]
    assert answer["rows"] == [[7, "s7"]]
    assert (answer["state"], answer["row_count"], answer["next_offset"]) == ("done", 1, None)
    stats = answer["stats"]
    assert (stats["members_touched"], stats["partitions_read"], stats["partitions_total"]) == (1, 1, 8)


def test_named_parameters(http: httpx.Client, table: str) -> None:
    assert run(http, f"SELECT s FROM {table} WHERE k = $key", {"key": 3})["rows"] == [["s3"]]


def test_parameters_of_another_scale(http: httpx.Client, table: str) -> None:
    for factor, product, type_ in (
        ("1.5", "7425.0", "DECIMAL(38,1)"),
        ("1.55555", "7699.97250", "DECIMAL(38,5)"),
        ("1.5", "7425.0", "DECIMAL(38,1)"),
    ):
        for _ in range(20):  # more than there are connections
            answer = run(http, f"SELECT sum(k * ?) AS a FROM {table}", [{"type": "DECIMAL", "value": factor}])
            assert (answer["rows"], answer["columns"]) == ([[product]], [{"name": "a", "type": type_}])


def test_a_change_tells_its_rows(http: httpx.Client, table: str) -> None:
    answer = run(http, f"UPDATE {table} SET s = 'x' WHERE k < 10")
    assert (answer["row_count"], answer["rows"], answer["columns"]) == (10, [], [])


def test_settings_are_of_one_statement(http: httpx.Client, table: str) -> None:
    sql = f"SELECT s FROM {table} WHERE k = 7"
    unpruned = run(http, sql, settings={"pruning": "off"})
    assert unpruned["stats"]["pruning"] == "off"
    assert unpruned["stats"]["partitions_read"] == 8
    for _ in range(20):  # more than there are connections
        assert run(http, sql)["stats"]["partitions_read"] == 1


@pytest.mark.parametrize("settings", [{"pruning": "perhaps"}, {"no_such": "1"}, {"a b": "1"}, {"GLOBAL": "1"}])
def test_a_wrong_setting_is_the_callers_mistake(http: httpx.Client, settings: dict[str, str]) -> None:
    answer = http.post("/api/v1/statements", json={"sql": "SELECT 1", "settings": settings})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize(
    "sql",
    ["SET pruning = off", "/* */ SET statement_timeout = '5s'", "COPY (SELECT 1) TO '{path}'", "BACKUP TO '{path}'"],
)
def test_what_concerns_the_servers_own_process_is_refused(http: httpx.Client, tmp_path: Any, sql: str) -> None:
    path = tmp_path / "out"
    answer = http.post("/api/v1/statements", json={"sql": sql.format(path=path)})
    assert (answer.status_code, answer.json()["error"]) == (400, "NotSupportedError")
    assert not path.exists()


def test_an_error_says_what_the_python_client_would(http: httpx.Client) -> None:
    answer = http.post("/api/v1/statements", json={"sql": "SELECT\n  nothing FROM (SELECT 1 AS a)"})
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert problem["type"] == "urn:secateur:error:UnknownColumnError"
    assert (problem["error"], problem["status"], problem["retry_safe"]) == ("UnknownColumnError", 400, False)
    assert problem["details"]["line"] == 2
    assert "nothing" in problem["detail"]
    kept = http.get(f"/api/v1/statements/{problem['id']}").json()
    assert (kept["state"], kept["error"]["detail"]) == ("failed", problem["detail"])
    assert http.get(f"/api/v1/statements/{problem['id']}/result").json() == problem


def test_a_duplicate_key_is_a_conflict(http: httpx.Client, table: str) -> None:
    answer = http.post("/api/v1/statements", json={"sql": f"INSERT INTO {table} VALUES (1, 'again')"})
    assert (answer.status_code, answer.json()["error"]) == (409, "DuplicateKeyError")


def test_pages_are_the_whole_result(http: httpx.Client, table: str) -> None:
    first = run(http, f"SELECT k FROM {table} ORDER BY k")
    rows: list[list[int]] = []
    offset: int | None = 0
    while offset is not None:
        page = http.get(first["result"], params={"offset": offset, "limit": 33}).json()
        rows += page["rows"]
        offset = page["next_offset"]
    assert rows == [[k] for k in range(100)] == first["rows"]
    behind = http.get(first["result"], params={"offset": 1000}).json()
    assert (behind["rows"], behind["next_offset"]) == ([], None)


def test_arrow_is_the_whole_result(http: httpx.Client, table: str) -> None:
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    sql = f"SELECT k, s FROM {table}, range(3000) ORDER BY k, range"
    answer = http.post("/api/v1/statements", json={"sql": sql}, headers=accept)
    assert answer.headers["content-type"] == accept["Accept"]
    direct = pa.ipc.open_stream(answer.content).read_all()
    assert direct.num_rows == 300_000
    assert direct["k"].combine_chunks().equals(pa.array([k for k in range(100) for _ in range(3000)], pa.int32()))
    with http.stream("GET", answer.headers["location"] + "/result", headers=accept) as again:
        parts = list(again.iter_raw())
    assert len(parts) > 4  # made while it is read
    assert pa.ipc.open_stream(b"".join(parts)).read_all().equals(direct)


VALUES = "(1, NULL, 1.50, NULL), (2, '', 0.05, [1, NULL]), (3, 'a,\"b\"', -1, [])"
QUOTED = f"SELECT * FROM (VALUES {VALUES}) AS v(k, s, d, l)"


def test_csv_tells_null_from_an_empty_text(http: httpx.Client) -> None:
    answer = http.post("/api/v1/statements", json={"sql": QUOTED}, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.text == 'k,s,d,l\n1,,1.50,\n2,"",0.05,"[1, NULL]"\n3,"a,""b""",-1.00,[]\n'
    with duckdb.connect() as database, tempfile.NamedTemporaryFile(suffix=".csv") as file:
        Path(file.name).write_bytes(answer.content)
        again = database.execute(f"SELECT k, s FROM read_csv('{file.name}', allow_quoted_nulls = false)").fetchall()
    assert again == [(1, None), (2, ""), (3, 'a,"b"')]


def test_lines_of_json_are_rows_with_the_values_of_json(http: httpx.Client) -> None:
    answer = http.post("/api/v1/statements", json={"sql": QUOTED}, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line) for line in answer.text.splitlines()] == [
        {"k": 1, "s": None, "d": "1.50", "l": None},
        {"k": 2, "s": "", "d": "0.05", "l": [1, None]},
        {"k": 3, "s": 'a,"b"', "d": "-1.00", "l": []},
    ]


@pytest.mark.parametrize("form", ["text/csv", "application/x-ndjson"])
def test_many_rows_come_in_parts(http: httpx.Client, form: str) -> None:
    sql = "SELECT range AS n FROM range(100000)"
    with http.stream("POST", "/api/v1/statements", json={"sql": sql}, headers={"Accept": form}) as answer:
        parts = list(answer.iter_raw())
    assert len(parts) > 4
    lines = b"".join(parts).decode().splitlines()
    numbers = [int(line) for line in lines[1:]] if form == "text/csv" else [json.loads(line)["n"] for line in lines]
    assert numbers == list(range(100_000))
    sql = "SELECT 1 AS a, 2 AS a WHERE false"
    none = http.post("/api/v1/statements", json={"sql": sql}, headers={"Accept": form})
    assert none.text == ("a,a_1\n" if form == "text/csv" else "")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("*/*", "application/json"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "application/json"),
        ("text/*", "text/csv; charset=utf-8"),
        ("application/json;q=0.5, text/csv", "text/csv; charset=utf-8"),
        ("application/x-ndjson, application/json", "application/x-ndjson"),
        ("TEXT/CSV;q=0, application/json", "application/json"),
    ],
)
def test_rows_come_in_the_form_that_is_wanted_most(http: httpx.Client, accept: str, form: str) -> None:
    answer = http.post("/api/v1/statements", json={"sql": "SELECT 1 AS a"}, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, form)


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=1, text/csv;q=0", "image/*"])
def test_a_form_that_is_not_to_be_had_is_refused_before_anything_is_done(http: httpx.Client, accept: str) -> None:
    sql = "CREATE TABLE never_made (k INTEGER PRIMARY KEY)"
    answer = http.post("/api/v1/statements", json={"sql": sql}, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (406, "application/problem+json")
    for form in ("application/json", "text/csv", "application/x-ndjson", "application/vnd.apache.arrow.stream"):
        assert form in answer.json()["detail"]
    assert run(http, "SELECT 1 FROM secateur.tables WHERE table_name = 'never_made'")["rows"] == []


def test_an_error_in_the_first_rows_is_the_answer(http: httpx.Client) -> None:
    sql = "SELECT DATE '10000-01-01' AS d"
    answer = http.post("/api/v1/statements", json={"sql": sql}, headers={"Accept": "application/x-ndjson"})
    assert answer.status_code == 422
    answer = http.post("/api/v1/statements", json={"sql": sql}, headers={"Accept": "text/csv"})
    assert answer.text == "d\n10000-01-01\n"


def test_a_statement_that_takes_longer_gives_an_id(http: httpx.Client) -> None:
    answer = http.post("/api/v1/statements", json={"sql": "SELECT 42 AS a", "wait": False})
    status = answer.json()
    assert answer.status_code in (200, 202)  # it may have ended all the same
    assert answer.headers["location"] == f"/api/v1/statements/{status['id']}"
    done = http.get(answer.headers["location"], params={"wait": 60}).json()
    assert (done["state"], done["row_count"]) == ("done", 1)
    assert http.get(done["result"]).json()["rows"] == [[42]]


def test_delete_ends_a_statement_on_every_member(cluster: Cluster, http: httpx.Client) -> None:
    answer = http.post("/api/v1/statements", json={"sql": ENDLESS, "wait": 0.2})
    assert answer.status_code == 202
    place = f"/api/v1/statements/{answer.json()['id']}"
    assert http.get(f"{place}/result").status_code == 202
    with cluster.connect() as conn:
        seen = "SELECT count(*) FROM secateur.statements WHERE state = 'running' AND statement = ?"
        eventually(lambda: conn.execute(seen, [ENDLESS]).fetchall() == [(1,)], "it does not run")
        cancelled = http.delete(place).json()
        assert (cancelled["state"], cancelled["error"]["error"]) == ("cancelled", "JobCancelledError")
        eventually(lambda: conn.execute(seen, [ENDLESS]).fetchall() == [(0,)], "it still runs")
    assert http.get(f"{place}/result").status_code == 409
    assert http.delete(place).status_code == 200  # now it is forgotten
    assert http.get(place).status_code == 404


def test_statements_of_others_are_shown_and_killed(cluster: Cluster, http: httpx.Client) -> None:
    sql = ENDLESS.replace("1000000", "1000001")
    raised: list[Exception] = []

    def execute() -> None:
        with cluster.connect() as conn:
            try:
                conn.execute(sql)
            except Exception as error:
                raised.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    found: list[str] = []

    def is_listed() -> bool:
        rows = http.get("/api/v1/statements", params={"scope": "cluster"}).json()["items"]
        found[:] = [row["id"] for row in rows if row["statement"] == sql and row["state"] == "running"]
        return bool(found)

    eventually(is_listed, "it is not listed")
    assert http.get(f"/api/v1/statements/{found[0]}").json()["statement"] == sql
    assert http.delete(f"/api/v1/statements/{found[0]}").status_code == 200
    thread.join(60)
    assert [type(error).__name__ for error in raised] == ["JobCancelledError"]
    assert http.get("/api/v1/statements/m1:999999999").status_code == 404


def test_a_key_makes_a_request_safe_to_repeat(http: httpx.Client, table: str) -> None:
    body = {"sql": f"UPDATE {table} SET s = s || '!' WHERE k = 5"}
    answers = [http.post("/api/v1/statements", json=body, headers={"Idempotency-Key": f"{table}-1"}) for _ in range(3)]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert run(http, f"SELECT s FROM {table} WHERE k = 5")["rows"] == [["s5!"]]
    other = http.post("/api/v1/statements", json={"sql": "SELECT 1"}, headers={"Idempotency-Key": f"{table}-1"})
    assert other.status_code == 422


def test_requests_that_come_at_once_with_a_key_make_one_statement(http: httpx.Client, table: str) -> None:
    body = {"sql": f"UPDATE {table} SET s = s || '!' WHERE k = 6"}

    def post(_: int) -> str:
        answer: str = http.post("/api/v1/statements", json=body, headers={"Idempotency-Key": f"{table}-2"}).json()["id"]
        return answer

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(post, range(16)))) == 1
    assert run(http, f"SELECT s FROM {table} WHERE k = 6")["rows"] == [["s6!"]]


def test_what_is_kept_of_an_ended_statement_is_small(http: httpx.Client) -> None:
    long = "SELECT 1 AS n -- " + "x" * 1_000_000
    answer = run(http, long)
    assert answer["rows"] == [[1]]
    assert http.get(f"/api/v1/statements/{answer['id']}").json()["sql"] == long[:10_000]
    assert len(http.get("/api/v1/statements", params={"limit": 2}).json()["items"]) == 2


def test_many_callers_at_once_get_their_own_rows(http: httpx.Client, table: str) -> None:
    def ask(number: int) -> bool:
        kept = http.post("/api/v1/statements", json={"sql": f"SELECT {number} AS n, s FROM {table} WHERE k = {number}"})
        again = http.get(f"/api/v1/statements/{kept.json()['id']}/result").json()
        forgotten = http.delete(f"/api/v1/statements/{kept.json()['id']}").status_code
        http.get("/api/v1/statements")
        return again["rows"] == kept.json()["rows"] == [[number, f"s{number}"]] and forgotten == 200

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(ask, range(24)))


def test_bounds_are_kept(cluster: Cluster) -> None:
    limits = ServerLimits(
        running_max=1, waiting_max=1, kept_max=2, result_bytes_max=100_000, page_bytes_max=5_000, kept_bytes_max=120_000
    )
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with (
        HttpServer(cluster.address, limits=limits) as server,
        httpx.Client(base_url=server.url, headers=headers, timeout=90) as http,
    ):
        page = run(http, "SELECT range AS n FROM range(10000) ORDER BY n")
        assert 0 < len(page["rows"]) < 5_000
        rest = http.get(page["result"], params={"offset": page["next_offset"]}).json()
        assert rest["rows"][0] == [len(page["rows"])]

        wide = run(http, "SELECT 1 AS n")
        wide_row = http.post("/api/v1/statements", json={"sql": "SELECT repeat('x', 6000) AS x"})
        assert (wide_row.status_code, wide_row.json()["error"]) == (422, "LimitExceededError")
        assert http.get(page["result"].removesuffix("/result")).status_code == 404  # two are kept
        assert http.get(wide["result"]).status_code == 200

        large = http.post("/api/v1/statements", json={"sql": "SELECT range FROM range(100000)"})
        assert (large.status_code, large.json()["retry_safe"]) == (422, False)

        first, second = (run(http, "SELECT range AS n FROM range(10000)") for _ in range(2))
        assert http.get(first["result"]).status_code == 410  # its rows made room
        assert http.get(second["result"]).status_code == 200

        places = [
            http.post("/api/v1/statements", json={"sql": ENDLESS, "wait": 0}).headers["location"] for _ in range(2)
        ]
        refused = http.post("/api/v1/statements", json={"sql": "SELECT 1"})
        assert (refused.status_code, refused.json()["retry_safe"]) == (503, True)
        assert refused.headers["retry-after"] == "1"
        assert http.get("/healthz").status_code == 200  # what watches has threads of its own
        assert http.get("/api/v1/members").status_code == 200
        for place in reversed(places):
            assert http.delete(place).json()["state"] == "cancelled"


def test_explain(http: httpx.Client, table: str) -> None:
    body = {"sql": f"SELECT * FROM {table} WHERE k = ?", "params": [7]}
    plan = http.post("/api/v1/explain", json=body).json()
    assert len(plan["pruning"]["required_members"]) == 1
    assert [len(scan["partitions"]) for scan in plan["pruning"]["scans"]] == [1]
    assert "execution: local" in plan["text"]
    off = http.post("/api/v1/explain", json={**body, "settings": {"pruning": "off"}}).json()
    assert off["pruning"]["enabled"] is False
    assert http.post("/api/v1/explain", json={"sql": "SELECT"}).status_code == 400


@pytest.mark.parametrize("name", ["members", "tables", "columns", "partitions", "events", "latencies", "settings"])
def test_system_tables_are_those_of_sql(cluster: Cluster, http: httpx.Client, table: str, name: str) -> None:
    rows, offset = [], 0
    while offset is not None:
        answer = http.get(f"/api/v1/{name}", params={"limit": 5000, "offset": offset})
        assert answer.status_code == 200
        rows += answer.json()["items"]
        offset = answer.json()["next_offset"]
    with cluster.connect() as conn:
        cursor = conn.execute(f"SELECT * FROM secateur.{name}")
        assert cursor.description is not None
        assert list(rows[0]) == [column[0] for column in cursor.description]
        if name != "events":
            assert len(rows) == len(cursor.fetchall())


def test_partitions_of_one_table_in_pages(http: httpx.Client, table: str) -> None:
    first = http.get("/api/v1/partitions", params={"table": table.upper(), "limit": 5}).json()
    second = http.get("/api/v1/partitions", params={"table": table, "limit": 5, "offset": first["next_offset"]}).json()
    assert [row["partition"] for row in first["items"] + second["items"]] == list(range(8))
    assert second["next_offset"] is None
    assert sum(row["rows"] for row in first["items"] + second["items"]) == 100


def test_the_end_of_a_server_ends_its_statements(cluster: Cluster) -> None:
    sql = ENDLESS.replace("1000000", "1000002")
    seen = "SELECT count(*) FROM secateur.statements WHERE state = 'running' AND statement = ?"
    with cluster.connect() as conn:
        headers = {"Authorization": f"Bearer {cluster.token}"}
        with (
            HttpServer(cluster.address) as server,
            httpx.Client(base_url=server.url, headers=headers, timeout=90) as http,
        ):
            assert http.post("/api/v1/statements", json={"sql": sql, "wait": 0}).status_code == 202
            eventually(lambda: conn.execute(seen, [sql]).fetchall() == [(1,)], "it does not run")
        eventually(lambda: conn.execute(seen, [sql]).fetchall() == [(0,)], "it still runs")


def test_what_is_of_the_whole_cluster_may_be_set(cluster: Cluster, http: httpx.Client) -> None:
    run(http, "SET GLOBAL pruning = on")
    with cluster.connect() as conn:
        conn.local_effects = False
        with pytest.raises(NotSupportedError, match="SET changes a connection"):
            conn.execute("SET pruning = off")
        conn.local_effects = True
        conn.execute("SET pruning = off")
