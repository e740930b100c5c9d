"""EXPLAIN: which partitions and members a statement needs, and why not fewer (DESIGN section 7).

With parameters unbound a tree is shown as it is; what depends on them is unknown, and said to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any, Final, Protocol, assert_never

from secateur.engine.plan import ScanPlan, SelectPlan, Strategy
from secateur.engine.select_job import describe_select
from secateur.partitioning.condition import Box
from secateur.partitioning.expression import UNKNOWN
from secateur.partitioning.key_range import KeyPrefix, KeyRanges, KeySlice
from secateur.partitioning.nodes import All, Everywhere, Keys
from secateur.partitioning.operand import Constant, Parameter, ParameterList
from secateur.partitioning.reach import reach
from secateur.partitioning.subject import allowed
from secateur.partitioning.topology import Topology
from secateur.partitioning.tree import PartitionTree
from secateur.partitioning.tree_text import node_text, value_text
from secateur.planner.explain.steps import ExplainedStep, needs_values, rung_in_all
from secateur.planner.explain.writes import copy_holders, insert_pruning, publication, write_dag
from secateur.planner.scans.scan_bounds import ScanBounds, overflow_reason
from secateur.planner.statement import (
    AlterTable,
    ChangeStatement,
    CreateTable,
    DropTable,
    ExplainStatement,
    InsertRows,
    InsertSelect,
    SelectStatement,
    SetOption,
    Statement,
    Step,
)
from secateur.planner.steps.materialize import RULE as MATERIALIZE_SUBQUERY
from secateur.planner.text.long_lists import fold_lists

__all__ = ["Explain", "explain"]

_KEYS_SHOWN_MAX: Final = 100
_PARTITIONS_SHOWN_MAX: Final = 16


class TopologyView(Protocol):
    """What EXPLAIN sees besides the statement."""

    @property
    def topology(self) -> Topology:
        """Members and owners."""
        ...


@dataclass(frozen=True, slots=True)
class Explain:
    """How a statement would run.

    Attributes:
        text: For people.
        json: For programs, plain JSON data: DESIGN section 7.
    """

    text: str
    json: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _ScanFacts:
    """One scan, bound.

    Attributes:
        partitions: Ids, or None for all or unknown; then ``reason`` says why.
        possible: The ids that have to be reckoned with: those, or all.
        known: Whether ``possible`` is what will be read.
        key_values: The keys asked for, or None when they are not a short list.
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


def explain(statement: Statement, params: Sequence[Any] | Mapping[str, Any], view: TopologyView, settings: Mapping[str, Any]) -> Explain:
    """Explain a planned statement.

    Args:
        statement: From the planner, with the values of its parameters.
        params: As the user gave them; the statement has them in order already.
        view: The owners.
        settings: Those of the session: ``pruning``.
    """
    del params
    enabled = settings.get("pruning", "on") != "off"
    match statement:
        case ExplainStatement(target):
            return explain(target, (), view, settings)
        case SelectStatement():
            return _explain_select(statement, view.topology, enabled=enabled)
        case InsertSelect(table, _, select):
            explained = _explain_select(select, view.topology, enabled=enabled)
            return Explain(f"INSERT into {table.name} from:\n{explained.text}", explained.json)
        case ChangeStatement():
            return _explain_change(statement, view.topology, enabled=enabled)
        case InsertRows():
            return _explain_insert(statement, view.topology, enabled=enabled)
        case CreateTable() | AlterTable() | DropTable():
            return _explain_other("DDL runs at the controller and reads no partition", view.topology, enabled=enabled)
        case SetOption():
            return _explain_other("SET changes the session and reads no partition", view.topology, enabled=enabled)
        case _:
            assert_never(statement)


