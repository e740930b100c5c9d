"""Local execution: the kernel call that answers a plan whose partitions are all on this member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, run
from secateur.engine.sql.select_plan import PinnedScan, ScanPlan, SelectPlan
from secateur.errors import ParameterError, TopologyChangedError
from secateur.storage.member_store import MemberStore

_INLINE_ROWS_MAX: Final = 20_000
"""Up to here the arrow kernel is done before a thread would have woken up; the event loop is held for less than a
millisecond.
"""
_REPLICATED_PARTITIONS: Final = (0,)


class LocalExecution(msgspec.Struct, frozen=True):
    """One kernel call.

    Attributes:
        fragment: The fragment to run.
        relations: The rows it reads, as they were when the call was made.
        is_quick: Whether it may run on the event loop.
    """

    fragment: Fragment
    relations: dict[str, pa.Table]
    is_quick: bool

    def by_duckdb(self) -> LocalExecution:
        """The same call after the arrow kernel has declined it: for a thread, as DuckDB may take long."""
        return LocalExecution(replace(self.fragment, arrow=None), self.relations, False)

    def answered(self, params: Sequence[Any], stop: Cancellation | None = None) -> pa.Table:
        """All rows of the answer; in a thread with what stops the call."""
        return run(self.fragment, self.relations, params, cancellation=stop)

    @property
    def rows(self) -> int:
        """The number of rows that it reads."""
        return sum(relation.num_rows for relation in self.relations.values())

    @property
    def is_long_row_by_row(self) -> bool:
        """Whether it reads many rows of one relation and may answer them part by part."""
        return self.fragment.is_row_by_row and all(
            relation.num_rows > _INLINE_ROWS_MAX for relation in self.relations.values()
        )

    @property
    def is_empty(self) -> bool:
        """Whether it reads no row, because the requested keys do not exist.

        The plan's answer over no rows, if it has one, is then the answer.
        """
        return not any(relation.num_rows for relation in self.relations.values())


def check_versions(store: MemberStore, plan: SelectPlan) -> None:
    """Refuse a plan whose tables have other ranges now, or whose views do not exist any more.

    Raises:
        TopologyChangedError: The plan is outdated; nothing was done.
        UnknownTableError: A table is not here.
    """
    for view_id in plan.views:
        if view_id not in store.views:
            raise TopologyChangedError(
                "a view or external table that the statement reads was replaced or dropped since it was planned:"
                " plan it again",
                view=view_id,
            )
    for scan in plan.scans:
        if not scan.is_fetched and store.table(scan.table_id).version != scan.table_version:
            raise TopologyChangedError(
                f"the ranges of {scan.table} have changed since the statement was planned: plan it again",
                table=scan.table,
            )


def bound_partitions(plan: SelectPlan, params: Sequence[Any], *, pruning: bool) -> list[Sequence[int]]:
    """The partitions that each scan of a plan has to read, ascending.

    Args:
        plan: The plan.
        params: Its parameters, with the values of its expressions behind them.
        pruning: Whether to leave out partitions that cannot match.

    Raises:
        ParameterError: Another number of parameters than the statement has.
    """
    if len(params) != plan.bound_count:
        check_bound(plan, params)
    return [_partitions(scan, params, pruning=pruning) for scan in plan.scans]


def check_bound(plan: SelectPlan, params: Sequence[Any]) -> None:
    """Refuse parameters that are not as many as the plan has, with the values of its expressions behind them.

    Raises:
        ParameterError: There is another number.
    """
    if len(params) != plan.bound_count:
        check_count(plan, params)


def check_count(plan: SelectPlan, params: Sequence[Any]) -> None:
    """Refuse another number of parameters than a statement has.

    Raises:
        ParameterError: There is another number.
    """
    if len(params) != plan.parameter_count:
        raise ParameterError(
            f"the statement has {plan.parameter_count} parameters, {len(params)} were given",
            expected=plan.parameter_count,
            given=len(params),
        )


def local_execution(
    store: MemberStore, plan: SelectPlan, params: Sequence[Any], partitions: Sequence[Sequence[int]], *, pruning: bool
) -> LocalExecution:
    """Read the partitions of each scan, and choose the fragment.

    Raises:
        UnknownTableError, TopologyChangedError: They are not here.
    """
    arrow = plan.local.arrow
    relations, rows, is_decided = {}, 0, False
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if isinstance(scan, PinnedScan):
            name, relation = scan.given
        else:
            keys, is_decided = scan.keys.search(params) if pruning else (None, False)
            name, relation = scan.relation, store.relation(scan.table_id, ids, scan.columns, keys)
        relations[name] = relation
        rows += relation.num_rows
    if arrow is not None and arrow.sources:
        rows -= sum(relations[name].num_rows for name in arrow.searched_relations)
    if arrow is None or rows > _INLINE_ROWS_MAX:
        return LocalExecution(plan.local, relations, False)
    searched = plan.searched if is_decided else None
    return LocalExecution(plan.local if searched is None else searched, relations, True)


def _partitions(scan: ScanPlan, params: Sequence[Any], *, pruning: bool) -> Sequence[int]:
    if scan.replicated:
        return _REPLICATED_PARTITIONS
    return scan.tree.bind(params).ids if pruning else scan.tree.live_ids()
