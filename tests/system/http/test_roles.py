"""Tokens with a role over HTTP: each caller may do what its own token may, whatever that of the server is."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.protocol import TokenRole
from secateur.server import HttpServer, ServerLimits

ROLE_NAMES = [role.title for role in TokenRole]
DAG = {
    "vertices": [
        {"name": "read", "processor": "table_source", "table": "t"},
        {"name": "result", "processor": "collect"},
    ],
    "edges": [{"source": "read", "destination": "result", "distributed": True}],
}
COUNT = {"sql": "SELECT count(*) FROM t"}

Http = Callable[[str], httpx.Client]


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as running, running.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
        conn.table("t").load(pa.table({"id": range(100), "v": range(100)}))
        yield running


@pytest.fixture(scope="module")
def readers_server(own: Cluster) -> Iterator[HttpServer]:
    """A server that itself may read."""
    with HttpServer(own.address, own.tokens.create("read").token, limits=ServerLimits(tokens_max=3)) as server:
        yield server


@pytest.fixture
def http(own: Cluster, readers_server: HttpServer) -> Iterator[Http]:
    """A client with a new token of a role."""
    with ExitStack() as stack:
        yield lambda role: stack.enter_context(bearer(readers_server, own.tokens.create(role).token))


def bearer(server: HttpServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


REQUESTS = {
    "query": ("read", "POST", "/api/v1/statements", COUNT),
    "explain": ("read", "POST", "/api/v1/explain", COUNT),
    "system table": ("read", "GET", "/api/v1/members", None),
    "page": ("read", "GET", "/statements", None),
    "metrics": ("read", "GET", "/metrics", None),
    "jobs": ("read", "GET", "/api/v1/jobs", None),
    "plan on a page": ("read", "POST", "/plan", COUNT | {"mode": "analyze"}),
    "change": ("write", "POST", "/api/v1/statements", {"sql": "UPDATE t SET v = v WHERE id = 1"}),
    "change as a job": ("write", "POST", "/api/v1/jobs", {"sql": "UPDATE t SET v = v"}),
    "DDL": ("admin", "POST", "/api/v1/statements", {"sql": "CREATE OR REPLACE VIEW w AS SELECT id FROM t"}),
    "global setting": ("admin", "POST", "/api/v1/statements", {"sql": "SET GLOBAL pruning = on"}),
    "KILL": ("admin", "DELETE", "/api/v1/statements/m1:999999", None),
    "job": ("code", "POST", "/api/v1/jobs", {"dag": DAG}),
}


@pytest.mark.parametrize("what", REQUESTS)
@pytest.mark.parametrize("role", ROLE_NAMES)
def test_a_request_needs_its_role_or_a_higher_one_and_else_names_it(http: Http, role: str, what: str) -> None:
    needed, method, path, body = REQUESTS[what]
    answer = http(role).request(method, path, json=body)
    if path == "/api/v1/jobs" and body is not None and "sql" in body:
        assert answer.status_code == 201
        answer = http_result(answer)
    if ROLE_NAMES.index(role) >= ROLE_NAMES.index(needed):
        assert answer.status_code not in (401, 403), answer.text
        assert "token with the role" not in answer.text
    else:
        assert answer.status_code == 403, answer.text
        assert answer.json()["error"] == "AuthenticationError"
        assert f"needs a token with the role '{needed}'" in answer.json()["detail"]
        assert f"has the role '{role}'" in answer.json()["detail"]


def http_result(submitted: httpx.Response) -> httpx.Response:
    """The result of a job, asked for with the token that has submitted it."""
    headers = {"Authorization": submitted.request.headers["Authorization"]}
    place = submitted.request.url.join(submitted.headers["Location"] + "/result?wait=30")
    return httpx.get(place, headers=headers, timeout=60)


def test_a_page_acts_with_the_role_of_its_visitor(own: Cluster, readers_server: HttpServer) -> None:
    for role, status in (("read", 403), ("admin", 400)):
        password = base64.b64encode(f"me:{own.tokens.create(role).token}".encode()).decode()
        headers = {"Authorization": f"Basic {password}", "Origin": readers_server.url}
        killed = httpx.delete(readers_server.url + "/api/v1/statements/m1:999999", headers=headers)
        assert killed.status_code == status, killed.text


def log_values(rows: pa.RecordBatch) -> pa.RecordBatch:
    logging.getLogger("mine").warning("values: %s", rows.to_pylist())
    return rows


def test_logs_and_rows_of_a_job_need_its_role_and_status_and_plan_do_not(
    own: Cluster, readers_server: HttpServer, http: Http
) -> None:
    """Logs may have rows of any table. The page reads them with the token of its visitor."""
    pipeline = secateur.Pipeline().read_table("t", where="id = 7").map(log_values).write_to(collect())
    with own.connect() as conn:
        job = conn.submit(pipeline, secateur.JobConfig(name="logs"))
        job.result(60)
    for role in ROLE_NAMES:
        client, place = http(role), f"/api/v1/jobs/{job.job_id}"
        page = client.get(f"/jobs/{job.job_id}")
        assert page.status_code == 200, page.text
        assert "Who does what" in page.text
        assert ("&#39;id&#39;: 7" in page.text, "job-log-refused" in page.text) == (role == "code", role != "code")
        assert [client.get(place + of).status_code for of in ("", "/metrics")] == [200, 200]
        status = 200 if role == "code" else 403
        assert [client.get(place + of).status_code for of in ("/logs", "/result")] == [status, status]


def test_a_revoked_token_is_let_in_no_more_and_a_new_one_at_once(own: Cluster, readers_server: HttpServer) -> None:
    made = own.tokens.create("write")
    with bearer(readers_server, made.token) as old:
        assert old.post("/api/v1/statements", json=COUNT).status_code == 200
        own.tokens.revoke(made.id)
        refused = old.post("/api/v1/statements", json={"sql": "DELETE FROM t WHERE id = 1"})
        assert refused.status_code in (401, 403), refused.text
        eventually(lambda: old.get("/docs").status_code == 401, "the server still lets a revoked token in", 15)
        with bearer(readers_server, own.tokens.create("write").token) as new:
            assert new.post("/api/v1/statements", json=COUNT).json()["rows"] == [[100]]


def test_statements_rows_and_keys_belong_to_the_token_that_submitted_them(http: Http) -> None:
    mine, other = http("code"), http("code")
    key = {"Idempotency-Key": "one"}
    place = mine.post("/api/v1/statements", json=COUNT, headers=key).headers["Location"]
    assert mine.post("/api/v1/statements", json=COUNT, headers=key).headers["Location"] == place
    assert other.post("/api/v1/statements", json=COUNT, headers=key).headers["Location"] != place
    for path in (place, f"{place}/result", place.replace("statements", "jobs")):
        assert other.get(path).status_code == 404
    assert other.delete(place).status_code == 404
    assert mine.get(f"{place}/result").json()["rows"] == [[100]]
    own_places = [statement["id"] for statement in mine.get("/api/v1/statements").json()["items"]]
    others = [statement["id"] for statement in other.get("/api/v1/statements").json()["items"]]
    assert own_places
    assert others
    assert not set(own_places) & set(others)


def test_more_tokens_than_the_server_keeps_connections_for_all_work(http: Http) -> None:
    clients = [http("read") for _ in range(6)]
    for _ in range(2):
        assert [client.post("/api/v1/statements", json=COUNT).status_code for client in clients] == [200] * 6


@pytest.mark.parametrize("token", ["wrong", "x" * 5000, "\u00fc"])
def test_a_token_of_nobody_is_refused(readers_server: HttpServer, token: str) -> None:
    headers = {"Authorization": b"Bearer " + token.encode("latin-1")}
    assert httpx.get(readers_server.url + "/docs", headers=headers).status_code == 401  # type: ignore[arg-type]


def test_without_the_cluster_known_tokens_stay_and_others_wait() -> None:
    with secateur.start(members=1, runtime="embedded") as cluster:
        known = cluster.tokens.create("read").token
        server = HttpServer(cluster.address).start()
        with bearer(server, known) as http:
            assert http.get("/docs").status_code == 200
    try:
        with bearer(server, known) as http, bearer(server, "unknown") as stranger:
            assert http.get("/docs").status_code == 200
            assert http.get("/").status_code == 503
            refused = stranger.get("/docs")
            assert refused.status_code == 503
            assert refused.json()["error"] == "UnreachableError"
    finally:
        server.stop()


def test_openapi_says_who_is_refused(http: Http) -> None:
    document = http("read").get("/openapi.json").json()
    for operations in document["paths"].values():
        for operation in operations.values():
            assert {"401", "403"} <= operation["responses"].keys()