def _explain_change(change: ChangeStatement, topology: Topology, *, enabled: bool) -> Explain:
    """What the query of a change says, and beside it who keeps copies of the rows."""
    table = change.table
    pruning, facts = _pruning(change.select, change.select, (), topology, enabled=enabled)
    target = facts[0]
    is_empty = target.known and not target.possible
    owners, backups = copy_holders(table, target.possible, topology)
    if is_empty:
        pruning.update(execution="none", required_members=[])
    elif table.replicated:
        pruning.update(execution="distributed", required_members=owners)
    else:
        pruning.update(required_members=owners)
    pruning["backup_members"] = backups
    dag = write_dag(f"{change.kind.name.lower()} {table.name}", [] if is_empty else owners)
    lines = [f"{change.kind.name} of {table.name}", *_head(pruning, facts)]
    if not is_empty:
        lines.append(f"backups:{_list(backups) or ' none'}")
        lines.append(publication(table, len(target.possible) if target.known else 1 if _is_one_key(target.scan) else None))
    return Explain("\n".join(lines + _dag_text(dag)), {"pruning": pruning, "dag": dag})


def _explain_insert(insert: InsertRows, topology: Topology, *, enabled: bool) -> Explain:
    table = insert.table
    pruning = insert_pruning(table, insert.rows, topology, enabled=enabled)
    dag = write_dag(f"insert into {table.name}", pruning["required_members"])
    (scan,) = pruning["scans"]
    partitions = None if scan["partitions"] is None else [f"p{partition}" for partition in scan["partitions"]]
    lines = [
        f"INSERT of {insert.rows.num_rows} row{'' if insert.rows.num_rows == 1 else 's'} into {table.name}",
        f"execution: {pruning['execution']} on {len(pruning['required_members'])} of {pruning['members_total']} members{_list(pruning['required_members'])}",
        f"tree: {pruning['tree']}",
        f"because {scan['reason']}" if partitions is None else f"rows go to {len(partitions)} of {scan['partitions_total']} partitions{_list(partitions)}",
        f"backups:{_list(pruning['backup_members']) or ' none'}",
        publication(table, None if partitions is None else len(partitions)),
    ]
    return Explain("\n".join(lines + _dag_text(dag)), {"pruning": pruning, "dag": dag})


def _explain_other(what: str, topology: Topology, *, enabled: bool) -> Explain:
    pruning = {
        "enabled": enabled,
        "applicable": False,
        "reason": what,
        "tree": "",
        "execution": "none",
        "topology_version": topology.version,
        "required_members": [],
        "members_total": len(topology.members),
        "scans": [],
    }
    return Explain(what, {"pruning": pruning, "dag": {"vertices": [], "edges": []}})


def _explain_select(statement: SelectStatement, topology: Topology, *, enabled: bool) -> Explain:
    materialized = statement.materialized if enabled else None
    steps = [] if materialized is None else [_explain_step(step, index, statement, topology) for index, step in enumerate(materialized.steps)]
    outer = statement if materialized is None else materialized.outer
    pruning, facts = _pruning(statement, outer, steps, topology, enabled=enabled)
    dag = _dag(outer.plan, facts, statement.params, topology, *_rung(outer.plan, facts, topology))
    return Explain(_text(outer.plan, pruning, facts, steps, dag), {"pruning": pruning, "dag": dag})


