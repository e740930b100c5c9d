"""IN and NOT IN become EXISTS and NOT EXISTS, by a comparison inside of the subquery ("correlation").

::

    WHERE emp.dept_id IN (SELECT id FROM dept WHERE dept.size > emp.level)
    WHERE EXISTS (SELECT 1 FROM dept WHERE dept.size > emp.level AND id = emp.dept_id)

IN is TRUE exactly where the subquery has an equal value. NOT IN is not TRUE where a value on either side is NULL, so it
becomes NOT EXISTS only where neither can be NULL.

Source: IEP-24, "Correlation"; MySQL, IN-to-EXISTS optimization.
"""

from __future__ import annotations

from dataclasses import replace

from secateur.planner.relations.nodes import Apply, Filter, Relation, SubqueryForm, is_never_null
from secateur.planner.rewrites.correlation import comparisons
from secateur.planner.rewrites.rule import Rule


def _apply(relation: Relation) -> Relation | None:
    if not isinstance(relation, Apply) or relation.form not in (SubqueryForm.IN, SubqueryForm.NOT_IN):
        return None
    on = comparisons(relation)
    if not on or (relation.form is SubqueryForm.NOT_IN and not _has_no_nulls(relation)):
        return None
    form = SubqueryForm.EXISTS if relation.form is SubqueryForm.IN else SubqueryForm.NOT_EXISTS
    return replace(relation, form=form, subquery=Filter(relation.subquery, on), operands=(), outputs=())


def _has_no_nulls(relation: Apply) -> bool:
    left = all(operand is not None and is_never_null(operand, relation.input) for operand in relation.operands)
    return left and all(output is not None and is_never_null(output, relation.subquery) for output in relation.outputs)


RULE = Rule("in_to_exists", _apply)
