"""The search for what stays where it is: the scans of which each member reads its own partitions, while the rows of the others are sent to all members.

Every assumption is tried on the spread of the relation, which says whether it is right; among those that are, the one that moves the least is taken. Scans
that are co-located stay together with the scan that is tried first, the anchor.

Source: the choice between broadcast and co-located joins of Ignite's and Kudu's clients, as a search over required and delivered distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secateur.planner.placement.spread import Pieces, Scattered, Spread, Whole, spread_of
from secateur.planner.relations.nodes import Relation, Scan, postorder

__all__ = ["Found", "find_anchor"]


@dataclass(frozen=True, slots=True)
class Found:
    """An assumption under which a relation is computed piece by piece.

    Attributes:
        staying: The scans that stay, by the names of their relations.
        moving: Those whose rows every member has to have.
        cost: How much moves.
        spread: What comes of it.
    """

    staying: frozenset[str]
    moving: frozenset[str]
    cost: float
    spread: Pieces | Whole


def find_anchor(
    relation: Relation, beside: Sequence[Relation], cost_of: Callable[[str], float], *, orderless: bool, most: int | None = None
) -> Found | Scattered:
    """Find what stays.

    Args:
        relation: What is to be computed.
        beside: Relations that are evaluated along with it, without being its inputs: their scans have to be read as a whole.
        cost_of: What it costs to send the rows of a scan to every member.
        orderless: As :func:`~secateur.planner.placement.spread.spread_of`.
        most: How many anchors to try; None tries all.

    Returns:
        The cheapest assumption found, or the reason why everything would have to move.

    Cost: quadratic in the scans.
    """
    inside = _partitioned(relation)
    forced = frozenset(_partitioned_in(beside))
    free = [name for name in sorted(inside, key=cost_of, reverse=True) if name not in forced]

    def spread(staying: frozenset[str]) -> Spread:
        return spread_of(relation, frozenset(inside) - staying | forced, orderless=orderless)

    best: Found | None = None
    everything = spread(frozenset(free))
    if not isinstance(everything, Scattered):
        return Found(frozenset(free), forced, sum(map(cost_of, forced)), everything)
    tried: set[str] = set()
    for anchor in free[:most]:
        if anchor in tried:
            continue
        staying = frozenset({anchor})
        if isinstance(spread(staying), Scattered):
            continue
        for other in free:
            if other not in staying and isinstance(spread(staying | {other}), Pieces):
                staying |= {other}
        tried |= staying
        found = spread(staying)
        assert not isinstance(found, Scattered)
        moving = frozenset(inside) - staying | forced
        cost = sum(map(cost_of, moving))
        if best is None or cost < best.cost:
            best = Found(staying, moving, cost, found)
    return best or everything


def _partitioned(relation: Relation) -> list[str]:
    scans = (node.scan for node in postorder(relation) if isinstance(node, Scan))
    return list(dict.fromkeys(scan.relation for scan in scans if not scan.table.replicated))


def _partitioned_in(relations: Sequence[Relation]) -> list[str]:
    return [name for relation in relations for name in _partitioned(relation)]
