"""The settings of a session that plans depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from secateur.partitioning.pruning.select_partitions import COMBINATIONS_PER_PARTITION
from secateur.planner.cost_model import CostModel


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The session settings of a plan; equal settings give equal plans.

    Attributes:
        disabled_rules: Names of rewrites to leave out, sorted.
        combinations_per_partition: How many combinations of values are hashed before a hash component counts as
            unbounded, as a multiple of the table's partitions.
        cost_model: The costs by which the planner chooses between plans that give the same rows.
        is_verified: Whether statements are compared with the user's own text, for which their plans then have stages.
    """

    disabled_rules: tuple[str, ...] = ()
    combinations_per_partition: int = COMBINATIONS_PER_PARTITION
    is_verified: bool = False
    cost_model: CostModel = field(default_factory=CostModel)

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None, cost_model: CostModel) -> PlanSettings:
        """Read the settings of a session, by name; those that are not set have their defaults, others do not matter.

        Args:
            settings: Those of the session.
            cost_model: The cost model of the cluster, of which a session may set single numbers.
        """
        if not settings:
            return cls(cost_model=cost_model)
        rules, combinations = settings.get("disabled_rules"), settings.get("combinations_per_partition")
        is_verified = settings.get("pruning") == "verify"
        return cls(
            split_rules(rules) if rules else (),
            int(combinations) if combinations else COMBINATIONS_PER_PARTITION,
            is_verified,
            cost_model.with_settings(settings),
        )


def split_rules(value: str) -> tuple[str, ...]:
    """The names in a value of ``disabled_rules``, sorted."""
    return tuple(sorted({name.strip().lower() for name in value.split(",") if name.strip()}))
