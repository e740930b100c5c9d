"""The fields of a node in which expressions and relations can be: the others need not be looked at."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from msgspec.structs import fields

from secateur.planner.tree.expressions import Expression
from secateur.planner.tree.relations import LogicalRelation
from secateur.planner.tree.types import Node


@cache
def node_fields(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a kind of node that can hold expressions or relations, in their order."""
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
