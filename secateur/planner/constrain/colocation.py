"""Co-location: scans whose matching rows are in partitions of one number, and so on one member.

Scans are co-located when their tables have one affinity group, which means equal partitions with equal owners, and an
equality for each column of the partitioning key, in the order of the key. Replicated tables are co-located with
everything (ANY), and in no group.

Co-location does not prune: equalities carry conditions, not sets of partitions, because the partitions of one table do
not restrict another under cross, theta and outer joins. It means that a join needs no exchange.

Source: the co-location tree of IEP-24 (Ignite).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from secateur.partitioning.tables.table import TableDef
from secateur.planner.constrain import nodes
from secateur.planner.constrain.condition import Condition
from secateur.planner.constrain.numbering import Numbering
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.equal_columns import EqualColumns, equal_columns, equals_are_identical


def colocated_scans(plan: Numbering) -> tuple[tuple[str, ...], ...]:
    """The groups of two or more co-located scans, as names of relations (``s0``, ``s1``, ...), sorted."""
    scans: list[nodes.ScannedTable] = []
    known: list[tuple[int, int]] = []
    for relation in _bottom_up(plan.root):
        known += _equalities(relation, known)
        if isinstance(relation, nodes.ScannedTable):
            scans.append(relation)
    classes = EqualColumns(known)
    groups: dict[tuple[object, ...], set[str]] = {}
    for scan in scans:
        table = plan.tables.get(scan.table)
        place = None if table is None or table.replicated else _place(scan, table, classes)
        if place is not None:
            groups.setdefault(place, set()).add(scan.table)
    return tuple(sorted({tuple(sorted(group)) for group in groups.values() if len(group) > 1}))


def _bottom_up(relation: nodes.Relation) -> Iterator[nodes.Relation]:
    match relation:
        case nodes.JoinBlock(inputs=inputs) | nodes.SetOperation(inputs=inputs) | nodes.Apart(inputs=inputs):
            below: Sequence[nodes.Relation] = inputs
        case nodes.Join(left=left, right=right):
            below = (left, right)
        case nodes.With(definition=definition, query=query):
            below = (definition, query)
        case nodes.Barrier(input=input):
            below = (input,)
        case _:
            below = ()
    for one in below:
        yield from _bottom_up(one)
    yield relation


def _equalities(relation: nodes.Relation, below: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """The pairs of equal columns that a relation adds to those of its inputs."""
    match relation:
        case nodes.JoinBlock(conditions=conditions) | nodes.Join(kind="SEMI", on=conditions):
            return equal_columns(one.expression for one in conditions)
        case nodes.Join(kind=kind, left=left, right=right, on=on, filled=filled):
            if kind == "RIGHT":
                left, right = right, left
            return [*_to_producing_side(on, left.columns, right.columns, below), *_renamed(filled.items())]
        case nodes.Reference(is_outer=True, made=made, sources=sources):
            return _renamed(zip((column.index for column in made), sources, strict=True))
        case _:
            return ()


def _renamed(columns: Iterable[tuple[int, ex.AnyExpression]]) -> list[tuple[int, int]]:
    """The columns that have another number above a relation, each with the one below."""
    return [
        (column, source.index)
        for column, source in columns
        if isinstance(source, ex.InputColumn) and equals_are_identical(source.return_type)
    ]


def _to_producing_side(
    on: Sequence[Condition], preserved: frozenset[int], producing: frozenset[int], below: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The equalities of an outer join by which rows of the producing side meet rows of the preserved side.

    ON refuses no row of the preserved side, so it equates no two columns of that side. Neither must it do so through
    a column of the producing side: each of these, with those equal to it, is equated with one column.
    """
    inside = EqualColumns(pair for pair in below if producing.issuperset(pair))
    found: dict[int, tuple[int, int]] = {}
    for pair in equal_columns(one.expression for one in on):
        theirs = [column for column in pair if column in producing]
        if theirs and not preserved.isdisjoint(pair):
            found.setdefault(inside.first(theirs[0]), pair)
    return list(found.values())


def _place(scan: nodes.ScannedTable, table: TableDef, classes: EqualColumns) -> tuple[object, ...] | None:
    """Equal for scans that are co-located: the affinity group, and the class of each column of the partitioning key.

    None where the key is not read, so that no other scan can be compared by it.
    """
    columns = dict(zip(scan.names, (column.index for column in scan.own), strict=True))
    key = table.scheme.columns
    if not key or not columns.keys() >= set(key):
        return None
    return table.scheme.affinity_group(), *(classes.first(columns[name]) for name in key)
