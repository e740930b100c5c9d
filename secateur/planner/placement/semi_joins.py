"""Semi-join reduction: rows of a scan that match no row of another scan stay, instead of moving to be dropped.

A member can reduce a scan whose matching rows it has: those of a replicated table, or of a table that is co-located
with the scan by the equalities of the join. A scan that reduces another may be reduced itself: suppliers by nations,
and these by regions. It costs one more kernel call where the rows come from, so it is done where an estimate shows that
it pays.

The answer stays the same: a row that the statement's own predicates remove from a scan cannot influence the answer,
whatever rows the other scans have. Without such rows, a row of an inner join's input that has no match there is in no
row of the join.

Source: Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries" (1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from sqlglot import exp

from secateur.partitioning.tables.identifier import quoted
from secateur.planner.cost_model import CostModel
from secateur.planner.placement.cost import Estimate
from secateur.planner.placement.scan_rows import ScanRows
from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.bound_predicate import BoundPredicate
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.relations.nodes import Apply, Filter, Join, JoinType, Relation, Scan, children, postorder


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """A semi-join that reduces a scan.

    Attributes:
        relation: The scan that its rows have to match.
        on: The columns that are equal: of the reduced scan, and of ``relation``.
        by: The semi-joins that reduce ``relation`` before.
        share: The estimated share of the rows that remain.
    """

    relation: str
    on: tuple[tuple[str, str], ...]
    by: tuple[SemiJoin, ...]
    share: float


def semi_joins(
    root: Relation, estimate_of: Callable[[str], Estimate], model: CostModel
) -> Mapping[str, tuple[SemiJoin, ...]]:
    """Return the semi-joins that should reduce scans of partitioned tables before they move, by relation name.

    Args:
        root: The relations of a query, before rewrites.
        estimate_of: The estimated rows of a scan after its own predicates.
        model: The bytes that a semi-join has to save.

    Cost: quadratic in the scans that are joined with one another.
    """
    scans = [node.scan.relation for node in postorder(root) if isinstance(node, Scan)]
    shares = {relation: estimate_of(relation).share for relation in scans}
    found: dict[str, tuple[SemiJoin, ...]] = {}
    if all(share > model.semi_join_share_max for share in shares.values()):
        return found
    for block in _blocks(root, model):
        for scan in block.scans:
            # A relation that occurs twice has rows for two blocks.
            if not scan.scan.table.replicated and scans.count(scan.scan.relation) == 1:
                joins = block.reducing(scan, shares, frozenset({scan}))
                whole = estimate_of(scan.scan.relation)
                saved = (whole.bytes + model.moved_row_bytes * whole.rows) * (1 - share_left(joins))
                if saved > model.semi_join_saved_bytes_min:
                    found[scan.scan.relation] = joins
    return found


def share_left(joins: Iterable[SemiJoin]) -> float:
    """About which share of the rows of a scan remains."""
    return prod(join.share for join in joins)


def reduced_sql(
    relation: str, columns: Sequence[str], joins: Sequence[SemiJoin], rows_of: Mapping[str, ScanRows]
) -> str:
    """The SELECT of some columns of the rows of a scan that remain."""
    sources = [relation]
    for number, join in enumerate(joins):
        alias = f"{relation}_{number}"
        theirs = reduced_sql(join.relation, list(dict.fromkeys(name for _, name in join.on)), join.by, rows_of)
        on = " AND ".join(f"{relation}.{quoted(mine)} = {alias}.{quoted(name)}" for mine, name in join.on)
        sources.append(f"SEMI JOIN ({theirs}) AS {alias} ON {on}")
    return rows_of[relation].sql(" ".join(sources), columns)


def reducing_scans(joins: Iterable[SemiJoin]) -> Iterator[str]:
    """The relations of all scans that take part in reducing one."""
    for join in joins:
        yield join.relation
        yield from reducing_scans(join.by)


@dataclass(frozen=True, slots=True)
class _Block:
    """Scans that are inner joined: each row of the result has one row of each, for which all equalities are TRUE."""

    scans: tuple[Scan, ...]
    classes: EquivalenceClasses
    model: CostModel

    def reducing(self, scan: Scan, shares: Mapping[str, float], taken: frozenset[Scan]) -> tuple[SemiJoin, ...]:
        """Return the semi-joins that reduce a scan, without the scans in ``taken``."""
        found = []
        for other in self.scans:
            on = self._on(scan, other) if other not in taken else ()
            if on:
                by = (
                    self.reducing(other, shares, taken | {other}) if len(taken) < self.model.semi_join_depth_max else ()
                )
                share = shares[other.scan.relation] * share_left(by)
                if share <= self.model.semi_join_share_max:
                    found.append(SemiJoin(other.scan.relation, on, by, share))
                    taken |= {other, *(inner for inner in self.scans if inner.scan.relation in reducing_scans(by))}
        return tuple(found)

    def _on(self, scan: Scan, other: Scan) -> tuple[tuple[str, str], ...]:
        """The columns that are equal, if each member has all rows of the other scan that its rows of this one match."""
        equal = {
            mine: theirs for mine in scan.attributes for theirs in other.attributes if self._are_equal(mine, theirs)
        }
        if not other.scan.table.replicated:
            mine, theirs = scan.scan.table.scheme, other.scan.table.scheme
            keys, keys_there = ({attribute.name: attribute for attribute in side.attributes} for side in (scan, other))
            met = all(
                self._are_equal(keys[ours], keys_there[name])
                for ours, name in zip(mine.columns, theirs.columns, strict=False)
            )
            if (
                scan.scan.table.replicated
                or not mine.columns
                or mine.affinity_group() != theirs.affinity_group()
                or not met
            ):
                return ()
        return tuple((ours.name, theirs.name) for ours, theirs in equal.items())

    def _are_equal(self, mine: Attribute, theirs: Attribute) -> bool:
        return mine.type is not None and mine.type == theirs.type and theirs in self.classes.equal_to(mine)


def _blocks(root: Relation, model: CostModel) -> Iterator[_Block]:
    """Yield the maximal blocks of a tree: below anything but an inner join or a filter a new block begins."""
    roots = [root]
    while roots:
        scans: list[Scan] = []
        equalities: list[BoundPredicate] = []
        pending = [roots.pop()]
        while pending:
            match pending.pop():
                case Scan() as scan:
                    scans.append(scan)
                case Filter(input, conjuncts):
                    equalities += filter(_is_strict, conjuncts)
                    pending.append(input)
                case Join(JoinType.INNER, left, right, on):
                    equalities += filter(_is_strict, on)
                    pending += (right, left)
                case Apply(input, subquery):
                    pending.append(input)
                    roots.append(subquery)
                case other:
                    roots += children(other)
        if len(scans) > 1:
            yield _Block(tuple(scans), EquivalenceClasses(equalities), model)


def _is_strict(conjunct: BoundPredicate) -> bool:
    """Whether it is FALSE or NULL for a NULL: a semi-join drops rows whose key is NULL."""
    return isinstance(conjunct.predicate.unnest(), exp.EQ)
