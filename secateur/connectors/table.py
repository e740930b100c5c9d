"""A table as the source of a DAG: all of it, some partitions, or the rows of some keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Any, Final

import msgspec

from secateur.dag.codec import portable
from secateur.dag.parameter import Param, bind_value
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Params
from secateur.dag.supplier import MetaContext
from secateur.engine.sql.partitions_reader import KeyLookup, PartitionsReader, ReadRequest
from secateur.errors import DagError, NoRangeError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.job_requirements import JobRequirements
from secateur.partitioning.types.coerce import coerce

__all__ = ["TableSource", "table_source"]


_KEYS_MAX: Final = 100_000
_TELLING_MAX: Final = 512
"""Partitions that are named before the job starts: enough to find a member that takes part."""


def table_source(
    name: str,
    *,
    keys: Sequence[Mapping[str, Any]] | None = None,
    where: Mapping[str, Any] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> TableSource:
    """A source of the rows of a table.

    It runs on the members that own the partitions that it reads, and adds no other member to the job.

    Args:
        name: The table.
        keys: Read only the rows with these values. Each key names the same columns: all partitioning columns of the
            table, and any others. A value may be a :class:`~secateur.dag.parameter.Param`, which is bound when the job
            starts.
        where: A shorter form of ``keys``: for each column a value, or a list, tuple, set or range of values; the keys
            are all combinations, at most 100,000. ``{"tenant": "acme", "day": [1, 2]}`` is
            ``tenant = 'acme' AND day IN (1, 2)``.
        partitions: Read only these partitions.
        columns: The columns wanted, in order; None for all.

    Raises:
        DagError: Several of ``keys``, ``where`` and ``partitions`` are given, the keys name different columns, or there
            are too many combinations. A missing table or column is reported only when the job starts.
    """
    if sum(given is not None for given in (keys, where, partitions)) > 1:
        raise DagError(f"table_source({name!r}): give keys, where or partitions, not several")
    if where is not None:
        keys = _combinations(name, where)
    if keys is not None and len({frozenset(key) for key in keys}) > 1:
        raise DagError(f"table_source({name!r}): every key must name the same columns")
    return TableSource(
        name,
        None if keys is None else tuple({column: _binding(value) for column, value in key.items()} for key in keys),
        None if partitions is None else tuple(partitions),
        None if columns is None else tuple(columns),
    )


def _binding(value: Any) -> Param | _GivenValue:
    return value if isinstance(value, Param) else _GivenValue(value)


class _GivenValue(msgspec.Struct, frozen=True, array_like=True, tag="value"):
    """A value of a key that does not depend on parameters."""

    value: Any


@portable("table-source")
@dataclass(eq=False)
class TableSource(PartitionsReader):
    """The meta-supplier of :func:`table_source`."""

    name: str
    keys: tuple[dict[str, Param | _GivenValue], ...] | None
    wanted_partitions: tuple[int, ...] | None
    columns: tuple[str, ...] | None

    def partitions_in(self, table: TableDef, params: Params, vertex: str) -> Sequence[int]:
        """The partitions that it reads.

        Args:
            table: The table's description.
            params: The parameters of the job.
            vertex: Name of the vertex, for messages.

        Raises:
            DagError: The keys lack a partitioning column, or there is no such partition.
            ParameterError: A parameter is missing.
            DataError: A value that its column cannot hold.
        """
        if self.keys is not None:
            return sorted(_lookup(table, self.keys, params, vertex).by_partition)
        if self.wanted_partitions is not None:
            return _checked_partitions(table, self.wanted_partitions)
        live: list[int] = table.scheme.live_partitions().tolist()
        return live

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements:
        definition = table(self.name)
        if definition.replicated:
            return JobRequirements()
        return JobRequirements(
            {self.name: frozenset(islice(self.partitions_in(definition, params, vertex), _TELLING_MAX))}
        )

    def placement(self) -> Placement:
        placement = super().placement()
        if isinstance(placement, OnPartitions) and not placement.by_member:
            return Anywhere()  # nothing to read: somebody has to say which columns no row has
        return placement

    def resolve(self, context: MetaContext) -> ReadRequest:
        table = context.table(self.name)
        columns = None if self.columns is None else tuple(table.column(column).name for column in self.columns)
        lookup = None if self.keys is None else _lookup(table, self.keys, context.params, context.vertex)
        partitions = (
            self.partitions_in(table, context.params, context.vertex) if lookup is None else sorted(lookup.by_partition)
        )
        return ReadRequest(
            table.table_id, table.scheme.affinity_group(), partitions, table.replicated, columns, keys=lookup
        )


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


def _lookup(
    table: TableDef, keys: Sequence[Mapping[str, Param | _GivenValue]], params: Params, vertex: str
) -> KeyLookup:
    """The keys with their values bound and converted, by partition.

    A NULL, or a key that no range covers, matches nothing.
    """
    named = {table.column(column).name: column for key in keys[:1] for column in key}
    missing = [column for column in table.scheme.columns if column not in named]
    if keys and missing:
        raise DagError(
            f"vertex {vertex!r}: the keys name {', '.join(named) or 'no column'}, but a row's partition in {table.name}"
            f" also depends on {', '.join(missing)}; name all partitioning columns, or read the whole table and filter"
        )
    prefix = table.primary_key[: len(named)]
    is_prefix = set(prefix) == set(named)
    columns = prefix if is_prefix else tuple(named)
    by_partition: dict[int, dict[tuple[Any, ...], None]] = {}
    for key in keys:
        bound = {column: _bound(key[written], params) for column, written in named.items()}
        values = {
            column: None if value is None else coerce(value, table.column(column).type, column=column)
            for column, value in bound.items()
        }
        if None in values.values():
            continue
        try:
            partition = table.scheme.partition_of({column: values[column] for column in table.scheme.columns})
        except NoRangeError:
            continue
        by_partition.setdefault(partition, {})[tuple(values[column] for column in columns)] = None
    return KeyLookup(columns, is_prefix, {partition: tuple(found) for partition, found in by_partition.items()})


def _bound(binding: Param | _GivenValue, params: Params) -> Any:
    return binding.value if isinstance(binding, _GivenValue) else bind_value(binding, params)


def _checked_partitions(table: TableDef, partitions: Sequence[int]) -> list[int]:
    wanted = sorted(set(partitions))
    live = set(table.scheme.live_partitions().tolist())
    unknown = [partition for partition in wanted if partition not in live]
    if unknown:
        raise DagError(
            f"table {table.name} has no partition {unknown[0]}; it has {len(live)}, ids below {table.partition_count}"
        )
    return wanted
