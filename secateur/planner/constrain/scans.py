"""The conditions that a statement puts on the rows of each of its scans.

A row of a scan for which one of its conditions is not TRUE cannot influence the answer, so its partition need not be
read for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from secateur.partitioning.tables.table import TableDef
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import NEVER, Condition, distinct, of_all, plain
from secateur.planner.constrain.descent import conditions_of_scans
from secateur.planner.constrain.equivalence import columns_in
from secateur.planner.constrain.numbering import Numbering
from secateur.planner.prune.shown import shown
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import bare_column, column_of
from secateur.planner.tree.stability import unstable_call

_JOINED: Final = "{predicate} only joins the key: compare either side with a value"


@dataclass(frozen=True, slots=True)
class ScanConditions:
    """The conditions on one scan of a statement.

    Attributes:
        names: The name of each input column of the conditions; those behind them are other tables' columns.
        others: What the user calls those.
        conjuncts: What certainly holds for the rows that matter.
        local: The indexes of those that the user wrote about this scan alone, and that may be applied to its rows
            before anything else.
        notes: Why other conditions on its key do not reach it, in the user's terms.
        is_whole: Whether the conjuncts are all conditions of the statement on the scan.
    """

    names: tuple[str, ...]
    conjuncts: tuple[ex.AnyExpression, ...] = ()
    local: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    is_whole: bool = True
    others: tuple[str, ...] = ()


NOTHING: Final = ScanConditions((), (NEVER.expression,))
"""On a scan that is not in the plan: DuckDB reads none of its rows."""


def scan_conditions(plan: Numbering) -> dict[str, ScanConditions]:
    """The conditions on each scan of a table, by the name of its relation.

    Of one that is not named, nothing is read: see :data:`NOTHING`.
    """
    found: dict[str, list[tuple[nodes.ScannedTable, list[Condition]]]] = {}
    for scan, conditions in conditions_of_scans(plan.root, plan):
        found.setdefault(scan.table, []).append((scan, conditions))
    return {name: _of_scan(scans, plan.tables.get(name), plan) for name, scans in found.items()}


def _of_scan(
    scans: Sequence[tuple[nodes.ScannedTable, Sequence[Condition]]], table: TableDef | None, plan: Numbering
) -> ScanConditions:
    names = tuple(dict.fromkeys(name for scan, _ in scans for name in scan.names))
    given, others = [], dict[int, str]()
    for scan, conditions in scans:
        places = {column.index: names.index(name) for column, name in zip(scan.own, scan.names, strict=True)}
        given.append([_by_position(condition, places, len(names)) for condition in distinct(conditions)])
        for index, place in places.items():
            if place >= len(names):
                others.setdefault(place, plan.shown(index))
    held = of_all([list(plain(conditions)) for conditions in given])
    joined = [one for one in held if _only_joins(one, len(names))]
    apart = [one for one in held if not _only_joins(one, len(names))]
    blocked = [one for conditions in given for one in conditions if one.blocked is not None]
    local = frozenset(
        index
        for index, one in enumerate(apart)
        if not one.is_moved
        and all(column < len(names) for column in one.columns)
        and unstable_call([one.expression]) is None
    )
    key = frozenset() if table is None else frozenset(table.scheme.columns)
    noted = [*blocked, *(one.block(_JOINED) for one in joined)]
    return ScanConditions(
        names,
        tuple(one.expression for one in apart),
        local,
        tuple(dict.fromkeys(_notes(noted, names, tuple(others.values()), key))),
        is_whole=not noted,
        others=tuple(others.values()),
    )


def _by_position(condition: Condition, places: dict[int, int], width: int) -> Condition:
    """A condition over the positions of the scan's columns; those of others get places behind them."""
    found = {}
    for index, column in columns_in(condition.expression).items():
        place = places.setdefault(index, width + sum(place >= width for place in places.values()))
        found[index] = column_of(place, column.return_type)
    return condition.over(found)


def _only_joins(condition: Condition, width: int) -> bool:
    """Whether it only equates a column with one from elsewhere.

    Conditions on the other column have been carried to this column already.
    """
    match condition.expression:
        case ex.Call(type="COMPARE_EQUAL" | "COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
            sides = bare_column(left), bare_column(right)
            return sum(side is not None and side.index < width for side in sides) == 1 and None not in sides
        case _:
            return False


def _notes(
    blocked: Sequence[Condition], names: Sequence[str], others: Sequence[str], key: frozenset[str]
) -> Iterator[str]:
    for one in blocked:
        if one.blocked is not None and any(column < len(names) and names[column] in key for column in one.columns):
            yield one.blocked.replace("{predicate}", shown(one.expression, [*names, *others]))
