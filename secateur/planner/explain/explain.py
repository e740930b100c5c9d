"""EXPLAIN: which partitions and members a statement needs, and why not fewer.

Without parameters a tree is shown unbound; everything that depends on them is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from secateur.drawing.quantity import count_text
from secateur.duckdb_expressions import complete
from secateur.engine.sql.select_job import describe_select
from secateur.engine.sql.select_plan import SelectPlan, Strategy
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.nodes import All, Everywhere
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.topology.topology import Topology
from secateur.planner.binding.catalog_view import CatalogView
from secateur.planner.explain.external_scans import is_pruned
from secateur.planner.explain.lines import dag_text, execution_text, head_text, listed, stages_text
from secateur.planner.explain.scan_facts import (
    ExplainedStep,
    ScanExplanation,
    combined_execution_mode,
    execution_mode,
    parameter_titles,
    scan_facts,
    scan_json,
    with_parameter_names,
)
from secateur.planner.explain.serving import (
    said,
    scatters,
    scatters_text,
    serving,
    serving_change,
    serving_text,
    serving_upsert,
)
from secateur.planner.explain.writes import copy_holders, insert_pruning, publication, write_dag
from secateur.planner.statement import CreateTable, ExplainFormat, ExplainStatement, PlannedSelect, PlannedStep
from secateur.planner.steps.join_keys import RULE as JOIN_KEYS_FIRST
from secateur.planner.steps.materialize import RULE as MATERIALIZE_SUBQUERY
from secateur.planner.text.hoisted_lists import fold_lists
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.query_parts import SubqueryUse
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, CreateTableAs, EvaluatedInsert, Statement

_WRITTEN: Final = said("its rows are computed by a query")


@dataclass(frozen=True, slots=True)
class ExplainedStatement:
    """The plan of a statement, as EXPLAIN shows it: for people, and as plain JSON data for programs."""

    text: str
    json: dict[str, Any]


def explain(statement: Statement, view: CatalogView, settings: Mapping[str, Any]) -> ExplainedStatement:
    """Explain a planned statement, which has the values of its parameters; of the settings, ``pruning`` counts."""
    enabled = settings.get("pruning", "on") != "off"
    match statement:
        case ExplainStatement(target):
            return explain(target, view, settings)
        case PlannedSelect():
            return _explain_select(statement, view, enabled=enabled)
        case ChangeStatement():
            return _explain_change(statement, view.topology, enabled=enabled)
        case EvaluatedInsert():
            return _explain_insert(statement, view.topology, enabled=enabled)
        case CoordinatedChange(table=table, select=select, is_single_partition=is_single, row=row):
            explained = _explain_select(select.whole(), view, enabled=enabled, written=serving_upsert(statement))
            return ExplainedStatement(
                f"change of {table.name}, computed by one member from:\n{explained.text}\n"
                f"{publication(table, None if is_single or row is not None else 0)}",
                explained.json,
            )
        case CreateTableAs(select=None):
            return _explain_other(CreateTable.explained, view.topology, enabled=enabled)
        case _ if statement.queries:
            explained = _explain_select(statement.queries[0], view, enabled=enabled, written=_WRITTEN)
            return ExplainedStatement(f"{statement.explained.format(statement)}\n{explained.text}", explained.json)
        case _:
            return _explain_other(statement.explained.format(statement), view.topology, enabled=enabled)


def _explain_change(change: ChangeStatement[PlannedSelect], topology: Topology, *, enabled: bool) -> ExplainedStatement:
    """Explain the query of a change, and add the members that keep backups of the rows."""
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
    pruning.update(serving_change(change))
    dag = write_dag(f"{change.kind.name.lower()} {table.name}", [] if is_empty else owners)
    lines = [f"{change.kind.name} of {table.name}", *head_text(pruning, facts), serving_text(pruning)]
    if not is_empty:
        lines.append(f"backups:{listed(backups) or ' none'}")
        lines.append(
            publication(table, len(target.possible) if target.known else 1 if target.scan.tree.is_single else None)
        )
    return ExplainedStatement("\n".join(lines + dag_text(dag)), {"pruning": pruning, "dag": dag})


def _explain_insert(insert: EvaluatedInsert, topology: Topology, *, enabled: bool) -> ExplainedStatement:
    table, rows = insert.insert.table, insert.rows
    pruning = insert_pruning(table, rows, topology, enabled=enabled)
    dag = write_dag(f"insert into {table.name}", pruning["required_members"])
    (scan,) = pruning["scans"]
    partitions = None if scan["partitions"] is None else [f"p{partition}" for partition in scan["partitions"]]
    lines = [
        f"INSERT of {count_text(rows.num_rows, 'row')} into {table.name}",
        execution_text(pruning),
        f"tree: {pruning['tree']}",
        (
            f"because {scan['reason']}"
            if partitions is None
            else f"rows go to {len(partitions)} of {scan['partitions_total']} partitions{listed(partitions)}"
        ),
        serving_text(pruning),
        f"backups:{listed(pruning['backup_members']) or ' none'}",
        publication(table, None if partitions is None else len(partitions)),
    ]
    return ExplainedStatement("\n".join(lines + dag_text(dag)), {"pruning": pruning, "dag": dag})


def _explain_other(what: str, topology: Topology, *, enabled: bool) -> ExplainedStatement:
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
        **said(what),
    }
    return ExplainedStatement(what, {"pruning": pruning, "dag": {"vertices": [], "edges": []}})


def _explain_select(
    statement: PlannedSelect, view: CatalogView, *, enabled: bool, written: dict[str, Any] | None = None
) -> ExplainedStatement:
    """Explain a query; ``written`` is what is said of serving where its rows are written somewhere."""
    topology = view.topology
    steps: list[ExplainedStep] = []
    outer = statement
    while enabled and outer.materialized is not None:
        first = outer.plan.parameter_count
        for step in outer.materialized.steps:
            steps.append(_explain_step(step, first, statement, view))
            first += step.parameter_count
        outer = outer.materialized.outer
    pruning, facts = _pruning(statement, outer, steps, topology, enabled=enabled)
    own_execution, members = execution_mode(outer.plan, facts, topology)
    dag = _dag(outer.plan, facts, statement.params, topology, own_execution, members)
    pruning.update(written or serving(outer.plan, view.table, has_steps=bool(steps)))
    lines = [*head_text(pruning, facts), serving_text(pruning)]
    if own_execution == "distributed":
        scattered = pruning["scatter"] = scatters(outer.plan, facts, enabled=enabled)
        lines.extend([*scatters_text(outer.plan, scattered, in_steps=bool(steps)), *_strategy_text(outer.plan)])
    lines.extend(line for step in steps for line in step.lines())
    return ExplainedStatement("\n".join(lines + dag_text(dag)), {"pruning": pruning, "dag": dag})


def _pruning(
    statement: PlannedSelect,
    outer: PlannedSelect,
    steps: Sequence[ExplainedStep],
    topology: Topology,
    *,
    enabled: bool,
) -> tuple[dict[str, Any], list[ScanExplanation]]:
    """The member ``pruning`` of the document, and the facts about the scans of ``outer`` that it is made from."""
    plan = outer.plan
    params = statement.params
    count = statement.plan.parameter_count
    known = None if params is None else (*params, *[UNKNOWN] * (plan.parameter_count - count))
    if known is not None and plan.expressions:
        known = tuple(complete(known, plan.expressions))
    trees = [_shown(scan.tree, statement) for scan in plan.scans]
    names = parameter_titles(plan)
    scans = zip(plan.scans, outer.bounds, trees, outer.filters, outer.estimated_rows, strict=True)
    only_keys = all(step.step.use is SubqueryUse.KEYS for step in steps)
    found = "the keys of the join are" if only_keys else "the values of the subquery are"
    facts = [
        replace(
            scan_facts(scan, bounds, tree, known, count, enabled=enabled, found=found, names=names),
            filter=filter_text,
            rows=rows,
        )
        for scan, bounds, tree, filter_text, rows in scans
    ]
    prunable = any(
        is_pruned(fact.scan.external) or (fact.scan.reason is None and not isinstance(tree.root, (All, Everywhere)))
        for fact, tree in zip(facts, trees, strict=True)
    )
    reasons = list(dict.fromkeys(fact.reason for fact in facts if fact.reason is not None))
    own_execution, own_members = execution_mode(plan, facts, topology)
    execution, members = combined_execution_mode(own_execution, own_members, steps, topology.member_ids)
    unpruned = [fact for fact in facts if fact.partitions is None and not fact.scan.replicated]
    pruning: dict[str, Any] = {
        "enabled": enabled,
        "applicable": enabled and prunable,
        "reason": (
            "; ".join(reasons)
            if reasons and len(unpruned) == len([fact for fact in facts if not fact.scan.replicated])
            else None
        ),
        "tree": with_parameter_names("; ".join(map(str, trees)), names),
        "execution": execution,
        "topology_version": topology.version,
        "required_members": members,
        "members_total": len(topology.members),
        "scans": [*(scan_json(fact) for fact in facts), *(scan for step in steps for scan in step.pruning["scans"])],
    }
    if steps:
        rules = (JOIN_KEYS_FIRST if step.step.use is SubqueryUse.KEYS else MATERIALIZE_SUBQUERY for step in steps)
        pruning["rewrites"] = list(dict.fromkeys(rules))
    if outer.colocated:
        aliases = {fact.scan.relation: fact.scan.alias for fact in facts}
        pruning["co_located"] = [[aliases[relation] for relation in group] for group in outer.colocated]
    if steps:
        pruning["steps"] = [step.to_json() for step in steps]
    return pruning, facts


def _shown(tree: PartitionTree, statement: PlannedSelect) -> PartitionTree:
    """A tree with constants where the user wrote them."""
    first = statement.plan.parameter_count - statement.plan.reads_clock - len(statement.hidden)
    lists = {index: value for index, value in enumerate(statement.hidden, first) if isinstance(value, list)}
    return fold_lists(tree, lists) if lists else tree


def _explain_step(step: PlannedStep, first: int, whole: PlannedSelect, view: CatalogView) -> ExplainedStep:
    """A step whose values are the parameters from ``first`` on; those of steps before it are not known."""
    unknown = [UNKNOWN] * (step.query.plan.parameter_count - whole.plan.parameter_count)
    params = None if whole.params is None else (*whole.params, *unknown)
    explained = _explain_select(replace(step.query, params=params, hidden=whole.hidden), view, enabled=True)
    parameters = tuple(range(first, first + step.parameter_count))
    names = parameter_titles(whole.plan)
    text = with_parameter_names(step.text, names)
    return ExplainedStep(step, parameters, text, explained.text, explained.json["pruning"])


def _dag(
    plan: SelectPlan,
    facts: Sequence[ScanExplanation],
    params: Sequence[Any] | None,
    topology: Topology,
    execution: str,
    members: Sequence[str],
) -> dict[str, Any]:
    if execution == "none" or not members:
        return {"vertices": [], "edges": []}
    if execution == "local":
        # One member runs the whole statement as one kernel call, so there are no edges.
        where = list(members) if len(members) == 1 else []
        return {"vertices": [{"name": "statement", "members": where, "local_parallelism": 1}], "edges": []}
    # Unknown values of parameters or subqueries do not matter here.
    values = [*(params or ()), *[None] * plan.parameter_count][: plan.parameter_count]
    return describe_select(plan, [fact.possible for fact in facts], values, topology, members[0])


def _strategy_text(plan: SelectPlan) -> list[str]:
    match plan.strategy:
        case Strategy.TWO_STAGE:
            return ["when distributed: two-stage"]
        case Strategy.PLACED:
            return stages_text(plan)
        case Strategy.GATHER:
            return [f"when distributed: gather ({plan.gather_reason})"]
        case _:
            assert_never(plan.strategy)


def read_explain(cursor: TokenCursor) -> tuple[ExplainFormat, bool]:
    """Read up to the statement to explain; returns the form of the answer, and whether the statement is to be run.

    The head is ``EXPLAIN [ANALYZE] [(option, ...)]``; an option is ``FORMAT JSON``, ``FORMAT TEXT`` or ``ANALYZE``.

    Raises:
        SqlSyntaxError: Another option, or no statement.
    """
    cursor.expect("EXPLAIN")
    form, analyze = ExplainFormat.TEXT, cursor.accept("ANALYZE")
    if cursor.at("(", "FORMAT") or cursor.at("(", "ANALYZE"):
        cursor.expect("(")
        while True:
            if cursor.accept("ANALYZE"):
                analyze = True
            else:
                cursor.expect("FORMAT")
                form = cursor.one_of(ExplainFormat, "JSON or TEXT")
            if not cursor.accept(","):
                break
        cursor.expect(")")
    if cursor.at_end or cursor.at("EXPLAIN"):
        raise cursor.expected("a statement to explain")
    return form, analyze
