"""Lists in which a value is searched: those that are parameters, and those that are written out."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.planner.prune.quick import raw_parameter
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, cast_to
from secateur.planner.tree.types import ListInfo, LogicalType


def list_parameter(node: ex.AnyExpression) -> int | None:
    """The index of the parameter that a list is; None for any other list.

    Under a cast of its elements that comparisons with them do not notice, it is still the parameter.
    """
    element = _element_type(node)
    found = cast_of(node)
    inner = node if found is None else found[0]
    given = _element_type(inner)
    if not isinstance(inner, ex.BoundParameter) or element is None or given is None or (found is not None and found[1]):
        return None
    standing = ex.BoundParameter(type=inner.type, identifier=inner.identifier, return_type=given)
    parameter = raw_parameter(standing if given == element else cast_to(standing, element))
    return None if parameter is None else parameter.index


def elements_of(node: ex.AnyExpression) -> Sequence[ex.AnyExpression] | None:
    """The elements of a list that is written out; None for any other list."""
    element = _element_type(node)
    match node:
        case ex.BoundConstant(value=ex.BoundValue(is_null=False, value={"children": list() as children})) if (
            element is not None
        ):
            return [
                ex.BoundConstant(
                    type="VALUE_CONSTANT",
                    value=ex.BoundValue(type=element, is_null=bool(child.get("is_null")), value=child.get("value")),
                )
                for child in children
            ]
        case ex.Call() if node.name == "list_value":
            return node.children
        case ex.Call():
            found = cast_of(node)
            elements = None if found is None or found[1] else elements_of(found[0])
            return None if elements is None or element is None else [cast_to(one, element) for one in elements]
        case _:
            return None


def _element_type(node: ex.AnyExpression) -> LogicalType | None:
    info = node.return_type.type_info
    return info.child_type if node.return_type.id == "LIST" and isinstance(info, ListInfo) else None
