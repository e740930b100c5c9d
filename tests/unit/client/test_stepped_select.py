"""Statements in steps: the client sends the whole of them to one member."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from secateur.client import Connection
from secateur.errors import PruningMismatchError, TopologyChangedError
from secateur.protocol import QueryPart, QueryStep, SelectStatement, SteppedQuery, SubqueryUse

STEPS = SteppedQuery((QueryStep(QueryPart("step"), SubqueryUse.VALUE, 1),), QueryPart("rest"))


@pytest.fixture
def stepped(cluster: Any) -> Any:
    """The fake cluster with a statement in steps, the first of which reads one key, and which as a whole reads every
    partition.
    """
    one = cluster.statements["one"]
    cluster.statements["whole"] = replace(cluster.statements["all"], parameter_count=1)

    def reply(_: list[Any]) -> tuple[SelectStatement, bytes]:
        whole, first = (cluster.statements[name].select(name, cluster.catalog_version) for name in ("whole", "one"))
        return with_fields(whole, steps=STEPS, first_scans=first.scans), b""

    cluster.statements["in steps"] = replace(one, reply=reply)
    return cluster


def owner_of(cluster: Any, customer: str) -> str:
    return cluster.ownership.primary(cluster.tables[0].scheme.partition_of({"customer_id": customer}))


def test_an_owner_of_the_first_step_gets_all_steps_in_one_request(stepped: Any, conn: Connection) -> None:
    for customer in ("C1", "C2", "C5", "C9"):
        stepped.log.clear()
        cursor = conn.execute("in steps", [customer])
        assert len(cursor.fetchall()) == 18
        assert stepped.asked("execute") == [owner_of(stepped, customer)]
    assert [(asked["plan"], asked["steps"]) for asked in stepped.executed] == [("whole", STEPS)] * 4


def test_where_the_first_step_reads_nothing_an_owner_of_the_whole_is_asked(stepped: Any, conn: Connection) -> None:
    for _ in range(3):
        conn.execute("in steps", [None])
    assert sorted(stepped.asked("execute")) == ["m1", "m2", "m3"]


def test_without_pruning_it_runs_undivided(stepped: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.OFF
    conn.execute("in steps", ["C2"])
    assert [(asked["plan"], asked["steps"]) for asked in stepped.executed] == [("whole", None)]


def test_verify_compares_the_steps_with_the_whole(stepped: Any, conn: Connection) -> None:
    whole = stepped.statements["whole"]
    stepped.statements["whole"] = replace(
        whole, run=lambda rows, params: rows.slice(0, 2) if stepped.executed[-1]["steps"] else rows
    )
    conn._session.pruning = conn._session.pruning.VERIFY
    with pytest.raises(PruningMismatchError, match="2 rows from 8 partitions against 18 rows from 8"):
        conn.execute("in steps", ["C2"])
    assert [asked["steps"] for asked in stepped.executed[:2]] == [STEPS, None]


def test_a_cluster_that_changes_is_followed_with_all_steps(stepped: Any, conn: Connection) -> None:
    conn.execute("in steps", ["C2"])
    owner = stepped.executed[0]["member"]
    execute = stepped.members[owner].on_execute
    answered: list[Any] = []

    def moved(request: Any) -> Any:
        answered.append(request.message.steps)
        if len(answered) == 1:
            raise TopologyChangedError("the partition has moved")
        return execute(request)

    stepped.members[owner].on_execute = moved
    assert len(conn.execute("in steps", ["C2"]).fetchall()) == 18
    assert answered == [STEPS, STEPS]
    assert stepped.asked("prepare") == ["controller"] * 2
