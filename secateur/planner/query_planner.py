"""The queries of a statement: of its own text, and of texts that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from secateur.errors import NotSupportedError
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.catalog_view import PlanningCatalog, find_relation
from secateur.planner.cached_plan import now
from secateur.planner.dml.change_planner import ChangePlanner
from secateur.planner.dml.target import read_relation
from secateur.planner.select import BoundSelect
from secateur.planner.statement import PlannedSelect
from secateur.planner.steps.materialize import RULE as MATERIALIZE_SUBQUERY
from secateur.planner.steps.materialize import materialize_subqueries
from secateur.planner.system.show import AboutQuery, described_sql, read_show, summarized_sql
from secateur.planner.system.tables import SCHEMA as SYSTEM_SCHEMA
from secateur.planner.text.parameters import Parameters, UnknownValue, read_parameters, sample_value
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token, tokenize
from secateur.protocol.access import PolicyCommand, PolicyFilter

_KEPT_MAX: Final = 1000
"""Characters and bytes. With longer values, all queries of a change are planned at once: one that waits keeps the
values of its first call in memory.
"""


class QueryPlanner:
    """Plans the queries of one statement."""

    def __init__(self, catalog: PlanningCatalog) -> None:
        self._catalog = catalog

    def select(
        self,
        sql: str,
        tokens: Sequence[Token],
        parameters: Parameters,
        values: Sequence[Any] | None,
    ) -> PlannedSelect:
        """A query of the user's text, with its subqueries as steps where they can be; without values it is bound later.

        Raises:
            Error: The query is refused, with its place in the text.
        """
        unbound = [*[None] * parameters.count, *parameters.hidden, *([] if parameters.clock is None else [now()])]
        given = [sample_value(value) for value in (unbound if values is None else values)]

        def sampled(types: Sequence[str]) -> list[Any]:
            return [*given, *map(UnknownValue, types)]

        def bind(text: str, tokens: Sequence[Token], own: Parameters, types: Sequence[str]) -> BoundSelect:
            return BoundSelect(
                text,
                tokens,
                own,
                sampled(types),
                self._catalog,
                lambda step, before: plan_step(step, (*types, *before)),
            )

        def plan_step(text: str, types: Sequence[str]) -> PlannedSelect:
            tokens, own = read_parameters(text, tokenize(text))
            own = replace(own, count=parameters.total + len(types)).with_hidden_of(parameters)
            return BoundSelect(text, tokens, own, sampled(types), self._catalog).planned()

        query = bind(sql, tokens, parameters, ())
        if query.reads_clock and parameters.clock is None:
            values = None if values is None else (*values, now())
            return self.select(sql, tokens, parameters.with_clock(), values)
        whole = query.planned()
        return (
            whole
            if query.skips_steps or MATERIALIZE_SUBQUERY in self._catalog.settings.disabled_rules
            else materialize_subqueries(whole, sql, tokens, parameters, bind, self._catalog.settings.cost_model)
        )

    def show(self, cursor: TokenCursor, parameters: Parameters, values: Sequence[Any] | None) -> PlannedSelect:
        """The query that answers SHOW, DESCRIBE or SUMMARIZE."""
        find = self._catalog.view.relation
        asked = read_show(
            cursor,
            lambda cursor: read_relation(cursor, find),
            lambda schema, name: find_relation("", schema, name, find),
        )
        if isinstance(asked, AboutQuery):
            # What is wrong with a query is said of the user's own text.
            described = self.select(asked.sql, asked.tokens, parameters, values)
            text = asked.sql[asked.tokens[0].start : asked.tokens[-1].end + 1]
            asked = summarized_sql(text) if asked.is_summary else described_sql(described.plan.columns)
        return self.select_made(asked, parameters, values)

    def select_made(self, text: str, parameters: Parameters, values: Sequence[Any] | None) -> PlannedSelect:
        """A query that is made of the user's statement, whose parameters it has, or some of them."""
        tokens, own = read_parameters(text, tokenize(text))
        own = replace(own, count=parameters.count, names=parameters.names).with_hidden_of(parameters)
        return self.select(text, tokens, own, values)

    def changes(self, parameters: Parameters, values: tuple[Any, ...] | None, command: PolicyCommand) -> ChangePlanner:
        """The planner of a statement that changes rows, to which the queries that it consists of come back.

        Args:
            parameters: Its parameters.
            values: Their values in order; None for a statement that is bound later.
            command: Whose policies hold for the rows of the table that are changed.
        """
        unbound: list[Any] = [*[None] * parameters.count, *parameters.hidden]
        if parameters.clock is not None:
            unbound, values = [*unbound, now()], None if values is None else (*values, now())
        given = unbound if values is None else list(values)

        def guard(table: TableDef, is_changed: bool) -> PolicyFilter | None:
            return self._catalog.guard(table, is_changed, command)

        def plan(text: str, tokens: Sequence[Token], own: Parameters, *further: Any) -> PlannedSelect:
            late = [] if own.clock is None or own.clock < len(given) else [now()]  # a default alone reads it
            select = BoundSelect(text, tokens, own, [*given, *further, *late], self._catalog, guard=guard)
            return _without_fetched_tables(select.planned())

        def plan_with_action(text: str, tokens: Sequence[Token], own: Parameters) -> PlannedSelect:
            names = (*parameters.names, *(["action"] if parameters.names else []))
            own = replace(own, count=parameters.total + 1, names=names).with_hidden_of(parameters)
            return plan(text, tokens, own, "")

        def plan_source(text: str, tokens: Sequence[Token], own: Parameters) -> PlannedSelect:
            return self.select(text, tokens, own, values)

        may_wait = not self._catalog.settings.is_verified and _is_small(given)
        return ChangePlanner(plan, plan_with_action, plan_source, self._catalog.viewer.guards, may_wait)


def _is_small(values: Sequence[Any]) -> bool:
    """Whether values take little memory; nested ones are not looked into."""
    is_nested = any(isinstance(value, (list, dict)) for value in values)
    return not is_nested and sum(len(one) for one in values if isinstance(one, (str, bytes))) <= _KEPT_MAX


def _without_fetched_tables(select: PlannedSelect) -> PlannedSelect:
    external = [scan.table for scan in select.plan.scans if scan.external is not None]
    if external:
        raise NotSupportedError(
            f"a change that reads the external table {external[0]} is not supported: INSERT its rows into a table"
            " first, and read that"
        )
    if select.plan.system_tables:
        listed = ", ".join(f"{SYSTEM_SCHEMA}.{name}" for name in select.plan.system_tables)
        raise NotSupportedError(
            f"a change that reads system tables ({listed}) is not supported: read them first, and pass their values as"
            " parameters"
        )
    return select
