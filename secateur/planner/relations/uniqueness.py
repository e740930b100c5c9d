"""Uniqueness: whether a relation has each combination of values at most once."""

from __future__ import annotations

from typing import assert_never

from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    AsOfRight,
    Derived,
    Distinct,
    Filter,
    Join,
    JoinType,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Unknown,
    Values,
    Window,
)


def is_unique(relation: Relation, attributes: frozenset[Attribute]) -> bool:
    """Whether no two rows agree in all of the attributes. False when that is not certain.

    Args:
        relation: The relation.
        attributes: Some of its attributes.
    """
    match relation:
        case Scan(scan, own):
            key = scan.table.primary_key  # an external table has none
            return bool(key) and set(key) <= {attribute.name for attribute in attributes if attribute in own}
        case Project(Distinct(_, None), own) if own and set(own) <= attributes:
            return True
        case Project(input, own, sources):
            source_of = dict(zip(own, sources, strict=True))
            return is_unique(
                input, frozenset(source for attribute in attributes if (source := source_of.get(attribute)) is not None)
            )
        case Aggregate(input, keys, _, exact):
            return bool(keys) and exact and keys <= attributes
        case Distinct(input, keys, exact):
            return (bool(keys) and keys is not None and exact and keys <= attributes) or is_unique(input, attributes)
        case Join(kind, left):
            return kind in (JoinType.SEMI, JoinType.ANTI) and is_unique(left, attributes)
        case Filter() | Sort() | Limit() | Window() | AsOfRight() | Apply() | Derived():
            return is_unique(relation.input, attributes)
        case Values() | Unknown() | Opaque() | SetOperation():
            return False
        case _:
            assert_never(relation)
