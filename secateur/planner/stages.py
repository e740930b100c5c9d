"""The stages of a statement: split in two, placed, or gathered.

A statement on one table is split in two (:mod:`~secateur.planner.fragments.partial_final`), which is exact for most
statements and cheap to plan. Otherwise it is placed (:mod:`~secateur.planner.placement.place`). If that is not certain
to be exact either, the coordinator gathers the rows that the statement needs and runs it as a whole.

Everything between two exchanges is one kernel call, and not one call for each operator: DuckDB plans the joins, filters
and groups inside of it better than a graph of our own operators would. So placement decides only which rows move.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from msgspec import structs
from sqlglot import exp

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.duckdb.result_types import is_restored
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.select_plan import PartialAtReaders, Strategy
from secateur.engine.sql.stage import ExchangeKind, QueryStage, stage_relation
from secateur.errors import DatabaseError
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.binding.query import Query
from secateur.planner.checks.claims import Source
from secateur.planner.checks.placed import unsaid_filters
from secateur.planner.checks.recomposed import difference
from secateur.planner.checks.select_node import named_columns
from secateur.planner.cost_model import CostModel
from secateur.planner.fragments.arrow_form import arrow_form
from secateur.planner.fragments.merged_order import is_worth_merging, merge_keys, order_clause
from secateur.planner.fragments.partial_final import PartialFinal, split_select
from secateur.planner.fragments.qualified import NotDistributable, RecompositionMismatch, named
from secateur.planner.fragments.unstable import check_unstable, is_stable
from secateur.planner.gathered import FragmentOf, GatheredScan, gathered_scans, gathered_stages, why_gathered
from secateur.planner.placement.cost import Estimate, expected_rows
from secateur.planner.placement.place import place
from secateur.planner.placement.scan_rows import ScanRows, is_about_scan
from secateur.planner.placement.sent_bytes import sent_bytes
from secateur.planner.placement.stage_builder import StageDraft
from secateur.planner.scans.scan_predicates import ScanPredicates
from secateur.planner.scans.scan_reading import QueryReading, ScanReading
from secateur.planner.text.dialect import parse_query, to_sql, tokenize
from secateur.planner.text.parser_cross_check import DuckDBParse, read_statements
from secateur.planner.text.trees import copied
from secateur.protocol.values import pack

Schemas = Mapping[str, Mapping[str, SqlType | str]]
Columns = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """A statement in stages.

    Attributes:
        stages: In the order in which they can run; the last one has the answer.
        strategy: How they were found.
        reason: Why everything is gathered; for a placed statement the tables that are gathered for a part of it, and
            why; None where nothing is.
        gathered: The stages that gather the filtered rows of each scan, for a statement that runs in other stages.
        at_readers: For a statement over one external table, what is computed where its rows are read; None where they
            are gathered as they are.
    """

    stages: tuple[QueryStage, ...]
    strategy: Strategy
    reason: str | None = None
    gathered: tuple[QueryStage, ...] = ()
    at_readers: PartialAtReaders | None = None


def why_whole(
    query: Query,
    read: QueryReading,
    estimates: Mapping[str, Estimate],
    model: CostModel,
    sent_in_stages: Callable[[], float | None],
) -> str | None:
    """Return why a statement is gathered although it could be divided.

    See :func:`~secateur.planner.gathered.why_gathered`.
    """
    return why_gathered(query, read.scans, _rows_of_scans(read), estimates, model, sent_in_stages)


def sent_if_placed(
    query: Query,
    read: QueryReading,
    schemas: Schemas,
    columns: Columns,
    params: Sequence[Any],
    estimates: Mapping[str, Estimate],
    model: CostModel,
) -> float | None:
    """About how many bytes the stages of a query would send if it were placed; None if it is not.

    Args:
        query: As :func:`staged`, and changed like there: a query that is tried cannot be planned afterwards.
        read: As there.
        schemas: As there.
        columns: As there.
        params: As there.
        estimates: As there.
        model: As there.
    """
    try:
        drafts, _ = _placed(_Settled(query, read, params, _rows_of_scans(read)), schemas, columns, estimates, model)
    except NotDistributable:
        return None
    return sent_bytes(drafts, estimates, model)


def staged(
    query: Query,
    read: QueryReading,
    schemas: Schemas,
    columns: Columns,
    params: Sequence[Any],
    estimates: Mapping[str, Estimate],
    model: CostModel,
    small: str | None,
) -> StagedPlan:
    """Return the stages of a query.

    Args:
        query: The bound query.
        read: Its scans and their bounds.
        schemas: The columns of each scan that it may need.
        columns: Name and type of each column of its result.
        params: Values of its parameters, for their types.
        estimates: The estimated rows of each scan that it needs.
        model: The costs of both forms and of moving rows.
        small: Why it is to be gathered, from :func:`why_whole`; None where it is divided if that is possible.
    """
    gathered = _rows_of_scans(read)
    said = cache(lambda: _said(gathered, read))

    def whole(fragment_of: FragmentOf, *, filters_all: bool = True) -> tuple[QueryStage, ...]:
        scans = gathered_scans(read.scans, said(), estimates, model, filters_all=filters_all)
        return gathered_stages(query, read.scans, scans, schemas, tuple(columns), fragment_of)

    if small is not None:
        return StagedPlan(
            whole(_Binder(params).fragment, filters_all=False), Strategy.GATHER, small, gathered=whole(Fragment.over)
        )
    binder = _Binder(params)
    try:
        settled = _Settled(query, read, params, gathered)
        binder = settled.binder
        at_readers = _at_readers(settled, read, schemas, columns)
        if len(query.scans) == 1 and not query.scans[0].is_fetched:
            try:
                is_large = is_worth_merging((estimate.bytes for estimate in estimates.values()), model)
                partial_final = _in_two(query, read, settled.reading, schemas, columns, binder, is_large=is_large)
                return StagedPlan(partial_final, Strategy.TWO_STAGE)
            except RecompositionMismatch:
                raise
            except NotDistributable:
                pass
        drafts, parts = _placed(settled, schemas, columns, estimates, model)
        expected = {
            scan.scan.relation: expected_rows(scan, gathered[scan.scan.relation], estimates[scan.scan.relation])
            for scan in read.scans
        }
        placed = _placed_stages(drafts, query, schemas, binder, expected)
        # When a placed statement has failed, it does not matter which kernel answers.
        return StagedPlan(placed, Strategy.PLACED, parts, gathered=whole(Fragment.over), at_readers=at_readers)
    except NotDistributable as refused:
        return StagedPlan(whole(binder.fragment), Strategy.GATHER, query.located(str(refused), refused.node))


class _Settled:
    """A query that may be divided.

    Args:
        query: The query.
        read: Its scans and their bounds.
        params: Values of its parameters.
        rows_of_scans: For each scan the predicates on the rows that the query may need, before the tree is changed.

    Attributes:
        query: As given.
        reading: DuckDB's parse tree.
        rows_of: For each scan the predicates on the rows that the query may need.
        binder: DuckDB's binder for its parts.

    Raises:
        NotDistributable: It may not be divided.
    """

    def __init__(
        self, query: Query, read: QueryReading, params: Sequence[Any], rows_of_scans: Mapping[str, ScanRows]
    ) -> None:
        if read.second is None or not read.is_faithful:
            raise NotDistributable("its form cannot be divided into stages")
        if query.tree.find(exp.PositionalColumn) is not None:
            raise NotDistributable(
                "it names columns by their positions, which differ in a stage: use the names of the columns"
            )
        self.query = query
        self.reading = read.second
        unstable = self.reading.unstable()
        check_unstable(query.tree, self.reading)
        self.rows_of = (
            {scan.scan.relation: rows_of(scan, unstable) for scan in read.scans} if unstable else rows_of_scans
        )
        self.binder = _Binder(params)


def _placed(
    settled: _Settled, schemas: Schemas, columns: Columns, estimates: Mapping[str, Estimate], model: CostModel
) -> tuple[tuple[StageDraft, ...], str | None]:
    """Return the stages of a query as drafts, and the tables gathered for them.

    See :func:`~secateur.planner.placement.place.place`.

    Raises:
        NotDistributable: It is not placed.
    """
    query = settled.query
    if query.is_placed:
        raise NotDistributable(
            "a common table expression has a name that the plan uses: choose a name other than a letter and a number"
        )
    drafts, parts = place(
        query,
        settled.reading,
        tuple(columns),
        schemas,
        settled.binder.describe,
        settled.rows_of,
        estimates.__getitem__,
        model,
    )
    for draft in drafts[:-1]:
        _check_restored(draft.columns)
    return drafts, parts


def as_written(query: Query, read: QueryReading, schemas: Schemas, columns: Columns) -> tuple[QueryStage, ...]:
    """Return the stages that run the user's own text, undivided, over all rows of its tables.

    None of their texts is printed from a tree.
    """
    gathered = tuple(GatheredScan((scan,), "", 0.0) for scan in read.scans if not scan.scan.table.replicated)
    return gathered_stages(query, read.scans, gathered, schemas, tuple(columns), Fragment.over)


def _placed_stages(
    drafts: Sequence[StageDraft],
    query: Query,
    schemas: Schemas,
    binder: _Binder,
    expected: Mapping[str, int | None],
) -> tuple[QueryStage, ...]:
    scans = {scan.relation: index for index, scan in enumerate(query.scans)}
    rows = {stage_relation(index): index for index in range(len(drafts))}
    known: dict[str, Mapping[str, SqlType | str]] = {
        **schemas,
        **{relation: dict(drafts[index].columns) for relation, index in rows.items()},
    }
    elsewhere = {
        rows[relation]
        for draft in drafts
        if not draft.at_coordinator
        for relation in draft.relations
        if relation in rows
    }
    stages = []
    for index, draft in enumerate(drafts):
        fragment = binder.fragment(
            draft.sql, {relation: known[relation] for relation in draft.relations}, draft.columns
        )
        exchange, route = ExchangeKind.GATHER, None
        if index in elsewhere:
            exchange = (
                ExchangeKind.BROADCAST
                if draft.route is None
                else ExchangeKind.SHUFFLE
                if draft.route.anchor is None
                else ExchangeKind.ROUTE
            )
            route = draft.route
        stages.append(
            QueryStage(
                draft.name,
                structs.replace(fragment, is_pipelineable=draft.is_pipelineable),
                scans=tuple(scans[relation] for relation in draft.relations if relation in scans),
                inputs=tuple(rows[relation] for relation in draft.relations if relation in rows),
                at_coordinator=draft.at_coordinator,
                exchange=exchange,
                order=draft.order,
                limit=draft.limit,
                columns=() if route is None else route.columns,
                route=None if route is None or route.anchor is None else scans[route.anchor],
                keeps_unmatched=route is not None and route.keeps_unmatched,
                # A scan that others reduce has more relations.
                estimate=expected[draft.relations[0]] if draft.is_scan and len(draft.relations) == 1 else None,
            )
        )
    return tuple(stages)


class _Binder:
    """DuckDB's binder for the texts that are made from a statement."""

    def __init__(self, params: Sequence[Any]) -> None:
        self._params = list(params)

    def describe(self, sql: str, schemas: Schemas) -> tuple[tuple[str, str], ...]:
        """Names and types of the result columns."""
        return default_kernel().describe(sql, schemas, self._params)

    def fragment(self, sql: str, schemas: Schemas, columns: Sequence[tuple[str, str]]) -> Fragment:
        """A fragment for a text, with the arrow kernel's form where it has one."""
        compiled = None
        if len(schemas) == 1:
            ((relation, schema),) = schemas.items()
            tree = parse_query(sql, tokenize(sql))
            compiled = arrow_form(tree, schema, relation, columns) if isinstance(tree, exp.Select) else None
        return Fragment.over(sql, schemas, columns, compiled)


