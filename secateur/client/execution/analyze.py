"""``EXPLAIN ANALYZE``: the plan of a statement, with the figures of a run.

A statement that changes rows does change them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import to_builtins

from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.change import run_change
from secateur.client.execution.execute import Params, StatementCall, planned
from secateur.client.execution.insert import insert_select, insert_values
from secateur.client.execution.reads import RunOptions
from secateur.client.execution.routing import ExecutionMode
from secateur.client.execution.select import run_select
from secateur.client.loads.load import LoadResult
from secateur.client.session import Session
from secateur.drawing.quantity import count_text
from secateur.errors import InterfaceError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol import statements
from secateur.protocol.metrics import RunProfile, StageWork
from secateur.protocol.query_parts import NarrowedScans


class _Run(NamedTuple):
    """The outcome of one run of a statement.

    Attributes:
        rows: Rows of the result, or rows changed.
        stats: Members, partitions and rows that the run touched.
        profile: The figures by stage; None for a query that was compared with another (``SET pruning = verify``).
        narrowed: By how much the values found by earlier steps narrowed the scans.
    """

    rows: int
    stats: QueryStats
    profile: RunProfile | None
    narrowed: NarrowedScans | None = None


def analyze(session: Session, plan: statements.PlanText, sql: str, params: Params) -> tuple[list[str], QueryStats]:
    """Run a statement for its figures.

    Args:
        session: Where.
        plan: The EXPLAIN text of the statement.
        sql: The statement, without EXPLAIN ANALYZE.
        params: Plain parameters as the user gave them.

    Returns:
        The lines of the plan with the figures behind them, as a member ``analyze`` of the document for ``FORMAT JSON``;
        and what was touched.

    Raises:
        Error: The error of the statement.
    """
    run = _run(session, sql, params)
    return _with_actuals(plan, run, session.known_topology.member_ids), run.stats


def _run(session: Session, sql: str, params: Params) -> _Run:
    call = planned(session, sql, params)
    work: list[StageWork] = []
    match prepared := call.statement:
        case statements.SelectStatement():
            selected = run_select(call.of(prepared), RunOptions.PROFILE)
            rows = selected.rows.num_rows if selected.profile is None else selected.profile.rows
            return _Run(rows, selected.stats, selected.profile, selected.narrowed)
        case statements.ChangeStatement() | statements.CoordinatedChange():
            changed = run_change(call.of(prepared), profiled=True)
            return _Run(changed.rows, changed.stats, changed.profile)
        case statements.InsertRows(table=table) | statements.EvaluatedInsert(insert=statements.InsertRows(table=table)):
            return _of_load(call, table, insert_values([call.of(prepared)], work), work)
        case statements.InsertSelect():
            return _of_load(call, prepared.table, insert_select(call.of(prepared), work), work)
        case _:
            raise InterfaceError(f"{sql!r} was planned again and is no longer a query or a change: execute it again")


def _of_load(call: StatementCall[Any], table: TableDef, loaded: LoadResult, work: list[StageWork]) -> _Run:
    members, version = {entry.member for entry in work}, call.session.known_topology.version
    whole = ExecutionMode.LOCAL if len(members) == 1 else ExecutionMode.DISTRIBUTED
    execution = whole if members else ExecutionMode.NONE
    stats = call.stats(execution, len(members), loaded.partitions, table.scheme.live_partition_count, version)
    return _Run(loaded.rows, stats, RunProfile(loaded.rows, 0, tuple(work)))


def _with_actuals(plan: statements.PlanText, run: _Run, members: Sequence[str]) -> list[str]:
    """The plan with the figures of a run; of all members of the cluster, those without work are named as skipped."""
    lines = list(plan.lines)
    profile, stats = run.profile, run.stats
    skipped = [
        member for member in members if profile is not None and all(work.member != member for work in profile.work)
    ]
    if plan.is_json:
        document = json.loads(lines[0])
        document["analyze"] = {
            **to_builtins(stats),
            "steps": [step._asdict() for step in stats.steps],
            "rows": run.rows,
            "planning_ms": plan.planning_ms,
            **({} if profile is None else {**profile.to_json(), "skipped_members": skipped}),
            **({} if run.narrowed is None else {"narrowed": to_builtins(run.narrowed)}),
        }
        return [json.dumps(document)]
    lines.append(
        f"actual: {stats.execution} on {stats.members_touched} of {stats.members_total} members, "
        f"{stats.partitions_read} of {stats.partitions_total} partitions, {count_text(run.rows, 'row')},"
        f" {stats.elapsed_ms:.2f} ms"
    )
    lines += [
        f"  step {number} found {count_text(step.values, 'value')}{'' if step.used else ', which are not used'}"
        for number, step in enumerate(stats.steps, 1)
    ]
    if run.narrowed is not None:
        lines.append(_narrowed_text(run.narrowed))
    if profile is None:
        return lines
    lines.append(
        f"  planning {plan.planning_ms:.2f} ms, kernels {profile.kernel_ms:.2f} ms, exchange {profile.exchange_bytes:,}"
        " bytes"
    )
    for name, works in profile.stages.items():
        lines.append(
            f"  stage {name}: {_rows(sum(work.rows_out for work in works), sum(work.bytes_out for work in works))}"
        )
        lines += [f"    {work.member}: {_work_text(work)}" for work in works]
    if skipped:
        lines.append(f"  skipped: {', '.join(skipped)}")
    return lines


def _narrowed_text(narrowed: NarrowedScans) -> str:
    before, after = narrowed.before, narrowed.after
    pruned = [member for member in before.members if member not in after.members]
    where = (
        f"on {len(after.members)} of {len(before.members)} members{'; pruned: ' if pruned else ''}{', '.join(pruned)}"
    )
    return f"  run-time pruning: {after.partitions} of {before.partitions} partitions remain, {where}"


def _work_text(work: StageWork) -> str:
    words = []
    if work.partitions:
        words.append(count_text(work.partitions, "partition"))
    if work.rows_in:
        words.append(f"{count_text(work.rows_in, 'row')} in")
    words.append(_rows(work.rows_out, work.bytes_out))
    if work.sent_bytes:
        words.append(f"sent {work.sent_bytes:,} bytes")
    words.append(f"kernel {work.kernel_ms:.2f} ms, busy {work.busy_ms:.2f} ms")
    return ", ".join(words)


def _rows(rows: int, size: int) -> str:
    return f"{count_text(rows, 'row')}, {size:,} bytes"
