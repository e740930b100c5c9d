"""A plan as it is kept, and the statement that it gives with the values of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from secateur.planner.dml.insert import InsertValues
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.parameters import NO_USES, Parameters
from secateur.protocol.statements import Statement

Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""The parameters of a call, by position or by name."""


def with_values(
    planned: Statement, values: tuple[Any, ...] | None, hidden: tuple[Any, ...], catalog_version: int
) -> Statement:
    """A cached statement in one call: with its values, those of its hidden parameters, and the time."""
    if isinstance(planned, InsertValues):
        return planned.evaluate(values or (), catalog_version)
    given: Statement = planned.with_queries(
        lambda query: replace(query, params=_bound_values(query, values), hidden=hidden)
    )
    return given


def is_estimated(planned: Statement) -> bool:
    """Whether the statistics had a say in the plan of a statement."""
    return any(query.plan.is_estimated for query in planned.queries[:1])


def typed_parameters(planned: Statement) -> tuple[int, ...]:
    """The indexes of the parameters on whose types the plan of a statement depends."""
    queries = planned.queries
    uses = reduce(or_, (query.type_uses for query in queries), NO_USES)
    return uses.typed(queries[0].plan.parameter_count) if queries else ()


def arrange(parameters: Parameters, params: Params) -> tuple[Any, ...] | None:
    """Return the values in order; None when a query has parameters and none are given.

    Such a query is planned to be explained, or bound later.
    """
    return None if parameters.count and not params else parameters.arrange(params)


def now() -> datetime:
    """The time of a statement that reads the clock."""
    return datetime.now(UTC)


def _bound_values(select: PlannedSelect, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """The values of the user and the lists of the text, with the time if the query reads it."""
    return (*values, now()) if values is not None and select.plan.reads_clock else values