def _in_two(
    query: Query,
    read: QueryReading,
    reading: DuckDBParse,
    schemas: Schemas,
    columns: Columns,
    binder: _Binder,
    *,
    is_large: bool,
) -> tuple[QueryStage, QueryStage]:
    """Partial and final of a split statement over one scan, as stages.

    Raises:
        NotDistributable: It cannot be split, or a part does not bind as it should.
    """
    split, partial_columns = _split(query, reading, schemas, columns, binder)
    gathered = {stage_relation(0): dict(partial_columns)}
    order = merge_keys(split.order, partial_columns) if is_large else ()
    if split.passing is not None and (order or split.limit):
        partial = binder.fragment(split.partial + order_clause(order, partial_columns), schemas, partial_columns)
        final = structs.replace(binder.fragment(split.passing, gathered, columns), is_pipelineable=True)
    else:
        partial = structs.replace(
            binder.fragment(split.partial, schemas, partial_columns), is_pipelineable=split.is_pipelineable
        )
        final = structs.replace(binder.fragment(split.final, gathered, columns), is_pipelineable=split.is_pipelineable)
    first = structs.replace(_scan_stage(0, read.scans[0], partial), order=order)
    return first, QueryStage("final", final, inputs=(0,), at_coordinator=True, limit=split.limit)


