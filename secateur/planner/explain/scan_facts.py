"""The explanation of one scan: its partitions and keys for given parameters, and why not fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, assert_never

from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.partitioning.pruning.comparison_target import allowed
from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.key_range import IndexSlice, KeyPrefix, KeyRanges, KeySlice
from secateur.partitioning.pruning.nodes import Keys
from secateur.partitioning.pruning.operand import Constant, Parameter, ParameterList
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.pruning.tree_text import node_text, value_text
from secateur.partitioning.topology.topology import Topology
from secateur.planner.explain.steps import needs_values
from secateur.planner.scans.scan_bounds import ScanBounds, overflow_reason

__all__ = ["ScanExplanation", "execution_mode", "is_one_key", "json_values", "scan_facts", "scan_json"]

_KEYS_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class ScanExplanation:
    """One scan, bound.

    Attributes:
        partitions: Ids, or None for all or unknown; ``reason`` then explains why.
        possible: The ids that may be read: those, or all.
        known: Whether ``possible`` is exactly what will be read.
        key_values: The keys that are looked up, or None when they are not a short list.
        keys: The part of each partition that is searched, or None for all of it or when it is not known.
    """

    scan: ScanPlan
    key: tuple[str, ...]
    partitions: Sequence[int] | None
    possible: Sequence[int]
    known: bool
    key_values: list[list[Any]] | None
    keys: KeySlice | None
    reason: str | None


def scan_facts(
    scan: ScanPlan,
    bounds: ScanBounds,
    shown: PartitionTree,
    params: Sequence[Any] | None,
    count: int,
    *,
    enabled: bool,
    found: str,
) -> ScanExplanation:
    """Explain a scan.

    Args:
        scan: The scan.
        bounds: The bounds that predicates set on its keys.
        shown: Its tree with constants where the user wrote them.
        params: The values of the parameters, UNKNOWN for those that subqueries give; None when they are not bound.
        count: How many parameters the user's statement has; later ones are values of subqueries.
        enabled: Whether pruning is on.
        found: The contribution of subqueries or joins, in words.
    """
    live = scan.tree.live_ids()
    key = scan.tree.scheme.columns
    values = () if params is None else params
    keys = scan.keys.bind(values) if enabled and (params is not None or scan.keys.is_constant) else None
    if scan.replicated:
        return ScanExplanation(scan, key, (0,), (0,), True, None, keys, None)
    if not enabled:
        return ScanExplanation(scan, key, None, live, True, None, None, "pruning is off: SET pruning = on")
    if scan.reason is not None:
        return ScanExplanation(scan, key, None, live, True, None, keys, scan.reason)
    if needs_values(scan.tree.root, count):
        later = (
            f"{found} known only at run time: EXPLAIN ANALYZE shows which partitions of "
            f"{node_text(scan.tree.root, scan.tree.scheme)} they select"
        )
        return ScanExplanation(scan, key, None, live, False, None, keys, later)
    if params is None and not scan.tree.is_constant:
        listed = shown.bind(()) if shown.is_constant else None
        if listed is not None and not listed.is_all:
            return ScanExplanation(scan, key, listed.ids, listed.ids, True, None, keys, None)
        unbound = (
            "the parameters are not bound: EXPLAIN with values shows the partitions of "
            f"{node_text(shown.root, shown.scheme)}"
        )
        return ScanExplanation(scan, key, None, live, False, None, keys, unbound)
    ids = scan.tree.bind(values)
    reason = _bound_reason(scan, bounds, values) if ids.is_all else None
    if reason is not None:
        return ScanExplanation(scan, key, None, live, True, None, keys, reason)
    return ScanExplanation(scan, key, ids.ids, ids.ids, True, _key_values(scan, bounds, values), keys, None)


def _bound_reason(scan: ScanPlan, bounds: ScanBounds, params: Sequence[Any]) -> str | None:
    """Why these values of the parameters leave nothing out, where others would."""
    scheme = scan.tree.scheme
    types = dict(scheme.types)
    for box in (box for boxes in bounds.factors for box in boxes):
        for column, constraint in box.constraints:
            for test in constraint.tests:
                values = test.values(params, types[column])
                if allowed(test.comparison_target, test.comparison, values, types[column]) is None:
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
                    return (
                        f"{column} is a {types[column]}, and comparing it with {shown} would cast it: pass "
                        f"a {types[column]}"
                    )
        overflows = select_partitions(scheme, box.resolve(params, types), scan.tree.limit).overflows
        if overflows:
            return "; ".join(dict.fromkeys(map(overflow_reason, overflows)))
    return None


def _key_values(scan: ScanPlan, bounds: ScanBounds, params: Sequence[Any]) -> list[list[Any]] | None:
    """The keys that the predicates name, sorted; None when they do not name a short list of whole keys."""
    scheme = scan.tree.scheme
    types = dict(scheme.types)
    if len(bounds.factors) != 1:
        return None
    found: set[tuple[Any, ...]] = set()
    for box in bounds.factors[0]:
        domains = box.resolve(params, types)
        if any(domain.is_nothing for domain in domains.values()):
            continue
        if not all(column in domains and domains[column].is_finite for column in scheme.columns):
            return None
        values = [sorted(domains[column].points) for column in scheme.columns]
        if prod(map(len, values)) + len(found) > _KEYS_SHOWN_MAX:
            return None
        found.update(product(*values))
    return [[_json_value(value) for value in key] for key in sorted(found)]


def execution_mode(plan: SelectPlan, facts: Sequence[ScanExplanation], topology: Topology) -> tuple[str, list[str]]:
    """The execution mode and the members that are needed, or may be where parameters are open."""
    if all(fact.known and not fact.possible for fact in facts):
        return ("none", []) if plan.empty is not None else ("local", [])
    owners = {
        member
        for fact in facts
        if not fact.scan.replicated and fact.possible
        for member in topology.primaries(fact.scan.group, list(fact.possible))
    }
    members = [member for member in topology.member_ids if member in owners]
    if not members:
        return "local", list(topology.member_ids[:1])
    open_facts = [fact for fact in facts if not fact.known]
    if len(members) == 1 or (len(facts) == len(open_facts) == 1 and is_one_key(open_facts[0].scan)):
        return "local", members
    return "distributed", members


def is_one_key(scan: ScanPlan) -> bool:
    """Whether a tree yields at most one partition for all parameters of the right types."""
    root = scan.tree.root
    return isinstance(root, Keys) and all(_names_one_value(root.box, column) for column in scan.tree.scheme.columns)


def _names_one_value(box: Box, column: str) -> bool:
    for choice in box[column].choices:
        operands = [operand for test in choice.tests for operand in test.compared]
        if any(isinstance(operand, ParameterList) for operand in operands) or not all(
            test.names_values for test in choice.tests
        ):
            continue
        constants = len(choice.domain.points) + sum(isinstance(operand, Constant) for operand in operands)
        if choice.domain.is_finite and constants + sum(isinstance(operand, Parameter) for operand in operands) == 1:
            return True
    return False


def scan_json(fact: ScanExplanation) -> dict[str, Any]:
    """A member of ``scans`` in the JSON of EXPLAIN."""
    return {
        "table": fact.scan.table,
        "alias": fact.scan.alias,
        "partitions": None if fact.partitions is None else list(fact.partitions),
        "partitions_total": fact.scan.tree.total,
        "partitioning_key": list(fact.key),
        "partitioning_key_values": fact.key_values,
        "primary_key_bounds": _key_bounds_json(fact.keys),
        **({"index": fact.keys.name} if isinstance(fact.keys, IndexSlice) else {}),
        "reason": fact.reason,
    }


def _key_bounds_json(keys: KeySlice | None) -> dict[str, Any]:
    """The values of both bounds of the primary key, of several ranges those of their hull; null where there is none."""
    match keys:
        case None | IndexSlice():
            lower = upper = ()
        case KeyPrefix(values):
            lower = upper = values
        case KeyRanges(ranges):
            lower, upper = (ranges[0].lower.values, ranges[-1].upper.values) if ranges else ((), ())
        case _:
            assert_never(keys)
    return {"lower": json_values(lower) or None, "upper": json_values(upper) or None}


def json_values(values: Sequence[Any]) -> list[Any]:
    """Values as JSON has them: dates, decimals and UUIDs as text, bytes in hexadecimal."""
    return [_json_value(value) for value in values]


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
