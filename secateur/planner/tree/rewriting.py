"""Changes of expressions: which columns they read, and the same about other columns.

So the conditions of a join become ones over the columns of both of its sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeGuard, TypeVar

from msgspec.structs import replace

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import add_parts, column_types, node_fields
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.types import LogicalType, Node

_N = TypeVar("_N", bound=Node)
Join: TypeAlias = rel.LogicalJoin | rel.LogicalConditionJoin


def parts(node: Node) -> list[ex.AnyExpression]:
    """The expressions directly inside of an expression."""
    found: list[ex.AnyExpression] = []
    add_parts(node, found)
    return found


def within(node: ex.AnyExpression) -> list[ex.AnyExpression]:
    """An expression, and all inside of it."""
    found = [node]
    for one in found:  # which grows meanwhile
        add_parts(one, found)
    return found


def input_columns(node: ex.AnyExpression) -> list[ex.InputColumn]:
    """The input columns in an expression; those inside of a lambda are its own parameters, and what it is given."""
    if type(node) is ex.InputColumn:
        return [node]
    columns: list[ex.InputColumn] = []
    pending = [node]
    for one in pending:  # which grows meanwhile
        if isinstance(one, ex.InputColumn):
            columns.append(one)
        elif not isinstance(one, ex.Lambda):
            add_parts(one, pending)
    return columns


def inputs_of(nodes: Iterable[ex.AnyExpression]) -> frozenset[int]:
    """The columns that expressions read."""
    return frozenset(column.index for node in nodes for column in input_columns(node))


def rebased(node: ex.AnyExpression, column: Callable[[ex.InputColumn], ex.AnyExpression]) -> ex.AnyExpression:
    """The same expression over other columns; ``column`` is what stands for each input column."""
    return exchanged(node, lambda one: column(one) if isinstance(one, ex.InputColumn) else None)


def over_columns(node: ex.AnyExpression, columns: Mapping[int, int] | Sequence[int]) -> ex.AnyExpression:
    """The same expression, where each column is another; ``columns`` has the new one of each."""
    return rebased(node, lambda column: replace(column, index=columns[column.index]))


def exchanged(node: _N, change: Callable[[ex.AnyExpression], ex.AnyExpression | None]) -> _N:
    """A relation or an expression in which some expressions are exchanged.

    Args:
        node: The relation or expression.
        change: What stands for an expression; None where it stays, and those inside of it are looked at.
    """
    return _exchanged(node, change)  # type: ignore[return-value]


def shifted(node: ex.AnyExpression, by: int) -> ex.AnyExpression:
    """The same expression, its columns further to the right, or to the left where ``by`` is negative."""
    return rebased(node, lambda column: replace(column, index=column.index + by)) if by else node


def _exchanged(value: object, change: Callable[[ex.AnyExpression], ex.AnyExpression | None]) -> object:
    if isinstance(value, tuple):
        made = tuple(_exchanged(one, change) for one in value)
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    if not isinstance(value, Node) or isinstance(value, ex.Lambda):
        return value  # a lambda reads its own parameters, and what it is given
    if isinstance(value, ex.Expression):
        found = change(value)  # type: ignore[arg-type]
        if found is not None:
            return found
    changed = {}
    for name in node_fields(type(value)):
        old = getattr(value, name)
        new = _exchanged(old, change)
        if new is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value


def conjuncts(nodes: Iterable[ex.AnyExpression]) -> Iterator[ex.AnyExpression]:
    """The conditions that an AND of them consists of."""
    for node in nodes:
        if isinstance(node, ex.Conjunction) and node.type == "CONJUNCTION_AND":
            yield from conjuncts(node.children)
        else:
            yield node


def column_of(index: int, type_: LogicalType, alias: str = "") -> ex.InputColumn:
    """An input column."""
    return ex.InputColumn(type="BOUND_REF", return_type=type_, index=index, alias=alias)


def cast_of(node: ex.AnyExpression) -> tuple[ex.AnyExpression, bool] | None:
    """What a cast converts, and whether it is TRY_CAST; None where an expression is no cast."""
    match node:
        case ex.Call(name="__cast", children=(inner,)):
            return inner, bool((node.function_data or {}).get("try_cast", True))
        case _:
            return None


def uncast(node: ex.AnyExpression, *, tried: bool = True) -> ex.AnyExpression:
    """What stands inside of all casts; TRY_CAST is one of them where ``tried``."""
    while (found := cast_of(node)) is not None and (tried or not found[1]):
        node, _ = found
    return node


def is_null(node: ex.AnyExpression) -> bool:
    """Whether an expression is NULL, in whatever type."""
    inner = uncast(node)
    return isinstance(inner, ex.BoundConstant) and inner.value.is_null


def bare_column(node: ex.AnyExpression) -> ex.InputColumn | None:
    """The column that an expression is, or a wider integer of the same value."""
    match node:
        case ex.InputColumn():
            return node
        case ex.Call(children=(ex.InputColumn() as column,)) if (
            node.name == "__cast" and not node.function_data["try_cast"]
        ):
            widened = node.return_type.is_integer and column.return_type.is_integer
            return column if widened else None
        case _:
            return None


def cast_to(node: ex.AnyExpression, type_: LogicalType) -> ex.AnyExpression:
    """``CAST(node AS type)``."""
    return ex.Call(
        type="OPERATOR_CAST",
        return_type=type_,
        qname=ex.QualifiedName(("__cast",)),
        children=(node,),
        is_operator=True,
        function_data={"try_cast": False},
    )


def picked(relation: rel.AnyRelation, kept: Sequence[int]) -> rel.AnyRelation:
    """Some columns of a relation, in the order of ``kept``."""
    types = column_types(relation)
    return rel.LogicalProject(children=(relation,), expressions=tuple(column_of(index, types[index]) for index in kept))


def put_back(relation: rel.AnyRelation, kept: Sequence[int], types: Sequence[LogicalType]) -> rel.AnyRelation:
    """The columns of a relation in the places that they had before they were :func:`picked`.

    Args:
        relation: The relation.
        kept: The place of each of its columns.
        types: The types of all columns; what stands in the place of one that is not kept is not read.
    """
    if list(kept) == list(range(len(types))):
        return relation
    position = {place: index for index, place in enumerate(kept)}
    columns = (
        column_of(position[place], type_) if place in position else unread(type_) for place, type_ in enumerate(types)
    )
    return rel.LogicalProject(children=(relation,), expressions=tuple(columns))


def all_of(nodes: Sequence[ex.AnyExpression]) -> ex.AnyExpression:
    """The AND of conditions, of which there is at least one."""
    return nodes[0] if len(nodes) == 1 else ex.Conjunction(type="CONJUNCTION_AND", children=tuple(nodes))


def any_of(nodes: Sequence[ex.AnyExpression]) -> ex.AnyExpression:
    """OR of several; of one, itself."""
    return nodes[0] if len(nodes) == 1 else ex.Conjunction(type="CONJUNCTION_OR", children=tuple(nodes))


def unread(type_: LogicalType) -> ex.AnyExpression:
    """What stands in the place of a column that nothing reads."""
    return ex.Written(sql="NULL" if type_.id == "NULL" else f"CAST(NULL AS {type_.sql})", return_type=type_)


def is_inner(relation: rel.AnyRelation) -> TypeGuard[Join]:
    """Whether a relation is an inner join whose sides may be exchanged."""
    return (
        isinstance(relation, Join) and relation.join_type == "INNER" and not isinstance(relation, rel.LogicalAsofJoin)
    )


def with_join_types(relation: rel.AnyRelation, types: Sequence[tuple[Join, str]]) -> rel.AnyRelation:
    """The same relations, in which some joins are of other types."""
    children = tuple(with_join_types(child, types) for child in relation.children)
    found = next(((join, kind) for join, kind in types if join is relation), None)
    if found is not None:
        join, kind = found
        joined = replace(join, children=children, join_type=kind)
        return with_mark(joined, mark=True) if join.join_type == "MARK" else joined
    is_same = all(new is old for new, old in zip(children, relation.children, strict=True))
    return relation if is_same else replace(relation, children=children)


def with_mark(join: Join, *, mark: bool) -> rel.LogicalProject:
    """A semi or anti join as the MARK join that it was, which has one mark in all of its rows."""
    columns = (column_of(index, type_) for index, type_ in enumerate(column_types(join)))
    value = ex.BoundConstant(type="VALUE_CONSTANT", value=ex.BoundValue(type=ex.BOOLEAN, value=mark))
    return rel.LogicalProject(children=(join,), expressions=(*columns, value))


def over_all_columns(relation: rel.AnyRelation) -> rel.AnyRelation:
    """The same where no filter, sort or join leaves out columns of what it reads: a projection above it does."""
    relation = replace(relation, children=tuple(over_all_columns(child) for child in relation.children))
    match relation:
        case rel.LogicalFilter() | rel.LogicalSort() if relation.projection_map:
            return picked(replace(relation, projection_map=()), relation.projection_map)
        case rel.LogicalJoin() | rel.LogicalConditionJoin() if (
            relation.left_projection_map or relation.right_projection_map
        ):
            return _join_over_all_columns(relation)
        case _:
            return relation


def _join_over_all_columns(join: Join) -> rel.AnyRelation:
    left, right = (len(column_types(child)) for child in join.children)
    lefts = join.left_projection_map or range(left)
    rights: Sequence[int] = range(left, left + right)
    if join.right_projection_map and join.join_type not in ("SEMI", "ANTI"):  # which return nothing of the right side
        rights = [left + index for index in join.right_projection_map]
    if isinstance(join, rel.LogicalConditionJoin):  # DuckDB has its condition over the columns that it returns
        join = replace(join, condition=over_columns(join.condition, [*lefts, *rights]))
    shown = {"SEMI": (), "ANTI": (), "MARK": (left,)}.get(join.join_type, rights)
    return picked(replace(join, left_projection_map=(), right_projection_map=()), [*lefts, *shown])


def conditions_of(relation: Join) -> list[ex.AnyExpression]:
    """The conditions of a join over the columns of both sides."""
    if isinstance(relation, rel.LogicalConditionJoin):
        return [relation.condition]
    width = len(column_types(relation.children[0]))
    return [_as_expression(condition, width) for condition in relation.conditions]


def _as_expression(condition: rel.JoinCondition, left_width: int) -> ex.AnyExpression:
    if condition.right is None:
        return condition.left
    return compared(condition.comparison, condition.left, shifted(condition.right, left_width))
