"""The members that are to leave, from the wish of the owner to the end of their processes: a value without I/O.

A member that is to leave is *draining*: it gets nothing new, unless there is no other member, and the rebalancing moves
away what it has. It is *drained* in the very step in which the controller sees that it owns nothing. That is final: it
gets nothing any more, whatever is wished for later, also from the next controller and after a cold start. So its
process may be ended by anybody and at any time, and whoever was about to end it may be lost before.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Leaving:
    """The members that are to leave the cluster, and which of them are drained.

    Attributes:
        draining: Members that are to own nothing.
        drained: Members that own nothing, and never will.
    """

    draining: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()

    def asked(self, members: Collection[str]) -> Leaving:
        """Have these members leave, and no others; those that are drained stay so."""
        return replace(self, draining=frozenset(members) - self.drained)

    def found_empty(self, members: Collection[str], living: Collection[str]) -> Leaving:
        """Members that are to leave own nothing.

        Args:
            members: They may also have ended with nothing that they could bring back: nobody waits for these any more.
            living: The members of the cluster.
        """
        empty = self.draining.intersection(members)
        return Leaving(self.draining - empty, self.drained | empty.intersection(living))

    def ended(self, members: Collection[str]) -> Leaving:
        """Members have left the cluster; those that were not drained may come back with what they had."""
        return replace(self, drained=self.drained.difference(members))


NOBODY_LEAVES: Final = Leaving()
