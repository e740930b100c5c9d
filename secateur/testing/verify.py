"""The conformance kit: a processor that passes it runs in any job.

Source: ``TestSupport.verifyProcessor`` of Hazelcast Jet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from secateur.dag.processor import Params, Processor, ProcessorContext
from secateur.dag.supplier import (
    MetaContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    SupplierContext,
    meta_supplier_of,
)
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.services import GatherBudget, MemberServices
from secateur.engine_limits import EngineLimits
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.partitioning.types.arrow_layout import empty_batch, empty_table
from secateur.protocol.job_description import JobConfig
from secateur.storage.member_store import MemberStore
from secateur.testing.trial import SCENARIOS, Scenario, Trial, TrialOffloads

_MEMBER: Final = "m1"
_STOPS_MAX: Final = 40
"""Places at which a trial is cancelled."""

Source = ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor]
Rows = Any
"""A table, a batch, or batches of one schema."""


def verify_processor(
    source: Source,
    inputs: Sequence[Rows] = (),
    expected: pa.Table | Sequence[pa.Table] | None = None,
    *,
    ordered: bool = False,
    priorities: Sequence[int] | None = None,
    edges: int = 1,
    params: Params = (),
    call_s_max: float = 0.1,
    services: Mapping[type, Any] | None = None,
    limits: EngineLimits | None = None,
    topology: Topology | None = None,
) -> None:
    """Run a processor through everything that may happen to it in a job, and compare what it emits.

    It is driven as the engine drives it, in many trials: inputs in batches of one row, of random sizes, with empty
    batches between; an outbox that refuses each batch once, often, at random; offloads that take time; cancelled after
    each call, and closed before it was initialised. Every answer is checked against the protocol of
    :class:`~secateur.dag.Processor`.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from secateur.processors import filter_rows
    >>> from secateur.testing import verify_processor
    >>> rows = pa.table({"x": [1, 2, 3]})
    >>> above_one = filter_rows(lambda batch: pc.greater(batch["x"], 1))
    >>> verify_processor(above_one, [rows], pa.table({"x": [2, 3]}), ordered=True)
    >>> verify_processor(filter_rows(lambda batch: pc.greater(batch["x"], 2)), [rows], pa.table({"x": [2, 3]}))
    Traceback (most recent call last):
    AssertionError: the processor failed with input as it was given, an outbox that accepts:
    1 rows came, 2 were expected
        missing: (2,)

    Args:
        source: The source of the processor: a function without arguments, a supplier or a meta-supplier.
        inputs: The rows of each inbound edge, by ordinal; none for a source. Some ten rows show as much as thousands.
        expected: The rows that each outbound edge has to get; a sequence when they differ by edge; None: only that
            every trial emits the same. An output without any batch counts as an empty table.
        ordered: Whether the order of the rows counts. Of several inputs, only if the processor does not depend on how
            they take turns.
        priorities: The priority of each inbound edge; None: all alike.
        edges: Outbound edges.
        params: The parameters of the job.
        call_s_max: Bound in seconds on each call of a cooperative processor. The contract says about a millisecond; the
            default leaves room for a busy machine, and the fastest trial counts.
        services: Services that its supplier finds at the member beside or instead of the usual ones, by type, such as
            ``MemberServices`` with tables.
        limits: Bounds of the member's storage and engine; None for the defaults.
        topology: Members and owners, for a source of tables; its first member runs the processor. None: one member, no
            table.

    Raises:
        AssertionError: It failed; the message says in which trial and how to run it again.
    """
    batches = [_batches(rows) for rows in inputs]
    order = [0] * len(batches) if priorities is None else list(priorities)
    assert len(order) == len(batches), f"{len(order)} priorities were given for {len(batches)} inputs"
    with ThreadPoolExecutor(max_workers=1) as executor:
        bounds = limits or EngineLimits()
        store = MemberStore(limits=bounds)
        base = MemberServices(store, run, executor, allow_code=True, limits=bounds)
        bench = _Bench(source, params, {MemberServices: base, **(services or {})}, topology)
        wanted = None if expected is None else [expected] * edges if isinstance(expected, pa.Table) else list(expected)
        assert wanted is None or len(wanted) == edges, (
            f"{len(wanted or ())} expected tables were given for {edges} outbound edges"
        )
        _close_before_init(bench)
        calls, fastest = 0, (math.inf, "")
        for scenario in SCENARIOS:
            trial, came = _tried(bench, scenario, batches, order, edges)
            outputs = [
                _table(received, None if wanted is None else wanted[edge].schema) for edge, received in enumerate(came)
            ]
            wanted = wanted if wanted is not None else outputs
            _compare(outputs, wanted, scenario, ordered=ordered)
            calls = max(calls, trial.calls)
            fastest = min(fastest, (trial.slowest_s, trial.slowest))
        assert fastest[0] <= call_s_max or not trial.is_cooperative, (
            f"{fastest[1]} took {fastest[0]:.3f} s in the fastest of {len(SCENARIOS)} trials; a cooperative processor"
            f" keeps the event loop for at most {call_s_max} s: offload the work (ProcessorContext.offload), do less in"
            " each call, or set cooperative = False"
        )
        for stop_after in range(0, calls, max(1, calls // _STOPS_MAX)):
            _tried(bench, replace(SCENARIOS[3], stop_after=stop_after), batches, order, edges)


class _Bench:
    """Makes processors as a job would."""

    def __init__(self, source: Source, params: Params, services: Mapping[type, Any], topology: Topology | None) -> None:
        self._meta = meta_supplier_of(source)
        self._params = params
        self._services = services
        self._topology = topology or Topology(1, (MemberAddress(_MEMBER, "local", 0),), {})
        self._member = self._topology.members[0].id

    def made(self, then: Callable[[Processor], None], count: int = 1) -> None:
        """Make processors, apply a function to each, and close them and their supplier."""
        meta = copy(self._meta)
        table = self._services[MemberServices].table
        error: BaseException | None = None
        supplier: ProcessorSupplier | None = None
        try:
            meta.init(MetaContext("trial", "trial", self._member, JobConfig(), self._params, self._topology, table))
            meta.placement()
            suppliers = meta.get([self._member])
            assert set(suppliers) == {self._member}, (
                f"the meta-supplier was called for a supplier for {self._member} and returned some for"
                f" {sorted(suppliers)}"
            )
            supplier = copy(suppliers[self._member])
            job = {
                Cancellation: Cancellation(),
                GatherBudget: GatherBudget(self._services[MemberServices].gathered_bytes_max),
            }
            supplier.init(
                SupplierContext("trial", "trial", self._member, count, count, self._params, {**job, **self._services})
            )
            processors = supplier.get(count)
            assert len(processors) == len({id(p) for p in processors}) == count, (
                f"the supplier was called for {count} new processors and returned {processors!r}"
            )
            for processor in processors:
                assert isinstance(processor, Processor), (
                    f"the supplier returned a {type(processor).__name__}, which is not a Processor"
                )
                then(processor)
        except BaseException as caught:
            error = caught
            raise
        finally:
            if supplier is not None:
                supplier.close(error)
            meta.close(error)

    def context(self, offloads: TrialOffloads, input_count: int) -> ProcessorContext:
        """Return the context that the processor is initialised with."""
        return ProcessorContext("trial", "trial", self._member, 0, 0, 1, 1, self._params, input_count, offloads)


def _tried(
    bench: _Bench, scenario: Scenario, inputs: Sequence[Sequence[pa.RecordBatch]], priorities: Sequence[int], edges: int
) -> tuple[Trial, list[list[Any]]]:
    trials: list[Trial] = []

    def try_out(processor: Processor) -> None:
        offloads = TrialOffloads(scenario.offload_polls)
        trial = Trial(processor, bench.context(offloads, len(inputs)), offloads, scenario, inputs, priorities, edges)
        trials.append(trial)
        is_over = trial.run()
        assert is_over or scenario.stop_after is not None

    try:
        bench.made(try_out)
    except Exception as error:
        raise AssertionError(
            f"the processor failed with {scenario}:\n{error if isinstance(error, AssertionError) else repr(error)}"
        ) from error
    return trials[0], trials[0].outbox.received


def _close_before_init(bench: _Bench) -> None:
    try:
        bench.made(lambda processor: processor.close(), count=2)
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"close() of a processor that was never initialised raised {error!r}; it is called after a failed init too"
        ) from error


def _compare(outputs: Sequence[pa.Table], wanted: Sequence[pa.Table], scenario: Scenario, *, ordered: bool) -> None:
    for edge, (output, table) in enumerate(zip(outputs, wanted, strict=True)):
        found = difference(output, table, ordered=ordered)
        if found is not None:
            place = "" if len(outputs) == 1 else f" on output {edge}"
            raise AssertionError(f"the processor failed with {scenario}{place}:\n{found}")


def _table(batches: Sequence[pa.RecordBatch], schema: pa.Schema | None) -> pa.Table:
    if batches:
        return pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names) for batch in batches]
        )
    return empty_table(pa.schema([])) if schema is None else empty_table(schema)


def _batches(rows: Rows) -> list[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        return rows.to_batches() or [empty_batch(rows.schema)]
    return [rows] if isinstance(rows, pa.RecordBatch) else list(rows)


_ROWS_SHOWN_MAX: Final = 5


def difference(actual: pa.Table, expected: pa.Table, *, ordered: bool) -> str | None:
    """Describe how a table differs from the expected one, names and types of columns too; None if it does not."""
    if actual.schema.names != expected.schema.names or actual.schema.types != expected.schema.types:
        return f"the columns are {_columns(actual.schema)}\n    expected     {_columns(expected.schema)}"
    rows, wanted = _rows(actual), _rows(expected)
    extra, missing = Counter(rows) - Counter(wanted), Counter(wanted) - Counter(rows)
    if extra or missing:
        lines = [f"{len(rows)} rows came, {len(wanted)} were expected"]
        lines += [f"    missing: {row}" for row in _first(missing)] + [f"    extra:   {row}" for row in _first(extra)]
        return "\n".join(lines)
    if ordered and rows != wanted:
        at = next(index for index, (row, other) in enumerate(zip(rows, wanted, strict=True)) if row != other)
        return f"the rows come in another order: row {at} is {rows[at]}\n    expected {wanted[at]}"
    return None


def _rows(table: pa.Table) -> list[str]:
    """Each row as text; NaN equals NaN, and 1 is not 1.0."""
    columns = [column.to_pylist() for column in table.columns]
    return (
        [repr(tuple(_value(value) for value in row)) for row in zip(*columns, strict=True)]
        if columns
        else ["()"] * table.num_rows
    )


def _value(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _first(rows: Counter[str]) -> list[str]:
    shown = [row if times == 1 else f"{row} ({times} times)" for row, times in list(rows.items())[:_ROWS_SHOWN_MAX]]
    return shown if len(rows) <= _ROWS_SHOWN_MAX else [*shown, f"... and {len(rows) - _ROWS_SHOWN_MAX} more"]


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema) or "none"
