"""Hash join: joins the rows of a stream with those of a smaller input by equal keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Emitter, Offload, Processor
from secateur.engine.exchange.batches import RowBuffer, batches_of
from secateur.engine.processors.gathering import BYTES_MAX
from secateur.engine.processors.kernel import KernelSupplier, column_of, numbered
from secateur.errors import DagError, DataError, LimitExceededError
from secateur.partitioning.types.arrow_form import cast_to_arrow
from secateur.partitioning.types.arrow_layout import empty_batch

_BUILD: Final = 1


Call = Callable[[], pa.Table | None]


JoinHow: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
"""The names of :class:`JoinKind`, as callers write them."""


class JoinKind(Enum):
    """Which rows a join emits."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def keeps_probe(self) -> bool:
        """Whether rows of the probe side without a match are emitted with NULLs."""
        return self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_build(self) -> bool:
        """Whether rows of the build side without a match are emitted with NULLs."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)


def hash_join(
    on: Sequence[str] | Mapping[str, str],
    how: JoinHow = "inner",
    *,
    build_schema: pa.Schema | None = None,
    probe_schema: pa.Schema | None = None,
    build_suffix: str = "_build",
    bytes_max: int = BYTES_MAX,
) -> HashJoinSupplier:
    """A vertex that joins input 0, the *probe side*, with input 1, the *build side*, which it keeps in memory.

    The edge into input 1 has to be read first, so give it a smaller priority::

        dag.edge(from_("orders").to("join", 0).partitioned("customer").distributed())
        dag.edge(from_("customers").to("join", 1).partitioned("id").distributed().with_priority(-1))

    or, for a small build side, leave the probe side where it is and ``broadcast().distributed()`` the build side; but
    not for ``right`` and ``full``: there, each row of the build side has to reach one processor alone, the one that
    sees all its partners.

    Rows come in the order of the probe side, the matches of one row in that of the build side, and what is left of the
    build side at the end. NULL agrees with nothing, as in SQL; NaN agrees with NaN.

    Args:
        on: The columns of the key: names that both sides have, or for each column of the probe side its partner in the
            build side.
        how: ``inner``: the pairs that agree. ``left``: also the rows of the probe side without a partner, with NULLs.
            ``right``: those of the build side. ``full``: both. ``semi``: the rows of the probe side that have a
            partner, each once. ``anti``: those that have none.
        build_schema: The columns of the build side. Needed for ``left`` and ``full``: a processor may have to fill them
            with NULLs without having seen a row of them.
        probe_schema: The columns of the probe side. Needed for ``right`` and ``full``, likewise.
        build_suffix: The suffix for the name of a column of the build side that the probe side has too. Key columns
            of the build side that have the name of their partner are left out: they say the same. (Of a row without
            partner the one column has the key, whichever side it is of.)
        bytes_max: Bound on the rows of the build side that one processor keeps.

    Raises:
        DagError: There is no key, ``how`` is none of these, or a schema is missing. Running, when a side lacks a column
            of the key, the types of partners do not compare, two columns of the result have one name, or the probe side
            is read before the build side has ended.
        LimitExceededError: Running, past ``bytes_max``.
    """
    pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in on)
    if not pairs or isinstance(on, str):
        raise DagError(
            f"hash_join() joins on {on!r}; name at least one column, as a list or as a dict from probe to build column"
        )
    try:
        kind = JoinKind(how)
    except ValueError:
        raise DagError(f"hash_join() knows {', '.join(kind.value for kind in JoinKind)}, not {how!r}") from None
    for is_needed, side, schema in (
        (kind.keeps_probe, "build", build_schema),
        (kind.keeps_build, "probe", probe_schema),
    ):
        if is_needed and schema is None:
            raise DagError(
                f"hash_join(how={how!r}) needs {side}_schema: a processor without a row of the {side} side has to know"
                " the columns that it fills with NULLs"
            )
    return HashJoinSupplier(pairs, kind, build_schema, probe_schema, build_suffix, bytes_max)


@portable("hash-join")
@dataclass(eq=False)
class HashJoinSupplier(KernelSupplier):
    """The supplier of :func:`hash_join`. Schemas are those that are known before a batch comes."""

    on: tuple[tuple[str, str], ...]
    kind: JoinKind
    build_schema: pa.Schema | None
    probe_schema: pa.Schema | None
    build_suffix: str
    bytes_max: int

    def get(self, count: int) -> Sequence[Processor]:
        return [_HashJoin(self) for _ in range(count)]


class _HashJoin(Processor):
    """Joins block by block.

    The kernel builds its hash table anew for each block of the probe side; blocks are as long as the build side, so
    that each row is hashed about twice.
    """

    def __init__(self, join: HashJoinSupplier) -> None:
        self._join = join
        self._kernel, self._kind, self._on = join.kernel, join.kind, join.on
        self._block_rows, self._block_bytes = self._kernel.limits.probe_block_rows, self._kernel.limits.block_bytes
        self._building, self._probe = RowBuffer(), RowBuffer()
        for buffer, schema in ((self._building, join.build_schema), (self._probe, join.probe_schema)):
            if schema is not None:
                buffer.add(empty_batch(schema))
        self._build: pa.Table | None = None
        self._is_built = False
        self._has_partner = np.empty(0, np.bool_)
        self._last_work: Iterator[Call] | None = None
        self._work: Offload[pa.Table | None] | None = None
        self._emitter: Emitter | None = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if ordinal == _BUILD:
            return self._keep(batch)
        if not self._is_built:
            raise DagError(
                "rows of input 0 came before input 1, the build side, had ended; give its edge a smaller priority:"
                " with_priority(-1)"
            )
        if self._is_idle:
            self._probe.add(batch)
            if (
                self._probe.rows < max(self._block_rows, 0 if self._build is None else self._build.num_rows)
                and self._probe.bytes < self._block_bytes
            ):
                return True
            self._work = self.context.offload(self._block())
        return self._step()

    def complete_edge(self, ordinal: int) -> bool:
        if ordinal == _BUILD:
            self._build = self._building.take()
            self._is_built = True
            if self._build is not None and self._kind.keeps_build:
                self._has_partner = np.zeros(self._build.num_rows, np.bool_)
        return True

    def complete(self) -> bool:
        if self._last_work is None:
            self._last_work = self._work_at_the_end()
        while self._is_idle or self._step():
            call = next(self._last_work, None)
            if call is None:
                return True
            self._work = self.context.offload(call)
        return False

    def close(self) -> None:
        self._build = self._work = self._emitter = self._last_work = None
        self._building, self._probe = RowBuffer(), RowBuffer()

    def _keep(self, batch: pa.RecordBatch) -> bool:
        self._building.add(batch)
        if self._building.bytes > self._join.bytes_max:
            raise LimitExceededError(
                f"the build side of the join has more than {self._join.bytes_max:,} bytes here; make the smaller input"
                " the build side, partition both edges by the key over more processors, select fewer columns, or raise"
                " bytes_max"
            )
        return True

    @property
    def _is_idle(self) -> bool:
        return self._work is None and self._emitter is None

    def _block(self) -> Call:
        """Start the join of the pending rows of the probe side."""
        probe = self._probe.take()
        assert probe is not None
        return lambda: self._joined(probe)

    def _work_at_the_end(self) -> Iterator[Call]:
        if self._probe.schema is not None:
            yield self._block()  # without a row it still says which columns come out
        if self._kind.keeps_build:
            yield self._rest

    def _step(self) -> bool:
        """Continue the current join, and emit its rows; call it again until True."""
        if self._emitter is None:
            assert self._work is not None
            if not self._work.done():
                return False
            joined, self._work = self._work.result(), None
            if joined is None:
                return True
            self._emitter = Emitter(self.outbox, batches_of(joined))
        if not self._emitter.emit():
            return False
        self._emitter = None
        return True

    def _joined(self, probe: pa.Table) -> pa.Table | None:
        """The join of some rows of the probe side; None where the columns of the result are not known. In a thread."""
        build = self._build
        if build is None:
            return probe if self._kind is JoinKind.ANTI else probe.slice(0, 0) if self._kind is JoinKind.SEMI else None
        self._check_types(probe.schema, build.schema)
        relations = {
            "probe": numbered(probe, [name for name, _ in self._on]),
            "build": numbered(build, [name for _, name in self._on]),
        }
        agree = " AND ".join(f"probe.k{i} = build.k{i}" for i in range(len(self._on)))
        match self._kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                join = f"probe {self._kind.value.upper()} JOIN build ON {agree}"
                return probe.take(
                    self._kernel.rows(f"SELECT probe.row AS probe_row FROM {join} ORDER BY probe_row", relations)
                )
            case JoinKind.INNER | JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
                join = f"probe {'LEFT' if self._kind.keeps_probe else 'INNER'} JOIN build ON {agree}"
                sql = f"SELECT probe.row AS probe_row, build.row AS build_row FROM {join} ORDER BY probe_row, build_row"
                rows = self._kernel.select(sql, relations, [("probe_row", "BIGINT"), ("build_row", "BIGINT")])
            case _:
                assert_never(self._kind)
        names = self._build_names(probe.schema, build.schema)
        if self._kind.keeps_build:
            self._has_partner[rows.column(1).drop_null().to_numpy()] = True
        partners = build.select(list(names)).take(rows.column(1))
        return pa.Table.from_arrays(
            [*probe.take(rows.column(0)).columns, *partners.columns], names=[*probe.schema.names, *names.values()]
        )

    def _rest(self) -> pa.Table | None:
        """The rows of the build side that have no partner. In a thread."""
        build, probe = self._build, self._probe.schema
        if build is None:
            return None
        assert probe is not None
        self._check_types(probe, build.schema)
        rest = build.take(pa.array(np.flatnonzero(~self._has_partner)))
        partner = {name: other for name, other in self._on if name == other}
        columns = [
            (
                _as(rest.column(column_of(rest.schema, partner[field.name])), field)
                if field.name in partner
                else pa.nulls(rest.num_rows, field.type)
            )
            for field in probe
        ]
        names = self._build_names(probe, build.schema)
        return pa.Table.from_arrays(
            [*columns, *rest.select(list(names)).columns], names=[*probe.names, *names.values()]
        )

    def _build_names(self, probe: pa.Schema, build: pa.Schema) -> dict[int, str]:
        """The columns of the build side that the result has, by position, with their names there."""
        same = {partner for name, partner in self._on if name == partner}
        taken = set(probe.names)
        names = {
            i: f"{name}{self._join.build_suffix}" if name in taken else name
            for i, name in enumerate(build.names)
            if name not in same
        }
        result = [*probe.names, *names.values()]
        twice = sorted({name for name in names.values() if result.count(name) > 1})
        if twice:
            raise DagError(
                f"the join would have two columns {twice[0]!r}; rename one upstream, or choose another build_suffix"
            )
        return names

    def _check_types(self, probe: pa.Schema, build: pa.Schema) -> None:
        for name, partner in self._on:
            one, other = (
                _kind(side.field(column_of(side, column)).type) for side, column in ((probe, name), (build, partner))
            )
            if one != other and "null" not in (one, other):
                raise DagError(
                    f"the join compares {name!r}, which is {one}, with {partner!r}, which is {other}; cast one of them"
                    " upstream"
                )


def _as(key: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The key of a row of the build side in the column of the probe side."""
    try:
        return pa.chunked_array([cast_to_arrow(key, field.type, name=field.name)])
    except DataError as error:
        raise DataError(
            f"a key of the build side does not fit column {field.name!r} of the probe side ({field.type}): {error};"
            " cast one upstream"
        ) from error


def _kind(arrow: pa.DataType) -> str:
    """Name the class of types that a type is comparable with.

    Types of one class compare, and their equal values meet after partitioned edges.
    """
    if pa.types.is_dictionary(arrow):
        return _kind(arrow.value_type)
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow):
        return "float"
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return "string"
    if (
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_fixed_size_binary(arrow)
        or pa.types.is_binary_view(arrow)
    ):
        return "binary"
    if pa.types.is_decimal(arrow):
        return f"decimal of scale {arrow.scale}"
    if pa.types.is_timestamp(arrow):
        return "timestamp" if arrow.tz is None else "timestamp with time zone"
    if pa.types.is_date(arrow):
        return "date"
    return str(arrow)
