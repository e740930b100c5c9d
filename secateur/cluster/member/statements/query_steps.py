"""Queries in steps: subqueries run first, and their values decide which partitions and members the rest needs.

The member that is asked coordinates. It runs each step as a statement of its own, then the rest with the values. A part
whose partitions are all at one other member runs there. Values that replace a subquery are those of the moment at which
it ran. Keys of a join are valid only for the rows that they were found in: the rest reads those again, and if they have
changed the query runs undivided.

The client sends the ids of the plans of all steps with its request, so no plan of steps is kept anywhere.

Source: Apache Ignite IEP-24, "Materialization".
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, assert_never

import pyarrow as pa
from msgspec.structs import replace

from secateur.client.dbapi.rows import Rows
from secateur.client.execution.retry_policy import PlanBackoff
from secateur.cluster.member.admission.statement_admission import StatementAdmission
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.peers import Peers
from secateur.cluster.statement_profile import combined_profile
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DataError, DeadlineError, KeysChangedError, MemberLostError
from secateur.protocol.metrics import RunProfile
from secateur.protocol.operations import Operation
from secateur.protocol.query import CloseResult, Execute, Executed, ExecutePart, Profile, Profiled, Since
from secateur.protocol.query_parts import NarrowedScans, QueryStep, ReadRequirements, StepResult, SubqueryUse
from secateur.protocol.statements import ResultColumn
from secateur.wire import Payload, PeerInfo, Reply, Request, ShortTable, decode_tables

_LIST_BYTES_MAX: Final = 1 << 20
"""Longer lists are left where they are: parameters travel in headers, which are bounded."""
_JOINED_MAX: Final = 8
"""Among more relations than this DuckDB finds no good order of joins once some of them have no row: TPC-DS 64, with 19,
then takes 24 s instead of 1.
"""
_NO_PAYLOAD: Final = memoryview(b"")


class PartResult(NamedTuple):
    """The answer of a part of a query, or of all its parts together.

    Attributes:
        executed: The answer; it names its members.
        payload: The rows that are not in it.
        profile: The profile of the run, if it was requested.
        narrowed: The effect of the found values, if the run was profiled.
    """

    executed: Executed
    payload: Payload = b""
    profile: RunProfile | None = None
    narrowed: NarrowedScans | None = None


async def run_in_steps(asked: Execute, parts: CoordinatedQuery, *, has_rows: bool = True) -> PartResult:
    """Run the steps, then the rest with their values.

    The query runs undivided when a step has more values than are worth sending, or an error that the whole may not
    have, or when the rows have changed in which keys were found.

    Args:
        asked: The query, which has steps.
        parts: Runs its parts.
        has_rows: Whether the rows are wanted; only a run that is profiled can do without.

    Raises:
        Error: A part fails; after a DataError of a step, or for keys of the rest, the whole query runs instead.
    """
    stepped = asked.steps
    assert stepped is not None
    mark = None if stepped.watched is None else secrets.token_hex(8)
    found: list[PartResult] = []
    values = list(asked.params)
    for step in stepped.steps:
        plan = await parts.plan(step.query.plan)
        of_step = Execute(
            step.query.plan, values[: plan.parameter_count], asked.pruning, mark=mark, steps=step.query.steps
        )
        try:
            result = await parts.run(of_step, has_rows=True)
        except DataError:
            return await _undivided(asked, found, parts, has_rows=has_rows)
        executed = result.executed
        parts.compare(step, plan, executed.rows)
        lists = _values(step, plan, result)
        found.append(
            result._replace(executed=replace(executed, steps=(StepResult(executed.rows, used=lists is not None),)))
        )
        if (
            lists is None
            # The owners from whom the steps have read are the same for all of them.
            or (mark is not None and executed.topology_version != found[0].executed.topology_version)
            or (mark is not None and not executed.rows and await _joins_many(stepped.outer.plan, parts))
        ):
            return await _undivided(asked, found, parts, has_rows=has_rows)
        values += lists
    since = None
    if mark is not None:
        published = [entry for result in found for entry in result.executed.published]
        since = Since(mark, list(stepped.watched or ()), found[0].executed.topology_version, published)
    outer = Execute(stepped.outer.plan, values, asked.pruning, asked.grant, since=since, steps=stepped.outer.steps)
    try:
        last = await parts.run(outer, has_rows=has_rows)
    except (KeysChangedError, DataError):
        # Over fewer rows DuckDB may evaluate in another order, and come to an error that the whole query does not have.
        if mark is None:
            raise
        return await _undivided(asked, found, parts, has_rows=has_rows)
    if parts.is_profiled:
        after = await parts.requirements(outer) if last.narrowed is None else last.narrowed.after
        last = last._replace(narrowed=NarrowedScans(await parts.requirements(asked), after))
    return combined_result([*found, last])


async def _joins_many(plan_id: str, parts: CoordinatedQuery) -> bool:
    return len((await parts.plan(plan_id)).scans) > _JOINED_MAX


async def _undivided(
    asked: Execute, found: Sequence[PartResult], parts: CoordinatedQuery, *, has_rows: bool
) -> PartResult:
    """The query as a whole, with the cost of the steps that were for nothing."""
    unused = [
        step._replace(
            executed=replace(step.executed, steps=tuple(entry._replace(used=False) for entry in step.executed.steps))
        )
        for step in found
    ]
    return combined_result([*unused, await parts.run(replace(asked, steps=None), has_rows=has_rows)])


def combined_result(results: Sequence[PartResult]) -> PartResult:
    """Combine the parts of a query: the rows of the last, and the cost of all.

    The mode is local when one member did everything.
    """
    last = results[-1]
    said = [result.executed for result in results]
    members = sorted({member for executed in said for member in executed.members or ()})
    whole = len(members) == 1 and all(executed.execution == "local" for executed in said)
    executed = replace(
        last.executed,
        execution="local" if whole else "distributed",
        members=members,
        partitions_read=sum(executed.partitions_read for executed in said),
        partitions_total=sum(executed.partitions_total for executed in said),
        steps=tuple(step for executed in said for step in executed.steps),
        statistics_version=max(executed.statistics_version for executed in said),
    )
    profiles = [result.profile for result in results if result.profile is not None]
    profile = None if last.profile is None else combined_profile(profiles)
    return PartResult(executed, last.payload, profile, last.narrowed)


def _values(step: QueryStep, plan: SelectPlan, result: PartResult) -> list[Any] | None:
    """Return the parameters that a step yields.

    None when it has too many values, too large ones, or some that Python cannot represent.
    """
    rows, values = result.executed.rows, result.executed.values
    if rows > step.values_max:
        return None
    columns = [ResultColumn(name, text) for name, text in plan.columns]
    table = _table(result.payload) if values is None else ShortTable(values, rows)
    if isinstance(table, pa.Table) and table.nbytes > _LIST_BYTES_MAX:
        return None
    try:
        found = Rows(table, columns).take(rows)
    except (DataError, pa.ArrowException):
        return None
    match step.use:
        case SubqueryUse.VALUE:
            return [found[0][0] if found else None]
        case SubqueryUse.LIST:
            return [[value for (value,) in found]]
        case SubqueryUse.KEYS:
            return [list(dict.fromkeys(row[position] for row in found)) for position in range(len(columns))]
        case _:
            assert_never(step.use)


def _table(payload: Payload) -> pa.Table:
    return decode_tables([payload] if isinstance(payload, (bytes, memoryview)) else payload)


class SteppedQueries:
    """Answers ``execute`` and ``profile`` requests for queries in steps. Lives on the member's event loop.

    Args:
        statements: Runs what is run here; counts the steps whose estimates were badly wrong.
    """

    def __init__(
        self, member_id: str, statements: StatementRunner, peers: Peers, admission: StatementAdmission
    ) -> None:
        self.member_id = member_id
        self.statements = statements
        self.peers = peers
        self.admission = admission
        self.backoff = PlanBackoff()

    async def execute(self, request: Request[Execute]) -> Reply[Executed]:
        """Answer one execution of a query.

        Raises:
            Error: As :meth:`StatementRunner.execute`.
        """
        result = await self._ran(request.peer, request.message, has_rows=True, is_profiled=False)
        return Reply(result.executed, result.payload)

    async def profile(self, request: Request[Profile]) -> Reply[Profiled]:
        """Answer one execution as :meth:`execute` does, with its profile.

        Steps that did not pay are run as well.

        Raises:
            Error: As :meth:`StatementRunner.execute`.
        """
        asked = request.message
        result = await self._ran(request.peer, asked.run, has_rows=asked.has_rows, is_profiled=True)
        assert result.profile is not None
        return Reply(Profiled(result.executed, result.profile, result.narrowed), result.payload)

    async def _ran(self, peer: PeerInfo, asked: Execute, *, has_rows: bool, is_profiled: bool) -> PartResult:
        async with self.admission.admitted(peer):
            return await CoordinatedQuery(self, peer, is_profiled=is_profiled).run(asked, has_rows=has_rows)


class CoordinatedQuery:
    """One query that this member coordinates: it runs each part where its rows are.

    Args:
        queries: What they have in common with those of other queries.
        peer: The client, whose connection ends them, and which reads their rows.
        is_profiled: Whether to profile every part.
    """

    def __init__(self, queries: SteppedQueries, peer: PeerInfo, *, is_profiled: bool) -> None:
        self.is_profiled = is_profiled
        self._queries = queries
        self._peer = peer

    async def plan(self, plan_id: str) -> SelectPlan:
        """A plan by its id."""
        return await self._queries.statements.prepared.plans.plan(plan_id)

    async def requirements(self, asked: Execute) -> ReadRequirements:
        """The partitions and rows that a part has to read."""
        plan = await self.plan(asked.plan)
        return await self._queries.statements.prepared.requirements(
            plan, Execute(plan.plan_id, asked.params, asked.pruning)
        )

    def compare(self, step: QueryStep, plan: SelectPlan, found: int) -> None:
        """Hear how many values a step found, to compare the number with its estimate."""
        self._queries.statements.misses.compare(step, plan, found)

    async def run(self, asked: Execute, *, has_rows: bool) -> PartResult:
        """Run a part, in steps if it has some and they are due; ``has_rows`` as for :func:`run_in_steps`."""
        steps, backoff = asked.steps, self._queries.backoff
        # A part whose rows have to be in a certain state is run undivided: its own steps would read in another one.
        if steps is None or asked.mark is not None or asked.since is not None:
            return await self._run_undivided(asked, has_rows=has_rows)
        may_not_pay = steps.watched is not None
        if may_not_pay and not self.is_profiled and not backoff.is_due(asked.plan):
            return await self._run_undivided(asked, has_rows=has_rows)
        result = await run_in_steps(asked, self, has_rows=has_rows)
        if may_not_pay:
            backoff.note(asked.plan, used=all(step.used for step in result.executed.steps))
        return result

    async def _run_undivided(self, asked: Execute, *, has_rows: bool) -> PartResult:
        """Run a part at the one member that owns all of its partitions, or coordinate it here."""
        members = (await self.requirements(asked)).members
        if len(members) == 1 and members[0] != self._queries.member_id:
            result = await self._run_at(members[0], asked, has_rows=has_rows)
            if not result.executed.has_more:
                return result
            # A result in parts belongs to the connection of its reader. That of this member to the other one serves
            # many readers, so the rows come through an exchange.
            await self._queries.peers.call(members[0], CloseResult())
        return await self._run_here(asked, has_rows=has_rows)

    async def _run_at(self, member: str, asked: Execute, *, has_rows: bool) -> PartResult:
        peers = self._queries.peers
        part = ExecutePart(asked.plan, asked.params, asked.pruning, asked.grant, mark=asked.mark, since=asked.since)
        try:
            if self.is_profiled:
                profiled = await peers.ask(member, Profile(part, has_rows))
                return self._result(profiled.message, profiled.parts, member)
            answer = await peers.ask(member, part)
            return self._result(answer.message, answer.parts, member)
        except DeadlineError as error:
            raise MemberLostError(
                f"member {member} did not answer for a part of the query: {error.message}", member=member
            ) from error

    async def _run_here(self, asked: Execute, *, has_rows: bool) -> PartResult:
        statements, here = self._queries.statements, self._queries.member_id
        if self.is_profiled:
            profiled = await statements.profile_part(asked, self._peer, has_rows=has_rows)
            return self._result(profiled.message, profiled.payload, here)
        answer = statements.execute(Request(Operation.EXECUTE_PART, asked, _NO_PAYLOAD, self._peer))
        reply = answer if isinstance(answer, Reply) else await answer
        return self._result(reply.message, reply.payload, here)

    def _result(self, said: Executed | Profiled, payload: Payload, answerer: str) -> PartResult:
        """The answer of a member, with the names of all members that got a frame for it."""
        executed, profile = (said.result, said.profile) if isinstance(said, Profiled) else (said, None)
        members = sorted({self._queries.member_id, *(executed.members or (answerer,))})
        return PartResult(replace(executed, members=members), payload, profile)
