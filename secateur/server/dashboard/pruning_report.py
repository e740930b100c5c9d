"""The pruning report: for each table how many statements are pruned, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from secateur.server.dashboard.statement_groups import tables_of

_REASONS_MAX: Final = 5


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
        groups: The answer to :data:`secateur.server.dashboard.statement_groups.GROUPS`.
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
