from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from secateur.cluster.member import StatementLog, TimeSplit
from secateur.engine import in_thread
from secateur.errors import DataError, MemberLostError
from secateur.protocol import (
    ChangedRows,
    Execute,
    Executed,
    GetStatements,
    Operation,
    PartOfRows,
    StatementEntry,
    Statements,
)
from secateur.wire import PeerInfo, Reply, Request

ANSWER = Executed("local", 1, 8, 7, 3, [[1, 2, 3]])
PEER = PeerInfo(1, "test", "test", False)


def request(plan: str) -> Request[Any]:
    return Request(
        Operation.EXECUTE, Execute(plan, [], pruning=True), memoryview(b""), PeerInfo(1, "test", "test", False)
    )


def entries(log: StatementLog) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in told(log).statements]


def told(log: StatementLog, *, totals_only: bool = False) -> Statements:
    asked = GetStatements(totals_only)
    return log.send(Request(Operation.GET_STATEMENTS, asked, memoryview(b""), PEER)).message


def test_an_ended_statement_is_told_with_what_its_answer_says() -> None:
    log = StatementLog("m1")
    reply = log.execute(request("p"), lambda _: Reply(ANSWER))
    assert isinstance(reply, Reply)
    (entry,) = entries(log)
    assert {
        key: entry[key] for key in ("number", "plan_id", "state", "execution", "members", "partitions_read", "rows")
    } == {
        "number": 1,
        "plan_id": "p",
        "state": "done",
        "execution": "local",
        "members": ["m1"],
        "partitions_read": 1,
        "rows": 3,
    }
    assert entry["elapsed_ms"] >= 0


def test_a_failure_is_told_and_raised() -> None:
    log = StatementLog("m1")

    def fail(_: Request[Any]) -> Reply[Any]:
        raise DataError("no such date")

    with pytest.raises(DataError):
        log.execute(request("p"), fail)
    (entry,) = entries(log)
    assert (entry["state"], entry["error"]) == ("failed", "DataError: no such date")


def test_a_statement_runs_until_it_is_answered() -> None:
    log = StatementLog("m1")

    async def scenario() -> None:
        answered = asyncio.Event()

        async def wait() -> Reply[Any]:
            await answered.wait()
            return Reply(replace(ANSWER, execution="distributed", members=["m1", "m2"]))

        reply = log.execute(request("p"), lambda _: wait())
        assert not isinstance(reply, Reply)
        task = asyncio.ensure_future(reply)
        await asyncio.sleep(0)
        assert [entry["state"] for entry in entries(log)] == ["running"]
        answered.set()
        await task

    asyncio.run(scenario())
    assert [(entry["state"], entry["members"]) for entry in entries(log)] == [("done", ["m1", "m2"])]


@pytest.mark.parametrize(
    ("end", "state", "error"),
    [
        pytest.param(
            lambda log, done: done.set_result(Reply(ChangedRows(2, 1))), "done", None, id="all copies have it"
        ),
        pytest.param(
            lambda log, done: done.set_exception(MemberLostError("no copy")),
            "failed",
            "MemberLostError: no copy",
            id="a copy does not confirm",
        ),
        pytest.param(lambda log, done: done.cancel(), "failed", "CancelledError: ", id="the member ends"),
        pytest.param(
            lambda log, done: log.kill(1),
            "failed",
            "JobCancelledError: the statement was cancelled: KILL 'm1:1' was executed",
            id="killed",
        ),
    ],
)
def test_a_change_runs_until_its_copies_have_it(
    end: Callable[[StatementLog, asyncio.Future[Any]], object], state: str, error: str | None
) -> None:
    log = StatementLog("m1")

    async def scenario() -> None:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        assert log.execute(request("p"), lambda _: done) is done
        assert [entry["state"] for entry in entries(log)] == ["running"]
        end(log, done)
        await asyncio.wait([done])

    asyncio.run(scenario())
    (entry,) = entries(log)
    assert (entry["state"], entry["error"], entry["rows"]) == (state, error, 2 if state == "done" else None)


def test_the_newest_are_remembered() -> None:
    log = StatementLog("m1", ended_max=2)
    for plan in ("a", "b", "c"):
        log.execute(request(plan), lambda _: Reply(ANSWER))
    assert [entry["plan_id"] for entry in entries(log)] == ["c", "b"]


def test_executions_are_counted_beyond_those_that_are_remembered() -> None:
    log = StatementLog("m1", ended_max=2)
    for number in range(20):
        log.execute(request("a" if number % 4 else "b"), lambda _: Reply(ANSWER))
    counted = {each.plan_id: each for each in told(log).executions}
    assert {plan: each.executions for plan, each in counted.items()} == {"a": 15, "b": 5}
    assert all(0 < each.elapsed_max_ms <= each.elapsed_ms for each in counted.values())
    assert {plan: each.latencies.total for plan, each in counted.items()} == {"a": 15, "b": 5}
    assert all(each.latencies.percentile_ms(1) >= each.elapsed_max_ms for each in counted.values())
    assert len(entries(log)) == 2


def test_all_that_have_ended_are_counted_by_how_they_ran() -> None:
    log = StatementLog("m1", ended_max=2)

    def fail(_: Request[Any]) -> Reply[Any]:
        raise DataError("no such date")

    for number in range(20):
        execution = "local" if number % 4 else "distributed"
        log.execute(request(f"p{number}"), lambda _, execution=execution: Reply(replace(ANSWER, execution=execution)))
        with pytest.raises(DataError):
            log.execute(request("f"), fail)
    for totals_only in (False, True):
        answer = told(log, totals_only=totals_only)
        assert bool(answer.statements) is not totals_only
        totals = {each.execution: each for each in answer.totals}
        assert {execution: each.statements for execution, each in totals.items()} == {
            "local": 15,
            "distributed": 5,
            "failed": 20,
        }
        for each in totals.values():
            assert sum(count for _, count in each.latencies.buckets) == each.statements
            assert 0 < each.elapsed_ms <= sum(up_to_ms * count for up_to_ms, count in each.latencies.buckets)