def _pruning(
    statement: SelectStatement, outer: SelectStatement, steps: Sequence[ExplainedStep], topology: Topology, *, enabled: bool
) -> tuple[dict[str, Any], list[_ScanFacts]]:
    """The member ``pruning`` of the document, and the facts about the scans of ``outer`` that it is made from."""
    plan = outer.plan
    params = statement.params
    count = statement.plan.parameter_count
    known = None if params is None else (*params, *[UNKNOWN] * len(steps))
    trees = [_shown(scan.tree, statement) for scan in plan.scans]
    scans = zip(plan.scans, outer.bounds, trees, strict=True)
    facts = [_scan_facts(scan, bounds, tree, known, count, enabled=enabled) for scan, bounds, tree in scans]
    prunable = any(fact.scan.reason is None and not isinstance(tree.root, (All, Everywhere)) for fact, tree in zip(facts, trees, strict=True))
    reasons = list(dict.fromkeys(fact.reason for fact in facts if fact.reason is not None))
    own_execution, own_members = _rung(plan, facts, topology)
    execution, members = rung_in_all(own_execution, own_members, steps, topology.member_ids)
    unpruned = [fact for fact in facts if fact.partitions is None and not fact.scan.replicated]
    pruning: dict[str, Any] = {
        "enabled": enabled,
        "applicable": enabled and prunable,
        "reason": "; ".join(reasons) if reasons and len(unpruned) == len([fact for fact in facts if not fact.scan.replicated]) else None,
        "tree": "; ".join(map(str, trees)),
        "execution": execution,
        "topology_version": topology.version,
        "required_members": members,
        "members_total": len(topology.members),
        "scans": [*(_scan_json(fact) for fact in facts), *(scan for step in steps for scan in step.pruning["scans"])],
    }
    rewrites = [*([MATERIALIZE_SUBQUERY] if steps else []), *outer.rewrites]
    if rewrites:
        pruning["rewrites"] = rewrites
    if outer.colocated:
        aliases = {fact.scan.relation: fact.scan.alias for fact in facts}
        pruning["co_located"] = [[aliases[relation] for relation in group] for group in outer.colocated]
    if steps:
        pruning["steps"] = [step.to_json() for step in steps]
    return pruning, facts


def _shown(tree: PartitionTree, statement: SelectStatement) -> PartitionTree:
    """A tree with constants where the user wrote them."""
    first = statement.plan.parameter_count - len(statement.lists)
    return fold_lists(tree, dict(enumerate(statement.lists, first))) if statement.lists else tree


def _explain_step(step: Step, index: int, whole: SelectStatement, topology: Topology) -> ExplainedStep:
    explained = _explain_select(replace(step.query, params=whole.params, lists=whole.lists), topology, enabled=True)
    return ExplainedStep(whole.plan.parameter_count + index, step.use, step.text, explained.text, explained.json["pruning"])


def _scan_facts(scan: ScanPlan, bounds: ScanBounds, shown: PartitionTree, params: Sequence[Any] | None, count: int, *, enabled: bool) -> _ScanFacts:
    live = scan.tree.live_ids()
    key = scan.tree.scheme.columns
    values = () if params is None else params
    keys = scan.keys.bind(values) if enabled and (params is not None or scan.keys.is_constant) else None
    if scan.replicated:
        return _ScanFacts(scan, key, (0,), (0,), True, None, keys, None)
    if not enabled:
        return _ScanFacts(scan, key, None, live, True, None, None, "pruning is off: SET pruning = on")
    if scan.reason is not None:
        return _ScanFacts(scan, key, None, live, True, None, keys, scan.reason)
    if needs_values(scan.tree.root, count):
        later = f"the values of the subquery are known at run time: the partitions are those of {node_text(scan.tree.root, scan.tree.scheme)}"
        return _ScanFacts(scan, key, None, live, False, None, keys, later)
    if params is None and not scan.tree.is_constant:
        listed = shown.bind(()) if shown.is_constant else None
        if listed is not None and not listed.is_all:
            return _ScanFacts(scan, key, listed.ids, listed.ids, True, None, keys, None)
        unbound = f"the parameters are not bound: the partitions are those of {node_text(shown.root, shown.scheme)}"
        return _ScanFacts(scan, key, None, live, False, None, keys, unbound)
    ids = scan.tree.bind(values)
    reason = _bound_reason(scan, bounds, values) if ids.is_all else None
    if reason is not None:
        return _ScanFacts(scan, key, None, live, True, None, keys, reason)
    return _ScanFacts(scan, key, ids.ids, ids.ids, True, _key_values(scan, bounds, values), keys, None)


