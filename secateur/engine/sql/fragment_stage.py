"""A kernel fragment as a processor: it reads its scans, gathers its inputs as relations, then answers.

A scan is given as one member executes it: partitions, key slices, and a check that the data have not changed.

Where it can, it answers row by row as rows arrive.

An answer is passed on in parts, each made when the one before has found room: a slow consumer slows the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Emitter, Offload, Processor
from secateur.dag.supplier import ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import bytes_of, small_batches_of
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import GatherBudget, MemberServices
from secateur.engine.sql.fragment_call import INLINE_ROWS_MAX, FragmentCall, FragmentParts
from secateur.engine.sql.row_stream import RowPieces
from secateur.engine.sql.stage import InputAlias
from secateur.errors import DataChangedError, KeysChangedError
from secateur.partitioning.pruning.key_range import KeySlice
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.storage.member_store import MemberStore, TableScan


@portable("fragment-stage")
@dataclass(eq=False)
class FragmentStageSupplier(ProcessorSupplier):
    """Makes processors that run a fragment over the rows of their scans and all their input.

    All suppliers of a job on a member are initialised in one turn of its event loop, so two stages that scan one table
    see the same rows.

    Attributes:
        fragment: The fragment to run; its parameters are those of the job.
        inputs: For each input ordinal, the relation that it fills and its schema, which is used when no batch
            arrives.
        scans: The scans to read here, as they are when the job starts.
        aliases: Other names of the inputs' rows in the fragment.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    fragment: Fragment
    inputs: tuple[tuple[str, pa.Schema], ...]
    scans: tuple[MemberScan, ...] = ()
    aliases: tuple[InputAlias, ...] = ()

    def init(self, context: SupplierContext) -> None:
        self._call = FragmentCall.of(self.fragment, context)
        self._budget = context.service(GatherBudget)
        self._relations: dict[str, pa.Table] = {}
        self._opened: dict[str, Callable[[], pa.Table]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._scanned_rows = 0
        if self.scans:
            store = context.service(MemberServices).store
            opened = {scan.relation: scan.opened(store) for scan in self.scans}
            # The arrow kernel takes columns as they are stored, and few rows without a thread. A DuckDB call has one
            # anyway.
            converts = self.fragment.arrow is None and not self.fragment.is_row_by_row
            for relation, rows in opened.items():
                if isinstance(rows, pa.Table):
                    self._relations[relation] = rows
                elif not converts and rows.rows <= INLINE_ROWS_MAX:
                    self._relations[relation] = rows(converts=False)
                else:
                    self._opened[relation] = rows if converts else partial(rows, converts=False)
                    self._schemas[relation] = rows.schema
                    self._scanned_rows += rows.rows

    def reads(self) -> Iterable[tuple[int, int]]:
        return ((scan.table_id, partition) for scan in self.scans if scan.rows is None for partition in scan.partitions)

    def get(self, count: int) -> Sequence[Processor]:
        relations, self._relations = self._relations, {}
        opened, self._opened = self._opened, {}
        if self.fragment.is_row_by_row:
            empty = {name: empty_table(schema) for name, schema in (*self.inputs, *self._schemas.items())}
            ((relation, rows),) = {**empty, **relations}.items()
            return [_PipelinedFragment(self._call, relation, rows, opened.get(relation)) for _ in range(count)]
        return [
            _FragmentStage(self._call, self.inputs, self.aliases, relations, opened, self._scanned_rows, self._budget)
            for _ in range(count)
        ]


class _FragmentStage(Processor):
    def __init__(
        self,
        call: FragmentCall,
        inputs: tuple[tuple[str, pa.Schema], ...],
        aliases: tuple[InputAlias, ...],
        relations: Mapping[str, pa.Table],
        opened: Mapping[str, Callable[[], pa.Table]],
        scanned_rows: int,
        budget: GatherBudget,
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._aliases = aliases
        self._relations = dict(relations)
        self._opened = dict(opened)
        self._scanned_rows = scanned_rows
        self._budget = budget
        self._gathered: list[list[pa.RecordBatch]] = [[] for _ in inputs]
        self._gathered_bytes = 0
        self._held_bytes = 0
        self._parts: FragmentParts | None = None
        self._emitter: Emitter | None = None
        self._has_emitted = False

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        gathered = self._gathered[ordinal]
        if batch.num_rows or not gathered:  # the first, even without rows, says what types the columns came to
            gathered.append(batch)
            self._gathered_bytes += bytes_of(batch)
            self._hold(self._gathered_bytes)
        return True

    def complete(self) -> bool:
        if self._parts is None:
            self._parts = self._call.open(self.context, self._take_relations(), self._take_opened(), self._scanned_rows)
        while self._emitter is not None or not (self._has_emitted and self._parts.is_done):
            if self._emitter is None:
                part = self._parts.poll()
                if part is None:
                    return False
                if self._has_emitted and not part.num_rows:
                    continue
                # A kernel keeps its input until its last rows are made.
                self._hold(part.nbytes + self._parts.held_bytes + (0 if self._parts.is_done else self._gathered_bytes))
                self._emitter = Emitter(self.outbox, small_batches_of(part))
            if not self._emitter.emit():
                return False
            self._emitter, self._has_emitted = None, True
        self._hold(0)
        return True

    def close(self) -> None:
        self._relations.clear()
        self._opened.clear()
        self._gathered.clear()
        self._emitter = None
        if self._parts is not None:
            self._parts.close()
        self._hold(0)

    def _hold(self, size: int) -> None:
        """Keep so many bytes from now on."""
        before, self._held_bytes = self._held_bytes, size
        if size > before:
            self._budget.take(size - before)
        else:
            self._budget.give_back(before - size)

    def _take_opened(self) -> dict[str, Callable[[], pa.Table]]:
        opened, self._opened = self._opened, {}
        return opened

    def _take_relations(self) -> dict[str, pa.Table]:
        relations, self._relations = self._relations, {}
        for (relation, schema), batches in zip(self._inputs, self._gathered, strict=True):
            relations[relation] = pa.Table.from_batches(batches) if batches else empty_table(schema)
        self._gathered.clear()
        aliased = {alias.relation: relations[alias.source] for alias in self._aliases}
        for alias in self._aliases:
            relations.pop(alias.source, None)
        return {**relations, **aliased}


class _PipelinedFragment(Processor):
    """Answers its scan piece by piece, or its input batch by batch, row by row, so that it holds few rows.

    Each input batch is answered and passed on before the next is taken. Passes on at least one batch, were it without
    rows: the schema is an answer too.

    Args:
        call: The fragment, over one relation.
        relation: The relation's name.
        rows: The rows to read; of a fragment with an input, none in the schema of the input.
        open_: Reads the rows in a thread, in the schema of ``rows``; None where ``rows`` are all.
    """

    def __init__(
        self, call: FragmentCall, relation: str, rows: pa.Table, open_: Callable[[], pa.Table] | None = None
    ) -> None:
        self._call = call
        self._relation = relation
        self._empty = empty_table(rows.schema)
        self._pieces = RowPieces(rows, call.limits)
        self._open = open_
        self._opening: Offload[pa.Table] | None = None
        self._poll: Callable[[], pa.Table | None] | None = None
        self._emitter: Emitter | None = None
        self._has_emitted = False
        self._is_last = False
        """No rows were passed on, so an answer without rows has to be."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if not batch.num_rows:
            self._empty = empty_table(batch.schema)  # it says what types the columns came to
            return True
        return self._answer(lambda: pa.Table.from_batches([batch]))

    def complete(self) -> bool:
        if not self._is_open():
            return False
        while not self._is_last and (self._is_answering or not self._pieces.is_done):
            if not self._answer(self._pieces.take):
                return False
        if self._has_emitted and not self._is_last:
            return True
        self._is_last = True
        return self._answer(lambda: self._empty)

    def close(self) -> None:
        self._open = self._opening = None
        self._pieces.drop()

    def _is_open(self) -> bool:
        """Whether there are rows to answer."""
        if self._open is not None:
            if self._opening is None:
                self._opening = self.context.offload(self._open)
            if not self._opening.done():
                return False
            self._pieces = RowPieces(self._opening.result(), self._call.limits)
            self._open = self._opening = None
        return True

    @property
    def _is_answering(self) -> bool:
        return self._poll is not None or self._emitter is not None

    def _answer(self, rows: Callable[[], pa.Table]) -> bool:
        """Answer over some rows and pass the answer on; False until that is done."""
        if self._emitter is None:
            if self._poll is None:
                self._poll = self._call.begin(self.context, {self._relation: rows()})
            result = self._poll()
            if result is None:
                return False
            self._poll = None
            self._pieces.answered(result.nbytes)
            if not result.num_rows and not self._is_last:
                return True
            self._emitter = Emitter(self.outbox, small_batches_of(result))
        if not self._emitter.emit():
            return False
        self._emitter = None
        self._has_emitted = True
        return True


class MemberScan(msgspec.Struct, frozen=True, array_like=True):
    """One member's part of a scan of a statement.

    Attributes:
        relation: The name of the rows in the fragment.
        table_id: The table.
        partitions: The required partitions that the member owns; with none the scan has columns but no rows.
        columns: The columns to read, in order.
        key_slice: The part of each partition that is wanted, None for all of it.
        published: The number of the load that has to be the last one published here; None accepts any.
        rows: The rows to read, if the member does not store them.
        mark: The token under which the read version of the table is recorded, or None.
        since: The token of an earlier read, since which the table must not have changed; None accepts any state.
    """

    relation: str
    table_id: int
    partitions: tuple[int, ...]
    columns: tuple[str, ...]
    key_slice: KeySlice | None
    published: int | None
    rows: pa.Table | None = None
    mark: str | None = None
    since: str | None = None

    def read(self, store: MemberStore) -> pa.Table:
        """The rows as they are now, without a copy. On the event loop of the member.

        Raises:
            TopologyChangedError: A partition is not on this member any more.
            DataChangedError: Another load than ``published`` is the last one published here.
            KeysChangedError: The table was not read under ``since``, or has changed.
        """
        if self.rows is not None:
            return self.rows.select(list(self.columns))
        self._check(store)
        return store.relation(self.table_id, self.partitions, self.columns, self.key_slice)

    def opened(self, store: MemberStore) -> TableScan | pa.Table:
        """Return the current rows, or a scan that reads them in a thread if that is not cheap.

        Raises:
            Error: As :meth:`read`.
        """
        if self.rows is not None or self.key_slice is not None or not self.columns:
            return self.read(store)
        self._check(store)
        return store.scan(self.table_id, self.partitions, self.columns)

    def _check(self, store: MemberStore) -> None:
        here = store.data_version(self.table_id)
        if self.published is not None and here.published != self.published:
            raise DataChangedError(
                f"load {self.published} was the last one where the statement began, here it is {here.published}",
                table_id=self.table_id,
            )
        if self.mark is not None:
            store.marks.note(self.mark, self.table_id, here.changes)
        if (
            self.since is not None
            and self.partitions
            and not store.marks.is_unchanged(self.since, self.table_id, here.changes)
        ):
            raise KeysChangedError(
                "the table has changed since the keys of its rows were found", table_id=self.table_id
            )
