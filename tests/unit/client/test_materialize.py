"""Steps of a query, run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace as with_fields

from secateur.client import Connection
from secateur.client.execution import (
    ANY_STATE,
    ExecutionMode,
    RowState,
    RunOutcome,
    StepResult,
    combined_outcome,
    run_in_steps,
)
from secateur.errors import DataError, KeysChangedError, MemberLostError, PruningMismatchError, TopologyChangedError
from secateur.partitioning.pruning import Box, Choice, Comparison, Constraint, Keys, Parameter, ParameterComparison
from secateur.protocol import QueryStep, ResultColumn, SelectStatement, Since, SteppedQuery, SubqueryUse
from secateur.wire import ShortTable


def statement(plan_id: str, kind: str = "BIGINT") -> SelectStatement:
    return SelectStatement(plan_id, (), (ResultColumn("v", kind),), 1, (), None, True, 1)


def outcome(
    result: Any, *members: str, read: int = 0, total: int = 0, execution: ExecutionMode | None = None
) -> RunOutcome:
    execution_mode = execution or (
        ExecutionMode.NONE if not members else ExecutionMode.LOCAL if len(members) == 1 else ExecutionMode.DISTRIBUTED
    )
    return RunOutcome(result, execution_mode, members, read, total, 3, 7)


ROWS = pa.table({"r": ["the rows"]})
WHOLE = pa.table({"r": ["the whole"]})


def run(
    step_result: Any, *, is_list: bool = True, values_max: int = 3, kind: str = "BIGINT"
) -> tuple[RunOutcome, list[tuple[str, list[Any]]]]:
    """What comes out when the step gives ``step_result``, and what was run with which values."""
    asked: list[tuple[str, list[Any]]] = []

    def one(part: SelectStatement, values: Sequence[Any], state: RowState) -> RunOutcome:
        assert state == ANY_STATE
        asked.append((part.plan_id, list(values)))
        if part.plan_id == "rest":
            return outcome(ROWS, "m2", read=1, total=8)
        if isinstance(step_result, Exception):
            raise step_result
        return outcome(step_result, "m1", "m2", read=4, total=4)

    def whole() -> RunOutcome:
        asked.append(("whole", []))
        return outcome(WHOLE, "m1", "m2", "m3", read=12, total=12)

    materialized = SteppedQuery(
        (QueryStep(statement("step", kind), SubqueryUse.LIST if is_list else SubqueryUse.VALUE, values_max),),
        statement("rest"),
    )
    return run_in_steps(materialized, ["given"], one, one, whole), asked


@pytest.mark.parametrize(
    ("result", "kind", "values"),
    [
        pytest.param(pa.table({"v": pa.array([1, None, 2])}), "BIGINT", [1, None, 2], id="integers with NULL"),
        pytest.param(pa.table({"v": pa.array([], pa.int64())}), "BIGINT", [], id="none"),
        pytest.param(ShortTable([["é", None]], 2), "VARCHAR", ["é", None], id="a short result"),
        pytest.param(
            pa.table({"v": pa.array([Decimal(2**70)], pa.decimal128(38, 0))}), "HUGEINT", [2**70], id="large integers"
        ),
        pytest.param(pa.table({"v": pa.array([date(2024, 2, 29)])}), "DATE", [date(2024, 2, 29)], id="dates"),
    ],
)
def test_the_values_of_a_step_are_a_parameter_of_the_rest(result: Any, kind: str, values: list[Any]) -> None:
    found, asked = run(result, kind=kind)
    assert asked == [("step", ["given"]), ("rest", ["given", values])]
    assert [type(value) for value in asked[1][1][1]] == [type(value) for value in values]
    assert found.result is ROWS
    assert (found.members, found.execution, found.partitions_read, found.partitions_total) == (
        ("m1", "m2"),
        ExecutionMode.DISTRIBUTED,
        5,
        12,
    )


@pytest.mark.parametrize(("values", "value"), [([5], 5), ([None], None), ([], None)], ids=["one", "NULL", "no row"])
def test_a_scalar_is_a_value(values: list[Any], value: Any) -> None:
    _, asked = run(pa.table({"v": pa.array(values, pa.int64())}), is_list=False, values_max=1)
    assert asked == [("step", ["given"]), ("rest", ["given", value])]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        pytest.param(pa.table({"v": [1, 2, 3, 4]}), "BIGINT", id="too many values"),
        pytest.param(pa.table({"v": ["x" * 1_100_000]}), "VARCHAR", id="too large values"),
        pytest.param(
            pa.table({"v": pa.array([10_000 * 366], pa.int32()).cast(pa.date32())}),
            "DATE",
            id="a date that Python does not have",
        ),
        pytest.param(DataError("a bad cast"), "BIGINT", id="an error in the data"),
    ],
)
def test_the_query_runs_undivided(result: Any, kind: str) -> None:
    found, asked = run(result, kind=kind)
    assert asked == [("step", ["given"]), ("whole", [])]
    assert found.result is WHOLE
    assert found.members == ("m1", "m2", "m3")


def keyed(
    steps: Sequence[Any], rest: Any = ROWS, scans: int = 2
) -> tuple[RunOutcome, list[tuple[str, list[Any], dict[str, Any]]]]:
    """What comes out of a statement whose keys are found by steps that give these results, and what was run with which
    values and state.
    """
    asked: list[tuple[str, list[Any], dict[str, Any]]] = []
    results = iter(steps)

    def one(part: SelectStatement, values: Sequence[Any], state: RowState) -> RunOutcome:
        asked.append((part.plan_id, list(values), state))
        result = rest if part.plan_id == "rest" else next(results)
        if isinstance(result, Exception):
            raise result
        return result if isinstance(result, RunOutcome) else outcome(result, "m1", read=1, total=8)

    def whole() -> RunOutcome:
        asked.append(("whole", [], {}))
        return outcome(WHOLE, "m1", "m2", "m3", read=12, total=12)

    found = [with_fields(statement(f"step {number}"), parameter_count=1 + 2 * number) for number in range(len(steps))]
    parts = tuple(
        QueryStep(
            with_fields(part, columns=(ResultColumn("v", "BIGINT"), ResultColumn("w", "VARCHAR"))), SubqueryUse.KEYS, 3
        )
        for part in found
    )
    return (
        run_in_steps(
            SteppedQuery(parts, with_fields(statement("rest"), scans=(SCAN,) * scans), (1, 0)),
            ["given"],
            one,
            one,
            whole,
        ),
        asked,
    )


SCAN: Any = None
KEYS = pa.table({"v": pa.array([1, 1, None], pa.int64()), "w": ["a", "b", "a"]})


def test_keys_are_a_list_for_each_column_and_go_on_to_later_steps() -> None:
    found, asked = keyed([KEYS, replace(outcome(KEYS, "m2"), published=((5, 9),))])
    (mark,) = {state.mark for _, _, state in asked[:2]}
    lists = [[1, None], ["a", "b"]]
    assert [(name, values) for name, values, _ in asked] == [
        ("step 0", ["given"]),
        ("step 1", ["given", *lists]),
        ("rest", ["given", *lists, *lists]),
    ]
    assert asked[2][2] == RowState(since=Since(mark, [1, 0], 7, [(5, 9)]))
    assert found.result is ROWS
    assert found.steps == (StepResult(3, used=True), StepResult(3, used=True))


@pytest.mark.parametrize(
    ("steps", "rest", "expected"),
    [
        pytest.param(
            [KEYS], KeysChangedError("changed"), ["step 0", "rest", "whole"], id="the rows have changed since"
        ),
        pytest.param(
            [KEYS, replace(outcome(KEYS, "m1"), topology_version=8)],
            ROWS,
            ["step 0", "step 1", "whole"],
            id="other owners",
        ),
        pytest.param([pa.table({"v": [1] * 4, "w": ["a"] * 4})], ROWS, ["step 0", "whole"], id="too many keys"),
        pytest.param([DataError("a bad cast")], ROWS, ["step 0", "whole"], id="an error in the data"),
        pytest.param(
            [KEYS], DataError("a bad cast"), ["step 0", "rest", "whole"], id="an error in the data of the rest"
        ),
    ],
)
def test_keys_that_cannot_be_used_leave_the_query_whole(steps: list[Any], rest: Any, expected: list[str]) -> None:
    found, asked = keyed(steps, rest)
    assert [name for name, _, _ in asked] == expected
    assert found.result is WHOLE
    assert not any(step.used for step in found.steps)


@pytest.mark.parametrize(("scans", "expected"), [(8, ["step 0", "rest"]), (9, ["step 0", "whole"])])
def test_many_relations_are_not_joined_with_nothing(scans: int, expected: list[str]) -> None:
    found, asked = keyed([KEYS.slice(0, 0)], scans=scans)
    assert [name for name, _, _ in asked] == expected
    assert found.steps == (StepResult(0, used=scans == 8),)


def test_marks_are_of_one_run() -> None:
    marks = {keyed([KEYS])[1][0][2].mark for _ in range(3)}
    assert len(marks) == 3


def test_a_lost_member_is_the_business_of_whoever_runs_it_all() -> None:
    with pytest.raises(MemberLostError):
        run(MemberLostError("m1 is gone"))


@pytest.mark.parametrize(
    ("outcomes", "execution", "members"),
    [
        pytest.param([outcome(ROWS), outcome(ROWS)], ExecutionMode.NONE, (), id="nobody"),
        pytest.param([outcome(ROWS, "m1"), outcome(ROWS)], ExecutionMode.LOCAL, ("m1",), id="one step and nothing"),
        pytest.param([outcome(ROWS, "m1"), outcome(ROWS, "m1")], ExecutionMode.LOCAL, ("m1",), id="one member for all"),
        pytest.param(
            [outcome(ROWS, "m2"), outcome(ROWS, "m1")], ExecutionMode.DISTRIBUTED, ("m1", "m2"), id="a member each"
        ),
        pytest.param(
            [outcome(ROWS, "m1", execution=ExecutionMode.DISTRIBUTED), outcome(ROWS, "m1")],
            ExecutionMode.DISTRIBUTED,
            ("m1",),
            id="distributed",
        ),
    ],
)
def test_what_all_steps_cost(outcomes: list[RunOutcome], execution: ExecutionMode, members: tuple[str, ...]) -> None:
    found = combined_outcome(outcomes)
    assert (found.execution, found.members) == (execution, members)


ROWS_OF_KEY = Keys(
    Box.of({"customer_id": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(1),)),)),))})
)


@pytest.fixture
def stepped(cluster: Any) -> Any:
    """The fake cluster with a statement in steps: the key of a customer, and then all rows of that key.

    As a whole it would give every row.
    """
    one = cluster.statements["one"]
    cluster.statements["whole"] = replace(cluster.statements["all"], parameter_count=1)
    cluster.statements["step"] = replace(
        one, run=lambda rows, params: one.run(rows, params).select(["customer_id"]).slice(0, 1)
    )
    cluster.statements["rest"] = replace(
        one, node=ROWS_OF_KEY, run=lambda rows, params: one.run(rows, params[1:]), parameter_count=2
    )

    def reply(_: list[Any]) -> tuple[SelectStatement, bytes]:
        whole, step, rest = (
            cluster.statements[name].select(name, cluster.catalog_version) for name in ("whole", "step", "rest")
        )
        first = QueryStep(
            with_fields(step, columns=(ResultColumn("customer_id", "VARCHAR"),), empty=None), SubqueryUse.VALUE, 1
        )
        return with_fields(whole, materialized=SteppedQuery((first,), rest)), b""

    cluster.statements["in steps"] = replace(one, reply=reply)
    return cluster


def plans(cluster: Any) -> list[str]:
    return [args["plan"] for args in cluster.executed]


def test_each_step_goes_to_its_own_owner(stepped: Any, conn: Connection) -> None:
    for cached in (False, True):
        cursor = conn.execute("in steps", ["C2"])
        assert cursor.fetchall() == [("C2", 1, 1.5), ("C2", 101, None)]
        stats = cursor.stats
        assert stats is not None
        assert (stats.execution, stats.members_touched, stats.partitions_read, stats.partitions_total) == (
            "local",
            1,
            2,
            16,
        )
        assert stats.plan_cached == cached
    assert [(args["plan"], args["params"]) for args in stepped.executed] == [
        ("step", ["C2"]),
        ("rest", ["C2", "C2"]),
    ] * 2
    assert stepped.asked("prepare") == ["controller"]


def test_without_pruning_it_runs_undivided(stepped: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.OFF
    conn.execute("in steps", ["C2"])
    assert plans(stepped) == ["whole"]


def test_verify_compares_the_steps_with_the_whole(stepped: Any, conn: Connection) -> None:
    conn._session.pruning = conn._session.pruning.VERIFY
    with pytest.raises(PruningMismatchError, match="2 rows from 2 partitions against 18 rows from 8"):
        conn.execute("in steps", ["C2"])
    assert plans(stepped)[:3] == ["step", "rest", "whole"]


@pytest.mark.parametrize("lost", [0, 1], ids=["in the first step", "between the steps"])
def test_a_cluster_that_changes_is_followed_from_the_first_step_on(stepped: Any, conn: Connection, lost: int) -> None:
    conn.execute("in steps", ["C2"])
    owner = stepped.executed[0]["member"]
    stepped.executed.clear()
    execute = stepped.members[owner].on_execute
    answered: list[str] = []

    def moved(request: Any) -> Any:
        answered.append(request.message.plan)
        if len(answered) == lost + 1:
            raise TopologyChangedError("the partition has moved")
        return execute(request)

    stepped.members[owner].on_execute = moved
    assert len(conn.execute("in steps", ["C2"]).fetchall()) == 2
    assert answered == [*["step", "rest"][: lost + 1], "step", "rest"]
    assert stepped.asked("prepare") == ["controller"] * 2
