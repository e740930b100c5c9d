"""IN over a grouped subquery becomes an inner join.

::

    WHERE dept.id IN (SELECT dept_id FROM emp GROUP BY dept_id HAVING count(*) > 10)
    FROM dept JOIN (SELECT dept_id FROM emp GROUP BY dept_id HAVING count(*) > 10) e ON dept.id = e.dept_id

There is one row for each group, so a row has at most one match.

Source: IEP-24, "JOIN conversion", example 4.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Aggregate, Apply, Filter, Join, JoinType, Project, Relation, SubqueryForm
from secateur.planner.relations.uniqueness import is_unique
from secateur.planner.rewrites.correlation import comparisons
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Apply) or relation.form is not SubqueryForm.IN or not _is_grouped(relation.subquery):
        return None
    on = comparisons(relation)
    outputs = frozenset(output for output in relation.outputs if output is not None)
    if len(on) < len(relation.outputs) or not is_unique(relation.subquery, outputs):
        return None
    return Join(JoinType.INNER, relation.input, relation.subquery, on)


def _is_grouped(subquery: Relation) -> bool:
    while isinstance(subquery, (Project, Filter)):
        subquery = subquery.input
    return isinstance(subquery, Aggregate)


RULE = Rule("in_group_by_to_join", _apply)
