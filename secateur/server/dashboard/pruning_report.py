"""The pruning report: for each table how many statements are pruned, and what keeps the others from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_REASONS_MAX: Final = 5
SLOW_MS: Final = 10.0
"""A statement that reads every partition of a large table takes longer than this; a pruned one hardly ever."""

GROUPS: Final = (
    "SELECT *, coalesce(total_ms / nullif(sum(total_ms) OVER (), 0), 0) AS total_share,"
    " partitions_read / nullif(partitions_total, 0) AS kept_share"
    " FROM secateur.statement_summaries WHERE system IS NOT TRUE"
)
"""A row for each fingerprint, without those about the cluster itself. Percentiles and means are those of the newest
executions, which the members still list; ``executions`` and ``total_ms`` count all.
"""
EXECUTIONS: Final = (
    "SELECT * FROM secateur.newest_statements WHERE fingerprint = ? ORDER BY ended, started DESC LIMIT 20"
)
"""The running and the newest ended ones of a fingerprint. They are in the order of columns, which members sort without
DuckDB: an expression there took 6 ms more.
"""
RUNNING: Final = (
    "SELECT * FROM secateur.running_statements WHERE statement IS NOT NULL AND system IS NOT TRUE"
    " ORDER BY elapsed_ms DESC LIMIT 200"
)
"""Those that run or wait now, the longest first."""
_TREE: Final = re.compile(r"(?:^|; )((?:[^:;]|::)+): ")


@dataclass(frozen=True, slots=True)
class PruningReason:
    """Why statements were not pruned.

    Attributes:
        text: The reason.
        suggestion: What to change; empty if the reason does not say.
        statements: Executions, of those that the members still list.
        total_ms: The time of all executions of these statements.
        example: One of them: its text.
        fingerprint: That of the example.
    """

    text: str
    suggestion: str
    statements: int
    total_ms: float
    example: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TablePruning:
    """A table.

    Attributes:
        table: Its name.
        pruned: Listed executions over it that left a partition out.
        unpruned: Those that read all of several partitions.
        reasons: Of the latter, by the time that they took.
    """

    table: str
    pruned: int
    unpruned: int
    reasons: tuple[PruningReason, ...]

    @property
    def share_pruned(self) -> float | None:
        """The share of the executions that were pruned."""
        return self.pruned / (self.pruned + self.unpruned) if self.pruned + self.unpruned else None

    @property
    def unpruned_ms(self) -> float:
        """The time of statements that were not pruned."""
        return sum(reason.total_ms for reason in self.reasons)


def report_pruning(groups: Iterable[Mapping[str, Any]]) -> list[TablePruning]:
    """The report, the table whose unpruned statements took most time first.

    A statement over several tables counts for each of them.

    Args:
        groups: The answer to :data:`secateur.server.dashboard.pruning_report.GROUPS`.
    """
    by_table: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        for table in tables_of(group["tree"]):
            by_table.setdefault(table, []).append(group)
    report = [
        TablePruning(
            table,
            sum(group["pruned"] for group in found),
            sum(group["unpruned"] for group in found),
            _reasons(group for group in found if group["unpruned"]),
        )
        for table, found in by_table.items()
        if any(group["pruned"] or group["unpruned"] for group in found)
    ]
    return sorted(report, key=lambda one: (-one.unpruned_ms, one.table))


def _reasons(groups: Iterable[Mapping[str, Any]]) -> tuple[PruningReason, ...]:
    by_text: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        by_text.setdefault(group["reason"] or "the whole table is asked for", []).append(group)
    found = []
    for text, same in by_text.items():
        slowest = max(same, key=lambda group: group["total_ms"] or 0.0)
        what, _, suggestion = text.partition(": ")
        found.append(
            PruningReason(
                what,
                suggestion,
                sum(group["unpruned"] for group in same),
                sum(group["total_ms"] or 0.0 for group in same),
                slowest["statement"],
                slowest["fingerprint"],
            )
        )
    return tuple(sorted(found, key=lambda reason: -reason.total_ms)[:_REASONS_MAX])


def tables_of(tree: str | None) -> list[str]:
    """The tables of a partition tree such as ``orders: (p17 | $1); customers: all``, each once."""
    return list(dict.fromkeys(_TREE.findall(tree or "")))
