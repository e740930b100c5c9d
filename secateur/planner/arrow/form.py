"""The form of a relation for the arrow kernel, or the reason why DuckDB has to compute it.

Only what is known to be exact has a form. Three checks back the rules: each expression, and each column of the result,
has the type that DuckDB's binder gives it, and ``tests/property/test_kernels_agree.py`` compares both kernels over
random statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from secateur.engine.kernels.arrow.expression import CallExpression, ColumnExpression, Expression, columns_in
from secateur.engine.kernels.arrow.fragment import ArrowFragment, slot_name
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.arrow.declined import DeclineError, KernelDeclined
from secateur.planner.arrow.selected import Reader, Selected
from secateur.planner.arrow.sources import JoinInput, sources_of
from secateur.planner.arrow.values import Column, all_of, is_fixed, known
from secateur.planner.tree.bound_text import BoundText
from secateur.planner.tree.relations import AnyRelation

# The arrow kernel evaluates expressions by recursion; longer or deeper statements are left to DuckDB.
_NODES_MAX: Final = 1000
_DEPTH_MAX: Final = 200


def arrow_form(
    relation: AnyRelation,
    text: BoundText,
    columns: Sequence[tuple[str, str]],
    inputs: Mapping[str, JoinInput] | None = None,
) -> ArrowFragment | KernelDeclined:
    """The form of a relation.

    Args:
        relation: The relation, over one table, or over several.
        text: What was bound.
        columns: Name and type text of each of its columns, as ``DuckDBKernel.describe`` gives them.
        inputs: What is known of each table of the statement, by relation, where it has several; None where it has one.

    Returns:
        The form, or why there is none. Cost: about 0.1 ms.
    """
    try:
        selected = Reader(text, inputs).read(relation)
        if inputs is not None and {step.relation for step in selected.steps} != set(inputs):
            raise DeclineError("a table that has no influence on the answer")
        found = _without_unread(_fragment(selected, columns))
        return found if _is_small(found) else KernelDeclined("a long statement")
    except DeclineError as declined:
        return KernelDeclined(str(declined))
    except RecursionError:
        return KernelDeclined("a deep statement")


def _fragment(selected: Selected, columns: Sequence[tuple[str, str]]) -> ArrowFragment:
    shown: Sequence[Column] = selected.columns
    if selected.distinct is not None:
        slots = [ColumnExpression(slot_name(index), row.type) for index, row in enumerate(selected.distinct)]
        if list(shown) != slots:
            raise DeclineError("some columns of rows that DISTINCT has merged")
        shown = selected.distinct
    if len(shown) != len(columns):
        raise DeclineError("a select list that is not one result column each")
    is_plain = selected.keys is None and selected.distinct is None
    sources, where = sources_of(selected.steps, selected.where)
    return ArrowFragment(
        outputs=tuple(
            (name, _output(column, type_, may_be_fixed=is_plain))
            for column, (name, type_) in zip(shown, columns, strict=True)
        ),
        where=where,
        keys=selected.keys,
        aggregates=selected.aggregates,
        having=all_of(selected.having),
        distinct=selected.distinct is not None,
        order=selected.order,
        limit=selected.limit,
        offset=selected.offset,
        sources=sources,
    )


def _output(column: Column, type_: str, *, may_be_fixed: bool) -> Expression:
    found = known(column)
    if str(found.type) != type_:
        raise DeclineError(f"a column is {type_} in DuckDB and {found.type} here")
    if is_fixed(found) and (not may_be_fixed or found.type.kind in (TypeKind.FLOAT, TypeKind.HUGEINT)):
        raise DeclineError("a column that is the same in all rows")
    if _holds_uuid(found.type):
        raise DeclineError(f"a column of {found.type}")
    return found


def _without_unread(fragment: ArrowFragment) -> ArrowFragment:
    """The same without aggregates that nothing reads."""
    if fragment.keys is None:
        return fragment
    having = () if fragment.having is None else (fragment.having,)
    order = () if fragment.distinct else tuple(term.expression for term in fragment.order)
    read = columns_in([*(expression for _, expression in fragment.outputs), *having, *order])
    first = len(fragment.keys)
    kept = [index for index in range(len(fragment.aggregates)) if slot_name(first + index) in read]
    if not kept and not fragment.keys:
        raise DeclineError("one group of which nothing is read")
    slots = {slot_name(first + old): slot_name(first + new) for new, old in enumerate(kept)}
    return replace(
        fragment,
        outputs=tuple((name, _renamed(expression, slots)) for name, expression in fragment.outputs),
        aggregates=tuple(fragment.aggregates[index] for index in kept),
        having=None if fragment.having is None else _renamed(fragment.having, slots),
        order=tuple(
            term if fragment.distinct else replace(term, expression=_renamed(term.expression, slots))
            for term in fragment.order
        ),
    )


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case ColumnExpression(name=name) if name in names:
            return replace(expression, name=names[name])
        case CallExpression():
            return replace(expression, arguments=tuple(_renamed(one, names) for one in expression.arguments))
        case _:
            return expression


def _holds_uuid(type_: SqlType) -> bool:
    return any(part.contains((TypeKind.UUID,)) for part in type_.parts)


def _is_small(fragment: ArrowFragment) -> bool:
    """Whether all expressions together have at most so many nodes, none of them deeper."""
    level = list(_expressions(fragment))
    count = 0
    for _ in range(_DEPTH_MAX):
        count += len(level)
        if count > _NODES_MAX:
            return False
        level = [part for node in level if isinstance(node, CallExpression) for part in node.arguments]
        if not level:
            return True
    return False


def _expressions(fragment: ArrowFragment) -> Iterator[Expression]:
    yield from (expression for _, expression in fragment.outputs)
    yield from fragment.keys or ()
    yield from (one.argument for one in fragment.aggregates if one.argument is not None)
    yield from (term.expression for term in fragment.order)
    for source in fragment.sources:
        yield from (side for key in source.keys for side in key)
        yield from (part for part in (source.where, source.condition) if part is not None)
    yield from (part for part in (fragment.where, fragment.having) if part is not None)