def test_each_is_counted_once_however_often_somebody_asks() -> None:
    log = StatementLog("m1", ended_max=2)
    for number in range(1, 21):
        log.execute(request("a"), lambda _: Reply(ANSWER))
        answer = told(log)
        assert [each.executions for each in answer.executions] == [number]
        assert [each.statements for each in answer.totals] == [number]


@pytest.mark.parametrize("ended_max", [1, 100])
def test_members_and_pruned_statements_are_added_up(ended_max: int) -> None:
    log = StatementLog("m1", ended_max=ended_max)
    for members, read, total in ((None, 1, 8), (["m1", "m2"], 8, 8), (["m2"], 3, 8), (None, 1, 1), (None, 0, 0)):
        answer = replace(ANSWER, members=members, partitions_read=read, partitions_total=total)
        log.execute(request("p"), lambda _, answer=answer: Reply(answer))
    (totals,) = told(log, totals_only=True).totals
    assert (totals.statements, totals.members_touched, totals.pruned, totals.unpruned) == (5, 6, 2, 1)


@pytest.mark.parametrize(
    ("parts", "end", "expected"),
    [
        pytest.param([5, 2], None, ("done", 10), id="to the end"),
        pytest.param([5], "close", ("done", 8), id="as far as it was wanted"),
        pytest.param([5], "another", ("done", 8), id="until the connection had another result"),
        pytest.param([5], "fail", ("failed", None), id="until it failed"),
    ],
)
def test_a_result_that_is_read_in_parts_runs_until_it_was_read(
    parts: list[int], end: str | None, expected: tuple[str, int | None]
) -> None:
    log = StatementLog("m1")

    async def first(_: Request[Any]) -> Reply[Any]:
        return Reply(replace(ANSWER, has_more=True))

    async def part(rows: int, more: bool) -> Reply[Any]:
        return Reply(PartOfRows(rows, more))

    async def fail(_: Request[Any]) -> Reply[Any]:
        raise DataError("no such date")

    async def scenario() -> None:
        await log.execute(request("p"), first)  # type: ignore[misc]
        for index, rows in enumerate(parts):
            (entry,) = entries(log)
            assert (entry["state"], entry["rows"]) == ("running", 3 + sum(parts[:index]))
            more = end is not None or index < len(parts) - 1
            await log.next(request("p"), lambda _, rows=rows, more=more: part(rows, more))
        match end:
            case "close":
                log.close(PEER)
            case "another":
                await log.execute(request("q"), first)  # type: ignore[misc]
            case "fail":
                with pytest.raises(DataError):
                    await log.next(request("p"), fail)
            case _:
                pass

    asyncio.run(scenario())
    entry = entries(log)[-1]
    assert (entry["plan_id"], entry["state"], entry.get("rows")) == ("p", *expected)
    log.close(PEER)


@pytest.mark.parametrize(("slow_s", "told_of"), [(0.0, ["a", "b"]), (1e6, []), (None, [])])
def test_slow_statements_are_told_when_they_have_ended(slow_s: float | None, told_of: list[str]) -> None:
    slow: list[tuple[StatementEntry, TimeSplit]] = []
    log = StatementLog(
        "m1", waited_s=lambda _: 7.0, slow_s=slow_s, on_slow=lambda entry, split: slow.append((entry, split))
    )

    async def later(_: Request[Any]) -> Reply[Any]:
        with ThreadPoolExecutor(1) as threads:
            await in_thread(threads, lambda _: sum(range(100_000)))
        return Reply(ANSWER)

    async def scenario() -> None:
        await log.execute(request("b"), later)  # type: ignore[misc]

    log.execute(request("a"), lambda _: Reply(ANSWER))
    asyncio.run(scenario())
    assert [entry.plan_id for entry, _ in slow] == told_of
    if slow:
        (_, at_once), (_, awaited) = slow
        assert at_once == TimeSplit()
        assert awaited.queued_s == 7.0
        assert awaited.kernel_s > 0


def test_the_slowest_outlive_the_newest() -> None:
    log = StatementLog("m1", ended_max=20)  # and two of those before
    log.note("slowest of last night", 0.0, 60.0, ANSWER)
    for minute in (60.0, 120.0):
        log.note(f"slow at {minute:.0f} s", minute, 1.0, ANSWER)
        for number in range(40):
            log.note(f"p{number}", minute + number / 100, 0.001, ANSWER)
    assert [entry["plan_id"] for entry in entries(log)][:20] == [f"p{number}" for number in range(39, 19, -1)]
    assert "slow at 120 s" in [entry["plan_id"] for entry in entries(log)]


def test_the_slowest_of_each_minute_outlive_slower_ones_of_long_ago() -> None:
    log = StatementLog("m1", ended_max=100)  # and ten of those before
    for minute in range(40):
        elapsed_s = 60.0 if minute < 30 else 1.0
        for number in range(8):
            log.note(f"{minute}:{number}", 60.0 * minute, elapsed_s + number, ANSWER)
    for _ in range(200):
        log.note("quick", 2341.0, 0.001, ANSWER)
    slowest = [entry["plan_id"] for entry in entries(log)][100:]
    assert sorted(slowest) == sorted(f"{minute}:{number}" for minute in (38, 39) for number in range(3, 8))
