"""The slow-statement log of a running cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import secateur


@pytest.fixture(scope="module")
def cluster() -> Iterator[secateur.Cluster]:
    with secateur.start(runtime="embedded", members=2, slow_statement_s=0) as started:
        with started.connect() as conn:
            conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8")
            conn.execute("INSERT INTO t SELECT range, range FROM range(1000)")
        yield started


@pytest.mark.parametrize(
    ("sql", "read", "why"),
    [
        pytest.param("SELECT sum(v) FROM t WHERE v % 7 = 3", 8, "not pruned: ", id="unpruned"),
        pytest.param("SELECT v FROM t WHERE k = 5", 1, "", id="pruned"),
    ],
)
def test_a_statement_is_logged_with_its_fingerprint_and_reason(
    cluster: secateur.Cluster, caplog: pytest.LogCaptureFixture, sql: str, read: int, why: str
) -> None:
    def line() -> dict[str, Any] | None:
        texts = [one.getMessage() for one in caplog.records if one.name == "secateur.slow_statements"]
        found = [json.loads(text.removeprefix("slow statement: ")) for text in texts]
        return next((one for one in found if one["statement"] == sql), None)

    with cluster.connect() as conn:
        conn.execute(sql).fetchall()
        while line() is None:  # it comes once the controller has answered the member
            conn.execute("SELECT fingerprint FROM secateur.statements WHERE statement = ?", [sql]).fetchall()
        found = line()
        assert found is not None
        known = conn.execute("SELECT id, fingerprint FROM secateur.statements WHERE statement = ?", [sql]).fetchall()
    assert (found["id"], found["fingerprint"]) in known
    assert (found["partitions_read"], found["partitions_total"]) == (read, 8)
    assert found["why"].startswith(why)
    assert found["elapsed_ms"] > 0
    assert found["members_total"] == 2
