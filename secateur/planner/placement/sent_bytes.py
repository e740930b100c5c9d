"""Estimates of the bytes that stages send each other: the number of a query's rows, and their width.

A join is assumed to follow a key: each row of its largest input meets one row of each of the others, or none where a
predicate has removed that row. There are as many groups as their keys have distinct values together, and never more
than input rows.

They choose between plans that all give the right rows.

Source: Selinger et al., "Access Path Selection" (1979); Swami and Schiefer, "On the Estimation of Join Result Sizes"
(1994), for joins along keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from sqlglot import exp

from secateur.engine.sql.stage import stage_relation
from secateur.planner.cost_model import CostModel
from secateur.planner.placement.cost import Estimate
from secateur.planner.placement.stage_builder import Columns, StageDraft
from secateur.planner.text.dialect import parse_query, tokenize

_WIDTHS: Final = {"BOOLEAN": 1, "SMALLINT": 2, "INTEGER": 4, "DATE": 4, "VARCHAR": 16, "BLOB": 16, "HUGEINT": 16}
_WIDTH: Final = 8
_GROUPING_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True, slots=True)
class _Rows:
    """About how many rows a relation has, and which share they are of those that it had without predicates."""

    count: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Known:
    """The known and the assumed sizes of relations.

    Attributes:
        rows: The number of rows of each relation visited so far.
        estimates: The estimates of the scans.
        model: The assumptions about everything else.
    """

    rows: dict[str, _Rows]
    estimates: Mapping[str, Estimate]
    model: CostModel


def sent_bytes(drafts: Sequence[StageDraft], estimates: Mapping[str, Estimate], model: CostModel) -> float:
    """Estimate the bytes that members send for a statement in stages, to each other and to the coordinator.

    Args:
        drafts: Its stages in the order in which they run.
        estimates: The estimated rows of each scan.
        model: The assumptions about relations and conditions without statistics.

    Cost: the text of each stage is parsed.
    """
    rows = {relation: _Rows(estimate.rows, estimate.share) for relation, estimate in estimates.items()}
    known = _Known(rows, estimates, model)
    sent = 0.0
    for index, draft in enumerate(drafts):
        tree = parse_query(draft.sql, tokenize(draft.sql))
        # The rows of one scan remain the same selection of their table.
        is_selection = draft.is_pipelineable and len(draft.relations) == 1 and draft.relations[0] in rows
        share = rows[draft.relations[0]].share if is_selection else 1.0
        count = _rows_of(tree, known)
        rows[stage_relation(index)] = _Rows(count, share)
        if not draft.at_coordinator:
            sent += count * _width(draft.columns)
    return sent


def _rows_of(tree: exp.Expr, known: _Known) -> float:
    rows = 0.0
    pending = [tree]
    while pending:
        match pending.pop():
            case exp.Subquery() as query:
                pending.append(query.this)
            case exp.SetOperation() as operation:
                pending += [operation.this, operation.expression]
            case exp.Select() as select:
                rows += _limited(select, _grouped(select, _joined(select, known), known.estimates))
            case _:
                rows += known.model.unknown_rows
    return rows


def _joined(select: exp.Select, known: _Known) -> float:
    """The rows of FROM that WHERE leaves."""
    sources = [_source(node, known) for node in _sources(select)]
    if not sources:
        return 1.0
    largest = max(source.count / max(source.share, 1e-9) for source in sources)
    where = select.args.get("where")
    subqueries = 0 if where is None else sum(1 for query in where.find_all(exp.Select) if query.parent_select is select)
    return float(largest * prod(source.share for source in sources) * known.model.subquery_share**subqueries)


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the items of FROM, including those in parentheses."""
    pending: list[exp.Expr] = [join.this for join in select.args.get("joins") or []]
    from_ = select.args.get("from_")
    if from_ is not None:
        pending.append(from_.this)
    while pending:
        node = pending.pop()
        pending += [join.this for join in node.args.get("joins") or []]
        if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Table, exp.Subquery)):
            pending.append(node.this)
        else:
            yield node


def _source(node: exp.Expr, known: _Known) -> _Rows:
    if isinstance(node, exp.Table):
        return known.rows.get(node.name, _Rows(known.model.unknown_rows))
    return _Rows(_rows_of(node, known))


def _grouped(select: exp.Select, rows: float, estimates: Mapping[str, Estimate]) -> float:
    group = select.args.get("group")
    if group is not None:
        if any(value for key, value in group.args.items() if key != "expressions") or group.find(*_GROUPING_SETS):
            return rows
        names = {node.alias_or_name: node.name for node in _sources(select) if isinstance(node, exp.Table)}
        keys = [_by_position(key, select) for key in group.expressions]
        return min(
            rows, prod(_distinct(column, names, estimates) for key in keys for column in key.find_all(exp.Column))
        )
    return 1.0 if any(item.find(exp.AggFunc) for item in select.expressions if not item.find(exp.Window)) else rows


def _by_position(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """The expression that a key of groups is, which the members' part of a SELECT names by its position."""
    is_position = isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal()
    return (
        select.expressions[int(key.name) - 1] if is_position and 1 <= int(key.name) <= len(select.expressions) else key
    )


def _distinct(column: exp.Column, names: Mapping[str, str], estimates: Mapping[str, Estimate]) -> float:
    """The number of distinct values of a column; infinite where it is not known."""
    estimate = estimates.get(names.get(column.table, ""))
    return estimate.distinct.get(column.name, inf) if estimate is not None else inf


def _limited(select: exp.Select, rows: float) -> float:
    limit = select.args.get("limit")
    count = None if limit is None else limit.args.get("expression")
    return min(rows, float(count.name)) if isinstance(count, exp.Literal) and not count.is_string else rows


def _width(columns: Columns) -> int:
    return sum(16 if text.startswith("DECIMAL") else _WIDTHS.get(text, _WIDTH) for _, text in columns) or _WIDTH
