"""The nodes of a partition tree and their algebra.

======================  =========================================================================
node                    the partitions it stands for
======================  =========================================================================
:class:`All`            every partition: nothing is known, or not in time
:class:`Nothing`        none: the predicate is never TRUE
:class:`Everywhere`     whichever is at hand: a replicated table (Ignite's ANY)
:class:`Partitions`     constants
:class:`Keys`           those of the keys of a box, known once the parameters are
:class:`AnyOf`          the union of its parts (OR)
:class:`AllOf`          the intersection of its parts (AND)
:class:`Satisfiable`    those of its part, or none where parameters contradict its constraints
======================  =========================================================================

Source: Apache Ignite IEP-24, the tables "AND algebra" and "OR algebra". ``(P) OR (ANY) => (P)`` of that text is unsound
(a row of the replicated side may satisfy the OR for every partition) and is not implemented: Everywhere inside an OR
gives All.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from secateur.partitioning.pruning.condition import Box, Constraint, ParameterComparison
from secateur.partitioning.types.column_type import SqlType


class All(msgspec.Struct, frozen=True, array_like=True, tag="all"):
    """Every partition."""


class Nothing(msgspec.Struct, frozen=True, array_like=True, tag="nothing"):
    """No partition."""


class Everywhere(msgspec.Struct, frozen=True, array_like=True, tag="everywhere"):
    """The one partition of a replicated table, which every member has."""


class Partitions(msgspec.Struct, frozen=True, array_like=True, tag="partitions"):
    """Partitions known at planning; sorted and distinct."""

    ids: tuple[int, ...]


class Keys(msgspec.Struct, frozen=True, array_like=True, tag="keys"):
    """The partitions that the keys of a box fall into; the box has a parameter."""

    box: Box


class AnyOf(msgspec.Struct, frozen=True, array_like=True, tag="or"):
    """The union of two or more nodes, none of them All, Nothing or AnyOf, at most one of them Partitions."""

    parts: tuple[Node, ...]


class AllOf(msgspec.Struct, frozen=True, array_like=True, tag="and"):
    """The intersection of two or more nodes.

    None of them is All, Nothing, Everywhere or AllOf, and at most one is Partitions.
    """

    parts: tuple[Node, ...]


class Satisfiable(msgspec.Struct, frozen=True, array_like=True, tag="if"):
    """The partitions of a node if each constraint leaves a value, once the parameters are known; otherwise none.

    The constraints are on columns that divide no rows, each behind the type of its column.
    """

    constraints: tuple[tuple[SqlType, Constraint], ...]
    part: Node


Node = All | Nothing | Everywhere | Partitions | Keys | AnyOf | AllOf | Satisfiable


def unite(nodes: Iterable[Node]) -> Node:
    """Return the OR of nodes, simplified.

    ``(P1, :1) OR (P2, :2) => (P1, P2, :1, :2)``, ``(P1) OR (ALL) => (ALL)``, ``(P1) OR () => (P1)``.
    """
    constants: set[int] = set()
    parts: dict[Node, None] = {}
    for node in _flat(nodes, AnyOf):
        match node:
            case All() | Everywhere():
                return All()
            case Partitions(ids):
                constants.update(ids)
            case Nothing():
                pass
            case _:
                parts[node] = None
    found: list[Node] = [Partitions(tuple(sorted(constants)))] if constants else []
    found.extend(parts)
    return Nothing() if not found else found[0] if len(found) == 1 else AnyOf(tuple(found))


def intersect(nodes: Iterable[Node]) -> Node:
    """Return the AND of nodes, simplified.

    ``(P1) AND (ALL) => (P1)``, ``(P1) AND () => ()``, ``(P1, P2) AND (P2, P3) => (P2)``, ``(P1) AND (ANY) => (P1)``.
    """
    constants: set[int] | None = None
    parts: dict[Node, None] = {}
    anywhere = False
    for node in _flat(nodes, AllOf):
        match node:
            case Nothing():
                return Nothing()
            case Partitions(ids):
                constants = set(ids) if constants is None else constants & set(ids)
            case All():
                pass
            case Everywhere():
                anywhere = True
            case _:
                parts[node] = None
    if constants is not None and not constants:
        return Nothing()
    found: list[Node] = [] if constants is None else [Partitions(tuple(sorted(constants)))]
    found.extend(parts)
    if not found:
        return Everywhere() if anywhere else All()
    return found[0] if len(found) == 1 else AllOf(tuple(found))


def boxes_of(node: Node) -> Iterator[Box]:
    """The boxes in a tree."""
    match node:
        case Keys(box):
            yield box
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from boxes_of(part)
        case Satisfiable(_, part):
            yield from boxes_of(part)
        case All() | Nothing() | Everywhere() | Partitions():
            pass
        case _:
            assert_never(node)


def _flat(nodes: Iterable[Node], kind: type[AnyOf] | type[AllOf]) -> Iterable[Node]:
    for node in nodes:
        if isinstance(node, (AnyOf, AllOf)) and isinstance(node, kind):
            yield from node.parts
        else:
            yield node


def tests_of(node: Node) -> Iterator[tuple[str, ParameterComparison]]:
    """The tests of parameters in a tree, each behind the column that it tests."""
    for box in boxes_of(node):
        for column, constraint in box.constraints:
            for test in constraint.tests:
                yield column, test
