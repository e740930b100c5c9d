"""Jobs over HTTP: DAGs of the delivered processors, DAGs with functions where they are allowed, statements."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, generator_source, iterable_source
from secateur.processors import map_batches
from secateur.server import HttpServer

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 2"
_names = itertools.count(1)


@pytest.fixture(scope="module")
def table(cluster: Cluster) -> str:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE http_sales (customer VARCHAR, id INTEGER, product VARCHAR, amount INTEGER, PRIMARY KEY"
            " (customer, id)) PARTITION BY HASH (customer) PARTITIONS 16"
        )
        conn.execute("INSERT INTO http_sales SELECT 'C' || range % 10, range, 'P' || range % 3, range FROM range(1000)")
    return "http_sales"


def by_product(table: str, **source: Any) -> dict[str, Any]:
    return {
        "vertices": [
            {"name": "read", "processor": "table_source", "table": table, **source},
            {
                "name": "total",
                "processor": "aggregate",
                "by": ["product"],
                "aggregates": {"sales": {"function": "count_rows"}, "amount": {"function": "sum", "column": "amount"}},
            },
            {"name": "order", "processor": "sort", "by": [{"column": "amount", "descending": True}]},
            {"name": "result", "processor": "collect"},
        ],
        "edges": [
            {
                "source": "read",
                "destination": "total",
                "routing": "partitioned",
                "columns": ["product"],
                "distributed": True,
            },
            {"source": "total", "destination": "order", "routing": "all_to_one", "distributed": True},
            {"source": "order", "destination": "result", "distributed": True},
        ],
    }


def encoded(dag: secateur.DAG) -> str:
    return base64.b64encode(dag.freeze().encoded()).decode()


def with_function() -> secateur.DAG:
    dag = secateur.DAG()
    read = dag.new_vertex("read", iterable_source([{"n": 1}, {"n": 2}]))
    double = dag.new_vertex("double", map_batches(lambda rows: rows.append_column("m", pa.array([2, 4]))))
    result = dag.new_vertex("result", collect())
    dag.edge(secateur.between(read, double)).edge(secateur.between(double, result).distributed())
    return dag


def submitted(http: httpx.Client, **body: Any) -> str:
    answer = http.post("/api/v1/jobs", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/jobs/{answer.json()['id']}"
    found: str = answer.headers["location"]
    return found


def test_a_dag_of_delivered_processors(cluster: Cluster, http: httpx.Client, table: str) -> None:
    name = f"sales-{next(_names)}"
    dag = by_product(table, where="customer = ?", params=[{"param": "who"}])
    place = submitted(http, dag=dag, params={"who": "C3"}, config={"name": name})
    answer = http.get(f"{place}/result", params={"wait": 60}).json()
    assert (answer["kind"], answer["status"], answer["name"]) == ("dag", "completed", name)
    assert [column["name"] for column in answer["columns"]] == ["product", "sales", "amount"]
    with cluster.connect() as conn:
        sql = (
            "SELECT product, count(*), sum(amount)::BIGINT FROM http_sales WHERE customer = 'C3' GROUP BY ALL"
            " ORDER BY 3 DESC"
        )
        assert answer["rows"] == [list(row) for row in conn.execute(sql).fetchall()]
        assert conn.job(answer["id"]).info.name == name  # on record, for everybody
    assert http.get(f"/api/v1/jobs/{name}").json()["id"] == answer["id"]
    assert answer["id"] in [job["id"] for job in http.get("/api/v1/jobs").json()["items"]]
    assert (answer["sinks"], answer["next_offset"]) == (["result"], None)


@pytest.mark.smoke
def test_it_runs_on_the_owners_only_and_says_its_work(http: httpx.Client, table: str) -> None:
    place = submitted(http, dag=by_product(table, where="customer = 'C3'"))
    assert http.get(place, params={"wait": 60}).json()["status"] == "completed"
    metrics = http.get(f"{place}/metrics").json()["items"]
    assert len({entry["member"] for entry in metrics}) == 1
    assert sum(entry["rows_out"] for entry in metrics if entry["vertex"] == "read") == 100


def test_rows_as_pages_and_as_arrow(http: httpx.Client, table: str) -> None:
    dag = {
        "vertices": [
            {"name": "read", "processor": "table_source", "table": table, "columns": ["id"]},
            {"name": "order", "processor": "sort", "by": ["id"]},
            {"name": "result", "processor": "collect"},
        ],
        "edges": [
            {"source": "read", "destination": "order", "routing": "all_to_one", "distributed": True},
            {"source": "order", "destination": "result", "distributed": True},
        ],
    }
    place = submitted(http, dag=dag)
    page = http.get(f"{place}/result", params={"wait": 60, "offset": 990, "limit": 7}).json()
    assert (page["rows"], page["next_offset"]) == ([[n] for n in range(990, 997)], 997)
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    stream = http.get(f"{place}/result", headers=accept)
    assert pa.ipc.open_stream(stream.content).read_all().column("id").to_pylist() == list(range(1000))


def test_every_delivered_processor(http: httpx.Client, table: str, table_name: str) -> None:
    """Rows with the customer, two joins, duplicates removed twice, the largest kept, merged, and written."""
    created = f"CREATE TABLE http_{table_name} (who VARCHAR PRIMARY KEY, label VARCHAR, n BIGINT)"
    assert http.post("/api/v1/statements", json={"sql": created}).status_code == 200
    labels = [{"customer": f"C{n}", "label": f"L{n}", "day": {"type": "DATE", "value": "2024-01-31"}} for n in range(5)]
    local = {"distributed": True, "routing": "all_to_one"}
    counted = {"by": ["who", "label"], "aggregates": {"n": {"function": "count", "column": "id"}}}
    vertices: list[dict[str, Any]] = [
        {
            "name": "read",
            "processor": "table_source",
            "table": table,
            "keys": [{"customer": f"C{n}"} for n in range(8)],
        },
        {"name": "labels", "processor": "rows_source", "rows": labels},
        {"name": "join", "processor": "hash_join", "on": ["customer"]},
        {"name": "key", "processor": "key_by", "keys": {"who": "customer"}, "keep": True},
        {"name": "distinct", "processor": "distinct", "columns": ["id"]},
        {"name": "partial", "processor": "accumulate", **counted},
        {"name": "final", "processor": "combine", **counted},
        {"name": "union", "processor": "union"},
        {"name": "top", "processor": "top_n", "n": 3, "by": [{"column": "who", "descending": True}]},
        {"name": "runs", "processor": "sort_runs", "by": ["who"]},
        {"name": "merged", "processor": "merge_runs", "by": ["who"]},
        {"name": "write", "processor": "table_sink", "table": f"http_{table_name}"},
    ]
    edges: list[dict[str, Any]] = [
        {"source": "read", "destination": "join"},
        {
            "source": "labels",
            "destination": "join",
            "destination_ordinal": 1,
            "routing": "broadcast",
            "distributed": True,
            "priority": -1,
        },
        {"source": "join", "destination": "key"},
        {"source": "key", "destination": "distinct", "routing": "partitioned", "columns": ["id"], "distributed": True},
        {"source": "distinct", "destination": "partial"},
        {
            "source": "partial",
            "destination": "final",
            "routing": "partitioned",
            "columns": ["who"],
            "distributed": True,
        },
        {"source": "final", "destination": "union"},
        {"source": "union", "destination": "top", **local},
        {"source": "top", "destination": "runs"},
        {"source": "runs", "destination": "merged", **local},
        {"source": "merged", "destination": "write", "distributed": True},
    ]
    place = submitted(http, dag={"vertices": vertices, "edges": edges})
    assert http.get(f"{place}/result", params={"wait": 60}).json()["status"] == "completed"
    written = http.post("/api/v1/statements", json={"sql": f"SELECT * FROM http_{table_name} ORDER BY who"}).json()
    assert written["rows"] == [[f"C{n}", f"L{n}", 100] for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("dag", "error"),
    [
        ({"vertices": [{"name": "a", "processor": "collect"}] * 2}, "DagError"),
        (
            {"vertices": [{"name": "a", "processor": "collect"}], "edges": [{"source": "a", "destination": "b"}]},
            "DagError",
        ),
        ({"vertices": [{"name": "a", "processor": "sort", "by": ["x", "x"]}]}, "DagError"),
        (
            {
                "vertices": [
                    {
                        "name": "a",
                        "processor": "aggregate",
                        "aggregates": {"n": {"function": "count_rows", "column": "x"}},
                    }
                ]
            },
            "DagError",
        ),
        ({"vertices": [{"name": "a", "processor": "table_source", "table": "no_such"}]}, "UnknownTableError"),
        ({"vertices": [{"name": "a", "processor": "rows_source", "rows": [{"x": 1}, {"x": "y"}]}]}, "DagError"),
    ],
)
def test_a_dag_that_cannot_be_is_refused(http: httpx.Client, dag: dict[str, Any], error: str) -> None:
    answer = http.post("/api/v1/jobs", json={"dag": dag})
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize(
    "body", [{}, {"sql": "SELECT 1", "dag": {"vertices": []}}, {"encoded_dag": "?"}, {"encoded_dag": "AAAA"}]
)
def test_a_job_is_one_thing(http: httpx.Client, body: dict[str, Any]) -> None:
    assert http.post("/api/v1/jobs", json=body).status_code in (400, 422)


def test_functions_run_where_the_cluster_allows_code(http: httpx.Client) -> None:
    place = submitted(http, encoded_dag=encoded(with_function()))
    assert http.get(f"{place}/result", params={"wait": 60}).json()["rows"] == [[1, 2], [2, 4]]


def test_functions_do_not_run_where_it_does_not() -> None:
    with (
        secateur.start(members=1, runtime="embedded", allow_code=False) as cluster,
        HttpServer(cluster.address) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {cluster.token}"}) as http,
    ):
        refused = http.post("/api/v1/jobs", json={"encoded_dag": encoded(with_function())})
        assert (refused.status_code, refused.json()["error"]) == (400, "SerializationError")
        data = {
            "vertices": [
                {"name": "rows", "processor": "rows_source", "rows": [{"n": {"type": "DECIMAL", "value": "1.50"}}]},
                {"name": "result", "processor": "collect"},
            ],
            "edges": [{"source": "rows", "destination": "result", "distributed": True}],
        }
        place = submitted(http, dag=data)
        assert http.get(f"{place}/result", params={"wait": 60}).json()["rows"] == [["1.50"]]


def test_delete_stops_a_job(http: httpx.Client) -> None:
    def without_end() -> Iterator[dict[str, int]]:
        yield from ({"n": n} for n in itertools.count())

    dag = secateur.DAG()
    read = dag.new_vertex("read", generator_source(lambda context: without_end()))
    drop = dag.new_vertex("drop", map_batches(lambda rows: rows.slice(0, 0)))
    result = dag.new_vertex("result", collect())
    dag.edge(secateur.between(read, drop)).edge(secateur.between(drop, result).distributed())
    place = submitted(http, encoded_dag=encoded(dag))
    assert http.get(f"{place}/result", params={"wait": 0.1}).status_code == 202
    assert http.delete(place).json()["status"] == "cancelled"
    failed = http.get(f"{place}/result")
    assert (failed.status_code, failed.json()["error"]) == (409, "JobCancelledError")
    assert http.delete(place).status_code == 200


def test_a_failure_names_vertex_and_member(http: httpx.Client) -> None:
    dag = secateur.DAG()
    read = dag.new_vertex("read", iterable_source([{"n": 1}]))
    fail = dag.new_vertex("fail", map_batches(lambda rows: rows.column("no_such")))
    result = dag.new_vertex("result", collect())
    dag.edge(secateur.between(read, fail)).edge(secateur.between(fail, result).distributed())
    place = submitted(http, encoded_dag=encoded(dag))
    problem = http.get(f"{place}/result", params={"wait": 60})
    assert (problem.status_code, problem.json()["error"]) == (422, "JobFailedError")
    assert problem.json()["details"]["vertex"] == "fail"
    assert http.get(place).json()["reason"].startswith("JobFailedError")


def test_a_name_is_taken_while_its_job_runs(http: httpx.Client, table: str) -> None:
    assert http.get("/api/v1/jobs/no-such-job").json()["error"] == "UnknownJobError"
    assert http.get("/api/v1/jobs/no-such-job").status_code == 404
    assert http.delete("/api/v1/jobs/no-such-job").status_code == 404


def test_a_key_submits_once(http: httpx.Client, table: str) -> None:
    key = {"Idempotency-Key": f"job-{next(_names)}"}
    body = {"dag": by_product(table)}
    answers = [http.post("/api/v1/jobs", json=body, headers=key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_a_failed_submission_may_be_repeated_with_its_key(http: httpx.Client, table_name: str) -> None:
    key = {"Idempotency-Key": f"job-{next(_names)}"}
    body = {"dag": by_product(f"later_{table_name}")}
    assert http.post("/api/v1/jobs", json=body, headers=key).json()["error"] == "UnknownTableError"
    create = f"CREATE TABLE later_{table_name} (product VARCHAR PRIMARY KEY, amount INTEGER)"
    created = http.post("/api/v1/statements", json={"sql": create})
    assert created.status_code == 200, created.text
    place = http.post("/api/v1/jobs", json=body, headers=key).headers["location"]
    assert http.get(f"{place}/result", params={"wait": 60}).json()["rows"] == []


def test_a_statement_as_a_job(http: httpx.Client, table: str) -> None:
    place = submitted(http, sql=f"SELECT count(*) AS n FROM {table} WHERE customer = ?", params=["C3"])
    answer = http.get(f"{place}/result", params={"wait": 60}).json()
    assert (answer["kind"], answer["status"], answer["rows"]) == ("sql", "completed", [[100]])
    assert answer["id"] in [job["id"] for job in http.get("/api/v1/jobs").json()["items"]]
    assert http.get(f"{place}/metrics").json() == {"items": []}
    endless = submitted(http, sql=ENDLESS)
    assert http.get(f"{endless}/result", params={"wait": 0.1}).status_code == 202
    assert http.delete(endless).json()["status"] == "cancelled"
    wrong = submitted(http, sql="SELECT")
    assert http.get(f"{wrong}/result", params={"wait": 60}).status_code == 400
