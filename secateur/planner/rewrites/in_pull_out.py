"""An uncorrelated IN becomes a join ("table pullout").

::

    WHERE emp.dept_id IN (SELECT id FROM dept WHERE state = 'CA')
    FROM emp JOIN dept ON emp.dept_id = dept.id AND dept.state = 'CA'

An inner join if the subquery has each value at most once, as a primary key does; otherwise a semi-join, which keeps the
number of rows in any case.

Source: IEP-24, "JOIN conversion", example 3; MariaDB, table pullout optimization.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Apply, Join, JoinType, Relation, SubqueryForm, owners
from secateur.planner.relations.uniqueness import is_unique
from secateur.planner.rewrites.correlation import comparisons, is_correlated
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if (
        not isinstance(relation, Apply)
        or relation.form is not SubqueryForm.IN
        or is_correlated(relation.subquery, owners(relation.input))
    ):
        return None
    on = comparisons(relation)
    outputs = [output for output in relation.outputs if output is not None]
    unique = len(on) == len(relation.outputs) == len(outputs) and is_unique(relation.subquery, frozenset(outputs))
    return Join(JoinType.INNER if unique else JoinType.SEMI, relation.input, relation.subquery, on) if on else None


RULE = Rule("in_pull_out", _apply)
