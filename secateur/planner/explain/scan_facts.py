"""The explanation of one scan: its partitions and keys for given parameters, and why not fewer.

A query in steps has one of each step (:class:`ExplainedStep`) beside that of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, assert_never

from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.partitioning.pruning.domain import EVERYTHING, Domain
from secateur.partitioning.pruning.key_range import IndexSlice, KeyPrefix, KeyRanges, KeySlice
from secateur.partitioning.pruning.nodes import Node, tests_of
from secateur.partitioning.pruning.operand import parameters_of
from secateur.partitioning.pruning.tree import PartitionTree, domain_text, node_text
from secateur.partitioning.topology.topology import Topology
from secateur.planner.explain.external_scans import external_json, external_reason, readers_of
from secateur.planner.prune.bounds import ScanBounds
from secateur.planner.prune.reasons import why_nothing_pruned
from secateur.planner.stages import ends_on_one_partition
from secateur.planner.statement import PlannedStep
from secateur.protocol.access import session_call
from secateur.protocol.query_parts import SubqueryUse

_KEYS_SHOWN_MAX: Final = 100
_PARAMETER: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$([0-9]+)")


@dataclass(frozen=True, slots=True)
class ScanExplanation:
    """One scan, bound.

    Attributes:
        partitions: Ids, or None for all or unknown; ``reason`` then explains why.
        possible: The ids that may be read: those, or all.
        known: Whether ``possible`` is exactly what will be read.
        key_values: The keys that are looked up: for each column its value, or the domain that it has to be in; None
            when they are not a short list, or no column has values.
        keys: The part of each partition that is searched, or None for all of it or when it is not known.
        reason: Why no partition is left out, or why that is not known.
        filter: The predicates that are tested on the rows found, as SQL; empty where there are none.
        rows: How many rows are expected to pass; None without statistics.
    """

    scan: ScanPlan
    key: tuple[str, ...]
    partitions: Sequence[int] | None
    possible: Sequence[int]
    known: bool
    key_values: list[tuple[Any | Domain, ...]] | None
    keys: KeySlice | None
    reason: str | None
    filter: str = ""
    rows: int | None = None


def scan_facts(
    scan: ScanPlan,
    bounds: ScanBounds,
    shown: PartitionTree,
    params: Sequence[Any] | None,
    count: int,
    *,
    enabled: bool,
    found: str,
    names: Mapping[int, str],
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
        names: As of :func:`parameter_titles`.
    """
    live = scan.tree.live_ids()
    key = scan.tree.scheme.columns
    values = () if params is None else params
    keys = scan.keys.bind(values) if enabled and (params is not None or scan.keys.is_constant) else None
    if scan.external is not None:
        reason = external_reason(scan.external, enabled=enabled)
        return ScanExplanation(scan, key, (0,), (0,), True, None, None, reason)
    if scan.replicated:
        return ScanExplanation(scan, key, (0,), (0,), True, None, keys, None)
    if not enabled:
        return ScanExplanation(scan, key, None, live, True, None, None, "pruning is off: SET pruning = on")
    if scan.reason is not None and (params is None or scan.tree.bind(values).is_all):
        return ScanExplanation(scan, key, None, live, True, None, keys, scan.reason)
    if needs_values(scan.tree.root, count):
        later = (
            f"{found} known only at run time: EXPLAIN ANALYZE shows which partitions of "
            f"{_tree_text(scan.tree, names)} they select"
        )
        return ScanExplanation(scan, key, None, live, False, None, keys, later)
    if params is None and not scan.tree.is_constant:
        listed = shown.bind(()) if shown.is_constant else None
        if listed is not None and not listed.is_all:
            return ScanExplanation(scan, key, listed.ids, listed.ids, True, None, keys, None)
        unbound = (
            f"the parameters are not bound: EXPLAIN with values shows the partitions of {_tree_text(shown, names)}"
        )
        return ScanExplanation(scan, key, None, live, False, None, keys, unbound)
    ids = scan.tree.bind(values)
    key_values = _key_values(scan, bounds, values)
    if ids.is_all and len(ids) > 1:
        reason = why_nothing_pruned(scan.tree, bounds, values)
        return ScanExplanation(scan, key, None, live, True, key_values, keys, reason)
    return ScanExplanation(scan, key, ids.ids, ids.ids, True, key_values, keys, None)


def _tree_text(tree: PartitionTree, names: Mapping[int, str]) -> str:
    return with_parameter_names(node_text(tree.root, tree.scheme), names)


