"""From the text of a query to its plan.

The order of the steps: bind the tables, let DuckDB bind the rest (names and types of the result, and every error that is DuckDB's to find), read the
statement a second time, bound each scan by the conjuncts that both readings have, and cut the statement in two where that is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import Any, Final

from sqlglot import Token, exp

from secateur.engine.kernels.arrow_fragment import ArrowFragment
from secateur.engine.kernels.duckdb_kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment, run
from secateur.engine.kernels.result_types import sql_type
from secateur.engine.plan import ScanPlan, SelectPlan, Strategy
from secateur.engine.stage import Stage, stage_relation
from secateur.errors import DatabaseError, NotSupportedError, ProgrammingError, UnknownColumnError, UnknownTableError
from secateur.partitioning.statistics import NO_STATISTICS, StatisticsPicture
from secateur.partitioning.table import TableDef
from secateur.partitioning.types import SqlType
from secateur.planner.fragments.arrow_compiler import compile_arrow
from secateur.planner.fragments.canonical import Cut, canonical_select, named
from secateur.planner.fragments.two_stage import Halves, cut
from secateur.planner.plan_settings import DEFAULT_SETTINGS, PlanSettings
from secateur.planner.query import Query, Scan, bind_query, is_columns_call, near_names
from secateur.planner.scans.scan_reading import ScanReading, read_query
from secateur.planner.scans.scope import Scope
from secateur.planner.statement import SelectStatement
from secateur.planner.text.dialect import parse_query, quoted, to_sql, tokenize
from secateur.planner.text.folding import folded
from secateur.planner.text.long_lists import lists_agree
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.second_reading import SecondReading
from secateur.wire import encode_table

__all__ = ["plan_select"]

_NAME_IN_MESSAGE: Final = re.compile(r'(?:column named|Referenced column|Referenced table) "([^"]+)"')

# The arrow kernel evaluates expressions by recursion; so long or deep a statement is DuckDB's.
_ARROW_NODES_MAX: Final = 1000
_ARROW_DEPTH_MAX: Final = 200

Schemas = Mapping[str, Mapping[str, SqlType | str]]


def plan_select(
    text: str,
    tokens: Sequence[Token],
    parameters: Parameters,
    params: Sequence[Any],
    find: Callable[[str], TableDef],
    schema_version: int,
    parameter_types: Sequence[str],
    rewritten: Sequence[tuple[int, int, str]] = (),
    settings: PlanSettings = DEFAULT_SETTINGS,
    picture: StatisticsPicture = NO_STATISTICS,
) -> SelectStatement:
    """Plan one query.

    Args:
        text: The user's whole text.
        tokens: Those of the query, with numbered parameters.
        parameters: As read from the same tokens.
        params: Values in order of index; their types decide types of results, their values decide nothing.
        find: The catalog's lookup of a table by name.
        schema_version: The catalog's version.
        parameter_types: The types of the values, part of the plan's identity.
        rewritten: As :func:`~secateur.planner.query.bind_query`.
        settings: What the session wants of the plan.
        picture: The statistics of the tables, for estimates.

    Raises:
        ProgrammingError, DataError: The statement is wrong; positions are those in ``text``.
        NotSupportedError: A hidden list stands where only the literals mean what they mean.
    """
    query = bind_query(text, tokens, parameters, find, rewritten)
    if not lists_agree(query, dict(enumerate(parameters.lists, parameters.count))):
        raise NotSupportedError("the statement has a list that may not be taken out of it")
    columns = _described(query, params)
    schemas = {scan.relation: _schema(scan) for scan in query.scans}
    read = read_query(query, settings)
    reading, scans, faithful = read.second, read.scans, read.is_faithful
    repeatable = reading is not None and reading.is_repeatable
    binder = _Binder(params)
    local = Fragment.over(query.sql, schemas, columns, _arrow(query, schemas, columns) if faithful else None)
    reason: str | None = None
    stages: tuple[Stage, ...]
    try:
        if reading is not None and not repeatable:
            raise Cut("it has a function or sample whose value depends on when and where it is evaluated")
        if reading is None or not faithful:
            raise Cut("it is written in a form that is not taken apart")
        partial, final = _halved(query, reading, schemas, columns, binder)
        stages = (_scan_stage(0, scans[0], partial), Stage("final", final, inputs=(0,), at_coordinator=True))
        local = replace(local, row_by_row=partial.row_by_row)
        strategy = Strategy.TWO_STAGE
    except Cut as refused:
        strategy, reason = Strategy.GATHER, str(refused)
        gathered = tuple(_gather(index, read, schemas[read.scan.relation], binder, repeatable=repeatable) for index, read in enumerate(scans))
        relations = {stage_relation(index): dict(stage.fragment.columns) for index, stage in enumerate(gathered)}
        stages = (*gathered, Stage("final", Fragment.over(query.gathered_sql, relations, columns), inputs=tuple(range(len(scans))), at_coordinator=True))
    plan = SelectPlan(
        plan_id=_plan_id(text, len(parameters.lists), tuple(parameter_types), schema_version, settings, picture.version if len(query.scans) > 1 else 0),
        scans=tuple(_scan_plan(read, query) for read in scans),
        local=local,
        stages=stages,
        strategy=strategy,
        gather_reason=reason,
        columns=columns,
        parameter_count=parameters.total,
        parameter_names=parameters.names,
        empty=_empty_answer(query, reading, stages, params) if repeatable else None,
        deterministic=reading is not None and repeatable and not reading.depends_on_order,
        schema_version=schema_version,
    )
    return SelectStatement(plan, tuple(scan.bounds for scan in scans), None, rewrites=read.rewrites, colocated=read.colocated)


def _plan_id(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _scan_plan(read: ScanReading, query: Query) -> ScanPlan:
    scan, table = read.scan, read.scan.table
    return ScanPlan(
        relation=scan.relation,
        table_id=table.table_id,
        table=table.name,
        alias=scan.alias,
        columns=scan.columns,
        tree=read.bounds.tree,
        group=table.scheme.affinity_group(),
        replicated=table.replicated,
        table_version=table.version,
        keys=read.bounds.keys,
        reason=None if read.bounds.reason is None else _own_name(read.bounds.reason, query),
    )


class _Binder:
    """DuckDB's binder for the texts that are made from a statement."""

    def __init__(self, params: Sequence[Any]) -> None:
        self._params = list(params)

    def describe(self, sql: str, schemas: Schemas) -> tuple[tuple[str, str], ...]:
        """Names and types of the result columns."""
        return default_kernel().describe(sql, schemas, self._params)

    def fragment(self, sql: str, schemas: Schemas, columns: Sequence[tuple[str, str]]) -> Fragment:
        """A fragment for a text, with the arrow kernel's form where it has one."""
        (relation,) = schemas
        tree = parse_query(sql, tokenize(sql))
        compiled = _compiled(tree, schemas[relation], relation, columns) if isinstance(tree, exp.Select) else None
        return Fragment.over(sql, schemas, columns, compiled)


