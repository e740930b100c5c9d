"""What EXPLAIN answers for the cases of a file: from a planner alone, or from a cluster where the tables of the file
have rows.
"""

from __future__ import annotations

import json
import re
from itertools import dropwhile

import secateur
from described_tables import DescribedTables
from plan_files import Case, PlanFile
from secateur.engine.sql import ScanPlan
from secateur.errors import Error
from secateur.planner import PlannedSelect, PlannedSteps
from secateur.protocol import Statement


def described_answer(tables: DescribedTables, case: Case) -> str:
    """EXPLAIN of tables that are only described; the error where the statement is refused."""
    parameters = () if case.parameters is None else case.parameters
    try:
        if case.shows_texts:
            return texts_of(tables.prepare(case.sql, parameters, case.settings))
        explained = tables.explain(case.sql, parameters, **case.settings)
    except Error as error:
        place = "".join(f", {name} {error.details[name]}" for name in ("line", "column") if name in error.details)
        told = "" if place.removeprefix(", ") in error.message else f" at{place.removeprefix(',')}"
        return f"{type(error).__name__}{told}: {error.message}"
    assert json.loads(json.dumps(explained.json)) == explained.json, "the form for programs is plain JSON"
    lines = [line for line in _without_dag(explained.text.splitlines()) if not line.startswith("pruning: on")]
    return "\n".join(re.sub(r" \[m\d[^\]]*\]", "", line) for line in lines)


def texts_of(statement: Statement) -> str:
    """The columns that a planned statement reads, and the texts that run in its place: whole on one member, and in
    stages where there are several.
    """
    match statement:
        case PlannedSelect(materialized=PlannedSteps(steps=steps)):
            return "\n".join(["steps:", *(line for step in steps for line in _select_texts(step.query))])
        case PlannedSelect():
            return "\n".join(_select_texts(statement))
        case _:
            details = [
                str(getattr(statement, name).name) for name in ("kind", "duplicate_match") if hasattr(statement, name)
            ]
            lines = [f"{' '.join([type(statement).__name__, *details])}:", *_select_texts(statement.select)]
            returning = getattr(statement, "returning", None)
            return "\n".join([*lines, *(["returning:", *_select_texts(returning)] if returning is not None else [])])


def _select_texts(select: PlannedSelect) -> list[str]:
    plan = select.plan
    scans = [
        f"  {scan.relation} is {scan.table}({', '.join(scan.columns)}){_search(scan, select)}" for scan in plan.scans
    ]
    scans.append(f"  answers ({', '.join(f'{name} {kind}' for name, kind in plan.columns)})")
    kernel = "DuckDB" if plan.local.arrow is None else "Arrow"
    stages = [f"  {stage.name}: {stage.fragment.sql}" for stage in plan.stages] if len(plan.stages) > 1 else []
    return [
        f"on one member, by {kernel}:",
        *scans,
        f"  {plan.local.sql}",
        *(["on several members:", *stages] if stages else []),
    ]


def _search(scan: ScanPlan, select: PlannedSelect) -> str:
    """Whether a search by key finds the rows of a scan and leaves nothing for WHERE."""
    is_decided = select.plan.searched is not None and scan.keys.search(select.params or ())[1]
    return ", found by its key alone" if is_decided else ""


def answer(conn: secateur.Connection, case: Case) -> str:
    """EXPLAIN of tables that have rows, without the lines that name members."""
    lines = _without_dag(str(conn.explain(case.sql, case.parameters or ())).splitlines())
    return "\n".join(line for line in lines if not line.startswith("pruning: on") and "execution: " not in line)


def described(file: PlanFile) -> list[str]:
    """The answers for all cases of a file without rows."""
    tables = described_tables(file)
    return [described_answer(tables, case) for case in file.cases]


def described_tables(file: PlanFile) -> DescribedTables:
    """The tables of a file without rows."""
    tables = DescribedTables.of(file.definitions)
    for name, rows, distinct in file.statistics:
        tables.fill(name, rows, dict(distinct))
    return tables


def define(conn: secateur.Connection, file: PlanFile) -> None:
    """Make the tables of a file, with their rows and statistics."""
    for statement in file.definitions:
        conn.execute(statement)
    for (name,) in conn.execute("SELECT table_name FROM secateur.tables WHERE table_type = 'BASE TABLE'").fetchall():
        conn.table(name).statistics()


def _without_dag(lines: list[str]) -> list[str]:
    """Without the vertices and edges, which the lines on stages say better."""
    if "dag:" not in lines:
        return lines
    start = lines.index("dag:")
    return [*lines[:start], *dropwhile(lambda line: line.startswith("  "), lines[start + 1 :])]
