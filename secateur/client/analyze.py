"""``EXPLAIN ANALYZE``: the plan, and beside it what a run of the statement really did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from secateur.client.run_profile import StageWork
from secateur.client.select import Selected
from secateur.client.statement import PlanText

__all__ = ["with_actuals"]


def with_actuals(plan: PlanText, run: Selected, members: Sequence[str]) -> pa.Table:
    """The lines of a plan with the figures of a run behind them; as a member ``analyze`` of the document for ``FORMAT JSON``.

    Args:
        plan: What EXPLAIN says.
        run: The run. One that was compared with another (``SET pruning = verify``) has no figures by stage.
        members: All members of the cluster; those without work are named as skipped.
    """
    lines = plan.table.column("plan").to_pylist()
    rows = run.result.num_rows if run.profile is None else run.profile.rows
    skipped = [member for member in members if run.profile is not None and all(work.member != member for work in run.profile.work)]
    if plan.is_json:
        document = json.loads(lines[0])
        document["analyze"] = {
            **asdict(run.stats),
            "rows": rows,
            "planning_ms": plan.planning_ms,
            **({} if run.profile is None else {**run.profile.to_json(), "skipped_members": skipped}),
        }
        return _lines([json.dumps(document)])
    stats = run.stats
    lines.append(
        f"actual: {stats.execution} on {stats.members_touched} of {stats.members_total} members, "
        f"{stats.partitions_read} of {stats.partitions_total} partitions, {rows} rows, {stats.elapsed_ms:.2f} ms"
    )
    if run.profile is None:
        return _lines(lines)
    lines.append(f"  planning {plan.planning_ms:.2f} ms, kernels {run.profile.kernel_ms:.2f} ms, exchange {run.profile.exchange_bytes:,} bytes")
    for name, works in run.profile.stages.items():
        lines.append(f"  stage {name}: {_rows(sum(work.rows_out for work in works), sum(work.bytes_out for work in works))}")
        lines += [f"    {work.member}: {_work_text(work)}" for work in works]
    if skipped:
        lines.append(f"  skipped: {', '.join(skipped)}")
    return _lines(lines)


def _work_text(work: StageWork) -> str:
    words = []
    if work.partitions:
        words.append(f"{work.partitions} partition{'s' if work.partitions > 1 else ''}")
    if work.rows_in:
        words.append(f"{work.rows_in:,} rows in")
    words.append(_rows(work.rows_out, work.bytes_out))
    if work.sent_bytes:
        words.append(f"sent {work.sent_bytes:,} bytes")
    words.append(f"kernel {work.kernel_ms:.2f} ms, busy {work.busy_ms:.2f} ms")
    return ", ".join(words)


def _rows(rows: int, size: int) -> str:
    return f"{rows:,} rows, {size:,} bytes"


def _lines(lines: list[Any]) -> pa.Table:
    return pa.table({"plan": pa.array(lines, pa.string())})
