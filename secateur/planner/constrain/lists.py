"""Lists whose elements a value is compared with."""

from __future__ import annotations

from msgspec.structs import replace

from secateur.planner.constrain.condition import NEVER
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import CONTAINS
from secateur.planner.tree.rewriting import cast_of, cast_to, inputs_of, within
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.types import ListInfo, LogicalType


def with_lists(node: ex.AnyExpression) -> ex.AnyExpression:
    """A condition in which ``x = ANY(list)`` is a search of the list.

    Both are TRUE for the same values. Below NOT, a list without elements has not even a NULL.
    """
    match node:
        case ex.BoundOperation(
            type="OPERATOR_NOT", children=(ex.BoundOperation(type="OPERATOR_NOT", children=(twice,)),)
        ):
            return with_lists(twice)
        case ex.BoundOperation(
            type="OPERATOR_NOT", children=(ex.Written(sql="({0} = ANY({1}))", children=(value, values)),)
        ):
            is_absent = replace(node, children=(_contains(values, value),))
            return ex.Conjunction(type="CONJUNCTION_OR", children=(is_absent, _is_null(value)))
        case ex.BoundOperation(type="OPERATOR_NOT", children=(ex.Conjunction() as inner,)) if any(
            isinstance(part, ex.Written) for part in within(inner)
        ):
            opposite = "CONJUNCTION_AND" if inner.type == "CONJUNCTION_OR" else "CONJUNCTION_OR"
            negated = tuple(with_lists(replace(node, children=(one,))) for one in inner.children)
            return replace(inner, type=opposite, children=negated)
        case ex.Conjunction():
            return replace(node, children=tuple(map(with_lists, node.children)))
        case ex.Written(sql="({0} = ANY({1}))", children=(_, values)) if _is_of_nulls(values):
            return NEVER.expression
        case ex.Call(children=(values, _)) if node.name in CONTAINS and _is_of_nulls(values):
            return NEVER.expression
        case ex.Written(sql="({0} = ANY({1}))", children=(value, values)):
            return _contains(values, value)
        case _:
            return node


def element_of(values: ex.AnyExpression, column: ex.InputColumn) -> ex.AnyExpression | None:
    """That a column is an element of a list; None where that says nothing, as elements may be NULL or unknown."""
    if inputs_of([values]) or unstable_call([values]) is not None or values.return_type.id != "LIST":
        return None
    return ex.Conjunction(type="CONJUNCTION_OR", children=(_contains(values, column), _is_null(column)))


def in_parameter(column: ex.InputColumn, index: int) -> ex.AnyExpression:
    """That a column is an element of a list, which is the parameter with an index."""
    type_ = LogicalType("LIST", ListInfo(child_type=column.return_type))
    return _contains(ex.BoundParameter(type="VALUE_PARAMETER", identifier=str(index + 1), return_type=type_), column)


def searched_parameter(node: ex.AnyExpression) -> tuple[ex.InputColumn, int] | None:
    """The column and the index of the parameter of :func:`in_parameter`; None for anything else."""
    match node:
        case ex.Call(
            qname=ex.QualifiedName(("list_contains",)),
            children=(ex.BoundParameter(identifier=identifier), ex.InputColumn() as column),
        ):
            return column, int(identifier) - 1
        case _:
            return None


def _is_of_nulls(values: ex.AnyExpression) -> bool:
    """Whether a list is a parameter that is NULL, or of which no element is anything else, in every execution."""
    found = cast_of(values)
    inner = values if found is None else found[0]
    info = inner.return_type.type_info
    is_null = inner.return_type.id == "NULL" or (isinstance(info, ListInfo) and info.child_type.id == "NULL")
    return is_null and isinstance(inner, ex.BoundParameter)


def _is_null(node: ex.AnyExpression) -> ex.AnyExpression:
    return ex.BoundOperation(type="OPERATOR_IS_NULL", return_type=ex.BOOLEAN, children=(node,))


def _contains(values: ex.AnyExpression, value: ex.AnyExpression) -> ex.AnyExpression:
    wanted = LogicalType("LIST", ListInfo(child_type=value.return_type))
    cast = values if values.return_type == wanted else cast_to(values, wanted)
    return ex.Call(
        type="BOUND_FUNCTION",
        return_type=ex.BOOLEAN,
        qname=ex.QualifiedName(("list_contains",)),
        children=(cast, value),
    )
