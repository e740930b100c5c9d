"""The ways in which a member runs a statement whose partitions are known: here, by scatter, or as a job.

*Local* is what :mod:`~secateur.cluster.member.statements.local_execution` does over rows of this member, *scatter* what
:mod:`~secateur.cluster.member.statements.scattered_statements` does, and *distributed* what
:mod:`~secateur.cluster.member.statements.distributed_statements` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_threads import StatementThreads
from secateur.cluster.member.monitoring.estimate_misses import EstimateMisses
from secateur.cluster.member.monitoring.hot_keys import HotKeySampler
from secateur.cluster.member.statements.distributed_statements import DistributedStatements
from secateur.cluster.member.statements.external_reads import ExternalReads
from secateur.cluster.member.statements.first_stages import FirstStages
from secateur.cluster.member.statements.local_execution import LocalExecution
from secateur.cluster.member.statements.native_answers import NativeAnswer, NativeAnswers
from secateur.cluster.member.statements.open_results import OpenResults, within_bounds
from secateur.cluster.member.statements.prepared_statements import OwnView, PreparedStatements
from secateur.cluster.member.statements.read_state import read_here
from secateur.cluster.member.statements.scattered_statements import Acknowledgements, ScatteredRows, ScatteredStatements
from secateur.cluster.member.statements.serving_programs import Served, ServingProgram, compile_program
from secateur.cluster.member.statements.statement_run import StatementRun, while_loads_end
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import open_answer, run
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.kernel_call import in_thread
from secateur.engine.sql.row_stream import FragmentRowStream, LocalRowStream, RowStream
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DataError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import Execute, Executed, GetPlan
from secateur.storage.member_store import MemberStore
from secateur.wire import PeerInfo, Reply, Request


class RunModes(PreparedStatements):
    """Runs statements that have been prepared. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        jobs: Its engine, for statements that need other members.
        misses: Counts the scans whose estimates were badly wrong.
        threads: For kernel calls.
        fetch_plan: Gets a plan that is not kept here.
        fetch_system_table: Gets the rows of a system table from the controller by its name.
        external_reads: Gets the rows of external tables.
        results: Keeps what clients are still reading.
        admissions: The turns of the statements of clients.
        scattered: Asks the owners of a few partitions without a job.
        plans_max: Plans kept.
        statistics_version: The newest version of the statistics that this member has heard of.
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged; None if they
            are.
        hot_keys: Samples the keys that statements name; None samples none.
        native: The native part; None where there is none.

    Attributes:
        first_stages: Answers the members and clients that scatter statements themselves.
        native: The native executor; None where there is none.
    """

    def __init__(
        self,
        member_id: str,
        store: MemberStore,
        jobs: JobRuntime,
        misses: EstimateMisses,
        threads: StatementThreads,
        fetch_plan: Callable[[GetPlan], Awaitable[SelectPlan]],
        fetch_system_table: Callable[[str], Awaitable[pa.Table]],
        external_reads: ExternalReads,
        results: OpenResults,
        admissions: Admissions,
        scattered: ScatteredStatements,
        plans_max: int,
        statistics_version: Callable[[], int] = lambda: 0,
        acknowledged: Acknowledgements = lambda _: None,
        hot_keys: HotKeySampler | None = None,
        native: ModuleType | None = None,
    ) -> None:
        super().__init__(member_id, store, threads, fetch_plan, fetch_system_table, external_reads, plans_max)
        self._limits = jobs.limits
        self._results = results
        self._admissions = admissions
        self._scattered = scattered
        self._distributed = DistributedStatements(member_id, store, jobs, misses, results)
        self._statistics_version = statistics_version
        self._acknowledged = acknowledged
        self._hot_keys = hot_keys or HotKeySampler(store.find, 0, member_id)
        self.native = (
            None
            if native is None
            else NativeAnswers(native, store, statistics_version, acknowledged, self._hot_keys, plans_max)
        )
        self._programs: dict[str, ServingProgram | None] = {}
        self._programs_of: OwnView | None = None
        self.first_stages = FirstStages(
            member_id,
            store,
            self._plans,
            self.plan,
            self._joined,
            scattered,
            statistics_version,
            acknowledged,
            self._hot_keys,
            self.native,
        )

    def answered(self, frame: bytes) -> NativeAnswer | None:
        """The answer of the native executor to a frame; None where it is to be handled as any other."""
        if self.native is None:
            return None
        answer = self.native.answer(frame, self._view)
        if answer is not None and answer.plan_id is not None and answer.plan_id in self._plans:
            self._plans.move_to_end(answer.plan_id)
        return answer

    def learn_table(self, table_id: int) -> None:
        """Have the native executor, if there is one, read rows of a table by their keys from now on."""
        if self.native is not None and self._view is not None:
            self.native.learn_table(table_id, self._view)

    def _served(self, plan: SelectPlan, asked: Execute) -> Served | None:
        """The answer of the program of a plan; None where it has none, or declines.

        Raises:
            Error: Of the execution.
        """
        view = self._view
        if self._programs_of is not view or view is None:
            self._programs_of = view = self._joined()
            self._programs.clear()
        try:
            program = self._programs[plan.plan_id]
        except KeyError:
            if len(self._programs) >= self._plans_max:
                self._programs.clear()
            program = compile_program(plan, self._store, view, self._statistics_version)
            self._programs[plan.plan_id] = program
            if self.native is not None:
                self.native.learn(plan, view)
        if program is None:
            return None
        served = program(asked)
        if served is not None:
            self._sample(plan, asked)
        return served

    def _sample(self, plan: SelectPlan, asked: Execute) -> None:
        hot_keys = self._hot_keys
        hot_keys.left -= 1
        if not hot_keys.left:
            hot_keys.note_statement(plan, asked.params)

    def _ran_here(
        self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology
    ) -> StatementRun:
        """The description of a run that is about to read its rows here."""
        published = (
            () if asked.mark is None and asked.since is None else read_here(self._store, plan, asked, partitions)
        )
        return self._ran(plan, partitions, topology, "local", published)

    def _ran(
        self,
        plan: SelectPlan,
        partitions: list[Sequence[int]],
        topology: Topology,
        execution: str,
        published: tuple[tuple[int, int], ...] = (),
    ) -> StatementRun:
        statistics_version = self._statistics_version() if plan.is_estimated else 0
        return StatementRun(plan, partitions, topology, execution, published, statistics_version)

    async def _run_in_thread(
        self, call: LocalExecution, request: Request[Execute], ran: StatementRun
    ) -> Reply[Executed]:
        params, grant, peer = request.message.params, request.message.grant, request.peer
        with self._results.running(peer):
            if grant is None:
                return ran.reply(
                    self._results.checked(await in_thread(self._threads.of(call, peer), whole(call, params)))
                )
            return await self._results.open(
                peer, self._rows_of(call, params, peer), within_bounds(grant), ran.executed()
            )

    def _rows_of(self, call: LocalExecution, params: list[Any], peer: PeerInfo) -> RowStream:
        """The rows of a call, made as they are taken."""
        threads = self._threads.of(call, peer)
        if not call.is_long_row_by_row:
            return LocalRowStream(
                lambda stop: open_answer(call.fragment, call.relations, params, cancellation=stop), threads
            )
        ((name, relation),) = call.relations.items()
        return FragmentRowStream(
            relation,
            lambda piece, stop: run(call.fragment, {name: piece}, params, cancellation=stop),
            threads,
            self._limits,
        )

    async def _scatter(
        self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology
    ) -> ScatteredRows | None:
        """Run a statement by scatter; None if it has to run as a job."""
        try:
            return await while_loads_end(lambda: self._scattered.run(plan, asked.params, partitions, topology))
        except DataError:
            if not plan.gathered:
                raise
            return None  # the error need not be one of the statement; a job finds the form in which it would be


def whole(call: LocalExecution, params: Sequence[Any]) -> Callable[[Cancellation], pa.Table]:
    """A call in a thread, for all of its rows."""
    return lambda stop: run(call.fragment, call.relations, params, cancellation=stop)
