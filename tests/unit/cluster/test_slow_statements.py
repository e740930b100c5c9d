"""The lines of the slow-statement log."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from secateur.cluster.member import SlowStatements, TimeSplit, why_slow
from secateur.errors import UnreachableError
from secateur.protocol import StatementDescription, StatementEntry

RAN = StatementEntry(
    number=17,
    plan_id="p",
    state="done",
    started=0.0,
    elapsed_ms=2000.0,
    execution="distributed",
    members=["m1", "m2"],
    partitions_read=3,
    partitions_total=8,
    rows=5,
)
KNOWN = StatementDescription("SELECT 1", "ab12", "no key: add one", 3)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    said = [record for record in caplog.records if record.name == "secateur.slow_statements"]
    assert all(record.levelno == logging.WARNING for record in said)
    return [json.loads(record.getMessage().removeprefix("slow statement: ")) for record in said]


async def noted(describe: Any, times: int = 1) -> None:
    tasks: list[asyncio.Task[None]] = []
    slow = SlowStatements("m1", describe, lambda work, name: tasks.append(asyncio.create_task(work, name=name)))
    for _ in range(times):
        slow.note(RAN, TimeSplit(0.25, 0.125, 3.0))
    await asyncio.gather(*tasks)


def test_a_line_has_times_text_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def describe(entry: StatementEntry) -> StatementDescription:
        assert entry is RAN
        return KNOWN

    asyncio.run(noted(describe))
    assert lines(caplog) == [
        {
            "id": "m1:17",
            "fingerprint": "ab12",
            "elapsed_ms": 2000.0,
            "queued_ms": 250.0,
            "kernel_ms": 3000.0,
            "reading_ms": 125.0,
            "why": "not pruned: no key: add one",
            "execution": "distributed",
            "partitions_read": 3,
            "partitions_total": 8,
            "members": ["m1", "m2"],
            "members_total": 3,
            "rows": 5,
            "error": None,
            "plan": "p",
            "statement": "SELECT 1",
        }
    ]


def test_a_line_comes_without_a_controller(caplog: pytest.LogCaptureFixture) -> None:
    async def describe(_: StatementEntry) -> StatementDescription:
        raise UnreachableError("gone")

    asyncio.run(noted(describe))
    (line,) = lines(caplog)
    assert (line["statement"], line["fingerprint"], line["elapsed_ms"]) == (None, None, 2000.0)


def test_the_controller_is_asked_for_a_few_at_once(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[StatementEntry] = []

    async def describe(entry: StatementEntry) -> StatementDescription:
        asked.append(entry)
        return KNOWN

    asyncio.run(noted(describe, times=100))
    assert len(lines(caplog)) == 100
    assert len(asked) == 16


@pytest.mark.parametrize(
    ("split", "reason", "execution", "expected"),
    [
        pytest.param(TimeSplit(queued_s=1.5), "r", "local", "queued", id="its turn"),
        pytest.param(TimeSplit(reading_s=1.5), "r", "local", "reading", id="its reader"),
        pytest.param(TimeSplit(kernel_s=1.5), "r", "local", "not pruned", id="the kernel over too much"),
        pytest.param(TimeSplit(kernel_s=1.5), None, "distributed", "kernel", id="the kernel"),
        pytest.param(TimeSplit(kernel_s=0.5), None, "distributed", "exchange", id="others"),
        pytest.param(TimeSplit(), None, "local", "waiting", id="none of these"),
        pytest.param(TimeSplit(), None, None, "waiting", id="a change"),
    ],
)
def test_the_reason_is_where_the_time_went(
    split: TimeSplit, reason: str | None, execution: str | None, expected: str
) -> None:
    entry = StatementEntry(
        number=1, plan_id="p", state="done", started=0.0, elapsed_ms=2000.0, execution=execution, partitions_read=2
    )
    assert why_slow(entry, split, reason).partition(":")[0] == expected
