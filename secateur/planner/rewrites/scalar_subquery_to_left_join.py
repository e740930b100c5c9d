"""A correlated subquery that stands for a value becomes the right side of a left join.

::

    SELECT emp.name, (SELECT name FROM dept WHERE dept.id = emp.dept_id) FROM emp WHERE emp.dept_id = 7
    SELECT emp.name, dept.name FROM emp LEFT JOIN dept ON dept.id = emp.dept_id WHERE emp.dept_id = 7

A LEFT join, not the inner join of the seed, which loses the rows without a match. What is said of the outer rows is
then said of the rows that they are compared with. The value is computed for each row of the outer side alone, also
where it is an aggregate, so that this holds below it too.

Source: IEP-24, "JOIN conversion", example 1, as mended in PITFALLS.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Apply, Join, JoinType, Relation, SubqueryForm, owners
from secateur.planner.rewrites.correlation import is_correlated
from secateur.planner.rewrites.rule import Rule

__all__ = ["RULE"]


def _apply(relation: Relation) -> Relation | None:
    if (
        not isinstance(relation, Apply)
        or relation.form is not SubqueryForm.VALUE
        or not is_correlated(relation.subquery, owners(relation.input))
    ):
        return None
    return Join(JoinType.LEFT, relation.input, relation.subquery)


RULE = Rule("scalar_subquery_to_left_join", _apply)
