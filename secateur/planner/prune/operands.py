"""Operands that do not depend on rows: constants, parameters, and expressions of these.

DuckDB evaluates expressions of constants while the statement is planned.
"""

from __future__ import annotations

from typing import Final

from secateur.expression_values import value_of
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import Cast, Computed, Constant, Evaluated, Operand, quick_value
from secateur.planner.prune.evaluable import evaluable
from secateur.planner.prune.quick import quick_of, raw_parameter
from secateur.planner.prune.shown import operand_text
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, within

_FRACTIONS: Final = frozenset({"DECIMAL", "FLOAT", "DOUBLE"})
"""Types whose values clients do not compare with columns of other types, unless DuckDB has computed them."""


def is_free_of_rows(node: ex.AnyExpression) -> bool:
    """Whether an expression reads no column."""
    return not any(isinstance(part, ex.InputColumn) for part in within(node))


def operand_of(node: ex.AnyExpression) -> Operand | None:
    """Return the value of an expression that does not depend on rows.

    None when it depends on rows, or may differ between evaluations.

    Cost: nothing for what Python computes as DuckDB does, such as a literal in the type of a column; any other
    expression without parameters is evaluated by DuckDB: a quarter of a millisecond.
    """
    parameter = raw_parameter(node)
    if parameter is not None:
        return parameter
    quick = quick_of(node)
    if isinstance(quick, Constant):
        return quick
    parts = list(within(node))
    if any(isinstance(part, ex.InputColumn) for part in parts):
        return None
    parameters = [part for part in parts if isinstance(part, ex.BoundParameter)]
    names = {parameter.identifier for parameter in parameters}
    if names:
        # The digits of a fraction are those of each value, and the casts around it those of one.
        is_sized = any(parameter.return_type.id == "DECIMAL" for parameter in parameters) and any(
            part.return_type.id == "DECIMAL" and cast_of(part) is not None for part in parts
        )
        sql = None if is_sized else evaluable(node)
        if sql is None or not all(map(str.isdecimal, names)):
            return None
        computed = quick if isinstance(quick, (Computed, Cast)) and node.return_type.id not in _FRACTIONS else None
        return Evaluated(sql, operand_text(node), tuple(sorted(int(name) - 1 for name in names)), computed)
    value = UNKNOWN if quick is None else quick_value(quick, ())
    if value is not UNKNOWN:
        return Constant(value)
    sql = evaluable(node)
    found = () if sql is None else value_of(sql)
    return Constant(found[0]) if found else None
