"""Spans of OpenTelemetry: a statement, its planning, the members that it asks, and their kernel calls.

The one place that knows the library, which is optional (``pip install "secateur[otel]"``). A trace begins at a client
whose process has a tracer provider, and the others take part as far as they have one: a request carries the trace only
while a span of it is recorded. Without a span, one look at a context variable is all that a kernel call or a request
costs.

Source: the W3C recommendation "Trace Context"; OpenTelemetry's semantic conventions for database clients.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cache
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

P = ParamSpec("P")
T = TypeVar("T")

_TEXT_MAX: Final = 2000
_span: Final[ContextVar[Any]] = ContextVar("secateur_span", default=None)
"""The span of secateur in which this thread or task works; None outside of traces."""


class TraceContext(msgspec.Struct, frozen=True, array_like=True):
    """A span as another process needs to know it, in the two headers of the W3C."""

    traceparent: str
    tracestate: str = ""


@cache
def is_installed() -> bool:
    """Whether the library is there. It is not loaded by that."""
    return importlib.util.find_spec("opentelemetry") is not None and (
        importlib.util.find_spec("opentelemetry.trace") is not None
    )


def is_configured() -> bool:
    """Whether this process has a tracer provider; nobody has configured a library that is not loaded."""
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def statement_span(text: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """The span of a statement at the client, below the span of the caller, if there is one.

    Args:
        text: The statement.

    Yields:
        A function that adds attributes.
    """
    with _client_span("secateur.statement", {"db.query.text": text[:_TEXT_MAX]}) as describe:
        yield describe


@contextmanager
def operation_span(
    operation: str, table: str | None = None, count: int | None = None
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """The span of what a client does without SQL, such as ``get``, below the span of the caller, if there is one.

    Args:
        operation: Its name; that of the span is ``secateur.get``.
        table: The table, if it is about one.
        count: The keys or rows, if they are counted.

    Yields:
        A function that adds attributes.
    """
    attributes: dict[str, Any] = {"db.operation.name": operation}
    if table is not None:
        attributes["db.collection.name"] = table
    if count is not None:
        attributes["db.operation.batch.size"] = count
    with _client_span(f"secateur.{operation}", attributes) as describe:
        yield describe


@contextmanager
def _client_span(name: str, attributes: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    from opentelemetry import trace

    known = {"db.system.name": "secateur", **attributes}
    with _tracer().start_as_current_span(name, kind=trace.SpanKind.CLIENT, attributes=known) as span:
        before = _span.set(span if span.is_recording() else None)
        try:
            yield span.set_attributes
        finally:
            _span.reset(before)


def is_traced() -> bool:
    """Whether this thread or task works in a span that has not ended.

    Tasks that live on were perhaps begun inside of one.
    """
    span = _span.get()
    return span is not None and bool(span.is_recording())


class KernelSpan:
    """The span of a kernel call, below the span of this thread or task; it begins when it is made.

    Args:
        text: What the kernel answers.
    """

    def __init__(self, text: str) -> None:
        from opentelemetry import trace

        parent = trace.set_span_in_context(_span.get())
        self._span = _tracer().start_span("secateur.kernel", parent, attributes={"db.query.text": text[:_TEXT_MAX]})

    def end(self, kernel: str, rows: int | None = None) -> None:
        """The call has ended.

        Args:
            kernel: The kernel that has answered.
            rows: The rows of its answer; None if there is none, or it was not taken whole.
        """
        self._span.set_attribute("secateur.kernel", kernel)
        if rows is not None:
            self._span.set_attribute("secateur.rows", rows)
        self._span.end()

    def fail(self, error: BaseException) -> None:
        """The call has failed, or was ended."""
        _note(self._span, error)
        self._span.end()


def carried() -> TraceContext | None:
    """The span of this thread or task for a request that it makes; None if it has none, or it has ended."""
    if not is_traced():
        return None
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers, trace.set_span_in_context(_span.get()))
    return TraceContext(headers["traceparent"], headers.get("tracestate", ""))


def current_trace() -> tuple[str, str] | None:
    """The ids of trace and span of this thread or task in hexadecimal, for log lines; None outside of traces."""
    if not is_traced():
        return None
    context = _span.get().get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def in_this_trace(call: Callable[P, T]) -> Callable[P, T]:
    """The call for another thread, in the span of this one; the call itself outside of traces."""
    if not is_traced():
        return call
    here = copy_context()
    return lambda *args, **kwargs: here.copy().run(call, *args, **kwargs)  # a context is entered by one thread only


def record_error(error: BaseException) -> None:
    """Note an error that ends what the span of this task is about."""
    if is_traced():
        _note(_span.get(), error)


class ServedSpan:
    """The span of what a process does for another one.

    Args:
        asked: The span of the other one.
        name: The name of the span.
        attributes: What is known of it.

    Attributes:
        context: In which the work has to run, so that what it asks and calls becomes a part of the trace. Without a
            tracer provider here, there is no span, and the trace ends.
    """

    def __init__(self, asked: TraceContext, name: str, attributes: Mapping[str, str]) -> None:
        self.context: Context = copy_context()
        self._span: Any = None
        if not is_configured():
            return
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(
            {"traceparent": asked.traceparent, "tracestate": asked.tracestate}
        )
        span = _tracer().start_span(name, parent, kind=trace.SpanKind.SERVER, attributes=dict(attributes))
        if span.is_recording():
            self._span = span
            self.context.run(_enter, span)

    def end(self, error: BaseException | None = None) -> None:
        """The work has ended. May be called twice."""
        if self._span is not None:
            if error is not None:
                _note(self._span, error)
            self._span.end()


def _note(span: Any, error: BaseException) -> None:
    from opentelemetry import trace

    span.record_exception(error)
    span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))


def _enter(span: Any) -> None:
    """Make a span the one of the present context, for secateur and for whoever else looks, such as log handlers."""
    from opentelemetry import context, trace

    _span.set(span)
    context.attach(trace.set_span_in_context(span))


def _tracer() -> Any:
    from opentelemetry import trace

    return trace.get_tracer("secateur")
