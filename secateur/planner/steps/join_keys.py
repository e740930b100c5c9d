"""Dynamic filters, rule ``join_keys_first``: the keys of a join's selective side are found first, and prune the other.

::

    SELECT o.* FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.region = 'north'

gets a second form beside the ordinary plan: a step, ``SELECT DISTINCT id FROM customers WHERE region = 'north'``, and
the statement itself, whose scans have ``c.id IN $1`` as a condition of the join that is true whenever the join's own
is. The text that runs does not change: only partitions and key ranges are left out.

**Why the answer is the same.** Every row of the build side that can influence the answer passes the conditions on it
alone, so its key is among the values, or NULL, which equals nothing; where the conditions of any join or of WHERE have
``o.customer_id = c.id``, they imply ``c.id IN $1``, for every kind of join. The consequences for
the scans are derived from that as from any condition. The implication holds for one state of the build side. The
statement therefore reads it again, and members that find it changed since the step refuse
(:mod:`secateur.storage.hosted_tables`); the statement then runs undivided. Keys that were filters on both sides would
need no comparison of states, but the answer could then have half of a load.

**When.** Only where the rows that are not read are estimated to be worth more than the round trip. Statements over
small tables are not examined.

Source: dynamic filtering of Trino and runtime filters of Impala, on partitions instead of rows; the steps are those of
    IEP-24, "Materialization".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from secateur.errors import DatabaseError
from secateur.partitioning.pruning.condition import equal_classes
from secateur.partitioning.tables.statistics import StatisticsSnapshot
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.bound_plan import Unreadable
from secateur.planner.binding.catalog_view import PlanSettings
from secateur.planner.binding.query import Query
from secateur.planner.constrain.descent import ScanConditions
from secateur.planner.constrain.lists import searched_parameter
from secateur.planner.constrain.numbering import ScanColumn
from secateur.planner.cost_model import CostModel
from secateur.planner.gathered import QueryInputs
from secateur.planner.prune.bounds import ScanBounds
from secateur.planner.prune.scan_reading import (
    QueryReading,
    ScanReading,
    ScanRows,
    bounds_of,
    conditions_with_lists,
    selected_rows,
)
from secateur.planner.row_estimates import has_list, is_few, key_selectivity, partition_selectivity, selectivity_of
from secateur.planner.statement import PlannedSelect, PlannedStep, PlannedSteps
from secateur.planner.steps.subqueries import VALUES_MAX
from secateur.protocol.query_parts import SubqueryUse

RULE: Final = "join_keys_first"
"""The name by which the rule is switched off."""

PlanStep = Callable[[str, Sequence[str]], PlannedSelect]
"""Plans the text of a step, which has the parameters of the statement, and those of steps before it, of these types."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One scan of a statement, with its statistics.

    Attributes:
        read: The scan.
        rows: The estimated number of its rows.
        relevant: The estimated number of those that pass its own predicates.
        distinct: The estimated number of values of each column, at least one.
        sample_values: Some value of each column.
        is_named: Whether the statement names the keys that are read of it.
    """

    read: ScanReading
    rows: float
    relevant: float
    distinct: Mapping[str, int]
    sample_values: Mapping[str, object]
    is_named: bool

    @property
    def relation(self) -> str:
        return self.read.scan.relation

    def values(self, column: str) -> float:
        """About how many values of a column the relevant rows have."""
        return min(self.relevant, self.distinct.get(column, self.rows))


@dataclass(frozen=True, slots=True)
class _Build:
    """A side of joins whose keys, about so many, would be found first: those of some columns."""

    side: _Side
    columns: tuple[str, ...]
    keys: float

    def cost(self, model: CostModel) -> float:
        """The cost in rows: the round trip, and the rows that the step reads."""
        return model.step_rows + (0 if self.side.is_named else model.step_read_weight * self.side.rows)


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """A statement that runs better if keys of its joins are found first.

    Attributes:
        steps: Plan the queries that find them.
        watched: The scans whose keys they are.
        bounds: The resulting bounds of each scan.
    """

    steps: tuple[Callable[[PlanStep], PlannedStep], ...]
    watched: tuple[int, ...]
    bounds: tuple[ScanBounds, ...]

    def noted_in(self, read: QueryReading) -> QueryReading:
        """Return the reading with the bounds of each scan in steps."""
        scans = zip(read.scans, self.bounds, strict=True)
        return replace(read, scans=tuple(replace(scan, bounds_in_steps=bounds) for scan, bounds in scans))

    def in_steps(self, statement: PlannedSelect, plan_step: PlanStep) -> PlannedSelect:
        """Return the statement with its form in steps.

        Never raises if a step cannot be planned: then only the ordinary plan is used. Cost: a plan for each step.
        """
        try:
            steps = tuple(planned(plan_step) for planned in self.steps)
        except DatabaseError:
            return statement
        plan = statement.plan
        scans = tuple(
            structs.replace(scan, tree=bounds.tree, keys=bounds.keys, reason=bounds.reason)
            for scan, bounds in zip(plan.scans, self.bounds, strict=True)
        )
        outer = structs.replace(
            plan, scans=scans, parameter_count=plan.parameter_count + sum(step.parameter_count for step in steps)
        ).named()
        inner = replace(statement, plan=outer, bounds=self.bounds)
        return replace(statement, materialized=PlannedSteps(steps, inner, self.watched))


def find_join_keys(
    inputs: QueryInputs, statistics_snapshot: StatisticsSnapshot, settings: PlanSettings
) -> JoinKeys | None:
    """Find the join keys that are worth finding first.

    Args:
        inputs: The query, which has the same answer whenever it is computed.
        statistics_snapshot: The statistics of the tables.
        settings: The session's settings for the plan.

    Returns:
        None when there is nothing to gain. Cost: some microseconds for a statement over small tables, or of one scan.
    """
    query, read = inputs.query, inputs.read
    if RULE in settings.disabled_rules or len(query.scans) < 2 or isinstance(read.plan, Unreadable):
        return None
    model, first = settings.cost_model, query.parameters.total
    large = {scan.scan.relation for scan in read.scans if _is_large(scan, statistics_snapshot, first, model)}
    if not large:
        return None
    sides = {
        scan.scan.relation: side
        for scan in read.scans
        if (side := _side(scan, statistics_snapshot, first, model)) is not None
    }
    return _Search(query, read, inputs.rows_of, sides, first, settings).found(
        [side for side in sides.values() if side.relation in large]
    )


def _is_large(read: ScanReading, statistics_snapshot: StatisticsSnapshot, first: int, model: CostModel) -> bool:
    """Whether so much of a scan is read that keys might pay."""
    statistics = statistics_snapshot.of(read.scan.table.table_id)
    return (
        statistics is not None
        and statistics.rows > model.step_rows
        and not read.scan.table.replicated
        and not _is_named(read, first, model)
    )


def _is_named(read: ScanReading, first: int, model: CostModel) -> bool:
    """Whether the statement names the keys that are read of a scan, or a list of them."""
    return is_few(read.bounds.tree, first, model) or (read.bounds.reason is None and has_list(read.bounds.tree))


def _side(read: ScanReading, statistics_snapshot: StatisticsSnapshot, first: int, model: CostModel) -> _Side | None:
    statistics = statistics_snapshot.of(read.scan.table.table_id)
    if statistics is None or read.scan.is_fetched:
        return None
    relevant = statistics.rows * selectivity_of(read, statistics, model)
    distinct = {
        name: max(column.distinct, 1) for name, column in statistics.columns.items() if column.distinct is not None
    }
    sample_values = {name: column.minimum for name, column in statistics.columns.items()}
    return _Side(read, statistics.rows, relevant, distinct, sample_values, _is_named(read, first, model))


@dataclass(frozen=True, slots=True)
class _Search:
    query: Query
    read: QueryReading
    rows_of: Mapping[str, ScanRows]
    sides: Mapping[str, _Side]
    first: int
    settings: PlanSettings

    def found(self, probes: Sequence[_Side]) -> JoinKeys | None:
        """Return the keys that pay, first by rough estimates, then by the actual bounds of the scans."""
        classes = equal_classes(self.read.joined)
        rows = {probe.relation: probe.rows for probe in probes}
        chosen: dict[str, _Build] = {}
        for builds in sorted(self._candidates(probes, classes), key=lambda builds: builds[-1].keys):
            shares = {probe.relation: self._rough_share(probe, builds[-1], classes) for probe in probes}
            gain = sum(rows[relation] * (1 - share) for relation, share in shares.items())
            fresh = {build.side.relation: build for build in builds if build.side.relation not in chosen}
            if (
                fresh
                and len(chosen) + len(fresh) <= self.settings.cost_model.steps_max
                and gain > self._cost(fresh.values())
            ):
                chosen |= fresh
                rows = {relation: left * shares[relation] for relation, left in rows.items()}
        return self._decided(tuple(chosen.values()), probes) if chosen else None

    def _cost(self, builds: Iterable[_Build]) -> float:
        return sum(build.cost(self.settings.cost_model) for build in builds)

    def _candidates(
        self, probes: Sequence[_Side], classes: Sequence[Sequence[ScanColumn]]
    ) -> Iterator[tuple[_Build, ...]]:
        """Yield each side whose keys are compared with those of probes.

        If it has a selective partner itself, the keys of that one come first.
        """
        wanted = {key for probe in probes for key in _keys_of(probe)}
        for relation, side in self.sides.items():
            columns = tuple(
                sorted(
                    {
                        own.column
                        for members in classes
                        for own in members
                        if own.relation == relation and any(other in wanted for other in members if other != own)
                    }
                )
            )
            if columns:
                keys = max(side.values(column) for column in columns)
                yield (_Build(side, columns, keys),)
                yield from self._reduced(side, columns, keys, classes)

    def _reduced(
        self, side: _Side, columns: tuple[str, ...], keys: float, classes: Sequence[Sequence[ScanColumn]]
    ) -> Iterator[tuple[_Build, ...]]:
        for own, other in (
            (own, other)
            for members in classes
            for own in members
            for other in members
            if own.relation == side.relation != other.relation
        ):
            partner = self.sides.get(other.relation)
            if partner is not None and own.column not in columns:
                values = partner.values(other.column)
                reduced = side.relevant * min(values / side.distinct.get(own.column, 1), 1)
                if values <= VALUES_MAX[SubqueryUse.KEYS] and reduced < keys / 2:
                    yield _Build(partner, (other.column,), values), _Build(side, columns, reduced)

    def _rough_share(self, probe: _Side, build: _Build, classes: Sequence[Sequence[ScanColumn]]) -> float:
        """The share of a probe that remains to be read, at best."""
        if probe is build.side or build.keys > VALUES_MAX[SubqueryUse.KEYS]:
            return 1.0
        keys = _keys_of(probe)
        met = {
            own
            for members in classes
            for own in members
            if own in keys and any(other.relation == build.side.relation for other in members)
        }
        total = probe.read.bounds.tree.total
        return min(
            (
                min(partition_selectivity(total, build.keys), build.keys / probe.distinct.get(own.column, 1))
                for own in met
            ),
            default=1.0,
        )

    def _decided(self, builds: Sequence[_Build], probes: Sequence[_Side]) -> JoinKeys | None:
        """Return the statement in steps with these keys, if they pay."""
        numbers = {scan.relation: index for index, scan in enumerate(self.query.scans)}
        lists: dict[ScanColumn, int] = {}
        for build in builds:
            lists |= {
                ScanColumn(build.side.relation, column): self.first + len(lists) + number
                for number, column in enumerate(build.columns)
            }
        assert not isinstance(self.read.plan, Unreadable)
        found = conditions_with_lists(self.query, self.read.plan, lists)
        claims = frozenset(self.query.parameters.claim_places.values())
        bounds = tuple(
            bounds_of(scan, conditions, self.settings, claims=claims)
            for scan, conditions in zip(self.query.scans, found, strict=True)
        )
        gain = 0.0
        for probe in probes:
            share = 1.0
            for build in builds:
                if build.side is not probe:
                    sample_values = {
                        lists[ScanColumn(build.side.relation, column)]: build.side.sample_values.get(column)
                        for column in build.columns
                    }
                    distinct = probe.distinct.get(probe.read.scan.table.primary_key[0], 1)
                    share *= key_selectivity(
                        bounds[numbers[probe.relation]],
                        probe.read.bounds,
                        sample_values,
                        self.first + len(lists),
                        build.keys,
                        distinct,
                    )
            gain += probe.rows * (1 - share)
        if gain <= self._cost(builds):
            return None
        steps = [self._step(build, found[numbers[build.side.relation]], lists, bounds) for build in builds]
        return JoinKeys(tuple(steps), tuple(numbers[build.side.relation] for build in builds), bounds)

    def _step(
        self, build: _Build, held: ScanConditions, lists: Mapping[ScanColumn, int], bounds: Sequence[ScanBounds]
    ) -> Callable[[PlanStep], PlannedStep]:
        """Return the query of a side's keys: of the rows that pass its own predicates, and the lists known by then."""
        read = build.side.read
        before = min(lists[ScanColumn(build.side.relation, column)] for column in build.columns)
        alone = self.rows_of[build.side.relation].filter
        conditions = [] if alone is None else [alone.sql]
        for conjunct in held.conjuncts:
            listed = searched_parameter(conjunct)
            if listed is not None and self.first <= listed[1] < before and listed[0].index < len(held.names):
                column = held.names[listed[0].index]
                conditions.append(f"{quoted(column)} IN (SELECT unnest(${listed[1] + 1}))")
        rows = selected_rows(quoted(read.scan.table.name), build.columns, " AND ".join(conditions))
        text = f"SELECT DISTINCT{rows.removeprefix('SELECT')}"
        partitions = max(bound.tree.total for bound in bounds)
        values_max = min(VALUES_MAX[SubqueryUse.KEYS], max(4 * partitions, 256))
        types = tuple(
            f"{self.sides[column.relation].read.scan.table.column(column.column).type}[]"
            for column, index in sorted(lists.items(), key=lambda item: item[1])
            if index < before
        )
        estimate = max(round(build.keys), 1)

        def planned(plan_step: PlanStep) -> PlannedStep:
            bounded = plan_step(f"{text}\nLIMIT {values_max + 1}", types)
            return PlannedStep(text, bounded, SubqueryUse.KEYS, values_max, estimate)

        return planned


def _keys_of(probe: _Side) -> set[ScanColumn]:
    """The columns of a scan whose values tell partitions or parts of them apart."""
    table = probe.read.scan.table
    leading = [table.primary_key[0], *(index.columns[0] for index in table.indexes)]
    return {ScanColumn(probe.relation, column) for column in (*table.scheme.columns, *leading)}