def _at_readers(settled: _Settled, read: QueryReading, schemas: Schemas, columns: Columns) -> PartialAtReaders | None:
    """The part of a statement over one external table that its readers compute; None where that saves nothing."""
    query, binder = settled.query, settled.binder
    if len(query.scans) != 1 or query.scans[0].external is None:
        return None
    try:
        split, partial_columns = _split(query, settled.reading, schemas, columns, binder)
    except RecompositionMismatch:
        raise
    except NotDistributable:
        return None
    if split.is_pipelineable and not query.tree.args.get("where"):
        return None
    gathered = {stage_relation(0): dict(partial_columns)}
    return PartialAtReaders(
        binder.fragment(split.partial, schemas, partial_columns), binder.fragment(split.final, gathered, columns)
    )


def _split(
    query: Query, reading: DuckDBParse, schemas: Schemas, columns: Columns, binder: _Binder
) -> tuple[PartialFinal, tuple[tuple[str, str], ...]]:
    """Partial and final of a statement over one scan, and the columns of the partial rows.

    Raises:
        NotDistributable: It cannot be split, or a part does not bind as it should.
    """

    def types_of(expressions: Sequence[str]) -> list[str]:
        return [
            text
            for _, text in binder.describe(f"SELECT {', '.join(expressions)} FROM {query.scans[0].relation}", schemas)
        ]

    try:
        split: PartialFinal = split_select(query, reading, len(columns), types_of)
        partial_columns = binder.describe(split.partial, schemas)
        final_columns = binder.describe(split.final, {stage_relation(0): dict(partial_columns)})
    except DatabaseError as error:
        raise NotDistributable(f"its stages do not bind: {error.message}") from error
    _check_restored(partial_columns)
    _check(query, reading, split)
    if [text for _, text in final_columns] != [text for _, text in columns]:
        raise NotDistributable("its stages return other types than the statement: CAST the columns of the result")
    return split, partial_columns


