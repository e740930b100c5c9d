"""The type of a rewrite rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.planner.relations.nodes import Relation
from secateur.planner.relations.transform import transform


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite.

    Attributes:
        name: The name by which it is disabled.
        apply: Returns the replacement of a relation whose inputs have been rewritten before, or None where the rule
            does not apply.
        is_of_tree: Whether it is applied to the root alone, instead of to every relation.
    """

    name: str
    apply: Callable[[Relation], Relation | None]
    is_of_tree: bool = False

    def applied(self, root: Relation) -> Relation:
        """The tree that the rule makes of a tree; the same where it changes nothing."""
        if self.is_of_tree:
            return self.apply(root) or root
        return transform(root, lambda relation: self.apply(relation) or relation)
