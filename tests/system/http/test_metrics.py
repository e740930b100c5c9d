"""``/metrics`` says what the system tables say, under the names of docs/metrics.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from eventually import eventually
from prometheus_client.parser import text_string_to_metric_families

import secateur
from secateur.cluster import Cluster
from secateur.server import HttpServer, ServerLimits
from secateur.server.metrics import METRICS

ROOT = Path(__file__).parents[3]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(http: httpx.Client) -> Samples:
    answer = http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


@pytest.fixture
def own() -> secateur.Cluster:
    """A cluster whose statements nobody else counts."""
    return secateur.start(members=2, runtime="embedded")


def test_the_numbers_are_those_of_the_system_tables(own: secateur.Cluster) -> None:
    headers = {"Authorization": f"Bearer {own.token}"}
    with own, HttpServer(own.address, limits=ServerLimits(metrics_share_max=1)) as server, own.connect() as conn:
        conn.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, s VARCHAR) PARTITION BY HASH (k) PARTITIONS 8")
        conn.execute("INSERT INTO t SELECT range, 'x' FROM range(100)")
        for key in range(50):
            conn.execute("SELECT s FROM t WHERE k = ?", [key]).fetchall()
        for _ in range(5):
            conn.execute("SELECT s, count(*) FROM t GROUP BY s").fetchall()
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as http:
            samples = scraped(http)
            assert of(samples, "secateur_up") == 1
            assert sum(of(samples, "secateur_members", state=state) for state in ("active", "suspect")) == 2
            assert of(samples, "secateur_tables") == 1
            assert of(samples, "secateur_table_rows", table="t") == 100
            assert of(samples, "secateur_partitions") == 8
            assert of(samples, "secateur_copies_missing") == 0
            assert sum(of(samples, "secateur_member_partitions_primary", member=f"m{n}") for n in (1, 2)) == 8
            assert sum(of(samples, "secateur_member_rows", member=f"m{n}") for n in (1, 2)) == 100
            assert of(samples, "secateur_events", kind="member_joined") == 2
            assert of(samples, "secateur_http_statements", state="running") == 0

            name = "secateur_statement_seconds"
            counts = {
                (dict(labels)["member"], dict(labels)["execution"]): value
                for (found, labels), value in samples.items()
                if found == f"{name}_count"
            }
            assert sum(value for (_, execution), value in counts.items() if execution == "local") >= 50
            assert sum(value for (_, execution), value in counts.items() if execution == "distributed") >= 5
            for (member, execution), count in counts.items():
                buckets = [
                    (float(dict(labels)["le"]), value)
                    for (found, labels), value in samples.items()
                    if found == f"{name}_bucket"
                    and dict(labels) | {"member": member, "execution": execution} == dict(labels)
                ]
                values = [value for _, value in sorted(buckets)]
                assert values == sorted(values)  # they are cumulative
                assert values[-1] == count
                assert of(samples, f"{name}_sum", member=member, execution=execution) > 0

            own.kill_member("m2")
            lost = ("secateur_events", (("kind", "member_lost"),))
            eventually(lambda: scraped(http).get(lost) == 1, "the loss is not seen")
    # The cluster has ended: so it is told, and the numbers of the server are there still.
    with secateur.start(members=1, runtime="embedded") as other:
        left = HttpServer(other.address).start()
        token = other.token
    try:
        with httpx.Client(base_url=left.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
            samples = scraped(http)
            assert of(samples, "secateur_up") == 0
            assert of(samples, "secateur_http_kept_bytes") == 0
            assert not [name for name, _ in samples if name.startswith("secateur_member")]
    finally:
        left.stop()


def test_a_bucket_has_the_statements_of_the_histogram(cluster: Cluster, http: httpx.Client) -> None:
    with cluster.connect() as conn:
        conn.execute("SELECT count(*) FROM secateur.members").fetchall()
        before = conn.execute(
            "SELECT member, execution, statements, list_sum(bucket_statements), len(bucket_ms) ="
            " len(bucket_statements), p50_ms <= p99_ms AND elapsed_ms > 0 FROM secateur.latencies"
        ).fetchall()
    assert before
    for _, execution, statements, counted, is_whole, is_ordered in before:
        assert execution in ("local", "scatter", "distributed", "change", "failed", "system")
        assert (counted, is_whole, is_ordered) == (statements, True, True)
    samples = scraped(http)
    for member, execution, statements, *_ in before:
        assert of(samples, "secateur_statement_seconds_count", member=member, execution=execution) > 0
        assert statements > 0


def test_the_page_lists_the_metrics() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(secateur_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    expected = [
        (metric.name, metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.meaning)
        for metric in METRICS
    ]
    assert listed == expected


def test_every_metric_is_named_as_prometheus_asks(http: httpx.Client) -> None:
    known = {metric.name for metric in METRICS}
    assert {
        name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name, _ in scraped(http)
    } <= known
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not re.search(r"_(ms|kb|mb|count)$", metric.name), metric.name


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    board = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    names = {metric.name: metric for metric in METRICS}
    known = set(names) | {
        f"{name}_{suffix}"
        for name, metric in names.items()
        if metric.kind == "histogram"
        for suffix in ("bucket", "sum", "count")
    }
    assert len(asked) >= 10
    for expression in asked:
        found = re.findall(r"\bsecateur_\w+", expression)
        assert found
        assert set(found) <= known, expression
        for labels in re.findall(r"by \(([^)]*)\)", expression):
            for label in labels.split(", "):
                assert label == "le" or any(
                    label in names[re.sub(r"_(bucket|sum|count)$", "", name)].labels for name in found
                )
