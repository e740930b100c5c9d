"""Gathered statements: the coordinator gets the rows of all scans and runs the user's own text over them.

It is the form of every statement that cannot be divided, and the better one for few rows and many joins or queries; a
cost model decides (:meth:`QueryInputs.why_gathered`).

A table that the statement names several times moves once. Rows of a small table are not filtered before they move:
DuckDB would see a table of few rows behind a filter, assume a fraction of these, and order joins accordingly.
Replicated tables are read where they are.

Source: Presto's and Trino's choice of a single node for small inputs; the text stays one fragment, as in Apache
    Ignite's reduce queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.stage import InputAlias, QueryStage, stage_relation
from secateur.planner.binding.query import Query
from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.exchanges import Schema
from secateur.planner.prune.scan_reading import QueryReading, ScanFilter, ScanReading, ScanRows, either, selected_rows
from secateur.planner.row_estimates import Estimate, expected_rows
from secateur.planner.text.syntax import nodes_of
from secateur.planner.tree.relations import AnyRelation, LogicalFilter, LogicalStageRows
from secateur.planner.tree.rewriting import picked
from secateur.planner.tree.types import LogicalType

Columns = tuple[tuple[str, str], ...]

FragmentOf = Callable[[str, Mapping[str, Schema], Columns, AnyRelation], Fragment]


@dataclass(frozen=True, slots=True)
class GatheredScan:
    """The rows of a partitioned table that the coordinator gets, for one or several references to it.

    Attributes:
        references: The scans whose rows these are: they read the same columns of the same partitions and key ranges.
        filter: Which rows; None for all.
        nbytes: The estimated bytes.
        expected: About how many rows these are; None where that is not comparable with what a run finds.
    """

    references: tuple[ScanReading, ...]
    filter: ScanFilter | None
    nbytes: float
    expected: int | None = None

    @property
    def sql(self) -> str:
        """Its text."""
        scan = self.references[0].scan
        return selected_rows(scan.relation, scan.columns, "" if self.filter is None else self.filter.sql)

    @property
    def rows(self) -> AnyRelation:
        """The same as a relation."""
        scan = self.references[0].scan
        names = tuple(column.name for column in scan.visible_columns)
        types = tuple(LogicalType(str(column.type)) for column in scan.visible_columns)
        rows: AnyRelation = LogicalStageRows(name=scan.relation, names=names, types=types)
        if self.filter is not None:
            rows = LogicalFilter(children=(rows,), expressions=(self.filter.condition,))
        return picked(rows, [names.index(name) for name in scan.columns])


@dataclass(frozen=True, slots=True)
class QueryInputs:
    """What the stages of a query are made from.

    Attributes:
        query: The bound query.
        read: Its plan, its scans and their bounds.
        rows_of: For each scan the rows that it may need, by the name of the scan's relation.
        schemas: The columns of each scan that it may need.
        columns: Name and type of each column of its result.
        params: Values of its parameters, for their types.
        estimates: The estimated rows of each scan that it needs.
        model: The costs of both forms and of moving rows.
    """

    query: Query
    read: QueryReading
    rows_of: Mapping[str, ScanRows]
    schemas: Mapping[str, Schema]
    columns: Columns
    params: Sequence[Any]
    estimates: Mapping[str, Estimate]
    model: CostModel

    def gathered_scans(self, *, filters_all: bool) -> tuple[GatheredScan, ...]:
        """Return the scans that the statement gathers.

        Args:
            filters_all: Whether each reference gets only the rows that pass its own conditions, however many they are.
                The statement then evaluates nothing on the other rows, so it raises no error for them. Otherwise rows
                are filtered, and sent once for each filter, where it pays.
        """
        together: dict[object, list[ScanReading]] = {}
        for index, read in enumerate(self.read.scans):
            if not read.scan.table.replicated:
                rows = self.rows_of[read.scan.relation]
                # Rows whose keys were found in a step before are checked scan by scan when they are read.
                is_alone = read.bounds_in_steps is not None
                together.setdefault(
                    index if is_alone else (rows.read, read.scan.columns, rows.filter if filters_all else None), []
                ).append(read)
        return tuple(self._gathered_scan(references, filters_all=filters_all) for references in together.values())

    def _gathered_scan(self, references: Sequence[ScanReading], *, filters_all: bool) -> GatheredScan:
        """The rows that some references need together, filtered where that leaves out much, or always."""
        found = [self.estimates[read.scan.relation] for read in references]
        filters = [self.rows_of[read.scan.relation].filter for read in references]
        shares = {filter_: estimate.share for filter_, estimate in zip(filters, found, strict=True)}
        share = min(1.0, sum(shares.values()))
        nbytes = max(estimate.table_bytes for estimate in found)
        is_worth_filtering = nbytes >= self.model.unfiltered_bytes_max and share <= self.model.filtered_share_max
        if not filters_all and (None in filters or not is_worth_filtering):
            return GatheredScan(tuple(references), None, nbytes)
        if len(set(filters)) > 1:
            return GatheredScan(tuple(references), either(filters), nbytes * share)
        first = references[0]
        expected = expected_rows(first, self.rows_of[first.scan.relation], found[0])
        return GatheredScan(tuple(references), filters[0], nbytes * share, expected)

    # Whether a statement of many parts is gathered or runs in stages. The two forms differ in the time that they take
    # beyond DuckDB's time over its own tables. A gathered statement pays for each byte that moves, once, and for each
    # table reference in the one kernel call that joins them. A statement in stages pays for each reference at every
    # member, in kernels that know the number of an input's rows but not their values, and for the bytes that its
    # stages send each other, which filters and co-location may make few. DuckDB joins eleven inputs of such a stage in
    # a bad order.
    #
    # A bound on the gathered bytes alone cannot decide: q02 of TPC-H gathers 27 MB and exchanges 1, q04 of TPC-DS
    # gathers 42 and exchanges 66.
    #
    # The defaults were measured with three members on two cores: statements of TPC-DS at scale factor 0.1 and of TPC-H
    # at scale factor 1 ran alternately in both forms, in one process and, for q02 and q11 of TPC-H, as Ray actors;
    # their time beyond DuckDB's was fitted to properties that the planner knows. More members raise the cost of a
    # statement in stages, more cores lower it.
    #
    # Source: plans weighed by their work and by what they send, as in System R* (Mackert and Lohman, 1986).
    def why_gathered(self, sent_in_stages: Callable[[], float | None]) -> str | None:
        """Return why a statement that could be divided should be gathered; None if it should not.

        Args:
            sent_in_stages: Places the statement and estimates the bytes that its stages would send, None if it cannot
                be divided. It is called only if gathering costs more than stages that send nothing.
        """
        model, scans = self.model, self.read.scans
        if len(scans) == 1:
            return None
        queries = sum(node.get("type") == "SELECT_NODE" for node in nodes_of(self.query.syntax.node))
        parts = len(scans) + queries
        if parts < model.gather_parts_min:
            return None
        moved = sum(scan.nbytes for scan in self.gathered_scans(filters_all=False))
        if not 0 < moved <= model.gather_statement_bytes_max:
            return None
        cost = model.gather_ms + model.gather_ms_per_byte * moved + model.gather_ms_per_part * parts
        in_stages = model.stages_ms_per_part * parts
        if cost > in_stages:
            sent = sent_in_stages()
            if sent is None or cost > in_stages + model.stages_ms_per_byte * sent:
                return None
        return (
            f"its tables are small, about {moved / 1e6:.1f} MB for {len(scans)} table references "
            f"in {queries} queries: one member reads them sooner than all members exchange rows"
        )

    def gathered_stages(self, scans: Sequence[GatheredScan], fragment_of: FragmentOf) -> tuple[QueryStage, ...]:
        """Return the stages that gather the statement."""
        number = {scan.relation: index for index, scan in enumerate(self.query.scans)}
        stages: list[QueryStage] = []
        aliases: list[InputAlias] = []
        for index, gathered in enumerate(scans):
            first = gathered.references[0].scan
            schema = self.schemas[first.relation]
            shown = tuple((name, str(schema[name])) for name in first.columns)
            fragment = fragment_of(gathered.sql, {first.relation: schema}, shown, gathered.rows)
            stages.append(
                QueryStage(
                    f"scan {first.alias}",
                    structs.replace(fragment, is_pipelineable=True),
                    scans=(number[first.relation],),
                    estimate=gathered.expected,
                )
            )
            aliases += [InputAlias(reference.scan.relation, stage_relation(index)) for reference in gathered.references]
        here = tuple(number[read.scan.relation] for read in self.read.scans if read.scan.table.replicated)
        whole = Fragment.over(self.query.sql, self.schemas, self.columns)
        read = tuple(range(len(stages)))
        final = QueryStage("final", whole, scans=here, inputs=read, at_coordinator=True, aliases=tuple(aliases))
        return (*stages, final)
