"""``EXPLAIN ANALYZE``: the plan, and beside it what a run of the statement really cost."""

from __future__ import annotations

import json
from dataclasses import asdict

import pyarrow as pa

from secateur.client.statement import PlanText
from secateur.client.stats import QueryStats

__all__ = ["with_actuals"]


def with_actuals(plan: PlanText, stats: QueryStats, rows: int) -> pa.Table:
    """The lines of a plan with the figures of a run behind them; as a member ``analyze`` of the document for ``FORMAT JSON``.

    Args:
        plan: What EXPLAIN says.
        stats: What the run cost.
        rows: Rows of its result.
    """
    lines = plan.table.column("plan").to_pylist()
    if plan.is_json:
        document = json.loads(lines[0])
        document["analyze"] = {**asdict(stats), "rows": rows}
        lines = [json.dumps(document)]
    else:
        lines.append(
            f"actual: {stats.execution} on {stats.members_touched} of {stats.members_total} members, "
            f"{stats.partitions_read} of {stats.partitions_total} partitions, {rows} rows, {stats.elapsed_ms:.2f} ms"
        )
    return pa.table({"plan": pa.array(lines, pa.string())})
