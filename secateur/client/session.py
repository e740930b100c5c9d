"""The shared state of one connection: sockets, topology, plans and settings.

A session sends requests about the catalog to the controller, and requests for rows to members, which it chooses by the
topology. When a member reports that the topology has changed, the session asks the controller for the new one.

Its parts are layers of one object, each of which uses those below: statements under way
(:mod:`~secateur.client.controller_calls`), requests of the controller (:mod:`~secateur.client.controller_calls`), the
topology (:mod:`~secateur.client.known_topology`), requests of members (:mod:`~secateur.client.member_calls`), and
definitions of tables (:mod:`~secateur.client.session`). As objects that a session holds, they would cost a look-up
of one key an attribute and a call at each of its steps.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from secateur.client.channel_pool import ChannelOptions
from secateur.client.controller_calls import connect_to_controller, sets_timeout
from secateur.client.execution.retry_policy import CONNECT_TIMEOUT_S, RETRY_S, PlanBackoff
from secateur.client.member_calls import MemberCalls
from secateur.errors import Error, NotSupportedError, SerializationError, TopologyChangedError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.protocol import statements
from secateur.protocol.catalog import GetTables, MakeRanges
from secateur.protocol.hello import Pruning, Versions
from secateur.protocol.kept_plans import KeptPlans
from secateur.protocol.query import Prepare
from secateur.protocol.statements import EvaluatedInsert, InsertRows
from secateur.tracing import is_configured
from secateur.wire import BLOCKING, Channel, Tls, Waits, decode_tables

Prepared: TypeAlias = statements.PreparedStatement | statements.EvaluatedInsert
"""A statement to execute: an INSERT ... VALUES that the controller has just prepared comes with its rows."""

Cached: TypeAlias = (
    statements.SelectStatement
    | statements.ChangeStatement[statements.SelectStatement]
    | statements.CoordinatedChange[statements.SelectStatement]
    | statements.InsertRows
)
"""Statements that need not be prepared again. An INSERT has a template."""

StatementKey: TypeAlias = tuple[str, Pruning, tuple[tuple[str, str], ...]]
"""SQL text, pruning setting, and other settings that plans depend on: a plan may depend on all of them."""


def cacheable(prepared: Prepared) -> Cached | None:
    """The statement to keep; None for one that is prepared anew each time."""
    match prepared:
        case statements.SelectStatement() | statements.ChangeStatement() | statements.CoordinatedChange():
            return prepared
        case statements.EvaluatedInsert(insert) if insert.template is not None:
            return insert
        case _:
            return None


def _planned_part(kept: Cached) -> statements.SelectStatement | statements.InsertRows:
    """The query of a statement, or an INSERT of values, which has none."""
    return kept.select if isinstance(kept, statements.ChangeStatement | statements.CoordinatedChange) else kept


def _is_estimated(kept: Cached) -> bool:
    """Whether estimates had a say in its plan, so that newer statistics may give another one."""
    part = _planned_part(kept)
    return isinstance(part, statements.SelectStatement) and part.is_estimated


class Commits:
    """Knows whether anything was changed since the last BEGIN, COMMIT or ROLLBACK.

    Every statement has committed by itself, so BEGIN and COMMIT have nothing to do, and ROLLBACK can do nothing. It is
    accepted only where it would have nothing to do either.
    """

    def __init__(self) -> None:
        self._statements = 0

    def begin(self) -> None:
        """BEGIN or COMMIT: what was changed before it is not to be taken back."""
        self._statements = 0

    def note(self) -> None:
        """A statement has changed something, or may have."""
        self._statements += 1

    def roll_back(self) -> None:
        """ROLLBACK: what was changed is said once.

        Raises:
            NotSupportedError: A statement has changed something, and has committed it by itself.
        """
        count, self._statements = self._statements, 0
        if count:
            raise NotSupportedError(
                "ROLLBACK: each statement is committed by itself, so the"
                f" {'statement that has' if count == 1 else f'{count:,} statements that have'} changed something since"
                " BEGIN cannot be taken back: change the rows back by statements of your own"
            )


_STATEMENTS_MAX: Final = 512


class _KnownTables(MemberCalls):
    """Keeps definitions of tables until the catalog changes. Thread-safe."""

    def __init__(self, controller: Channel, options: ChannelOptions) -> None:
        super().__init__(controller, options)
        self._known: dict[str, TableDef] = {}
        self._large: dict[str, TableDef] = {}  # the tables with large schemes, which statements name by reference
        self._outlined: dict[str, PartitionScheme] = {}  # the schemes of which this session learns ranges, by table

    def table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table. One round trip. ``waits`` is as for :meth:`ask`.

        Raises:
            UnknownTableError: There is no such table.
        """
        known = self._large.get(name.casefold())
        asked = GetTables(name, None if known is None else known.scheme.reference)
        (definition,) = self.ask(asked, waits=waits).message.tables
        table = definition.table
        if table.scheme.reference is not None:
            self._large[name.casefold()] = table
        return table

    def outlined_table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table, as :meth:`table`; of a large scheme without its ranges.

        Raises:
            UnknownTableError: There is no such table.
        """
        (definition,) = self.ask(GetTables(name, outlines=True), waits=waits).message.tables
        if definition.outline is not None:
            self._keep(definition.outline)
        return definition.table

    def known_table(self, name: str) -> TableDef:
        """The definition of a table that this session has; it may be old.

        Of a large scheme it has the ranges that this process knows; whoever needs more gets an
        :class:`~secateur.errors.UnknownRangesError`, see :meth:`when_known`. Costs a round trip only for a table whose
        definition the session does not have.

        Raises:
            UnknownTableError: There is no such table.
        """
        key = name.casefold()
        table = self._known.get(key)
        if table is None:
            table = self._known[key] = self.outlined_table(name)
        if table.scheme.partial is not None:
            table = self._known[key] = replace(table)  # reads its reference again
        return table

    def with_ranges_for(
        self, table: TableDef, rows: pa.Table, fetch: Callable[[str], TableDef] | None = None
    ) -> TableDef:
        """The table as it is once it has a range for each of some rows; the same object when it has them all.

        Interval partitioning makes ranges on demand: a writer asks for those that its rows need before it sends them.
        Writers may ask for the same ranges at once, they are made once. Ranges stay, also when the rows that they were
        made for never arrive.

        Args:
            table: Its definition.
            rows: In the table's own schema. Rows for which EVERY makes no range are left for the partition function to
                refuse.
            fetch: Fetches the table by its name once ranges were made; None to fetch it with all its ranges.

        Raises:
            LimitExceededError: The rows need more ranges than are made at once, or than a table may have.

        Cost: nothing without EVERY; 50 ns a row with it; two round trips to the controller when ranges are missing.
        """
        cells = table.scheme.missing_cells(rows)
        if not cells:
            return table
        self.ask(MakeRanges(table.name, table.table_id, sorted(cells)))
        return (fetch or self.table)(table.name)

    def forget_tables(self) -> None:
        """Drop the definitions of :meth:`known_table`."""
        self._known = {}

    def _keep(self, scheme: PartitionScheme) -> None:
        """Keep what is known of the newest ranges of a table, also while no statement is prepared that uses it."""
        assert scheme.reference is not None
        table, _, _ = scheme.reference.rpartition(".")
        self._outlined[table] = scheme


class Session(_KnownTables):
    """The shared state of one connection. Thread-safe.

    Args:
        host: Host of the controller.
        port: Port of the controller.
        token: The secret of the cluster, if it has one.
        timeout_s: Seconds to wait for more of an answer; None waits as long as the process that works on it shows signs
            of life.
        connect_timeout_s: How long to wait for a controller that cannot be reached.
        refused_s: How long to wait while its address refuses connections; None for as long.
        tls: How connections are encrypted; None for a cluster without TLS.
        waits: What requests do while they wait.

    Raises:
        UnreachableError: No process answers at this address.
        AuthenticationError: The token is missing or wrong.
        ProtocolError: Something answers that is not a cluster of ours.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        token: str | None,
        timeout_s: float | None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        refused_s: float | None = None,
        tls: Tls | None = None,
        waits: Waits = BLOCKING,
    ) -> None:
        options = ChannelOptions(token, timeout_s, tls, waits)
        controller = connect_to_controller(host, port, options, connect_timeout_s, refused_s)
        super().__init__(controller, options)
        hello = controller.hello
        self.statements: KeptPlans[StatementKey, Cached] = KeptPlans(_STATEMENTS_MAX)
        # Of a text without its literals: whether its plan is shared, or the first text, with whose it will be compared.
        self.standings: KeptPlans[StatementKey, bool | str] = KeptPlans(_STATEMENTS_MAX)
        self.scatter_backoff = PlanBackoff()
        self.local_effects = True
        self.prepared_texts: dict[str, str] = {}  # of PREPARE, by name
        self.commits: Commits | None = None  # of a connection with ``autocommit_only``
        self.is_traced = is_configured()  # looked at once: a look-up of one key pays for every call
        self.retry_s = RETRY_S
        self.pruning = self.cluster_pruning = hello.pruning or Pruning.ON
        self._own_pruning: Pruning | None = None
        self._plan_options: tuple[tuple[str, str], ...] = ()
        self._catalog_version = hello.catalog_version
        self._statistics_version = hello.statistics_version

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, for everything that has a session in it.

        Raises:
            SerializationError: Always.
        """
        raise SerializationError(
            "an open connection, with its cursors, tables and jobs, cannot be pickled or copied: send the address,"
            f" {self.address!r}, and call secateur.connect(address) where it is needed"
        )

    def note_change(self) -> None:
        """A statement has changed something, or may have: a ROLLBACK cannot be accepted."""
        if self.commits is not None:
            self.commits.note()

    def note(self, said: object) -> None:
        """Hear of newer versions of the catalog, the statistics or the topology from an answer of the controller."""
        if not isinstance(said, Versions):
            return
        # Looked at without the lock first: nearly every answer tells nothing new.
        if said.catalog_version > self._catalog_version:
            with self._lock:
                if said.catalog_version > self._catalog_version:
                    self._catalog_version = said.catalog_version
                    self.statements.clear()
                    self.standings.clear()
                    self.forget_calls()
                    self.forget_tables()
        if said.pruning is not None and said.pruning is not self.cluster_pruning:
            with self._lock:
                self.cluster_pruning = said.pruning
                self.pruning = said.pruning if self._own_pruning is None else self._own_pruning
                self.forget_calls()
        self.note_statistics(said.statistics_version)
        self.note_topology(said.topology_version)

    def note_statistics(self, version: int) -> None:
        """Hear of a version of the statistics: plans that depend on an older one are made again at their next use."""
        if version > self._statistics_version:
            with self._lock:
                if version > self._statistics_version:
                    self._statistics_version = version
                    self.statements.keep(lambda kept: not _is_estimated(kept))
                    self.forget_calls()

    def prepare(self, sql: str, params: list[Any] | dict[str, Any]) -> tuple[Prepared, bool]:
        """The plan of a statement, and whether it was known already.

        SELECT, UPDATE, DELETE, and an INSERT of mere parameters and literals are remembered. Everything else is
        prepared anew each time: the controller carries out DDL, and evaluates the rows of an INSERT when it is asked.

        Raises:
            Error: The planner refuses the statement.
        """
        known = self.known(sql, params)
        if known is not None:
            return known, True
        return self.prepare_anew(sql, params), False

    def known(self, sql: str, params: list[Any] | dict[str, Any]) -> Cached | None:
        """The plan of a statement, if it is known already."""
        if self._topology.version < self._newest_topology:
            with suppress(Error):  # whoever needs the owners asks again
                self.refresh_topology()  # which tells of the settings of the cluster as well
        return self.statements.get(self.key_of(sql), params)

    def key_of(self, sql: str) -> StatementKey:
        """The key by which a text is kept."""
        return sql, self.pruning, self._plan_options

    def prepare_anew(self, sql: str, params: list[Any] | dict[str, Any], *, waits: bool = True) -> Prepared:
        """Prepare a statement as :meth:`prepare` does, but always at the controller.

        A plan that was known is replaced once there is an answer: without a controller it stays.

        ``waits`` is as for :meth:`ask`.

        Raises:
            Error: The planner refuses the statement.
        """
        control = self.control
        if control is not None and self.statement_timeout.milliseconds and sets_timeout(sql):
            control.deadline_s = None
        pruning, options = self.pruning, self._plan_options  # those of the plan, if others change them now
        key = sql, pruning, options
        asked = Prepare(sql, params, {"pruning": pruning.value, **dict(options)}, uuid.uuid4().hex)
        prepared, statistics_version = self._prepare(asked, waits=waits)
        kept = cacheable(prepared)
        # A plan of the catalog or statistics before must not be kept once another thread has heard of newer ones.
        with self._lock:
            if self.statements.get(key, params) is not None:
                self.forget_calls()  # one of them may be of the plan before
            part = None if kept is None else _planned_part(kept)
            if (
                kept is not None
                and part is not None
                and part.catalog_version >= self._catalog_version
                and (statistics_version >= self._statistics_version or not _is_estimated(kept))
            ):
                query = part if isinstance(part, statements.SelectStatement) else None
                typed, names = ((), ()) if query is None else (query.typed, query.parameter_names)
                self.statements.put(key, params, kept, typed, names)
            else:
                self.statements.forget(key, params)
        return prepared

    def settings(self) -> dict[str, str]:
        """The settings as the controller wants them."""
        return {"pruning": self.pruning.value, **dict(self._plan_options)}

    def set_pruning(self, value: Pruning | None) -> None:
        """Set pruning for this session, whatever the cluster has; None for what the cluster has."""
        with self._lock:
            self._own_pruning = value
            self.pruning = self.cluster_pruning if value is None else value
            self.forget_calls()

    def set_plan_option(self, name: str, value: str) -> None:
        """Change a setting that plans depend on; an empty value is the default."""
        with self._lock:
            options = {**dict(self._plan_options), name: value}
            self._plan_options = tuple((key, text) for key, text in sorted(options.items()) if text)
            self.forget_calls()

    def _prepare(self, asked: Prepare, *, waits: bool) -> tuple[Prepared, int]:
        """Have a statement prepared; returns it and the version of the statistics with which it was planned.

        Where the answer names the large scheme of a table that is not known here, the table is fetched, and the
        statement prepared again.
        """
        fetched: set[str] = set()
        while True:
            try:
                answer = self.ask(asked, waits=waits)
            except TopologyChangedError as unknown:
                table = unknown.details.get("table")
                reference = self.outlined_table(table).scheme.reference if isinstance(table, str) else None
                if reference is None or reference in fetched:
                    raise
                fetched.add(reference)
                continue
            prepared = answer.message.statement
            for outline in answer.message.outlines:
                self._keep(outline)
            return (
                EvaluatedInsert(prepared, decode_tables(answer.parts)) if isinstance(prepared, InsertRows) else prepared
            ), answer.message.statistics_version
