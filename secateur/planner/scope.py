"""Which conjuncts are certainly applied to the rows of one scan.

A row of the scan that fails such a conjunct cannot reach the result of the SELECT whose FROM mentions the scan, so its partition need not be read for it.

**Why a WHERE clause may prune any side of a join.** A conjunct that names values of a column is TRUE only where the column has one of them, so never for a
row that an outer join has extended with NULLs. A joined row that passes holds one row of the scan, and depends on no other row of that scan; leaving other
rows of it out can only make new NULL-extended rows, which the conjunct refuses. Not so where a row is chosen by comparison with others (ASOF, POSITIONAL), or
the side is not visible to WHERE (SEMI, ANTI), and not so for the conditions of outer joins, which refuse no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.partitioning.types import SqlType
from secateur.planner.predicate import flat
from secateur.planner.query import Scan, renames_columns

__all__ = ["Scope", "scope_of"]

_PLAIN_KINDS: Final = frozenset({"", "INNER", "CROSS"})
_OUTER_KINDS: Final = frozenset({"", "OUTER"})
_HIDING_KINDS: Final = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What a SELECT says about one of its scans.

    Attributes:
        conjuncts: Certainly applied to its rows.
        column_of: The name of the scan's column that a column node in a conjunct means, or None.
        inner: Whether all joins of the SELECT are inner, so that any conjunct on this scan alone may be applied before them.
        refusal: Why nothing can be said, in the user's terms; then there are no conjuncts.
    """

    conjuncts: tuple[exp.Expr, ...]
    column_of: Callable[[exp.Column], str | None]
    inner: bool
    refusal: str | None = None


def scope_of(scan: Scan, scans: Sequence[Scan]) -> Scope:
    """The conjuncts for a scan, from the SELECT whose FROM clause mentions it.

    Args:
        scan: The scan.
        scans: All scans of the statement.
    """
    holder = scan.node.parent
    select = holder.parent if isinstance(holder, (exp.From, exp.Join)) else None
    if not isinstance(select, exp.Select):
        return _refused(f"{scan.alias} is not read by a plain FROM or JOIN")
    if any(scan.node.args.get(key) for key in ("sample", "pivots", "joins", "laterals", "version", "when")):
        return _refused(f"{scan.alias} is sampled, pivoted or joined in parentheses before WHERE applies")
    if renames_columns(scan.node):
        return _refused(f"{scan.alias} has its columns renamed in FROM: use their own names")
    if select.args.get("sample"):
        return _refused("the sample is taken before WHERE applies")
    joins: list[exp.Join] = select.args.get("joins") or []
    if any(join.args.get("method") for join in _joins(select)):
        return _refused("a NATURAL, ASOF or POSITIONAL JOIN compares more than its condition names")
    inner = True
    for join in joins:
        side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
        if kind in _HIDING_KINDS:
            if join is holder:
                return _refused(f"WHERE does not see {scan.alias}, which stands behind a {kind} JOIN")
            inner = False
        elif side or kind in _OUTER_KINDS - _PLAIN_KINDS:
            inner = False
        elif kind not in _PLAIN_KINDS:
            return _refused(f"a {kind} JOIN")
    where = select.args.get("where")
    conjuncts = list(flat(where.this, exp.And)) if isinstance(where, exp.Where) else []
    if inner:
        for join in joins:
            condition = join.args.get("on")
            if isinstance(condition, exp.Expr):
                conjuncts.extend(flat(condition, exp.And))
    shared = frozenset(name for name in _merged_names(select) if not (inner and _is_own(name, scan, select, scans)))
    return Scope(tuple(conjuncts), _resolver(scan, shared), inner)


def _refused(reason: str) -> Scope:
    return Scope((), lambda node: None, inner=False, refusal=reason)


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    """The joins of the FROM clause, those in parentheses included, those of derived tables not."""
    pending: list[exp.Expr] = [select.args["from_"].this, *(select.args.get("joins") or [])]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Join):
            yield node
        if not isinstance(node, exp.Query) or isinstance(node, exp.Subquery):
            pending.extend(node.iter_expressions())


def _merged_names(select: exp.Select) -> frozenset[str]:
    """The columns that some USING of the FROM clause merges."""
    return frozenset(name.name.casefold() for join in _joins(select) for name in join.args.get("using") or ())


def _is_own(name: str, scan: Scan, select: exp.Select, scans: Sequence[Scan]) -> bool:
    """Whether a name that inner joins merge by USING has the values of the scan's own column, and compares in its type.

    It is the merged column although a table outside of the USING has one of that name, for DuckDB does not call that ambiguous. It has the type of its
    leftmost table: ``a = '1'`` about an INTEGER there holds for a VARCHAR ``'01'`` on the right, which joins with 1.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    tables = {id(other.node): other.table for other in scans}
    items: list[tuple[exp.Expr, exp.Join | None]] = [(select.args["from_"].this, None), *((join.this, join) for join in joins)]
    holders: list[tuple[exp.Expr, SqlType]] = []
    for item, join in items:
        table = tables.get(id(item))
        if table is None:
            return False
        types = [column.type for column in table.columns if column.name.casefold() == name]
        if types and holders and (join is None or name not in (merged.name.casefold() for merged in join.args.get("using") or ())):
            return False
        holders.extend((item, type_) for type_ in types)
    return bool(holders) and (holders[0][0] is scan.node or len({type_ for _, type_ in holders}) == 1)


def _resolver(scan: Scan, shared: frozenset[str]) -> Callable[[exp.Column], str | None]:
    """Column nodes to the scan's columns.

    A bare name that is a column of the scan is the scan's: were it another table's as well, DuckDB would refuse the statement as ambiguous, unless USING
    merges it; an alias of the SELECT list comes second to columns in WHERE. ``shared`` are merged names that are not certainly the scan's own.
    """
    alias = scan.alias.casefold()
    columns = {column.name.casefold(): column.name for column in scan.table.columns}

    def column_of(node: exp.Column) -> str | None:
        if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
            return None
        name = node.name.casefold()
        if node.table:
            return columns.get(name) if node.table.casefold() == alias else None
        return None if name in shared else columns.get(name)

    return column_of
