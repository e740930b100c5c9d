"""The type of a rewrite rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.planner.relations.nodes import Relation

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite.

    Attributes:
        name: The name by which it is disabled.
        apply: Returns the replacement of a relation whose inputs have been rewritten before, or None where the rule
            does not apply.
    """

    name: str
    apply: Callable[[Relation], Relation | None]
