"""The answer of a statement over no rows, which is that of each execution that needs no partition.

It is sent with the plan, and no member is asked. Where nothing is evaluated without rows, it has no rows and the types
of the statement's columns; else the kernels compute it (:mod:`~secateur.planner.binding.evaluation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from secateur.engine.kernels.fragment import Fragment
from secateur.errors import DatabaseError
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.binding.evaluation import bounded_functions, evaluate, is_small
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.planner.tree.rewriting import cast_of, inputs_of, within
from secateur.planner.tree.types import is_exact, sql_type
from secateur.protocol.arrow_ipc import encode_table

_BYTES_MAX: Final = 65_536
"""It is sent in the header of a frame, and kept with the plan. A longer one is made by a member."""
_WITHOUT_ROWS: Final = (
    rel.LogicalFilter,
    rel.LogicalProject,
    rel.LogicalSort,
    rel.LogicalJoin,
    rel.LogicalConditionJoin,
    rel.LogicalCross,
)
"""Relations that have no rows where nothing below them has any."""


def empty_answer(
    root: rel.AnyRelation,
    whole: Fragment,
    schemas: Mapping[str, Mapping[str, SqlType | str]],
    params: Sequence[Any],
    parameter_count: int,
) -> bytes | None:
    """The answer of a repeatable statement over no rows as Arrow IPC.

    None where it is not the same for all parameters, or not known at planning time.
    """
    if parameter_count and not ignores_parameters(root):
        return None
    if evaluates_nothing(root):
        return bytes(encode_table(empty_table(whole.schema)))
    if not is_bounded(root):
        return None
    relations = {
        relation: empty_table(Fragment.over("", {}, [(name, str(kind)) for name, kind in schema.items()]).schema)
        for relation, schema in schemas.items()
    }
    try:
        found = evaluate(whole, relations, list(params), ends_soon=is_small(root))
    except DatabaseError:
        # A constant part fails, such as a bad cast: it fails again, and is reported, when the statement runs.
        return None
    if found is None or found.nbytes > _BYTES_MAX:
        return None
    # A new table: what a kernel leaves in the buffers of no rows may differ, and equal plans have equal bytes.
    return bytes(encode_table(found if found.num_rows else empty_table(found.schema)))


def evaluates_nothing(root: rel.AnyRelation) -> bool:
    """Whether a statement over no rows has no rows, and calls nothing that could fail.

    Each call depends on a column, or on a parameter of which :func:`ignores_parameters` says that nothing is made of
    it, or converts a constant to a type that has it.
    """
    return all(
        isinstance(relation, _WITHOUT_ROWS) or (isinstance(relation, rel.LogicalScan) and relation.table is not None)
        for relation in relations_in(root)
    ) and all(
        any(isinstance(part, ex.InputColumn | ex.BoundParameter) for part in within(call)) or _is_exact_constant(call)
        for relation in relations_in(root)
        for expression in expressions_of(relation)
        for call in within(expression)
        if isinstance(call, ex.Call)
    )


def _is_exact_constant(call: ex.Call) -> bool:
    match cast_of(call):
        case (ex.BoundConstant() as constant, _):
            given, wanted = sql_type(constant.return_type), sql_type(call.return_type)
            return given is not None and wanted is not None and is_exact(given, wanted)
        case _:
            return False


def is_bounded(root: rel.AnyRelation) -> bool:
    """Whether a statement over no rows evaluates only functions whose values are no larger than their arguments.

    A call with a column among its arguments is evaluated for no row, unless an aggregate has made one.
    """
    relations = relations_in(root)
    makes_rows = any(isinstance(one, rel.LogicalAggregate) for one in relations)
    for relation in relations:
        if isinstance(relation, rel.LogicalScan) and relation.table is None:
            return False
        for expression in expressions_of(relation):
            for call in within(expression):
                if _is_bounded_call(call):
                    continue
                if makes_rows or not inputs_of([call]):
                    return False
    return True


def _is_bounded_call(node: ex.AnyExpression) -> bool:
    match node:
        case ex.Call():
            is_named = not node.type.startswith("COMPARE_") and cast_of(node) is None
            return not is_named or node.name.lower() in bounded_functions()
        case ex.Unnest():
            return False
        case _:
            return True


def ignores_parameters(root: rel.AnyRelation) -> bool:
    """Whether each parameter is in a condition on the rows of a table, which is not evaluated where there are none."""
    return all(
        isinstance(relation, rel.LogicalFilter) and _is_of_table(relation)
        for relation in relations_in(root)
        if any(isinstance(part, ex.BoundParameter) for one in expressions_of(relation) for part in within(one))
    )


def _is_of_table(relation: rel.AnyRelation) -> bool:
    """Whether a relation has rows of one table, and no others."""
    while isinstance(relation, rel.LogicalFilter | rel.LogicalProject):
        (relation,) = relation.children
    return isinstance(relation, rel.LogicalScan) and relation.table is not None
