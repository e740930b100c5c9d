"""What relations consist of: their columns with types, and their expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_args

from msgspec.structs import fields

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.expressions import BOOLEAN, Expression
from secateur.planner.tree.relations import LogicalRelation
from secateur.planner.tree.types import LogicalType, Node

_BIGINT = LogicalType("BIGINT")
_NULL = LogicalType("INTEGER")


def column_types(relation: rel.AnyRelation) -> tuple[LogicalType, ...]:
    """The type of each column of a relation."""
    match relation:
        case rel.LogicalScan():
            types = relation.returned_types
            # A table function over rows has some of their columns behind its own.
            given = (column_types(relation.children[0])[index] for index in relation.projected_input)
            return (*(types[place] if place < len(types) else BOOLEAN for place in relation.places), *given)
        case rel.LogicalStageRows():
            return relation.types
        case rel.LogicalNothing():
            return (_NULL,)
        case rel.LogicalNoRows():
            return relation.return_types
        case rel.LogicalValues():
            return relation.expr_types
        case rel.LogicalChunks() | rel.LogicalWithReference():
            return relation.chunk_types
        case rel.LogicalFilter() | rel.LogicalSort():
            return column_types(relation.children[0])
        case rel.LogicalProject():
            return tuple(expression.return_type for expression in relation.expressions)
        case rel.LogicalAggregate():
            found = [expression.return_type for expression in (*relation.groups, *relation.expressions)]
            return (*found, *(_BIGINT for _ in relation.grouping_functions))
        case rel.LogicalWindow() | rel.LogicalUnnestRows():
            made = tuple(expression.return_type for expression in relation.expressions)
            return (*column_types(relation.children[0]), *made)
        case rel.LogicalDistinct() | rel.LogicalLimit() | rel.LogicalSample():
            return column_types(relation.children[0])
        case rel.LogicalJoin() | rel.LogicalConditionJoin():
            left = column_types(relation.children[0])
            if relation.join_type in ("SEMI", "ANTI"):
                return left
            if relation.join_type == "MARK":
                return (*left, BOOLEAN)
            return (*left, *column_types(relation.children[1]))
        case rel.LogicalCross() | rel.LogicalPositional():
            return (*column_types(relation.children[0]), *column_types(relation.children[1]))
        case rel.LogicalUnion() | rel.LogicalExcept() | rel.LogicalIntersect() | rel.LogicalRecursiveWith():
            return column_types(relation.children[0])
        case rel.LogicalWith():
            return column_types(relation.children[1])


def relations_in(relation: rel.AnyRelation) -> list[rel.AnyRelation]:
    """A relation, and all below it, each before those below it."""
    found: list[rel.AnyRelation] = []
    pending = [relation]
    while pending:
        one = pending.pop()
        found.append(one)
        if one.children:
            pending.extend(one.children[::-1])
    return found


def expressions_of(relation: rel.AnyRelation) -> list[ex.AnyExpression]:
    """The expressions of a relation itself."""
    found: list[ex.AnyExpression] = []
    _add_expressions([getattr(relation, name) for name in node_fields(type(relation)) if name != "children"], found)
    return found


# Lists, and no generators: a third of the calls of functions that it took to plan a key look-up were theirs.
def add_parts(node: Node, found: list[Any]) -> None:
    """Add the expressions directly inside of an expression."""
    names = node_fields(type(node))
    if names:
        _add_expressions([getattr(node, name) for name in names], found)


def _add_expressions(values: Iterable[object], found: list[Any]) -> None:
    for one in values:
        if isinstance(one, ex.Expression):
            found.append(one)
        elif isinstance(one, tuple):
            _add_expressions(one, found)
        elif isinstance(one, Node):
            add_parts(one, found)


def columns_read(relation: rel.AnyRelation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each scan of a table in a relation: the table, and the names of the columns that are read."""
    for scan in relations_in(relation):
        if isinstance(scan, rel.LogicalScan) and scan.table is not None:
            names = scan.names
            yield scan.table, tuple(names[one.index] for one in scan.column_indexes if one.index < len(names))


@cache
def node_fields(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a kind of node that can hold expressions or relations, in their order.

    The others need not be looked at.
    """
    return tuple(field.name for field in fields(kind) if _may_hold(field.type, (kind,)))


def _may_hold(annotation: Any, inside: tuple[type, ...]) -> bool:
    if not isinstance(annotation, type) or get_args(annotation):
        return any(_may_hold(part, inside) for part in get_args(annotation))
    if issubclass(annotation, Expression | LogicalRelation):
        return True
    return (
        issubclass(annotation, Node)
        and annotation not in inside
        and any(_may_hold(field.type, (*inside, annotation)) for field in fields(annotation))
    )
