"""A correlated EXISTS becomes a semi-join, NOT EXISTS an anti-join.

::

    WHERE EXISTS (SELECT 1 FROM dept WHERE dept.id = emp.dept_id AND state = 'CA')
    FROM emp SEMI JOIN dept ON dept.id = emp.dept_id AND state = 'CA'

Both keep the rows of the outer side unchanged. The subquery is evaluated as before, including its comparisons: a row of
it matters to the outer rows that are equal to it.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Apply, Join, JoinType, Relation, SubqueryForm, owners
from secateur.planner.rewrites.correlation import is_correlated
from secateur.planner.rewrites.rule import Rule

_KINDS = {SubqueryForm.EXISTS: JoinType.SEMI, SubqueryForm.NOT_EXISTS: JoinType.ANTI}


def _apply(relation: Relation) -> Relation | None:
    if (
        not isinstance(relation, Apply)
        or relation.form not in _KINDS
        or not is_correlated(relation.subquery, owners(relation.input))
    ):
        return None
    return Join(_KINDS[relation.form], relation.input, relation.subquery)


RULE = Rule("exists_to_semi_join", _apply)
