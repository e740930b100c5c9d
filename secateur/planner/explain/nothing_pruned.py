"""Why the predicates of a scan leave no partition out for the values of this call, although they could for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secateur.partitioning.pruning.comparison_target import allowed
from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.domain import EVERYTHING, Domain
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import ParameterList
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.pruning.tree_text import value_text
from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.planner.prune.reasons import overflow_reason
from secateur.planner.prune.scan_bounds import ScanBounds


def why_nothing_pruned(tree: PartitionTree, bounds: ScanBounds, params: Sequence[Any]) -> str:
    """Return the reason and what to do about it.

    Args:
        tree: A partition tree that leaves nothing out for these values.
        bounds: The bounds from which it was made.
        params: The values of the parameters.
    """
    scheme = tree.scheme
    types = dict(scheme.types)
    boxes = [box for boxes in bounds.factors for box in boxes]
    for box in boxes:
        reason = _incomparable(box, types, params)
        if reason is not None:
            return reason
    domains = [box.resolve(params, types) for box in boxes]
    selections = [
        select_partitions(scheme, each, tree.limit, box.equal) for box, each in zip(boxes, domains, strict=True)
    ]
    overflows = dict.fromkeys(overflow for selection in selections for overflow in selection.overflows)
    if overflows:
        return "; ".join(map(overflow_reason, overflows))
    for each, selection in zip(domains, selections, strict=True):
        if len(selection.ids) == tree.total:
            return "; ".join(_component_reasons(scheme, each))
    return "its alternatives reach every partition together: ask for fewer keys at once"


def _incomparable(box: Box, types: Mapping[str, Any], params: Sequence[Any]) -> str | None:
    """Why a value of this call cannot be compared with its column; None if all can."""
    for column, constraint in box.constraints:
        for test in constraint.tests:
            values = test.values(params, types[column])
            if allowed(test.comparison_target, test.comparison, values, types[column]) is not None:
                continue
            if UNKNOWN in values and not any(isinstance(operand, ParameterList) for operand in test.operands):
                return (
                    f"only DuckDB can compute the value that {column} is compared with: compute it "
                    "first and pass it as a parameter"
                )
            if UNKNOWN in values:
                return (
                    f"{column} is compared with a parameter that is not a list of {types[column]} "
                    "values: pass such a list"
                )
            shown = ", ".join(value_text(value) for value in values[:3])
            return f"{column} is a {types[column]}, and comparing it with {shown} would cast it: pass a {types[column]}"
    return None


def _component_reasons(scheme: PartitionScheme, domains: Mapping[str, Domain]) -> list[str]:
    """Why each component of a scheme leaves nothing out for one combination of domains."""
    components = dict.fromkeys(component for hashes in scheme.hash_lists() for component in hashes)
    reasons = [_hash_reason(component, domains) for component in components]
    if scheme.range is not None:
        columns = scheme.range.columns
        first = columns[0]
        name = f"RANGE ({', '.join(columns)})"
        reasons.append(
            f"no predicate bounds {first} of {name}: compare {first} with values"
            if domains.get(first, EVERYTHING).is_everything
            else f"the predicates on {first} reach every range of {name}: ask for a narrower range"
        )
    return reasons


def _hash_reason(component: HashComponent, domains: Mapping[str, Domain]) -> str:
    name = f"HASH ({', '.join(component.columns)})"
    free = [column for column in component.columns if domains.get(column, EVERYTHING).is_everything]
    ranged = [column for column in component.columns if column not in free and not domains[column].is_finite]
    if free:
        listed = ", ".join(free)
        return f"{listed} of {name} {'is' if len(free) == 1 else 'are'} not bound: compare {listed} with = or IN"
    if ranged:
        return (
            f"the range of {', '.join(ranged)} has values in all {component.partitions} partitions of {name}: "
            "compare with =, IN or a narrower range"
        )
    return f"the values of {name} are in all of its {component.partitions} partitions: ask for fewer keys at once"
