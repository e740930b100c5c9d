"""A correlated scalar subquery becomes the right side of a left join.

::

    SELECT emp.name, (SELECT name FROM dept WHERE dept.id = emp.dept_id) FROM emp WHERE emp.dept_id = 7
    SELECT emp.name, dept.name FROM emp LEFT JOIN dept ON dept.id = emp.dept_id WHERE emp.dept_id = 7

A LEFT join, not an inner join, which would lose the rows without a match. Predicates on the outer rows then also
restrict the rows that they are compared with. The value is computed for each row of the outer side separately, even if
it is an aggregate, so predicates pass below the aggregate too.

Source: IEP-24, "JOIN conversion", example 1, with the inner join of that text corrected.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Apply, Join, JoinType, Relation, SubqueryForm, owners
from secateur.planner.rewrites.correlation import is_correlated
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if (
        not isinstance(relation, Apply)
        or relation.form is not SubqueryForm.VALUE
        or not is_correlated(relation.subquery, owners(relation.input))
    ):
        return None
    return Join(JoinType.LEFT, relation.input, relation.subquery)


RULE = Rule("scalar_subquery_to_left_join", _apply)
