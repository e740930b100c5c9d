"""Sides of outer joins that change nothing: each row of the other side comes once, with or without a match.

::

    SELECT emp.name FROM emp LEFT JOIN (SELECT DISTINCT id FROM dept) d ON emp.dept_id = d.id
    SELECT emp.name FROM emp

The text that runs keeps the join, so every scan of the side reads no partition: the side is unique without rows as
well. Sides and conditions with expressions that might raise an error about a row are left out.

Source: Rao, Pirahesh, Zuzarte, "Canonical Abstraction for Outerjoin Optimization" (2004); Calcite
(``ProjectJoinRemoveRule``), MariaDB ("table elimination").
"""

from __future__ import annotations

from collections.abc import Mapping

from secateur.partitioning.tables.table import TableDef
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import Condition
from secateur.planner.constrain.equivalence import equated
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import STRICT
from secateur.planner.tree.rewriting import cast_of


def matches_once(join: nodes.Join, side: nodes.Relation, tables: Mapping[str, TableDef]) -> bool:
    """Whether a row of the other side certainly matches one row of a side at most, and no row of it raises an error."""
    keys: set[int] = set()
    for one in join.on:
        ours = [column.index for column in equated(one) or () if column.index in side.columns]
        if len(ours) != 1:
            return False
        keys.update(ours)
    return _never_raises(side) and is_unique(side, frozenset(keys), tables)


def is_unique(relation: nodes.Relation, columns: frozenset[int], tables: Mapping[str, TableDef]) -> bool:
    """Whether no two rows agree in all of some columns. False when that is not certain."""
    match relation:
        case nodes.ScannedTable(table=table, names=names, own=own):
            key = tables[table].primary_key if table in tables else ()
            return bool(key) and set(key) <= {
                name for name, column in zip(names, own, strict=True) if column.index in columns
            }
        case nodes.JoinBlock(inputs=(input,)):
            return is_unique(input, columns, tables)
        case nodes.Barrier(input=input, unique=unique, groups=groups):
            if unique is not None and bool(unique) and unique <= columns:
                return True
            return not groups and not relation.stopped and is_unique(input, columns, tables)
        case _:
            return False


def _never_raises(relation: nodes.Relation) -> bool:
    match relation:
        case nodes.ScannedTable():
            return True
        case nodes.JoinBlock(inputs=(input,), conditions=conditions):
            return all(map(_compares_as_is, conditions)) and _never_raises(input)
        case nodes.Barrier(input=input, unique=unique):
            return unique is not None and not relation.chosen and _never_raises(input)
        case _:
            return False


def _compares_as_is(condition: Condition) -> bool:
    """Whether a condition compares a column with a literal, and casts the column for no row."""
    match condition.expression:
        case ex.Call(type=type_, children=(ex.InputColumn(), value)) if type_ in STRICT:
            return _is_literal(value)
        case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(ex.InputColumn(),)):
            return True
        case _:
            return False


def _is_literal(node: ex.AnyExpression) -> bool:
    """Whether a value is a literal, under the casts that DuckDB makes of each."""
    while (found := cast_of(node)) is not None:
        node, _ = found
    return isinstance(node, ex.BoundConstant)
