"""Sixty-seven faults that a change of the product could bring, each of which some test has to find.

They measure what the tests are worth: ``make mutations`` plants one after the other and says which test notices. Each
is a line or two that a hand could have written so, in every room, and each is a fault that a user could meet: wrong
rows, a lost write, a wait without end, a wrong error, a right that nobody gave. It is one list, and therefore long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PLANTED", "Mutation"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A fault.

    Attributes:
        name: What is wrong then.
        file: Where, under ``secateur/``.
        text: What is there, once in the file.
        becomes: What takes its place.
    """

    name: str
    file: str
    text: str
    becomes: str

    @property
    def room(self) -> str:
        """The room that it is in; the cluster's three parts are rooms of their own here."""
        first, second = self.file.split("/")[:2]
        return f"{first}/{second}" if first == "cluster" and "." not in second else first

    def planted_in(self, source: str) -> str:
        """The source with the fault.

        Raises:
            LookupError: The text does not stand in it exactly once.
        """
        count = source.count(self.text)
        if count != 1:
            raise LookupError(f"{self.name}: its text stands {count} times in secateur/{self.file}, not once")
        return source.replace(self.text, self.becomes)


PLANTED: Final = (
    # -- partitioning
    Mutation(
        "the upper bound of a range is inclusive",
        "partitioning/schemes/ranges.py",
        "return position if key < self._uppers[position] else NO_RANGE",
        "return position if key <= self._uppers[position] else NO_RANGE",
    ),
    Mutation(
        "NOT of a comparison keeps the bound that it should leave out",
        "partitioning/pruning/domain.py",
        "gaps.append(Span(lower, span.lower, lower_closed, not span.lower_closed))",
        "gaps.append(Span(lower, span.lower, lower_closed, span.lower_closed))",
    ),
    Mutation(
        "a closed lower bound of a counted type leaves out its own value",
        "partitioning/pruning/domain.py",
        "counting.index(span.lower) + (not span.lower_closed)",
        "counting.index(span.lower) + 1",
    ),
    Mutation(
        "an instant with a zone is compared by the time on its clock",
        "partitioning/pruning/comparison_bound.py",
        "value.astimezone(UTC).replace(tzinfo=None)",
        "value.replace(tzinfo=None)",
    ),
    Mutation(
        "the bound of a DECIMAL is rounded to the nearest digit instead of down",
        "partitioning/types/decimals.py",
        "Context(prec=80, rounding=ROUND_FLOOR,",
        'Context(prec=80, rounding="ROUND_HALF_UP",',
    ),
    Mutation(
        "a month of a grid with a beginning is counted from 1",
        "partitioning/schemes/components.py",
        "return 12 * value.year + value.month - 1",
        "return 12 * value.year + value.month",
    ),
    Mutation(
        "a new backup may come to the node on which the primary is",
        "partitioning/topology/affinity.py",
        "weights = loads * (partitions + 1) + pairs[primary] + together[owners[:copy, partition]].sum(axis=0)",
        "weights = loads * (partitions + 1) + pairs[primary]",
    ),
    # -- protocol
    Mutation(
        "a token that may only read stages rows of a load",
        "protocol/operations.py",
        "changes.StageRows, _WRITE",
        "changes.StageRows, _READ",
    ),
    Mutation(
        "a time of day travels with a thousandth of its seconds",
        "protocol/values.py",
        "value.minute) * 60 + value.second) * 1_000_000 + value.microsecond",
        "value.minute) * 60 + value.second) * 1_000 + value.microsecond",
    ),
    Mutation(
        "a plan that turned out to be stale is kept",
        "protocol/kept_plans.py",
        "            self._drop((text, classes_of(params)))",
        "            self._texts.get((text, classes_of(params)))",
    ),
    # -- wire
    Mutation(
        "a call that begins after its statement was cancelled goes on",
        "wire/channel.py",
        "if control is not None and (control.ended is not None or control.deadline_s is not None):",
        "if control is not None and control.deadline_s is not None:",
    ),
    Mutation(
        "a token that was revoked stays valid",
        "wire/handshake.py",
        "self._tokens = {token.digest: token for token in access.tokens}",
        "self._tokens |= {token.digest: token for token in access.tokens}",
    ),
    Mutation(
        "connections that were held up are not read from when a request has been processed",
        "wire/buffers.py",
        "        if self._held_up:\n            self._let_go_on()",
        "        if not self._held_up:\n            self._let_go_on()",
    ),
    # -- dag
    Mutation(
        "an edge may close a cycle, and a second way to a vertex is refused",
        "dag/dag.py",
        "if edge.source in _reachable(edge.destination, _successors(self._edges)):",
        "if edge.destination in _reachable(edge.source, _successors(self._edges)):",
    ),
    Mutation(
        "the inputs of a vertex are in the order of the outputs that feed them",
        "dag/dag.py",
        "if e.destination == name), key=lambda e: e.destination_ordinal)",
        "if e.destination == name), key=lambda e: e.source_ordinal)",
    ),
    # -- client
    Mutation(
        "a statement is not tried again when a member cannot be reached",
        "client/execution/retry_policy.py",
        'return isinstance(error, UnreachableError) and (not error.retry_safe or "is_controller" in error.details)',
        "return isinstance(error, UnreachableError)",
    ),
    Mutation(
        "LIMIT counts the rows that OFFSET leaves out, where the client merges",
        "client/execution/scatter.py",
        "merge.offset : None if merge.limit is None else merge.offset + merge.limit]",
        "merge.offset : merge.limit]",
    ),
    Mutation(
        "NULLS FIRST and LAST change places, where the client merges",
        "client/execution/scatter.py",
        "return [*nulls, *values] if term.nulls_first else [*values, *nulls]",
        "return [*values, *nulls] if term.nulls_first else [*nulls, *values]",
    ),
    Mutation(
        "the nanoseconds of an INTERVAL become as many microseconds",
        "client/dbapi/rows.py",
        "microseconds=value.nanoseconds // 1000)",
        "microseconds=value.nanoseconds)",
    ),
    Mutation(
        "a write whose answer was lost is asked for under another id",
        "client/loads/load.py",
        "asked = WriteRows(table.table_id, partition, self._mode.value, self._change_id)",
        "asked = WriteRows(table.table_id, partition, self._mode.value, uuid.uuid4().hex)",
    ),
    # -- storage
    Mutation(
        "deleting keys that are not there lowers the number of rows",
        "storage/delta.py",
        "        self.rows -= removed",
        "        self.rows -= len(keys)",
    ),
    Mutation(
        "a reader gets the snapshot from before the last write",
        "storage/partition.py",
        "        self.native = self._snapshot = None",
        "        self.native = None",
    ),
    Mutation(
        "the native executor reads the rows from before the last write",
        "storage/partition.py",
        "        self.native = self._snapshot = None",
        "        self._snapshot = None",
    ),
    Mutation(
        "an upsert of many rows keeps the row that was there",
        "storage/merge.py",
        "None if self.order is None else pa.array(np.delete(self.order, self.repeats - 1))",
        "None if self.order is None else pa.array(np.delete(self.order, self.repeats))",
    ),
    Mutation(
        "an upsert of some columns makes the others of the first row NULL",
        "storage/merge.py",
        "taken = pa.array(sources, pa.int64(), mask=sources < 0)",
        "taken = pa.array(sources, pa.int64(), mask=sources <= 0)",
    ),
    Mutation(
        "a member answers after the end of its lease",
        "storage/read_lease.py",
        "        if self.clock() >= self.until_s:",
        "        if self.until_s < 0.0:",
    ),
    Mutation(
        "rows that come too late begin a load anew that has ended",
        "storage/load_registry.py",
        "            if load_id in self._outcomes:",
        "            if load_id in self._loads:",
    ),
    Mutation(
        "a partition is searched for the keys that it alone can hold, and for no other of the statement",
        "storage/key_windows.py",
        "if partition in (None, number)",
        "if partition == number",
    ),
    # -- engine
    Mutation(
        "of several producers that wait for room in a queue, the last is not woken",
        "engine/exchange/inbox.py",
        "                for producer in waiting:",
        "                for producer in waiting[:-1]:",
    ),
    Mutation(
        "a full join leaves out the rows of the build side that have no partner",
        "engine/processors/hash_join.py",
        "return self in (JoinKind.RIGHT, JoinKind.FULL)",
        "return self is JoinKind.RIGHT",
    ),
    Mutation(
        "an upper bound of a key is inclusive in a search",
        "engine/sql/key_search.py",
        "upper = KeyBoundary((*prefix, value), after=self.upper.closed)",
        "upper = KeyBoundary((*prefix, value), after=True)",
    ),
    Mutation(
        "the sum of a group that has only NULLs is 0",
        "engine/processors/array_grouping.py",
        "found = pa.array(self._sums[groups], mask=present == 0)",
        "found = pa.array(self._sums[groups], mask=present < 0)",
    ),
    # -- connectors
    Mutation(
        "the rows of a source behind its last full batch are lost",
        "connectors/functions.py",
        "if gathered or (is_empty and schema is not None):",
        "if is_empty and schema is not None:",
    ),
    Mutation(
        "a comment at the end of a condition swallows the bracket",
        "connectors/table_sources.py",
        r"WHERE (\n{self.condition}\n)",
        "WHERE ({self.condition})",
    ),
    Mutation(
        "the files of a job that failed get their names",
        "connectors/files.py",
        "            if error is None:",
        "            if self._folder:",
    ),
    # -- pipeline
    Mutation(
        "the build side of a join is repartitioned by the columns of the other side",
        "pipeline/pipeline.py",
        "to_build = by_key(tuple(pairs.values()), FIRST)",
        "to_build = by_key(tuple(pairs), FIRST)",
    ),
    Mutation(
        "each processor keeps its own first rows of a sort with a limit",
        "pipeline/pipeline.py",
        "lambda: top_n(limit, *by), lambda: top_n(limit, *by), to_one,",
        "lambda: top_n(limit, *by), lambda: top_n(limit, *by), is_local,",
    ),
    # -- planner
    Mutation(
        "a cast behind an alias is taken for one that DuckDB makes",
        "planner/tree/expression_sql.py",
        'return name == column and "(" not in name and first != "alias"',
        'return "(" not in name and first != "alias"',
    ),
    Mutation(
        "NOT of NULL is forgotten",
        "planner/prune/truth.py",
        "swapped = self & Truth.NULL",
        "swapped = Truth(0)",
    ),
    Mutation(
        "ELSE is not reached where the condition of WHEN is NULL",
        "planner/prune/predicate.py",
        "rest = intersect(rest, self.read(branch.condition, Truth.NOT_TRUE))",
        "rest = intersect(rest, self.read(branch.condition, Truth.FALSE))",
    ),
    Mutation(
        "the count of no rows at any member is NULL",
        "planner/distribute/aggregation.py",
        "cast_to(_or_else(columns[0], nothing), call.return_type)",
        "cast_to(columns[0], call.return_type)",
    ),
    Mutation(
        "members send as many rows as LIMIT says, and OFFSET takes some of these",
        "planner/distribute/distributor.py",
        "constant_integer=count.constant_integer + limit.offset_val.constant_integer",
        "constant_integer=count.constant_integer",
    ),
    Mutation(
        "IS NULL is taken to reject the rows that an outer join fills with NULL",
        "planner/constrain/null_rejection.py",
        "            return frozenset(value is None for value in _values(inner, known))",
        "            return frozenset(False for value in _values(inner, known))",
    ),
    Mutation(
        "an outer join whose other side matches several times adds no rows",
        "planner/constrain/facts.py",
        "    return _never_raises(side) and is_unique(side, frozenset(keys), tables)",
        "    return _never_raises(side)",
    ),
    Mutation(
        "an UPDATE of the primary key leaves rows in the partitions of their old keys",
        "planner/dml/searched_change.py",
        "return not moves and self.ctes is None and self.sources is None",
        "return self.ctes is None and self.sources is None",
    ),
    # -- cluster, what controller and members share
    Mutation(
        "a lease counts from the answer of the controller",
        "cluster/lease.py",
        "            case LeaseOutcome.GRANTED:\n                self._extend(asked_s)",
        "            case LeaseOutcome.GRANTED:\n                self._extend(now_s)",
    ),
    Mutation(
        "a load is prepared while writes are on their way",
        "cluster/write_latch.py",
        "        while self._writes:\n            self._drained.clear()",
        "        while self._writes and not self.is_closed:\n            self._drained.clear()",
    ),
    # -- cluster/controller
    Mutation(
        "a member that did not answer is not asked again to publish a load",
        "cluster/controller/two_phase_commit.py",
        "return ((participant, Order.COMMIT),) if is_member else self._heard(participant)",
        "return self._heard(participant)",
    ),
    Mutation(
        "a member that lacks the last load is let in again with its rows",
        "cluster/controller/publication_numbers.py",
        "return number == newest or not newest",
        "return number <= newest or not newest",
    ),
    Mutation(
        "a token makes one with a higher role",
        "cluster/controller/access_commands.py",
        "if asked.role > peer.token_role:",
        "if asked.role > TokenRole.CODE:",
    ),
    Mutation(
        "a batch of a stream for one table makes those for other tables forgotten",
        "cluster/controller/stream_batches.py",
        "(other.origin, other.batch.stream) != (entry.origin, entry.batch.stream)",
        "other.batch.stream != entry.batch.stream",
    ),
    Mutation(
        "a member that is to leave may go while it has backups",
        "cluster/controller/rebalancing.py",
        "owning |= holders.intersection(topology.member_ids)",
        "owning |= primaries.intersection(topology.member_ids)",
    ),
    # -- cluster/member
    Mutation(
        "a read does not wait until the copies have the write that it has seen",
        "cluster/member/replication/acknowledgements.py",
        "if (replica is not None and replica.last > replica.settled) or not (",
        "if not (",
    ),
    Mutation(
        "a change that has failed is refused for ever under its id",
        "cluster/member/changes/change_registry.py",
        "            self._known.pop(key, None)\n            _fail(making, error)",
        "            _fail(making, error)",
    ),
    Mutation(
        "a copy listens to a primary that was replaced",
        "cluster/member/replication/replica.py",
        "if term < self.term or (term == self.term and self.phase is not ReplicaPhase.BACKUP):",
        "if term == self.term and self.phase is not ReplicaPhase.BACKUP:",
    ),
    Mutation(
        "a copy makes a change although it lacks the one before",
        "cluster/member/replication/replica.py",
        "if change.sequence == self.last + len(new) + 1:",
        "if change.sequence > self.last + len(new):",
    ),
    Mutation(
        "the rights of a token are not asked for the tables of the steps before a statement",
        "cluster/member/table_checks.py",
        "return self._read_plans((asked.plan, *_plans_of(asked.steps)), asked.params, rights)",
        "return self._read_plans((asked.plan,), asked.params, rights)",
    ),
    Mutation(
        "a client says which claims it has",
        "cluster/member/table_checks.py",
        "if index >= len(params) or params[index] != rights.claim(claim):",
        "if index >= len(params):",
    ),
    Mutation(
        "a plan that was made for other row policies is executed",
        "cluster/member/table_checks.py",
        'if scan.policy != ("" if guard is None else guard.condition.text):',
        "if guard is not None and not scan.policy:",
    ),
    Mutation(
        "rows are written whatever row policies say of one column",
        "cluster/member/changes/row_guards.py",
        "        if not passes and rows.num_rows:",
        "        if not passes and not rows.num_rows:",
    ),
    Mutation(
        "what may fail in a statement sees rows that a row policy hides",
        "planner/barriers.py",
        "for scan in query.scans) and not _is_leak_proof(bound)",
        "for scan in query.scans) and isinstance(bound, Unreadable)",
    ),
    Mutation(
        "a MERGE that updates and deletes changes rows that a row policy protects from UPDATE",
        "protocol/access.py",
        "_all_of(seen, updated, deleted, command=PolicyCommand.ALL)",
        "_all_of(seen, deleted, command=PolicyCommand.ALL)",
    ),
    Mutation(
        "grants stay with the name of a table whose row policies have ended with it",
        "cluster/controller/access_commands.py",
        "return _with_grants(access, table.name, ()) if table.origin in access.secured else access",
        "return access",
    ),
    Mutation(
        "rows that were written since tables were counted take no memory",
        "cluster/member/admission/memory_admission.py",
        "        self._written_bytes += written_bytes",
        "        self._written_bytes = written_bytes",
    ),
    # -- server
    Mutation(
        "a request with the key of another one gets the answer of that one",
        "server/state.py",
        "if made is not None and made.body != digest:",
        "if made is not None and not made.body:",
    ),
    Mutation(
        "a page of any site may ask in the name of a user",
        "server/guard.py",
        "return default is not None and place.lower().removesuffix(default) == host.lower().removesuffix(default)",
        "return default is not None and bool(place) and bool(host)",
    ),
    # -- cli
    Mutation(
        "a command that failed ends with the exit code of success",
        "cli/rendering.py",
        "        raise typer.Exit(1)",
        "        raise typer.Exit(0)",
    ),
    Mutation(
        "JSON ends after the rows that were fetched first",
        "cli/rendering.py",
        "    while rows := cursor.fetchmany(_FETCHED):",
        "    if rows := cursor.fetchmany(_FETCHED):",
    ),
)
