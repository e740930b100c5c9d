"""Tokens for some tables, and of claims: what a member asks of a plan, whoever names it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secateur.cluster.member import MemberTableChecks, check_plan
from secateur.errors import AuthenticationError, PolicyError, TopologyChangedError
from secateur.protocol import (
    AccessRecord,
    Execute,
    GrantedToken,
    Operation,
    Policy,
    PolicyCommand,
    Privilege,
    QueryPart,
    QueryStep,
    Rights,
    RowCondition,
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
        used=lambda plan: SimpleNamespace(tables_read=frozenset(TABLES[plan]), claims=(), scans=(), plan_id=plan)
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


@pytest.mark.parametrize(
    ("claims", "params", "is_refused"),
    [
        ({"tenant": "C1"}, [7, "C1"], False),
        ({"tenant": "C1"}, [7, "C2"], True),
        ({"tenant": "C1"}, [7, None], True),
        ({"tenant": "C1"}, [7], True),
        ({}, [7, None], False),
        ({}, [7, "C1"], True),
        ({"shop": "C1"}, [7, "C1"], True),
    ],
)
def test_a_parameter_that_stands_for_a_claim_has_the_value_of_the_token(
    claims: dict[str, str], params: list[Any], is_refused: bool
) -> None:
    plan: Any = SimpleNamespace(tables_read=frozenset(), claims=((1, "tenant"),), scans=(), plan_id="p")
    rights = Rights.of(GrantedToken("t1", TokenRole.READ, roles=("reader",), claims=claims), AccessRecord())
    assert rights is not None
    if not is_refused:
        check_plan(plan, params, rights, lambda table_id: pytest.fail("it reads no table"))
        assert "p" in rights.admitted
        return
    with pytest.raises(PolicyError, match=r"another value for session\('tenant'\) than the token 't1'"):
        check_plan(plan, params, rights, lambda table_id: pytest.fail("it reads no table"))
    assert not rights.admitted


def table_of(_: int) -> Any:
    return SimpleNamespace(origin=1)


def secured(**usings: str) -> Rights:
    """The rights of a reader of a table with a policy for each of some commands."""
    policies = tuple(
        Policy(f"p_{command}", 1, PolicyCommand(command), (), RowCondition((using,), ("k",)))
        for command, using in usings.items()
    )
    grants = tuple(TableGrant("t", privilege) for privilege in Privilege)
    rights = Rights.of(GrantedToken("t1", TokenRole.WRITE, tables=grants), AccessRecord((), (), policies, (1,)))
    assert rights is not None
    return rights


@pytest.mark.parametrize(
    ("usings", "policy", "command", "is_refused"),
    [
        ({"all": "k = 1"}, "k = 1", PolicyCommand.SELECT, False),
        ({"all": "k = 1"}, "k = 2", PolicyCommand.SELECT, True),
        ({"all": "k = 1"}, "", PolicyCommand.SELECT, True),
        ({}, "", PolicyCommand.SELECT, True),
        ({}, "false", PolicyCommand.SELECT, False),
        ({"select": "k > 0", "update": "k = 1"}, "k > 0", PolicyCommand.SELECT, False),
        ({"select": "k > 0", "update": "k = 1"}, "k > 0", PolicyCommand.UPDATE, True),
        ({"select": "k > 0", "update": "k = 1"}, "(k > 0) AND (k = 1)", PolicyCommand.UPDATE, False),
        ({"select": "k > 0", "update": "k = 1"}, "(k > 0) AND (k = 1)", PolicyCommand.DELETE, True),
        ({"select": "k > 0", "update": "k = 1"}, "(k > 0) AND (k = 1)", PolicyCommand.ALL, True),
        ({"all": "k = 1"}, "k = 1", PolicyCommand.ALL, False),
    ],
)
def test_a_plan_has_the_policies_of_whoever_sends_it(
    usings: dict[str, str], policy: str, command: PolicyCommand, is_refused: bool
) -> None:
    scan = SimpleNamespace(
        is_fetched=False, table_id=7, table="t", policy=policy, policy_command=command, system=None, external=None
    )
    plan: Any = SimpleNamespace(tables_read=frozenset({"t"}), claims=(), scans=(scan,), plan_id="p")
    rights = secured(**usings)
    for _ in range(2):  # what was found to be good once is not looked at again
        if is_refused:
            with pytest.raises(TopologyChangedError, match="planned for other row policies on t"):
                check_plan(plan, [], rights, table_of)
        else:
            check_plan(plan, [], rights, table_of)