def _bound_reason(scan: ScanPlan, bounds: ScanBounds, params: Sequence[Any]) -> str | None:
    """Why these values of the parameters leave nothing out, where others would."""
    scheme = scan.tree.scheme
    types = dict(scheme.types)
    for box in (box for boxes in bounds.factors for box in boxes):
        for column, constraint in box.constraints:
            for test in (test for choice in constraint.choices for test in choice.tests):
                values = test.values(params, types[column])
                if allowed(test.subject, test.comparison, values, types[column]) is None:
                    if UNKNOWN in values and not any(isinstance(operand, ParameterList) for operand in test.operands):
                        return f"what {column} is compared with is known to DuckDB alone for these parameters: pass the value itself"
                    if UNKNOWN in values:
                        return f"what {column} is compared with is not a list of {types[column]} values: pass one"
                    shown = ", ".join(value_text(value) for value in values[:3])
                    return f"{shown} does not compare in the type of {column}: pass a {types[column]}"
        overflows = reach(scheme, box.resolve(params, types), scan.tree.limit).overflows
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


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _rung(plan: SelectPlan, facts: Sequence[_ScanFacts], topology: Topology) -> tuple[str, list[str]]:
    """The rung and the members that are needed, or may be where parameters are open."""
    if all(fact.known and not fact.possible for fact in facts):
        return ("none", []) if plan.empty is not None else ("local", [])
    owners = {member for fact in facts if not fact.scan.replicated and fact.possible for member in topology.primaries(fact.scan.group, list(fact.possible))}
    members = [member for member in topology.member_ids if member in owners]
    if not members:
        return "local", list(topology.member_ids[:1])
    open_facts = [fact for fact in facts if not fact.known]
    if len(members) == 1 or (len(facts) == len(open_facts) == 1 and _is_one_key(open_facts[0].scan)):
        return "local", members
    return "distributed", members


def _is_one_key(scan: ScanPlan) -> bool:
    """Whether a tree comes to at most one partition for whatever parameters of the right types."""
    root = scan.tree.root
    return isinstance(root, Keys) and all(_names_one_value(root.box, column) for column in scan.tree.scheme.columns)


def _names_one_value(box: Box, column: str) -> bool:
    for choice in box[column].choices:
        operands = [operand for test in choice.tests for operand in test.compared]
        if any(isinstance(operand, ParameterList) for operand in operands) or not all(test.names_values for test in choice.tests):
            continue
        constants = len(choice.domain.points) + sum(isinstance(operand, Constant) for operand in operands)
        if choice.domain.is_finite and constants + sum(isinstance(operand, Parameter) for operand in operands) == 1:
            return True
    return False


def _scan_json(fact: _ScanFacts) -> dict[str, Any]:
    return {
        "table": fact.scan.table,
        "alias": fact.scan.alias,
        "partitions": None if fact.partitions is None else list(fact.partitions),
        "partitions_total": fact.scan.tree.total,
        "partitioning_key": list(fact.key),
        "partitioning_key_values": fact.key_values,
        "primary_key_bounds": _key_bounds_json(fact.keys),
        "reason": fact.reason,
    }


def _key_bounds_json(keys: KeySlice | None) -> dict[str, Any]:
    """The values of both bounds of the primary key, of several ranges those of their hull; null where there is none."""
    match keys:
        case None:
            lower = upper = ()
        case KeyPrefix(values):
            lower = upper = values
        case KeyRanges(ranges):
            lower, upper = (ranges[0].lower.values, ranges[-1].upper.values) if ranges else ((), ())
        case _:
            assert_never(keys)
    return {"lower": _json_values(lower) or None, "upper": _json_values(upper) or None}


def _dag(
    plan: SelectPlan, facts: Sequence[_ScanFacts], params: Sequence[Any] | None, topology: Topology, execution: str, members: Sequence[str]
) -> dict[str, Any]:
    if execution == "none" or not members:
        return {"vertices": [], "edges": []}
    if execution == "local":
        # One member runs the whole statement as one kernel call: there is nothing to connect.
        where = list(members) if len(members) == 1 else []
        return {"vertices": [{"name": "statement", "members": where, "local_parallelism": 1}], "edges": []}
    # Values that are not known yet, of parameters or subqueries, decide nothing here.
    values = [*(params or ()), *[None] * plan.parameter_count][: plan.parameter_count]
    return describe_select(plan, [fact.possible for fact in facts], values, topology, members[0])


