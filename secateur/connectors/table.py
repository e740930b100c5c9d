"""A table as the source of a DAG: all of it, some partitions, or the rows of some keys; and as its sink.

A sink sends rows to the primaries of their partitions and to the backups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, product
from math import prod
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa

from secateur.connectors.table_sources import (
    Binding,
    ConditionSource,
    KeyLookup,
    PartitionsReader,
    ReadRequest,
    binding_of,
    bound,
)
from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Outbox, Params, Processor, ProcessorContext
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.runtime.services import MemberServices
from secateur.errors import DagError, NoRangeError, NotSupportedError
from secateur.partitioning.pruning.domain import points
from secateur.partitioning.pruning.select_partitions import combination_limit, select_partitions
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import NESTED, TEXTUAL
from secateur.protocol.job_description import JobRequirements, SourceScan

_KEYS_MAX: Final = 100_000
_TELLING_MAX: Final = 512
"""Partitions that are named before the job starts: enough to find a member that takes part."""


def table_source(
    name: str,
    *,
    keys: Sequence[Mapping[str, Any]] | None = None,
    where: Mapping[str, Any] | str | None = None,
    params: Sequence[Any] | Mapping[str, Any] = (),
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> TableSource | ConditionSource:
    """A source of the rows of a table.

    It runs on the members that own the partitions that it reads, and adds no other member to the job.

    Args:
        name: The table.
        keys: Read only the rows with these values. Each key names the same columns. If it names all partitioning
            columns, the partition of each key is read; otherwise those that the named columns leave. A value may be a
            :class:`~secateur.dag.processor.Param`, which is bound when the job starts.
        where: A condition of SQL over the columns of the table, such as ``"device = ? AND ts >= ?"``: the partitions
            are read, searched and filtered as a SELECT with that condition would do it. Any condition that SQL accepts
            on the rows of one table; no subqueries. Or a mapping, as a shorter form of ``keys``: for each column a
            value, or a list, tuple, set or range of values; the keys are all combinations, at most 100,000.
            ``{"tenant": "acme", "day": [1, 2]}`` is ``tenant = 'acme' AND day IN (1, 2)``.
        params: The values of the placeholders of a condition, in order for ``?`` and ``$1``, by name for ``$name``. A
            value may be a :class:`~secateur.dag.processor.Param`; expressions of it, such as ``lower(?)``, are
            evaluated when the job starts.
        partitions: Read only these partitions.
        columns: The columns wanted, in order; None for all.

    Raises:
        DagError: Several of ``keys``, ``where`` and ``partitions`` are given, ``params`` without a condition, an empty
            condition, or keys that name different columns or are too many combinations. A missing table or column, or
            a wrong condition, is reported only when the job is submitted.
        ParameterError: A value in ``keys``, ``where`` or ``params`` is one that no column holds.
    """
    if sum(given is not None for given in (keys, where, partitions)) > 1:
        raise DagError(f"table_source({name!r}): give keys, where or partitions, not several")
    if isinstance(where, str):
        if not where.strip():
            raise DagError(f"table_source({name!r}): where is empty: give a condition, or leave where out to read all")
        is_named = isinstance(params, Mapping)
        return ConditionSource(
            name,
            where,
            () if is_named else tuple(binding_of(value, str(position)) for position, value in enumerate(params, 1)),
            {key: binding_of(value, f"${key}") for key, value in params.items()} if isinstance(params, Mapping) else {},
            None if columns is None else tuple(columns),
        )
    if params:
        raise DagError(f"table_source({name!r}): params are the values of a condition: give it as a text in where")
    if where is not None:
        keys = _combinations(name, where)
    if keys is not None and len({frozenset(key) for key in keys}) > 1:
        raise DagError(f"table_source({name!r}): every key must name the same columns")
    return TableSource(
        name,
        None
        if keys is None
        else tuple({column: binding_of(value, f"for {column}") for column, value in key.items()} for key in keys),
        None if partitions is None else tuple(partitions),
        None if columns is None else tuple(columns),
    )


@portable("table-source")
@dataclass(eq=False)
class TableSource(PartitionsReader):
    """The meta-supplier of :func:`table_source`."""

    name: str
    keys: tuple[dict[str, Binding], ...] | None
    wanted_partitions: tuple[int, ...] | None
    columns: tuple[str, ...] | None

    def partitions_in(self, table: TableDef, params: Params) -> Sequence[int]:
        """The partitions that it reads, with the parameters of a job.

        Raises:
            DagError: There is no such partition.
            ParameterError: A parameter is missing.
            DataError: A value that its column cannot hold.
        """
        if self.keys is not None:
            return _lookup(table, self.keys, params).partitions
        if self.wanted_partitions is not None:
            return _checked_partitions(table, self.wanted_partitions)
        live: list[int] = table.scheme.live_partitions().tolist()
        return live

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements:
        definition = table(self.name)
        if definition.replicated:
            return JobRequirements()
        return JobRequirements({self.name: frozenset(islice(self.partitions_in(definition, params), _TELLING_MAX))})

    def placement(self) -> Placement:
        placement = super().placement()
        if isinstance(placement, OnPartitions) and not placement.by_member:
            return Anywhere()  # nothing to read: somebody has to say which columns no row has
        return placement

    def resolve(self, context: MetaContext) -> ReadRequest:
        table = context.table(self.name)
        wanted = table.visible_schema.names if self.columns is None and table.has_row_ids else self.columns
        columns = None if wanted is None else tuple(table.visible_column(column).name for column in wanted)
        lookup = None if self.keys is None else _lookup(table, self.keys, context.params)
        partitions = self.partitions_in(table, context.params) if lookup is None else lookup.partitions
        self._scan = SourceScan(
            table.name,
            len(partitions),
            len(table.scheme.live_partitions()),
            columns=columns,
            searches=lookup is not None and lookup.keys.is_prefix,
            reason=None if lookup is None or table.replicated else lookup.reason,
        )
        return ReadRequest(
            table.table_id,
            table.scheme.affinity_group(),
            partitions,
            table.replicated,
            columns,
            keys=None if lookup is None else lookup.keys,
        )

    def scan(self) -> SourceScan:
        return self._scan


class _Lookup(NamedTuple):
    """The keys of a source, bound.

    Attributes:
        keys: Where they are looked up.
        partitions: The partitions that can hold their rows, ascending.
        reason: Why these are all partitions, or None.
    """

    keys: KeyLookup
    partitions: Sequence[int]
    reason: str | None = None


def _combinations(name: str, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    choices = {
        column: tuple(wanted) if isinstance(wanted, list | tuple | set | frozenset | range) else (wanted,)
        for column, wanted in where.items()
    }
    count = prod(map(len, choices.values()))
    if count > _KEYS_MAX:
        raise DagError(
            f"table_source({name!r}): where has {count:,} combinations; at most {_KEYS_MAX:,} keys are looked up: read"
            " partitions or all, and filter"
        )
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def _lookup(table: TableDef, keys: Sequence[Mapping[str, Binding]], params: Params) -> _Lookup:
    """The keys with their values bound and converted, and the partitions that can hold their rows.

    A NULL, or a key that no range covers, matches nothing.
    """
    named = {table.column(column).name: column for key in keys[:1] for column in key}
    for column, written in named.items():
        if table.column(column).type.kind in NESTED | TEXTUAL:
            raise DagError(
                f"table_source({table.name!r}): rows cannot be looked up by {written}, which is"
                f' {table.column(column).type}: give a condition of SQL, such as where="{written} = ?" with params'
            )
    prefix = table.primary_key[: len(named)]
    is_prefix = set(prefix) == set(named)
    columns = prefix if is_prefix else tuple(named)
    converted: dict[tuple[Any, ...], None] = {}
    for key in keys:
        given = {column: bound(key[written], params) for column, written in named.items()}
        values = {
            column: None if value is None else coerce(value, table.column(column).type, column=column)
            for column, value in given.items()
        }
        if None not in values.values():
            converted[tuple(values[column] for column in columns)] = None
    missing = [column for column in table.scheme.columns if column not in named]
    if keys and missing:
        return _anywhere(table, KeyLookup(columns, is_prefix, {}, tuple(converted)), missing)
    by_partition: dict[int, list[tuple[Any, ...]]] = {}
    for found in converted:
        values = dict(zip(columns, found, strict=True))
        try:
            partition = table.scheme.partition_of({column: values[column] for column in table.scheme.columns})
        except NoRangeError:
            continue
        by_partition.setdefault(partition, []).append(found)
    lookup = KeyLookup(columns, is_prefix, {partition: tuple(found) for partition, found in by_partition.items()})
    return _Lookup(lookup, sorted(by_partition))


def _anywhere(table: TableDef, keys: KeyLookup, missing: Sequence[str]) -> _Lookup:
    """Keys that do not name the whole partitioning key: the partitions that the named columns leave, as in SQL."""
    scheme = table.scheme
    partitioning = [column for column in keys.columns if column in scheme.columns]
    positions = [keys.columns.index(column) for column in partitioning]
    live, limit = scheme.live_ids(), combination_limit(scheme)
    kept: set[int] = set()
    for values in dict.fromkeys(tuple(key[position] for position in positions) for key in keys.anywhere):
        domains = {column: points([value]) for column, value in zip(partitioning, values, strict=True)}
        kept.update(select_partitions(scheme, domains, limit).ids)
        if len(kept) == len(live):
            break
    reason = None
    if kept and len(kept) == len(live):
        named = f"only {', '.join(partitioning)}" if partitioning else "none of its columns"
        reason = (
            f"the partition key is ({', '.join(scheme.columns)}), and the keys name {named}, which leaves out no"
            f" partition: name {', '.join(missing)} as well"
        )
    return _Lookup(keys, sorted(kept), reason)


def _checked_partitions(table: TableDef, partitions: Sequence[int]) -> list[int]:
    wanted = sorted(set(partitions))
    live = set(table.scheme.live_partitions().tolist())
    unknown = [partition for partition in wanted if partition not in live]
    if unknown:
        raise DagError(
            f"table {table.name} has no partition {unknown[0]}; it has {len(live)}, ids below {table.partition_count}"
        )
    return wanted


_MODES: Final = ("upsert", "append")
_FLUSH_ROWS: Final = 1 << 20
_FLUSH_BYTES: Final = 64 << 20
"""Every write to a partition has a price of its own, and there are hundreds of partitions: an eighth of this took twice
the time for a million rows.
"""


def table_sink(
    name: str, *, mode: Literal["upsert", "append"] = "upsert", missing: Literal["null"] | None = None
) -> TableSink:
    """A sink that writes rows into a table.

    Columns are matched by name and converted as in :meth:`~secateur.client.loads.table_handle.TableHandle.load`.

    Each processor gathers rows, and writes those of each partition to its primary, on any member, which passes them to
    its backups; the job succeeds only when all of them have all rows. Feed it through an edge
    ``.partitioned(table=name).distributed()``, as a pipeline does: then rows are sent once, to the member that owns
    them if it takes part in the job, and the rows of one partition are written together.

    **Atomicity**: the rows of one write to one partition become visible together, those of a job do not, and a job that
    fails leaves the rows that it had written. An upsert is safe to run again, and is run again when a member is lost.
    An append that is run again finds its own keys (``DuplicateKeyError``): give its job
    ``JobConfig(on_member_lost="fail")``. For all rows or none: collect, then ``TableHandle.load``.

    Args:
        name: The table; it must exist when the job starts, and have a primary key. Ranges that it makes on demand
            (``EVERY``) are made as rows need them.
        mode: ``"upsert"`` replaces rows with the same primary key; ``"append"`` refuses them.
        missing: ``"null"`` has the default, or NULL, in the columns of the table that the rows lack. Without it, an
            upsert keeps their values in rows that are there; an append refuses those without a default.

    Raises:
        DagError: There is no such mode.
        ParameterError: ``missing`` is something else.
    """
    if mode not in _MODES:
        raise DagError(
            f"table_sink({name!r}): there is no mode {mode!r}; a job writes with one of {', '.join(map(repr, _MODES))}"
        )
    return TableSink(name, mode, MissingColumns.of_load(missing, is_upsert=mode == "upsert"))


@portable("table-sink")
@dataclass(eq=False)
class TableSink(ProcessorMetaSupplier):
    """The meta-supplier of :func:`table_sink`."""

    init_is_cooperative = True
    close_is_cooperative = True

    table: str
    mode: str
    missing: MissingColumns

    def init(self, context: MetaContext) -> None:
        table = context.table(self.table)
        if table.replicated:
            raise NotSupportedError(
                f"table {self.table} is replicated, and a job cannot write into that: collect the rows, then load them"
                " with TableHandle.load"
            )
        check_has_key(table, "a job that is run again would write its rows twice: collect them, and load them")

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: TableSinkSupplier(self.table, self.mode, self.missing) for member in members}


@portable("table-sink-supplier")
@dataclass(eq=False)
class TableSinkSupplier(ProcessorSupplier):
    """Makes the processors of :func:`table_sink` on one member."""

    init_is_cooperative = True
    close_is_cooperative = True

    table: str
    mode: str
    missing: MissingColumns

    def init(self, context: SupplierContext) -> None:
        self._services = context.service(MemberServices)
        self._definition = self._services.table(self.table)

    def get(self, count: int) -> Sequence[Processor]:
        return [_Write(self._definition, self.mode, self.missing, self._services) for _ in range(count)]


class _Write(Processor):
    """Waits for its writes in a thread of its own, not in one of the executor.

    A load that is being published may need the executor's threads before the writes can go on.
    """

    cooperative = False

    def __init__(self, table: TableDef, mode: str, missing: MissingColumns, services: MemberServices) -> None:
        self._table = table
        self._mode = mode
        self._missing = missing
        self._now = datetime.now(UTC)
        self._write = services.write_rows
        self._gathered: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0
        self._writes = 0
        self._id = ""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self._id = f"{context.job_id}/{context.vertex}/{context.global_index}"

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        rows = conform(batch, self._table, self._missing, now=self._now)
        if rows.num_rows:
            if self._gathered and self._gathered[0].schema != rows.schema:  # another input, which lacks other columns
                self._flush()
            self._gathered.append(rows)
            self._rows += rows.num_rows
            self._bytes += rows.nbytes
            if self._rows >= _FLUSH_ROWS or self._bytes >= _FLUSH_BYTES:
                self._flush()
        return True

    def complete(self) -> bool:
        if self._gathered:
            self._flush()
        return True

    def close(self) -> None:
        self._gathered.clear()

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._rows = self._bytes = 0
        self._writes += 1
        self._write(self._table, pa.concat_tables(gathered), self._mode, f"{self._id}/{self._writes}")
