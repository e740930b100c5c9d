"""The rows of a scan that leave their member: filtered, and without the columns that only the filter reads."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded, quoted
from secateur.planner.binding.query import TableReference, is_columns_call
from secateur.planner.predicates.predicate import flat
from secateur.planner.scans.scan_predicates import ScanPredicates

_APPLIED: Final = "applied to"


@dataclass(frozen=True, slots=True)
class ScanRows:
    """The predicates on the rows of a scan that a statement needs.

    Attributes:
        conjuncts: Conjuncts of the statement; a row for which one is not TRUE cannot influence the answer.
        where: The same over the relation of the scan, as SQL; empty where there are none.
        read: Identifies the rows read before that: equal for scans of the same partitions and key ranges of one table.
    """

    conjuncts: tuple[exp.Expr, ...]
    where: str
    read: bytes

    def sql(self, source: str, columns: Sequence[str]) -> str:
        """Return the SELECT of some columns. ``source`` is the relation of the scan, or its replacement in FROM."""
        return f"SELECT {', '.join(map(quoted, columns))} FROM {source}" + (
            f" WHERE {self.where}" if self.where else ""
        )


def is_about_scan(conjunct: exp.Expr, scope: ScanPredicates) -> bool:
    """Whether a conjunct reads only columns of its scan."""
    columns = list(conjunct.find_all(exp.Column))
    # A lambda and a list comprehension have names of their own; COLUMNS() names columns by a pattern.
    foreign = conjunct.find(exp.Query, exp.Lambda, exp.Comprehension, exp.AggFunc, exp.Window, exp.Star) is not None
    foreign = foreign or any(map(is_columns_call, conjunct.find_all(exp.Anonymous)))
    return bool(columns) and not foreign and all(scope.column_of(column) is not None for column in columns)


def mark_applied(relation: str, rows: ScanRows) -> None:
    """Mark the conjuncts in the tree of the statement; copies of the tree have the marks too."""
    for conjunct in rows.conjuncts:
        conjunct.meta[_APPLIED] = relation


def is_applied(conjunct: exp.Expr, relation: str) -> bool:
    """Whether a conjunct is marked as a predicate on the rows of a scan."""
    return bool(conjunct.meta.get(_APPLIED) == relation)


def settle_applied(reference: exp.Table, relation: str) -> None:
    """Replace the marked conjuncts by TRUE where every row that meets them has been filtered by them.

    Not where an outer join may have put NULLs in the place of the scan's columns: there a conjunct is about these as
    well.
    """
    holder = reference.parent
    select = reference.parent_select
    if select is None or not isinstance(holder, (exp.From, exp.Join)) or holder.parent is not select:
        return
    where = select.args.get("where")
    inner = _joins_inner(reference, select)
    if isinstance(where, exp.Where) and inner:
        _settle(where.this, relation)
    for join in _joins_of(select):
        condition = join.args.get("on")
        # ON of the join whose right side is the scan is evaluated on its own rows, even if the left side is filled
        # with NULLs.
        if isinstance(condition, exp.Expr) and (
            inner or (join is holder and str(join.args.get("side") or "").upper() in ("", "LEFT"))
        ):
            _settle(condition, relation)


def hint_selection(reference: exp.Table, scan: TableReference, columns: Sequence[str]) -> None:
    """Hint in the text that a moved scan is a selection of its table's rows.

    The hint is a condition that all of them meet: a column without NULLs is not NULL.

    DuckDB takes a relation without a filter for a whole table, in which each row of another table finds a match; behind
    a filter it assumes a selection, and joins it first. In q09 of TPC-H that halves the time.

    Args:
        reference: The table reference of the scan, before it is replaced.
        scan: The scan.
        columns: The columns that are sent; without one that is never NULL there is no hint.
    """
    select = reference.parent_select
    aliases = reference.alias_column_names
    shown = zip(scan.columns, [*aliases, *scan.columns[len(aliases) :]], strict=True)
    known = {column.name for column in scan.table.columns if not column.nullable and column.name in columns}
    never_null = next((name for column, name in shown if column in known), None)
    if never_null is None or select is None or not _joins_inner(reference, select):
        return
    column = exp.column(exp.to_identifier(never_null, quoted=True), table=exp.to_identifier(scan.alias, quoted=True))
    hint: exp.Expr = exp.Not(this=exp.Is(this=column, expression=exp.Null()))
    where = select.args.get("where")
    if isinstance(where, exp.Where):
        hint = exp.And(this=exp.Paren(this=where.this), expression=hint)
    select.set("where", exp.Where(this=hint))


def columns_read(reference: exp.Table, scan: TableReference, read_by_position: Set[str]) -> tuple[str, ...]:
    """Return the columns of a scan that the SELECT around its reference may read; at least one.

    Args:
        reference: The table reference of the scan. No other SELECT can name its columns.
        scan: The scan.
        read_by_position: The scans of which the statement may read columns that it does not name.
    """
    node = reference.parent_select
    if node is None or scan.relation in read_by_position:
        return scan.columns
    names = {folded(identifier.name) for identifier in node.find_all(exp.Identifier)}
    return tuple(name for name in scan.columns if folded(name) in names) or scan.columns[:1]


def _joins_of(select: exp.Select) -> list[exp.Join]:
    return [join for join in select.args.get("joins") or [] if isinstance(join, exp.Join)]


def _joins_inner(reference: exp.Table, select: exp.Select) -> bool:
    """Whether a table is an item of a FROM clause with only inner joins."""
    holder = reference.parent
    return (
        isinstance(holder, (exp.From, exp.Join)) and holder.parent is select and all(map(_is_inner, _joins_of(select)))
    )


def _is_inner(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("side", "method")) and str(join.args.get("kind") or "").upper() in (
        "",
        "INNER",
        "CROSS",
    )


def _settle(condition: exp.Expr, relation: str) -> None:
    for conjunct in list(flat(condition, exp.And)):
        if is_applied(conjunct, relation):
            conjunct.replace(exp.true())