def _described(query: Query, params: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """The result columns, from DuckDB's binder; its errors get positions in the user's text."""
    try:
        described = default_kernel().describe(query.sql, {scan.relation: _schema(scan) for scan in query.scans}, list(params))
        return tuple((_own_name(name, query), text) for name, text in described)
    except (UnknownColumnError, UnknownTableError) as error:
        raise _with_position(error, query) from None
    except ProgrammingError as error:
        if query.tree.find(exp.Pivot) is not None:
            raise NotSupportedError("PIVOT without the values of its column is not supported: write them, FOR column IN (values)") from error
        raise type(error)(_with_own_names(error.message, query), **error.details) from None


def _own_name(name: str, query: Query) -> str:
    """A text made from the bound statement as the user wrote it: the name of a result column that has none of its own, a reason."""
    for scan in query.scans:
        own = scan.alias if folded(scan.alias) == folded(scan.table.name) else f"{scan.table.name} AS {scan.alias}"
        for alias in (scan.alias, quoted(scan.alias)):
            name = name.replace(f"{scan.relation} AS {alias}", own)
    for index in reversed(range(len(query.parameters.names))):
        name = name.replace(f"${index + 1}", f"${query.parameters.names[index]}")
    return name


def _with_position(error: ProgrammingError, query: Query) -> ProgrammingError:
    """An unknown name, where it stands, and what may have been meant."""
    match = _NAME_IN_MESSAGE.search(error.message)
    if match is None:
        return error
    name = match[1]
    for node in query.tree.find_all(exp.Column):
        identifier = node.this if isinstance(error, UnknownColumnError) else node.args.get("table")
        if isinstance(identifier, exp.Identifier) and folded(identifier.name) == folded(name) and "start" in identifier.meta:
            start, end = int(identifier.meta["start"]), int(identifier.meta["end"])
            if isinstance(error, UnknownColumnError):
                scans = [scan for scan in query.scans if not node.table or folded(scan.alias) == folded(node.table)]
                known = list(dict.fromkeys(column.name for scan in scans for column in scan.table.columns))
                if any(folded(name) == folded(column) for column in known):
                    continue
                hint = f"; {near_names(name, known)}" if known else ""
                return located(UnknownColumnError, f"column {name!r} does not exist{hint}", query.text, start, end - start + 1)
            hint = near_names(name, [scan.alias for scan in query.scans])
            return located(UnknownTableError, f"{name!r} names no table of this statement; {hint}", query.text, start, end - start + 1)
    return type(error)(_with_own_names(error.message, query), **error.details)


def _with_own_names(message: str, query: Query) -> str:
    for scan in query.scans:
        message = re.sub(rf"\b{scan.relation}\b", scan.alias, message)
    return message


def _schema(scan: Scan) -> dict[str, SqlType | str]:
    return {column.name: column.type for column in scan.table.columns if column.name in scan.columns}


def _halved(query: Query, reading: SecondReading, schemas: Schemas, columns: Sequence[tuple[str, str]], binder: _Binder) -> tuple[Fragment, Fragment]:
    """Partial and final of a cut statement, bound.

    Raises:
        Cut: It cannot be cut, or a half does not bind as it should.
    """
    relation = query.scans[0].relation if len(query.scans) == 1 else ""

    @cache
    def type_of(expression: str) -> str:
        ((_, text),) = binder.describe(f"SELECT {expression} FROM {relation}", schemas)
        return text

    try:
        halves: Halves = cut(query, reading, len(columns), type_of)
        partial_columns = binder.describe(halves.partial, schemas)
        gathered = {stage_relation(0): dict(partial_columns)}
        final_columns = binder.describe(halves.final, gathered)
    except DatabaseError as error:
        raise Cut(f"its parts do not bind: {error.message}") from error
    if [text for _, text in final_columns] != [text for _, text in columns]:
        raise Cut("its parts have other types than the whole")
    partial, final = binder.fragment(halves.partial, schemas, partial_columns), binder.fragment(halves.final, gathered, columns)
    return replace(partial, row_by_row=halves.row_by_row), replace(final, row_by_row=halves.row_by_row)


def _scan_stage(index: int, read: ScanReading, fragment: Fragment) -> Stage:
    """The stage that runs a fragment over one scan, where its partitions are."""
    return Stage(f"scan:{read.scan.alias}", fragment, scans=(index,), at_coordinator=read.scan.table.replicated)


def _gather(index: int, read: ScanReading, schema: Mapping[str, SqlType | str], binder: _Binder, *, repeatable: bool) -> Stage:
    """The rows and columns of a scan that the statement may need."""
    scan, scope = read.scan, read.scope
    applied = [conjunct for conjunct in scope.local if repeatable and _is_local(conjunct, scope)]
    where = " AND ".join(f"({to_sql(_bare(conjunct, scope))})" for conjunct in applied)
    sql = f"SELECT {', '.join(map(quoted, scan.columns))} FROM {scan.relation}" + (f" WHERE {where}" if where else "")
    columns = tuple((name, str(schema[name])) for name in scan.columns)
    return _scan_stage(index, read, binder.fragment(sql, {scan.relation: schema}, columns))


def _is_local(conjunct: exp.Expr, scope: Scope) -> bool:
    """Whether a conjunct reads columns of its scan and nothing else."""
    columns = list(conjunct.find_all(exp.Column))
    # A lambda and a list comprehension have names of their own; COLUMNS() names columns by a pattern.
    foreign = conjunct.find(exp.Query, exp.Lambda, exp.Comprehension, exp.AggFunc, exp.Window, exp.Star) is not None
    foreign = foreign or any(map(is_columns_call, conjunct.find_all(exp.Anonymous)))
    return bool(columns) and not foreign and all(scope.column_of(column) is not None for column in columns)


def _bare(conjunct: exp.Expr, scope: Scope) -> exp.Expr:
    def rename(node: exp.Expr) -> exp.Expr:
        column = scope.column_of(node) if isinstance(node, exp.Column) else None
        return node if column is None else named(column)

    return conjunct.copy().transform(rename, copy=False)


def _arrow(query: Query, schemas: Schemas, columns: Sequence[tuple[str, str]]) -> ArrowFragment | None:
    """The whole statement for the arrow kernel, when it reads one table plainly."""
    if len(query.scans) != 1 or not isinstance(query.tree, exp.Select) or query.tree.args.get("joins") or query.tree.args.get("with_"):
        return None
    scan = query.scans[0]
    if scan.node.parent is not query.tree.args.get("from_"):
        return None
    try:
        select = canonical_select(query.tree, scan)
    except Cut:
        return None
    return _compiled(select, schemas[scan.relation], scan.relation, columns)


def _is_within(tree: exp.Expr, nodes_max: int, depth_max: int) -> bool:
    """Whether a tree has at most so many nodes, none of them deeper."""
    level: list[exp.Expr] = [tree]
    count = 0
    for _ in range(depth_max):
        count += len(level)
        if count > nodes_max:
            return False
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return True
    return False


def _compiled(select: exp.Select, schema: Mapping[str, SqlType | str], relation: str, columns: Sequence[tuple[str, str]]) -> ArrowFragment | None:
    if not _is_within(select, _ARROW_NODES_MAX, _ARROW_DEPTH_MAX):
        return None
    typed = {name: known for name, kind in schema.items() if (known := kind if isinstance(kind, SqlType) else sql_type(kind)) is not None}
    if len(typed) < len(schema):
        return None
    compiled = compile_arrow(select, typed, relation, columns)
    return compiled if isinstance(compiled, ArrowFragment) else None


def _empty_answer(query: Query, reading: SecondReading | None, stages: Sequence[Stage], params: Sequence[Any]) -> bytes | None:
    """The answer over no rows, when it is the same for all parameters: none, or only in WHERE, where no row asks for them."""
    if query.parameters.total and (reading is None or len(query.scans) != 1 or not reading.parameters_only_in_where):
        return None
    final = stages[-1]
    relations = {stage_relation(index): stages[index].fragment.schema.empty_table() for index in final.inputs}
    try:
        return bytes(encode_table(run(final.fragment, relations, list(params))))
    except DatabaseError:
        # A constant part that fails, such as a bad cast: it fails again, and is reported, when the statement runs.
        return None
