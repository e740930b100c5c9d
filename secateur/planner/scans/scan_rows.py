"""The rows of a scan that leave their member: filtered, and without the columns that only the filter reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded, quoted
from secateur.planner.binding.query import is_columns_call
from secateur.planner.scans.scan_predicates import ScanPredicates


@dataclass(frozen=True, slots=True)
class ScanRows:
    """The predicates on the rows of a scan that a statement needs.

    Attributes:
        conjuncts: Conjuncts of the statement; a row for which one is not TRUE cannot influence the answer.
        where: The same over the relation of the scan, as SQL; empty where there are none.
        read: Identifies the rows read before that: equal for scans of the same partitions and key ranges of one table.
    """

    conjuncts: tuple[exp.Expr, ...]
    where: str
    read: bytes

    def sql(self, source: str, columns: Sequence[str]) -> str:
        """Return the SELECT of some columns. ``source`` is the relation of the scan, or its replacement in FROM."""
        return f"SELECT {', '.join(map(quoted, columns))} FROM {source}" + (
            f" WHERE {self.where}" if self.where else ""
        )


def is_about_scan(conjunct: exp.Expr, scope: ScanPredicates) -> bool:
    """Whether a conjunct reads only columns of its scan."""
    columns = list(conjunct.find_all(exp.Column))
    # A lambda and a list comprehension have names of their own; COLUMNS() names columns by a pattern.
    foreign = conjunct.find(exp.Query, exp.Lambda, exp.Comprehension, exp.AggFunc, exp.Window, exp.Star) is not None
    foreign = foreign or any(map(is_columns_call, conjunct.find_all(exp.Anonymous)))
    return bool(columns) and not foreign and all(scope.column_of(column) is not None for column in columns)


def is_stable(part: exp.Expr, unstable: Collection[str]) -> bool:
    """Whether an expression calls nothing that depends on when and where it is evaluated."""
    return not unstable or not any(_name(node) in unstable for node in part.walk())


def _name(node: exp.Expr) -> str:
    """Return DuckDB's name of a function that a node calls without arguments; empty for anything else."""
    match node:
        case exp.Anonymous():
            return folded(node.name)
        case exp.CurrentTimestamp():
            return "current_timestamp"
        case exp.CurrentDate():
            return "current_date"
        case exp.Localtimestamp():
            return "localtimestamp"
        case _:
            return ""
