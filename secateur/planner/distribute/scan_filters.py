"""The filters right above the scans of a query: a row that does not pass them cannot influence the answer."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.partitioning.tables.identifier import quoted
from secateur.planner.bind.bound_plan import BoundPlan
from secateur.planner.distribute.pushdown import conditions_apart
from secateur.planner.distribute.regions import Region
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.expression_sql import expression_sql
from secateur.planner.tree.joins import begins_region
from secateur.planner.tree.rewriting import conjuncts
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.values import Unprintable


def scan_filters(plan: BoundPlan) -> dict[str, str]:
    """The filter of each scan over the names of its columns, as SQL; empty where all of its rows may matter.

    A common table expression that is read twice has its scans twice: a row that passes either filter matters.
    """
    found: dict[str, list[str]] = {}
    try:
        _visit(plan.root, (), plan, found)
    except RecursionError:
        return {}
    return {
        relation: " OR ".join(f"({where})" for where in dict.fromkeys(wheres)) if all(wheres) else ""
        for relation, wheres in found.items()
    }


def _visit(
    relation: rel.AnyRelation, above: Sequence[ex.AnyExpression], plan: BoundPlan, found: dict[str, list[str]]
) -> None:
    match relation:
        case rel.LogicalScan() if relation.table is not None:
            found.setdefault(relation.table, []).append(_where(relation, above, plan))
        case rel.LogicalFilter(children=(rel.LogicalScan() as scan,)) if not relation.projection_map:
            _visit(scan, list(conjuncts(relation.expressions)), plan, found)
        case _ if begins_region(relation):
            inputs, _ = conditions_apart(Region.of(relation))
            for one in inputs:
                _visit(one, (), plan, found)
        case _:
            for child in relation.children:
                _visit(child, (), plan, found)


def _where(scan: rel.LogicalScan, conditions: Sequence[ex.AnyExpression], plan: BoundPlan) -> str:
    read = [scan.names[column.index if column.index < len(scan.names) else 0] for column in scan.column_indexes]
    names = [quoted(name) for name in read]
    texts = []
    for condition in conditions:
        if unstable_call([condition]) is None:
            try:
                texts.append(expression_sql(condition, names, plan.text))
            except Unprintable:
                continue
    return " AND ".join(texts)
