"""A subquery in FROM becomes an input of the join.

::

    FROM emp, (SELECT * FROM dept WHERE id = 7) d WHERE emp.dept_id = d.id
    FROM emp JOIN dept ON emp.dept_id = dept.id AND dept.id = 7

What holds for the rows of the subquery then is a condition like any other, and goes over to what it is joined with. The
rows of the subquery stay what they are, so that their number does.

Source: IEP-24, "JOIN conversion", example 2.
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Derived, Relation
from secateur.planner.rewrites.rule import Rule

__all__ = ["RULE"]


def _apply(relation: Relation) -> Relation | None:
    return relation.input if isinstance(relation, Derived) else None


RULE = Rule("derived_table_to_join", _apply)
