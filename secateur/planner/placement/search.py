"""The search for the scans that stay: each member reads its own partitions of them, and the other scans move.

Every assumption is tried on the distribution of the relation, which verifies it; among the valid ones, the one that
moves the least is taken. Scans that are co-located stay together with the scan that is tried first, the anchor.

Source: the choice between broadcast and co-located joins of Ignite's and Kudu's clients, as a search over required and
delivered distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from secateur.planner.cost_model import CostModel
from secateur.planner.placement.distribution import (
    Distribution,
    Distributions,
    HashPartitioned,
    Repartition,
    Replicated,
    UnsupportedDistribution,
)
from secateur.planner.placement.semi_joins import SemiJoin
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.relations.nodes import Join, JoinType, Relation, Scan, postorder

_KEEPING: Final = frozenset({JoinType.LEFT, JoinType.RIGHT, JoinType.FULL})


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """A valid assumption about which scans stay and which move.

    Attributes:
        staying: The scans that stay, by the names of their relations.
        moving: The scans of which every member gets all rows, or the rows for its partitions.
        repartitions: How the latter are routed, by the names of their relations.
        cost: The cost of what moves.
        distribution: The distribution that results.
        semi_joins: The semi-joins that reduce scans that move, by the names of their relations.
    """

    staying: frozenset[str]
    moving: frozenset[str]
    cost: float
    distribution: HashPartitioned | Replicated
    repartitions: Mapping[str, Repartition] = field(default_factory=dict)
    semi_joins: Mapping[str, tuple[SemiJoin, ...]] = field(default_factory=dict)

    @property
    def is_distributed(self) -> bool:
        """Whether each member computes some of the rows."""
        return isinstance(self.distribution, HashPartitioned)


def find_anchor(
    relation: Relation,
    beside: Sequence[Relation],
    cost_of: Callable[[str], float],
    model: CostModel,
    *,
    orderless: bool,
) -> PlacementChoice | UnsupportedDistribution:
    """Find the scans that stay.

    Args:
        relation: The relation to compute.
        beside: Relations that are evaluated with it, without being its inputs: their scans have to be read as a
            whole.
        cost_of: The cost of sending the rows of a scan to every member.
        model: The bytes from which on rows are routed and shuffled.
        orderless: As :class:`~secateur.planner.placement.distribution.Distributions`.

    Returns:
        The cheapest assumption found, or the reason why everything would have to move.

    Cost: quadratic in the scans.
    """
    inside = _partitioned(relation)
    forced = frozenset(_partitioned_in(beside))
    free = [name for name in sorted(inside, key=cost_of, reverse=True) if name not in forced]

    distributions = Distributions(relation, orderless=orderless)
    tried_distributions: dict[frozenset[str], Distribution] = {}

    def distribution(staying: frozenset[str]) -> Distribution:
        found = tried_distributions.get(staying)
        if found is None:
            found = tried_distributions[staying] = distributions.under(frozenset(inside) - staying | forced)
        return found

    best: PlacementChoice | None = None
    everything = distribution(frozenset(free))
    if not isinstance(everything, UnsupportedDistribution):
        return PlacementChoice(frozenset(free), forced, sum(map(cost_of, forced)), everything)
    tried: set[str] = set()
    for anchor in free:
        if anchor in tried:
            continue
        staying = frozenset({anchor})
        if isinstance(distribution(staying), UnsupportedDistribution):
            continue
        for other in free:
            if other not in staying and isinstance(distribution(staying | {other}), HashPartitioned):
                staying |= {other}
        tried |= staying
        found = distribution(staying)
        assert not isinstance(found, UnsupportedDistribution)
        moving = frozenset(inside) - staying | forced
        cost = sum(map(cost_of, moving))
        if best is None or cost < best.cost:
            best = PlacementChoice(staying, moving, cost, found)
    scans = {node.scan.relation: node for node in postorder(relation) if isinstance(node, Scan)}
    has_outer_joins = any(isinstance(node, Join) and node.kind in _KEEPING for node in postorder(relation))
    routable = best is not None and any(cost_of(name) > model.routed_bytes_min for name in best.moving)
    if routable or best is None or is_shuffled(best.cost, model):
        ways = _Alternatives(
            scans, EquivalenceClasses.of(distributions.equalities()), distributions, inside, forced, cost_of, model
        )
        if best is not None and routable:
            best = ways.to_owners(best)
        if has_outer_joins:
            best = ways.around_one(best)
        if best is None or is_shuffled(best.cost, model):
            best = ways.shuffled(best)
    return everything if best is None else best


def is_shuffled(cost: float, model: CostModel) -> bool:
    """Whether rows are so many that they are shuffled by hash, rather than gathered in one place."""
    return cost > model.shuffled_bytes_min


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """Cheaper ways to bring joined rows together than sending all of them to every member.

    Each method returns its argument where it finds nothing cheaper.

    Attributes:
        scans: By the names of their relations.
        classes: Which of their columns are equal.
        distributions: Computes the distribution of an assumption.
        inside: The scans of partitioned tables.
        forced: The scans that every member has to have.
        cost_of: The cost of sending the rows of a scan to every member.
        model: The cost of sending them to one member instead.
    """

    scans: Mapping[str, Scan]
    classes: EquivalenceClasses
    distributions: Distributions
    inside: Sequence[str]
    forced: frozenset[str]
    cost_of: Callable[[str], float]
    model: CostModel

    def around_one(self, best: PlacementChoice | None) -> PlacementChoice | None:
        """One scan stays, and the scans joined with it by its partitioning key are routed to it.

        Rows that find no match are sent too if an outer join has to keep them.

        Returns:
            ``best`` where that is not cheaper.
        """
        for anchor in (name for name in self.inside if name not in self.forced):
            found = {
                other: _route(self.scans[other], self.scans[anchor], self.classes)
                for other in self.inside
                if other != anchor and other not in self.forced
            }
            repartitions = {
                other: replace(route, keeps_unmatched=True) for other, route in found.items() if route is not None
            }
            moving = frozenset(self.inside) - {anchor} | self.forced
            cost = sum(
                self.cost_of(name) * (self.model.shuffle_share if name in repartitions else 1.0) for name in moving
            )
            if repartitions and (best is None or cost < best.cost):
                distribution = self.distributions.under(moving - repartitions.keys(), repartitions)
                if isinstance(distribution, HashPartitioned):
                    best = PlacementChoice(frozenset({anchor}), moving, cost, distribution, repartitions)
        return best

    def shuffled(self, best: PlacementChoice | None) -> PlacementChoice | None:
        """Shuffle all scans joined by one column by it and broadcast the others; ``best`` if that is not cheaper."""
        tried: set[frozenset[tuple[str, str]]] = set()
        for name in self.inside:
            for attribute in self.scans[name].attributes:
                shuffled = {name: attribute} | {
                    other: equal
                    for other in self.inside
                    if other != name and other not in self.forced
                    for equal in [
                        self.classes.equal_in(attribute, frozenset(a.owner for a in self.scans[other].attributes))
                    ]
                    if equal is not None and equal.type == attribute.type
                }
                key = frozenset((other, equal.name) for other, equal in shuffled.items())
                if len(shuffled) < 2 or name in self.forced or key in tried:
                    continue
                tried.add(key)
                repartitions = {
                    other: Repartition(None, f"shuffle by {attribute.name}", (equal.name,))
                    for other, equal in shuffled.items()
                }
                everybody = frozenset(self.inside) - repartitions.keys()
                cost = sum(map(self.cost_of, everybody)) + self.model.shuffle_share * sum(
                    map(self.cost_of, repartitions)
                )
                if best is not None and cost >= best.cost:
                    continue
                distribution = self.distributions.under(everybody | self.forced, repartitions)
                if isinstance(distribution, HashPartitioned):
                    best = PlacementChoice(
                        frozenset(), frozenset(self.inside) | self.forced, cost, distribution, repartitions
                    )
        return best

    def to_owners(self, found: PlacementChoice) -> PlacementChoice:
        """Route large scans to the owners of the rows that they are joined with, instead of broadcasting them."""
        repartitions: dict[str, Repartition] = {}
        for moving in sorted(
            (name for name in found.moving if name in self.scans and self.cost_of(name) > self.model.routed_bytes_min),
            key=self.cost_of,
            reverse=True,
        ):
            for anchor in sorted(found.staying):
                route = _route(self.scans[moving], self.scans[anchor], self.classes)
                if route is None:
                    continue
                tried = {**repartitions, moving: route}
                distribution = self.distributions.under(found.moving - tried.keys(), tried)
                if isinstance(distribution, HashPartitioned):
                    repartitions = tried
                    found = replace(
                        found,
                        distribution=distribution,
                        repartitions=repartitions,
                        cost=found.cost - (1 - self.model.shuffle_share) * self.cost_of(moving),
                    )
                    break
        return found


def _route(moving: Scan, anchor: Scan, classes: EquivalenceClasses) -> Repartition | None:
    """Route the rows of a scan to those of another one that have equal partitioning keys; None without such columns."""
    scheme = anchor.scan.table.scheme
    keys = {attribute.name: attribute for attribute in anchor.attributes}
    own = frozenset(attribute.owner for attribute in moving.attributes)
    columns = [(keys[name], classes.equal_in(keys[name], own)) for name in scheme.columns]
    named = tuple(column.name for key, column in columns if column is not None and column.type == key.type)
    return (
        Repartition(anchor.scan.relation, scheme.affinity_group(), named)
        if named and len(named) == len(columns)
        else None
    )


def _partitioned(relation: Relation) -> list[str]:
    scans = (node.scan for node in postorder(relation) if isinstance(node, Scan))
    return list(dict.fromkeys(scan.relation for scan in scans if not scan.table.replicated))


def _partitioned_in(relations: Sequence[Relation]) -> list[str]:
    return [name for relation in relations for name in _partitioned(relation)]
