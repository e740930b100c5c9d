"""Steps of a query, run one after the other by the member that coordinates it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.cluster.member import PartResult, combined_result, run_in_steps
from secateur.errors import DataError, KeysChangedError, MemberLostError
from secateur.protocol import (
    Execute,
    Executed,
    NarrowedScans,
    QueryPart,
    QueryStep,
    ReadRequirements,
    RunProfile,
    Since,
    StageWork,
    SteppedQuery,
    StepResult,
    SubqueryUse,
)
from secateur.wire import ShortTable, encode_table

ROWS = pa.table({"r": ["the rows"]})
WHOLE = pa.table({"r": ["the whole"]})
WATCHED = (1, 0)


def result(
    rows: Any, *members: str, read: int = 0, total: int = 0, execution: str | None = None, **said: Any
) -> PartResult:
    """The answer of some members."""
    mode = execution or ("local" if len(members) == 1 else "distributed")
    if isinstance(rows, ShortTable):
        return PartResult(
            Executed(mode, read, total, 7, rows.num_rows, values=rows.columns, members=list(members), **said)
        )
    return PartResult(Executed(mode, read, total, 7, rows.num_rows, members=list(members), **said), encode_table(rows))


@dataclass
class Parts:
    """Answers what the parts of a query ask for.

    Attributes:
        steps: The outcome of each step in order.
        rest: The outcome of the rest.
        columns: The columns of each step.
        scans: The number of scans of the rest.
        asked: The requests.
        compared: The number of values that each step found, for its estimate.
    """

    steps: list[Any]
    rest: Any = field(default_factory=lambda: result(ROWS, "m2", read=1, total=8))
    columns: Sequence[tuple[str, str]] = (("v", "BIGINT"),)
    scans: int = 2
    is_profiled: bool = False
    asked: list[Execute] = field(default_factory=list)
    compared: list[tuple[str, int]] = field(default_factory=list)

    async def plan(self, plan_id: str) -> Any:
        if plan_id == "rest":
            return SimpleNamespace(scans=[None] * self.scans)
        number = int(plan_id.removeprefix("step "))
        return SimpleNamespace(columns=self.columns, parameter_count=1 + len(self.columns) * number)

    async def run(self, asked: Execute, *, has_rows: bool) -> PartResult:
        assert has_rows
        self.asked.append(asked)
        if asked.plan == "whole":
            return result(WHOLE, "m1", "m2", "m3", read=12, total=12)
        answer = self.rest if asked.plan == "rest" else self.steps[int(asked.plan.removeprefix("step "))]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, PartResult) else result(answer, "m1", "m2", read=4, total=4)

    async def requirements(self, asked: Execute) -> ReadRequirements:
        return ReadRequirements(12, ("m1", "m2", "m3")) if asked.plan == "whole" else ReadRequirements(1, ("m2",))

    def compare(self, step: QueryStep, plan: Any, found: int) -> None:
        self.compared.append((step.query.plan, found))

    @property
    def ran(self) -> list[str]:
        return [asked.plan for asked in self.asked]


def run(
    parts: Parts, use: SubqueryUse = SubqueryUse.LIST, *, values_max: int = 3, watched: tuple[int, ...] | None = None
) -> PartResult:
    """What comes out of a query whose parts these are."""
    steps = tuple(QueryStep(QueryPart(f"step {number}"), use, values_max) for number in range(len(parts.steps)))
    return asyncio.run(
        run_in_steps(
            Execute("whole", ["given"], True, 99, steps=SteppedQuery(steps, QueryPart("rest"), watched)), parts
        )
    )


def is_whole(found: PartResult) -> bool:
    return found.payload == encode_table(WHOLE)


@pytest.mark.parametrize(
    ("found", "kind", "values"),
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
def test_the_values_of_a_step_are_a_parameter_of_the_rest(found: Any, kind: str, values: list[Any]) -> None:
    parts = Parts([found], columns=[("v", kind)])
    answer = run(parts)
    assert parts.asked == [Execute("step 0", ["given"], True), Execute("rest", ["given", values], True, 99)]
    assert [type(value) for value in parts.asked[1].params[1]] == [type(value) for value in values]
    assert parts.compared == [("step 0", len(values))]
    executed = answer.executed
    assert answer.payload == encode_table(ROWS)
    assert (executed.members, executed.execution) == (["m1", "m2"], "distributed")
    assert (executed.partitions_read, executed.partitions_total) == (5, 12)


@pytest.mark.parametrize(("values", "value"), [([5], 5), ([None], None), ([], None)], ids=["one", "NULL", "no row"])
def test_a_scalar_is_a_value(values: list[Any], value: Any) -> None:
    parts = Parts([pa.table({"v": pa.array(values, pa.int64())})])
    run(parts, SubqueryUse.VALUE, values_max=1)
    assert parts.asked[1].params == ["given", value]


@pytest.mark.parametrize(
    ("found", "kind"),
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
def test_the_query_runs_undivided(found: Any, kind: str) -> None:
    parts = Parts([found], columns=[("v", kind)])
    answer = run(parts)
    assert parts.ran == ["step 0", "whole"]
    assert parts.asked[1] == Execute("whole", ["given"], True, 99)
    assert is_whole(answer)
    assert answer.executed.members == ["m1", "m2", "m3"]


KEYS = pa.table({"v": pa.array([1, 1, None], pa.int64()), "w": ["a", "b", "a"]})


def keyed(steps: list[Any], **other: Any) -> Parts:
    """The parts of a query whose steps find keys of joins."""
    return Parts(steps, columns=[("v", "BIGINT"), ("w", "VARCHAR")], **other)


def test_keys_are_a_list_for_each_column_and_go_on_to_later_steps() -> None:
    parts = keyed([KEYS, result(KEYS, "m2", published=((5, 9),))])
    answer = run(parts, SubqueryUse.KEYS, watched=WATCHED)
    first, second, rest = parts.asked
    lists = [[1, None], ["a", "b"]]
    assert [asked.params for asked in parts.asked] == [["given"], ["given", *lists], ["given", *lists, *lists]]
    assert first.mark is not None
    assert (second.mark, rest.mark) == (first.mark, None)
    assert (first.since, second.since, rest.since) == (None, None, Since(first.mark, [1, 0], 7, [(5, 9)]))
    assert answer.payload == encode_table(ROWS)
    assert answer.executed.steps == (StepResult(3, used=True), StepResult(3, used=True))


@pytest.mark.parametrize(
    ("steps", "rest", "expected"),
    [
        pytest.param(
            [KEYS], KeysChangedError("changed"), ["step 0", "rest", "whole"], id="the rows have changed since"
        ),
        pytest.param(
            [KEYS, PartResult(replace(result(KEYS, "m1").executed, topology_version=8), encode_table(KEYS))],
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
    parts = keyed(steps, rest=rest)
    answer = run(parts, SubqueryUse.KEYS, watched=WATCHED)
    assert parts.ran == expected
    assert is_whole(answer)
    assert not any(step.used for step in answer.executed.steps)


@pytest.mark.parametrize("error", [KeysChangedError("changed"), DataError("a bad cast")])
def test_an_error_of_the_rest_is_one_of_the_query_where_values_stand_for_the_subquery(error: Exception) -> None:
    with pytest.raises(type(error)):
        run(Parts([pa.table({"v": [1]})], rest=error))


@pytest.mark.parametrize(("scans", "expected"), [(8, ["step 0", "rest"]), (9, ["step 0", "whole"])])
def test_many_relations_are_not_joined_with_nothing(scans: int, expected: list[str]) -> None:
    parts = keyed([KEYS.slice(0, 0)], scans=scans)
    answer = run(parts, SubqueryUse.KEYS, watched=WATCHED)
    assert parts.ran == expected
    assert answer.executed.steps == (StepResult(0, used=scans == 8),)


def test_marks_are_of_one_run() -> None:
    runs = [keyed([KEYS]) for _ in range(3)]
    for parts in runs:
        run(parts, SubqueryUse.KEYS, watched=WATCHED)
    assert len({parts.asked[0].mark for parts in runs}) == 3


def test_a_lost_member_is_the_business_of_the_client() -> None:
    with pytest.raises(MemberLostError):
        run(Parts([MemberLostError("m1 is gone")]))


def work(stage: str, member: str) -> StageWork:
    return StageWork(stage, member)


def test_a_profile_has_the_steps_before_the_rest_and_says_how_they_narrow_it() -> None:
    step = result(pa.table({"v": [1]}), "m1")._replace(profile=RunProfile(1, 8, (work("scan:v", "m1"),)))
    rest = result(ROWS, "m2")._replace(profile=RunProfile(5, 40, (work("local", "m2"),)))
    found = run(Parts([step], rest=rest, is_profiled=True))
    assert found.profile == RunProfile(5, 40, (work("step 1: scan:v", "m1"), work("local", "m2")))
    before, after = ReadRequirements(12, ("m1", "m2", "m3")), ReadRequirements(1, ("m2",))
    assert found.narrowed == NarrowedScans(before, after)


@pytest.mark.parametrize(
    ("results", "execution", "members"),
    [
        pytest.param([result(ROWS, "m1"), result(ROWS, "m1")], "local", ["m1"], id="one member for all"),
        pytest.param([result(ROWS, "m2"), result(ROWS, "m1")], "distributed", ["m1", "m2"], id="a member each"),
        pytest.param(
            [result(ROWS, "m1", execution="distributed"), result(ROWS, "m1")], "distributed", ["m1"], id="distributed"
        ),
    ],
)
def test_the_cost_of_all_parts(results: list[PartResult], execution: str, members: list[str]) -> None:
    found = combined_result(results).executed
    assert (found.execution, found.members) == (execution, members)


SUMMED = {"partitions_read": 1, "partitions_total": 10}
OF_ALL_PARTS = {"execution": "distributed", "members": ["m1"], "steps": (), "statistics_version": 3}
OF_THE_LAST = {
    "topology_version": 1,
    "rows": 1,
    "values": [[1]],
    "has_more": True,
    "published": ((1, 1),),
    "cost": None,
}


def test_every_field_of_a_result_is_of_all_parts_or_of_the_last() -> None:
    """A new counter has to join one of the tables above, and ``combined_result`` if parts add up to it."""
    fields = {*SUMMED, *OF_ALL_PARTS, *OF_THE_LAST}
    assert fields == set(Executed.__struct_fields__)
    last = Executed(**SUMMED, **OF_ALL_PARTS, **OF_THE_LAST)
    first = replace(last, **dict.fromkeys(OF_THE_LAST), partitions_read=3, partitions_total=5)
    parts = [PartResult(executed, b"", None, None) for executed in (first, last)]
    assert combined_result(parts).executed == replace(last, partitions_read=4, partitions_total=15)
