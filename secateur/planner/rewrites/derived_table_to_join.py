"""A subquery in FROM becomes an input of the join.

::

    FROM emp, (SELECT * FROM dept WHERE id = 7) d WHERE emp.dept_id = d.id
    FROM emp JOIN dept ON emp.dept_id = dept.id AND dept.id = 7

Predicates on the subquery's rows then become conditions of the join, and pass to the relations that it is joined with.
The rows of the subquery do not change, so their number does not either.

Source: IEP-24, "JOIN conversion", example 2.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Derived, Relation
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    return relation.input if isinstance(relation, Derived) else None


RULE = Rule("derived_table_to_join", _apply)