def _check_restored(columns: Columns) -> None:
    """Check that the rows of a stage do not change on the way to another stage.

    Raises:
        NotDistributable: A column has values that cannot be sent without loss.
    """
    lost = next((text for _, text in columns if not is_restored(text)), None)
    if lost is not None:
        raise NotDistributable(
            f"values of type {lost} cannot be sent between stages without loss: CAST them to VARCHAR"
        )


def _check(query: Query, reading: DuckDBParse, partial_final: PartialFinal) -> None:
    """Check that the two parts of a statement over one scan are that statement.

    Raises:
        RecompositionMismatch: They are not.
    """
    scan = query.scans[0]
    columns = named_columns(column.name for column in scan.table.columns)
    partial, final = read_statements([partial_final.partial, partial_final.final])
    found = difference(reading, partial, final, partial_final, lambda star: columns, is_one_table=True)
    if found is not None:
        raise RecompositionMismatch(found)


def _scan_stage(index: int, read: ScanReading, fragment: Fragment) -> QueryStage:
    """The stage that runs a fragment over one scan, where its partitions are."""
    return QueryStage(f"scan:{read.scan.alias}", fragment, scans=(index,), at_coordinator=read.scan.table.replicated)


def _rows_of_scans(read: QueryReading) -> dict[str, ScanRows]:
    unstable = None if read.second is None else read.second.unstable()
    return {scan.scan.relation: rows_of(scan, unstable) for scan in read.scans}


def _said(rows: Mapping[str, ScanRows], read: QueryReading) -> dict[str, ScanRows]:
    """The same without filters that do not read back as conditions of the statement."""
    filters = {relation: found.where for relation, found in rows.items() if found.where}
    unsaid = frozenset(filters)
    if filters and read.second is not None:
        unsaid = unsaid_filters(read.second, filters, {scan.scan.relation: Source.of(scan.scan) for scan in read.scans})
    return {
        relation: replace(found, conjuncts=(), where="") if relation in unsaid else found
        for relation, found in rows.items()
    }


def rows_of(read: ScanReading, unstable: Collection[str] | None) -> ScanRows:
    """Return the rows of a scan that the statement may need.

    ``unstable`` are its calls that depend on when and where they are evaluated, None where not known.
    """
    applied = applied_conjuncts(read, unstable)
    where = " AND ".join(f"({to_sql(_bare(conjunct, read.scope))})" for conjunct in applied)
    # Scans that read the same may read other rows once the keys of joins are known.
    same = [[bounds.tree, bounds.keys] for bounds in (read.bounds, read.bounds_in_steps) if bounds is not None]
    return ScanRows(tuple(applied), where, pack([read.scan.table.table_id, same]))


def applied_conjuncts(read: ScanReading, unstable: Collection[str] | None) -> list[exp.Expr]:
    """Return the conjuncts on a scan alone, which may be applied to its rows first.

    ``unstable`` is as for :func:`rows_of`.
    """
    known = () if unstable is None else read.scope.local
    return [
        conjunct for conjunct in known if is_about_scan(conjunct, read.scope) and is_stable(conjunct, unstable or ())
    ]


def _bare(conjunct: exp.Expr, scope: ScanPredicates) -> exp.Expr:
    def rename(node: exp.Expr) -> exp.Expr:
        column = scope.column_of(node) if isinstance(node, exp.Column) else None
        return node if column is None else named(column)

    return copied(conjunct).transform(rename, copy=False)