def _key_values(scan: ScanPlan, bounds: ScanBounds, params: Sequence[Any]) -> list[tuple[Any | Domain, ...]] | None:
    """The keys that the predicates name, sorted; None when they do not name a short list of them.

    A column that is not bound to values has its domain in place of a value.
    """
    scheme = scan.tree.scheme
    types = dict(scheme.types)
    if len(bounds.factors) != 1:
        return None
    found: set[tuple[Any | Domain, ...]] = set()
    for box in bounds.factors[0]:
        domains = box.resolve(params, types)
        if any(domain.is_nothing for domain in domains.values()):
            continue
        of_key = [domains.get(column, EVERYTHING) for column in scheme.columns]
        if not any(domain.is_finite for domain in of_key):
            return None
        values = [list(domain.points) if domain.is_finite else [domain] for domain in of_key]
        if prod(map(len, values)) + len(found) > _KEYS_SHOWN_MAX:
            return None
        equal = [[scheme.columns.index(column) for column in members] for members in box.restrict(scheme.columns).equal]
        found.update(
            key
            for key in product(*values)
            if all(len({repr(key[position]) for position in positions}) == 1 for positions in equal)
        )

    def order(key: tuple[Any | Domain, ...]) -> list[tuple[bool, Any]]:
        """Values in their order, then domains in that of their texts."""
        return [(True, domain_text(one)) if isinstance(one, Domain) else (False, one) for one in key]

    return sorted(found, key=order)


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
    readers = max((readers_of(fact.scan.external) for fact in facts), default=0)
    if readers > max(len(members), 1):
        others = [member for member in topology.member_ids if member not in owners]
        return "distributed", [*members, *others[: readers - len(members)]]
    if not members:
        return "local", list(topology.member_ids[:1])
    if len(members) == 1 or (ends_on_one_partition(plan.scans) and not all(fact.known for fact in facts)):
        return "local", members
    return "distributed", members


def scan_json(fact: ScanExplanation) -> dict[str, Any]:
    """A member of ``scans`` in the JSON of EXPLAIN."""
    return {
        "table": fact.scan.table,
        "alias": fact.scan.alias,
        "partitions": None if fact.partitions is None else list(fact.partitions),
        "partitions_total": fact.scan.tree.total,
        "partitioning_key": list(fact.key),
        "partitioning_key_values": None if fact.key_values is None else [json_values(key) for key in fact.key_values],
        "primary_key_bounds": _key_bounds_json(fact.keys),
        **({"index": fact.keys.name} if isinstance(fact.keys, IndexSlice) else {}),
        "columns": list(fact.scan.columns),
        "filter": fact.filter or None,
        "estimated_rows": fact.rows,
        "reason": fact.reason,
        **({} if fact.scan.external is None else external_json(fact.scan.external)),
        **({"policies": list(fact.scan.policies), "policy_condition": fact.scan.policy} if fact.scan.policy else {}),
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
    """Values as JSON has them: dates, decimals and UUIDs as text, bytes in hexadecimal, null for a domain."""
    return [_json_value(value) for value in values]


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Domain):
        return None
    return value.hex() if isinstance(value, bytes) else str(value)


def parameter_titles(plan: SelectPlan) -> Mapping[int, str]:
    """What stands for the parameters of a plan in the user's text, by index; those without a name are not in it."""
    names = {index: f"${name}" for index, name in enumerate(plan.parameter_names)}
    return names | {index: session_call(claim) for index, claim in plan.claims}


def with_parameter_names(text: str, names: Mapping[int, str]) -> str:
    """Write ``$name`` for ``$1`` in a text, but not inside of strings and quoted names.

    Args:
        text: A partition tree, a predicate or a query, with parameters counted from 1.
        names: As of :func:`parameter_titles`. Other parameters keep their numbers, as values of subqueries do.
    """

    def named(match: re.Match[str]) -> str:
        number = match[1]
        return names.get(int(number) - 1, match[0]) if number else match[0]

    return _PARAMETER.sub(named, text) if names else text


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step with its explanation.

    Attributes:
        step: The step.
        parameters: The indexes of the parameters that its values become.
        sql: The text of the user, or of the planner, with parameters numbered.
        text: The explanation for people.
        pruning: The part of that for programs.
    """

    step: PlannedStep
    parameters: tuple[int, ...]
    sql: str
    text: str
    pruning: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"parameter": self.parameters[0], "values": self.step.use.value, "sql": self.sql}
        if self.step.estimate is not None:
            found |= {"parameters": list(self.parameters), "estimate": self.step.estimate}
            found["values_max"] = self.step.values_max
        return {**found, "pruning": self.pruning}

    def lines(self) -> list[str]:
        step, listed = self.step, "" if self.step.use is SubqueryUse.VALUE else "[]"
        names = ", ".join(f"${index + 1}{listed}" for index in self.parameters)
        lines = [f"runs first, for {names}: {' '.join(self.sql.split())}"]
        if step.estimate is not None:
            expected = f"about {step.estimate:,} expected; with more than {step.values_max:,}"
            lines.append(f"  join keys: {expected}, the statement runs without them")
        explained = self.text.partition("\ndag:")[0].splitlines()
        return [*lines, *(f"  {line}" for line in explained if not line.startswith("pruning:"))]


def needs_values(node: Node, parameter_count: int) -> bool:
    """Whether a partition tree depends on values of subqueries: the parameters after those of the user."""
    operands = (operand for _, test in tests_of(node) for operand in test.operands)
    return any(index >= parameter_count for operand in operands for index in parameters_of(operand))


def combined_execution_mode(
    execution: str, members: Sequence[str], steps: Sequence[ExplainedStep], member_ids: Sequence[str]
) -> tuple[str, list[str]]:
    """The execution mode and the members of a query with its steps: local when one member does all of it."""
    if not steps:
        return execution, list(members)
    needed = {*members, *(member for step in steps for member in step.pruning["required_members"])}
    listed = [member for member in member_ids if member in needed]
    executions = {execution, *(step.pruning["execution"] for step in steps)}
    if executions == {"none"}:
        return "none", listed
    return ("distributed" if "distributed" in executions or len(listed) > 1 else "local"), listed
