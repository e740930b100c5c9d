"""The columns of scans that meet in joins, and the predicates that follow once the keys of one side are known.

Where the conditions of a join or of WHERE have ``probe.key = build.col``, and every value of ``build.col`` is an
element of a list, ``build.col IN list`` may be added: it is implied, for every kind of join. The existing rules
(:mod:`secateur.planner.relations.prunability`) then pass it to the scans. This does not hold for ``IS NOT DISTINCT
FROM``, for which NULLs are equal that are elements of no list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import equated
from secateur.planner.relations.nodes import Filter, Join, Project, Relation, Scan, postorder
from secateur.planner.relations.transform import transform


class ScanColumn(NamedTuple):
    """A column of a scan: the name of its relation (``s0``), and of the column."""

    relation: str
    column: str


class Origins:
    """The scans that attributes come from.

    Each value is one of the column of the scan, or a NULL of an outer join or a grouping set.

    Args:
        roots: The relations of a statement.
    """

    def __init__(self, roots: Sequence[Relation]) -> None:
        self._sources: dict[Attribute, Attribute | None] = {}
        self._columns: dict[Attribute, ScanColumn] = {}
        for relation in (relation for root in roots for relation in postorder(root)):
            match relation:
                case Scan(scan, attributes) if not scan.is_fetched:
                    self._columns.update(
                        (attribute, ScanColumn(scan.relation, attribute.name)) for attribute in attributes
                    )
                case Project(_, attributes, sources):
                    self._sources.update(zip(attributes, sources, strict=True))
                case _:
                    pass

    def of(self, attribute: Attribute) -> ScanColumn | None:
        """Return the column of a scan; None for a computed attribute, or one from several columns."""
        source: Attribute | None = attribute
        while source is not None and source in self._sources:
            source = self._sources[source]
        return None if source is None else self._columns.get(source)


def joined_columns(roots: Sequence[Relation], origins: Origins) -> list[frozenset[ScanColumn]]:
    """The classes of columns that conditions of the statement equate, wherever they stand; each of two or more."""
    class_of: dict[ScanColumn, set[ScanColumn]] = {}
    for conjunct in (conjunct for root in roots for relation in postorder(root) for conjunct in _conjuncts(relation)):
        found = [column for attribute in _compared(conjunct) if (column := origins.of(attribute)) is not None]
        if len(found) == 2 and found[0] != found[1]:
            united = set().union(*(class_of.get(column, {column}) for column in found))
            class_of.update(dict.fromkeys(united, united))
    return [frozenset(members) for members in {id(members): members for members in class_of.values()}.values()]


def with_lists(roots: Sequence[Relation], origins: Origins, lists: Mapping[ScanColumn, int]) -> tuple[Relation, ...]:
    """Add to each condition that equates one of some columns that the column is in its list.

    Args:
        roots: The relations of a statement.
        origins: The origins of their attributes.
        lists: The index of the parameter that has all values of a column.
    """

    def listed(conjuncts: Sequence[BoundPredicate]) -> tuple[BoundPredicate, ...]:
        compared = dict.fromkeys(attribute for conjunct in conjuncts for attribute in _compared(conjunct))
        found = [(attribute, column) for attribute in compared if (column := origins.of(attribute)) is not None]
        return (*conjuncts, *(_in_list(attribute, lists[column]) for attribute, column in found if column in lists))

    def change(relation: Relation) -> Relation:
        match relation:
            case Filter(_, conjuncts):
                return replace(relation, conjuncts=listed(conjuncts))
            case Join(on=on):
                return replace(relation, on=listed(on))
            case _:
                return relation

    return tuple(transform(root, change) for root in roots)


def listed_parameter(conjunct: exp.Expr) -> tuple[exp.Column, int] | None:
    """Return the column and the parameter index of a condition that :func:`with_lists` has added, else None."""
    match conjunct:
        case exp.In(this=exp.Column() as column, args={"field": exp.Parameter(this=exp.Literal() as number)}):
            return column, int(number.name) - 1
        case _:
            return None


def _conjuncts(relation: Relation) -> Iterator[BoundPredicate]:
    match relation:
        case Filter(_, conjuncts):
            yield from conjuncts
        case Join(on=on):
            yield from on
        case _:
            pass


def _compared(conjunct: BoundPredicate) -> tuple[Attribute, ...]:
    """The two attributes of ``a = b``; none for anything else."""
    pair = equated(conjunct)
    return pair if pair is not None and isinstance(conjunct.predicate.unnest(), exp.EQ) else ()


def _in_list(attribute: Attribute, index: int) -> BoundPredicate:
    column = exp.column(exp.to_identifier(attribute.name, quoted=True))
    predicate = exp.In(this=column, field=exp.Parameter(this=exp.Literal.number(index + 1)))
    return BoundPredicate(predicate, {occurrence(column): attribute}, structural=True)
