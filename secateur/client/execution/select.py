"""The ladder: the ways in which a client has an execution of a SELECT answered, and the one place that chooses.

The plan is that of the text, or of the text without its literals (:mod:`~secateur.client.execution.shared_plans`), or a
new one of the controller. From the cheapest on, each rung of :mod:`~secateur.client.execution.reads` is tried until one
answers:

1. The serving call of a plan that is known, for a cursor, in :mod:`~secateur.client.execution.serving_calls`: where a
   text was executed before, the cursor has tried it already, with nothing in between;
2. the client by itself, over no rows, in :mod:`~secateur.client.execution.no_rows`;
3. the client and the owners of a few partitions, in :mod:`~secateur.client.execution.scatter`;
4. a member, in :mod:`~secateur.client.execution.member_reads`.

Each of them makes one attempt; :func:`~secateur.client.execution.execute.execute` repeats the ladder from the second
rung on. Many executions of one text climb it together in :mod:`~secateur.client.execution.executemany`. A query whose
rows are kept, to be read in pieces, is no run of it: :mod:`~secateur.client.execution.snapshot`.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from secateur import errors
from secateur.client.dbapi.parameters import values_of
from secateur.client.dbapi.rows import Rows
from secateur.client.execution.execute import Params, StatementCall, StatementExecution, execute, planned
from secateur.client.execution.member_reads import ask_member
from secateur.client.execution.no_rows import answer_over_no_rows
from secateur.client.execution.reads import PlacedRead, RunOptions, SelectResult
from secateur.client.execution.routing import ExecutionMode, choose_coordinator, choose_route
from secateur.client.execution.scatter import scatter
from secateur.client.execution.serving_calls import serve
from secateur.client.execution.verify import same_rows
from secateur.client.session import Prepared, Session
from secateur.protocol.hello import Pruning
from secateur.protocol.statements import SelectStatement

_VERIFY_ROUNDS: Final = 3


def run_select(
    call: StatementCall[SelectStatement],
    wanted: RunOptions = RunOptions.ROWS,
    tried: errors.Error | bool = True,
) -> SelectResult:
    """Run a planned SELECT under the session's pruning setting.

    Reads do nothing twice that matters, so while the cluster changes they are tried again with fresh owners and, if
    need be, a fresh plan, for at most 10 s.

    Args:
        call: The call.
        wanted: The options of the run; two runs that are compared return their rows at once in any case.
        tried: Whether the first rung is left out, or the error with which it has failed.

    Raises:
        ParameterError: The parameters are not those of the statement.
        PruningMismatchError: With ``SET pruning = verify``, the unpruned run gave other rows.
        OperationalError: The members could not be reached for longer than that.
    """
    pruning = call.session.pruning
    if pruning is Pruning.VERIFY:
        return _verified(call)
    if tried is False and call.cached:
        try:
            served = serve(call)
        except errors.Error as error:
            tried = error
        else:
            if served is not None:
                return SelectResult(*served)
    execution = _SelectExecution(call, pruning=pruning is not Pruning.OFF, wanted=wanted)
    return execute(execution, None if isinstance(tried, bool) else tried)


def run_query(
    session: Session, sql: str, params: Params | None = None, wanted: RunOptions = RunOptions.ROWS
) -> SelectResult:
    """Plan and run a query of the client's own, as :func:`run_select` does.

    Raises:
        InterfaceError: The text is no query.
    """
    call = planned(session, sql, [] if params is None else params)
    if not isinstance(call.statement, SelectStatement):
        raise errors.InterfaceError(f"{sql!r} should be a query")
    return run_select(call.of(call.statement), wanted)


class _SelectExecution(StatementExecution[SelectStatement, SelectResult]):
    """A SELECT: it changes nothing, so it may be repeated until rows of it have been seen."""

    is_read = True

    def __init__(self, call: StatementCall[SelectStatement], *, pruning: bool, wanted: RunOptions) -> None:
        self.session = call.session  # not through the base class: a look-up of one key pays for every call
        self.call = call
        self._pruning = pruning
        self._wanted = wanted

    def attempt(self) -> SelectResult:
        read = placed(self.call, self._wanted, pruning=self._pruning)
        return answer_over_no_rows(read) or scatter(read) or ask_member(read)

    def of_this_kind(self, prepared: Prepared, because: errors.Error) -> SelectStatement:
        queries: tuple[SelectStatement, ...] = prepared.queries
        if not queries:
            raise errors.InterfaceError(
                f"{self.call.sql!r} was planned again and is no longer a query: execute it again"
            ) from because
        return queries[0]


def _verified(call: StatementCall[SelectStatement]) -> SelectResult:
    """Run pruned, and the user's own text over all rows, and compare.

    A difference that comes from rows written in between does not last, so it has to show three times.
    """
    for _ in range(_VERIFY_ROUNDS):
        with_pruning = _SelectExecution(call, pruning=True, wanted=RunOptions.ROWS)
        pruned = execute(with_pruning)
        without = _SelectExecution(with_pruning.call, pruning=False, wanted=RunOptions.ROWS)
        unpruned = execute(without)
        call = without.call
        table = pruned.rows.take_table()
        if not call.statement.deterministic or same_rows(table, unpruned.rows.take_table()):
            rows = Rows(table, with_pruning.call.statement.columns)
            return pruned._replace(rows=rows, cost=structs.replace(pruned.stats, elapsed_ms=call.elapsed_ms))
    raise errors.PruningMismatchError(
        f"pruned and unpruned runs differ: {pruned.rows.num_rows} rows from {pruned.stats.partitions_read}"
        f" partitions against {unpruned.rows.num_rows} rows from {unpruned.stats.partitions_read}, for {call.sql!r}"
        f" with parameters {call.params!r}; please report it, and use SET pruning = off until it is fixed",
        sql=call.sql,
        rows_pruned=pruned.rows.num_rows,
        rows_unpruned=unpruned.rows.num_rows,
    )


def placed(call: StatementCall[SelectStatement], wanted: RunOptions, *, pruning: bool) -> PlacedRead:
    """An attempt at a query with the partitions and owners of now.

    Raises:
        PartitionLostError: No member is left that has them.
    """
    statement, topology = call.statement, call.session.topology
    params = values_of(statement, call.params, call.started)
    if pruning and statement.steps is not None:
        route = choose_coordinator(statement, statement.first_scans, params, topology)
    else:
        route = choose_route(statement, params, topology, pruning=pruning)
    if not route.members and route.execution_mode is not ExecutionMode.NONE:
        topology.check_any()
    topology.check_live(route.members)
    return PlacedRead(call, params, pruning, wanted, topology, route)
