"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.planner.relations.nodes import Relation

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite.

    Attributes:
        name: By which it is switched off.
        apply: The relation that stands for one whose inputs have been rewritten before, or None where the rule does not
            apply.
    """

    name: str
    apply: Callable[[Relation], Relation | None]
