"""An outer join becomes an inner join, or another outer join, where the rows that it fills with NULLs are rejected.

::

    FROM emp LEFT JOIN dept ON emp.dept_id = dept.id WHERE dept.state = 'CA'
    FROM emp JOIN dept ON emp.dept_id = dept.id WHERE dept.state = 'CA'

A predicate rejects them if it is not TRUE for NULLs. It may stand in WHERE, or in the condition of any join around this
one that removes rows for which it is not TRUE; what one join has become may reduce another. LEFT and RIGHT become
INNER; FULL becomes LEFT, RIGHT or INNER. Predicates of ON then hold for all rows of the join, and pass to the relations
around it.

Source: Galindo-Legaria and Rosenthal, "Outerjoin Simplification and Reordering for Query Optimization" (1997).
"""

from __future__ import annotations

from secateur.planner.relations.nodes import Join, JoinType, Relation, postorder
from secateur.planner.relations.prunability import predicates_of_relations
from secateur.planner.relations.transform import with_join_types
from secateur.planner.rewrites.rule import Rule

_OUTER = (JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)


def _apply(root: Relation) -> Relation | None:
    """Reduce every outer join as far as its predicates allow.

    Cost: a walk through the tree with its predicates, once more whenever a join was reduced; nothing without outer
    joins.
    """
    before = root
    while any(_is_reducible(relation) for relation in postorder(root)):
        kinds = {
            id(relation): reduced.kind
            for relation, reduced, _ in predicates_of_relations(root)
            if isinstance(relation, Join)
            and isinstance(reduced, Join)
            and reduced.kind is not relation.kind
            and _is_reducible(relation)
        }
        if not kinds:
            break
        root = with_join_types(root, kinds)
    return None if root is before else root


def _is_reducible(relation: Relation) -> bool:
    """Whether a relation is an outer join; one whose merged columns are computed from both sides stays as it is."""
    return isinstance(relation, Join) and relation.kind in _OUTER and not relation.merged


RULE = Rule("outer_join_reduction", _apply, is_of_tree=True)
"""It looks at the whole tree, because the predicate may stand anywhere above the join."""
