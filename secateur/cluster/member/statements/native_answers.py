"""Answers short requests by the native executor: from the bytes of a frame to those of its answer.

What is checked is what Python checks, on the same state and in the same turn of the event loop: the lease, the owners,
the definition of the table, and whether the changes that are read are acknowledged. Whatever the executor does not
certainly answer in the same bytes is handled the general way, as if it had not been asked.

It does so without a function of Python, and counts what it has done on the objects that count the rest. When a request
comes, little is in the caches of the processor: while fifteen functions of Python did that, a row by key took 35
microseconds of one core, client included, instead of 26.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple, TypeAlias

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.monitoring.hot_keys import HotKeySampler
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.statement_sums import EndedStatement
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.replication.acknowledgements import Acknowledgements
from secateur.cluster.member.statements import reads
from secateur.cluster.member.statements.prepared_statements import OwnView, PreparedStatements
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.operations import Operation
from secateur.protocol.query import Executed
from secateur.storage.hosted_tables import HostedTables
from secateur.storage.read_lease import ReadLease
from secateur.wire import FRAME_PREFIX, FrameDecoder, Limits


class ServingState(NamedTuple):
    """What the executor reads, and where it counts what it has done.

    Attributes:
        tables: The tables of the member by id.
        lease: Until when it may answer.
        clock: The clock of that.
        prepared: Has the view of the cluster.
        unacknowledged: The partitions with changes that readers may have to wait for.
        unconfirmed: The tables with such loads.
        acknowledged: As :data:`~secateur.cluster.member.statements.reads.Acknowledgements`; asked if one of these is
            read.
        hot_keys: Says how many keys to let pass.
        sample: Counts the keys of a frame that was answered: of a plan, or of a table by its id.
        kept: The plans by id, the one used last at the end.
        statistics_version: Gives the newest version of the statistics.
        counts: Counts requests.
        log: Numbers the statements that have ended, and is told of slow ones.
        ended: Its list of them.
        held_max: After so many, it is told as well.
        slow_s: Seconds from which on one is slow.
        said: The class of what is listed of an answer.
    """

    tables: HostedTables
    lease: ReadLease
    clock: Callable[[], float]
    prepared: PreparedStatements
    unacknowledged: Mapping[tuple[int, int], object]
    unconfirmed: Mapping[int, object]
    acknowledged: reads.Acknowledgements
    hot_keys: HotKeySampler
    sample: Callable[[bytes, SelectPlan | None, int | None], None]
    kept: Mapping[str, SelectPlan]
    statistics_version: Callable[[], int]
    counts: WorkCounts
    log: StatementLog
    ended: list[EndedStatement]
    held_max: int
    slow_s: float
    said: type[Executed]


class NativeAnswers:
    """The native executor of a member. Lives on its event loop.

    What it has learned is good for one view of the cluster.

    Attributes:
        executor: The executor: ``answer(frame, peer)`` returns the frame of the answer, or None and has changed
            nothing. Where ``tenants`` are set, it keeps to their shares, and adds to their accounts.
    """

    def __init__(
        self,
        module: ModuleType,
        storage: MemberStorage,
        acknowledgements: Acknowledgements,
        counts: WorkCounts,
        log: StatementLog,
        prepared: PreparedStatements,
    ) -> None:
        plans = prepared.plans
        store = self._store = storage.store
        self._prepared = prepared
        self._hot_keys = storage.hot_keys
        self._learned_max = plans.kept_max
        self._learned: set[str | tuple[int, int]] = set()
        self._view: OwnView | None = None
        codes = (Operation.EXECUTE.code, Operation.EXECUTE_FIRST_STAGE.code, Operation.GET_ROWS.code)
        state = ServingState(
            store.hosted_tables,
            store.lease,
            store.lease.clock,
            prepared,
            *acknowledgements.pending,
            acknowledgements.acknowledged,
            storage.hot_keys,
            self._sample,
            plans.kept,
            plans.statistics_version,
            counts,
            log,
            log.ended,
            log.held_max,
            log.slow_s,
            Executed,
        )
        self.executor = module.Executor(FRAME_PREFIX, *codes, state)

    def learn(self, plan: SelectPlan) -> None:
        """Make the programs of a plan that is executed the general way, if it has some, once.

        Raises:
            UnknownTableError: A table is not here.
        """
        view = self._prepared.joined()
        if not self._is_new(plan.plan_id, view) or not plan.scans or plan.reads_fetched_rows:
            return
        layouts = [self._store.hosted_tables.table(scan.table_id).layout for scan in plan.scans]
        tables = [layout.tdef for layout in layouts]
        if any(table.version != scan.table_version for table, scan in zip(tables, plan.scans, strict=True)):
            return
        # Imported here, as the arrow kernel is everywhere: with its first scalar, Arrow loads pandas.
        from secateur.engine.sql.serving_program import serving_program

        total, version = sum(scan.tree.total for scan in plan.scans), view.topology.version
        hosted = [(layout.tdef.table_id, layout, _mine(layout.tdef, view)) for layout in layouts]
        for is_first_stage in (False, True):
            program = serving_program(plan, tables, is_first_stage=is_first_stage)
            if program is not None:
                self.executor.learn(
                    is_first_stage, plan.plan_id, program, hosted, total, version, plan.is_estimated, plan
                )

    def learn_table(self, table_id: int) -> None:
        """Make the program that reads rows of a table by their keys, if it has one, once."""
        hosted, view = self._store.hosted_tables.get(table_id), self._prepared.view
        if hosted is None or view is None or not self._is_new((table_id, hosted.layout.tdef.version), view):
            return
        from secateur.engine.sql.serving_program import key_program

        table = hosted.layout.tdef
        program = key_program(table)
        if program is not None:
            self.executor.learn_table(table.version, program, table_id, hosted.layout, _mine(table, view))

    def _is_new(self, learned: str | tuple[int, int], view: OwnView) -> bool:
        if self._view is not view or len(self._learned) >= self._learned_max:
            self.executor.forget(view)
            self._learned.clear()
            self._view = view
        if learned in self._learned:
            return False
        self._learned.add(learned)
        return True

    def _sample(self, frame: bytes, plan: SelectPlan | None, table_id: int | None) -> None:
        """Count keys of a request that was answered, as the general way does."""
        hot_keys, request = self._hot_keys, FrameDecoder(Limits()).only(frame)
        assert request is not None
        if plan is not None:
            operation = (
                Operation.EXECUTE if request.operation == Operation.EXECUTE.code else Operation.EXECUTE_FIRST_STAGE
            )
            hot_keys.note_statement(plan, operation.requests.decode(request.header).params)
            return
        assert table_id is not None
        for key in Operation.GET_ROWS.requests.decode(request.header).keys:
            hot_keys.left -= 1
            if not hot_keys.left:
                hot_keys.note_key(self._store.table(table_id), key)


MakeNative: TypeAlias = Callable[[PreparedStatements], NativeAnswers]
"""Makes the native executor, with the plans and this member's view of the cluster."""


def _mine(table: TableDef, view: OwnView) -> Sequence[int]:
    return (0,) if table.replicated else list(view.mine.get(table.scheme.affinity_group(), ()))