def _text(plan: SelectPlan, pruning: dict[str, Any], facts: Sequence[_ScanFacts], steps: Sequence[ExplainedStep], dag: dict[str, Any]) -> str:
    lines = _head(pruning, facts)
    if plan.strategy is Strategy.TWO_STAGE:
        lines.append("when distributed: two-stage")
    else:
        lines.append(f"when distributed: gather ({plan.gather_reason})")
    lines.extend(line for step in steps for line in step.lines())
    return "\n".join(lines + _dag_text(dag))


def _head(pruning: dict[str, Any], facts: Sequence[_ScanFacts]) -> list[str]:
    members = pruning["required_members"]
    may = "" if all(fact.known for fact in facts) else "at most "
    lines = [
        f"execution: {pruning['execution']} on {may}{len(members)} of {pruning['members_total']} members{_list(members)}",
        f"pruning: {'on' if pruning['enabled'] else 'off'}, topology version {pruning['topology_version']}",
    ]
    if pruning["tree"]:
        lines.append(f"tree: {pruning['tree']}")
    if "rewrites" in pruning:
        lines.append(f"rewrites: {', '.join(pruning['rewrites'])}")
    lines.extend(line for fact in facts for line in _scan_text(fact))
    lines.extend(f"co-located: {', '.join(group)}" for group in pruning.get("co_located", ()))
    return lines


def _dag_text(dag: dict[str, Any]) -> list[str]:
    if not dag["vertices"]:
        return []
    vertices = [f"  {vertex['name']} x{vertex['local_parallelism']}{_list(vertex['members'])}" for vertex in dag["vertices"]]
    return ["dag:", *vertices, *(f"  {edge['from']} -> {edge['to']}: {edge['kind']}{', distributed' if edge['distributed'] else ''}" for edge in dag["edges"])]


def _scan_text(fact: _ScanFacts) -> list[str]:
    scan = fact.scan
    name = scan.table if scan.alias == scan.table else f"{scan.table} AS {scan.alias}"
    total = scan.tree.total
    if scan.replicated:
        return [f"scan {name}: replicated, every member has it", *_key_bounds_text(fact.keys)]
    if fact.partitions is None:
        kept = f"all {total} partitions" if fact.known else f"of {total} partitions those of the parameters"
        return [f"scan {name}: {kept}", f"  because {fact.reason}", *_key_bounds_text(fact.keys)]
    lines = [f"scan {name}: {len(fact.partitions)} of {total} partitions{_list([f'p{partition}' for partition in fact.partitions])}"]
    if fact.key_values:
        lines.append(f"  partitioning key ({', '.join(fact.key)}): {', '.join(_key_text(key) for key in fact.key_values[:_PARTITIONS_SHOWN_MAX])}")
    return [*lines, *_key_bounds_text(fact.keys)] if fact.partitions else lines


def _key_bounds_text(keys: KeySlice | None) -> list[str]:
    match keys:
        case None:
            return []
        case KeyPrefix(values):
            return [f"  primary key bounds: {_key_text(_json_values(values))}"]
        case KeyRanges(()):
            return ["  primary key bounds: no key"]
        case KeyRanges(ranges):
            lower, upper = ranges[0].lower, ranges[-1].upper
            below = f"{_key_text(_json_values(lower.values))} {'<' if lower.after else '<='} " if lower.values else ""
            above = f" {'<=' if upper.after else '<'} {_key_text(_json_values(upper.values))}" if upper.values else ""
            return [f"  primary key bounds: {below}key{above}" + (f", in {len(ranges)} ranges" if len(ranges) > 1 else "")]
        case _:
            assert_never(keys)


def _json_values(values: Sequence[Any]) -> list[Any]:
    return [_json_value(value) for value in values]


def _key_text(key: Sequence[Any]) -> str:
    return f"({', '.join(value_text(value) for value in key)})"


def _list(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = list(islice(names, _PARTITIONS_SHOWN_MAX))
    more = f", {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f" [{', '.join(shown)}{more}]"
