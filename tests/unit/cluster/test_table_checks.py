"""Tokens for some tables: a query in steps reads the tables of all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secateur.cluster.member import MemberTableChecks
from secateur.errors import AuthenticationError
from secateur.protocol import (
    AccessRecord,
    Execute,
    GrantedToken,
    Operation,
    Privilege,
    QueryPart,
    QueryStep,
    Rights,
    SteppedQuery,
    SubqueryUse,
    TableGrant,
    TokenRole,
)
from secateur.wire import PeerInfo, Reply, Request

TABLES = {"whole": ["orders"], "rest": ["orders"], "inner": ["carts"], "innermost": ["secrets"]}
PEER = PeerInfo(1, "test", "test", True)


def handled(steps: SteppedQuery | None, *readable: str) -> Any:
    plans = SimpleNamespace(
        kept_plan=lambda plan: SimpleNamespace(tables_read=frozenset(TABLES[plan]), claims=(), scans=(), plan_id=plan)
    )
    storage = SimpleNamespace(snapshots=None, places=SimpleNamespace(table=None, tables=None))
    checks = MemberTableChecks(plans, storage, None)  # type: ignore[arg-type]
    grants = tuple(TableGrant(table, Privilege.SELECT) for table in readable)
    rights = Rights.of(GrantedToken("t1", TokenRole.READ, tables=grants), AccessRecord())
    assert rights is not None
    request = Request(Operation.EXECUTE, Execute("whole", [], True, steps=steps), memoryview(b""), PEER)
    return checks.handle(request, rights, lambda _: Reply("rows"))


def stepped(*queries: QueryPart) -> SteppedQuery:
    return SteppedQuery(tuple(QueryStep(query, SubqueryUse.LIST, 10) for query in queries), QueryPart("rest"))


@pytest.mark.parametrize(
    ("steps", "needed"),
    [
        (None, ["orders"]),
        (stepped(QueryPart("inner")), ["orders", "carts"]),
        (stepped(QueryPart("inner", stepped(QueryPart("innermost")))), ["orders", "carts", "secrets"]),
    ],
    ids=["none", "one", "steps of a step"],
)
def test_a_query_in_steps_needs_the_tables_of_each(steps: SteppedQuery | None, needed: list[str]) -> None:
    assert handled(steps, *needed).message == "rows"
    for missing in needed:
        with pytest.raises(AuthenticationError, match=f"this needs a token with 'read on {missing}'"):
            handled(steps, "others", *(table for table in needed if table != missing))
