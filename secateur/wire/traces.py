"""Traces on the wire: the frame that says in which span the next request of a connection is made.

It is a frame of its own, so that a request without a trace is as long, and as quick to read, as if there were none; and
it is sent to peers only that have said in their hello that they take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from secateur.protocol.codec import Codec
from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import Operation
from secateur.tracing import ServedSpan, TraceContext, carried
from secateur.wire.frames import FrameKind, encode_frame
from secateur.wire.messages import Handled, Handler, Reply, Request

if TYPE_CHECKING:
    import asyncio  # a blocking client, such as a task of Spark, has no event loop

CONTROLLER: Final = "controller"
"""The name of the controller in traces."""
_contexts: Final[Codec[TraceContext]] = Codec(TraceContext)
_PLANNING: Final = frozenset({Operation.PREPARE, Operation.EXPLAIN})


def trace_frame() -> bytes:
    """The frame to send before a request; empty outside of traces."""
    context = carried()
    if context is None:
        return b""
    (frame,) = encode_frame(FrameKind.TRACE, _contexts.encode(context))
    return bytes(frame)


class TracedRequest:
    """A request that a server answers as a part of a trace.

    Args:
        header: The header of the frame that came before the request.
        server: The name of the server in traces.
        operation: The operation of the request.

    Raises:
        ProtocolError: The header is no trace.
    """

    def __init__(self, header: bytes, server: str, operation: OperationBase) -> None:
        kind = "controller" if server == CONTROLLER else "member"
        name = "secateur.plan" if operation in _PLANNING else f"secateur.{kind}"
        described = {f"secateur.{kind}": server, "secateur.operation": operation.title}
        self._span = ServedSpan(_contexts.decode(header), name, described)
        self.context = self._span.context

    def handle(self, handler: Handler, request: Request[Any]) -> Handled:
        """Call the handler in the span; an answer that is there at once ends the span."""
        try:
            handled = self.context.run(handler.handle, request)
        except Exception as error:
            self._span.end(error)
            raise
        if isinstance(handled, Reply):
            self._span.end()
        return handled

    def ended(self, _: asyncio.Task[None]) -> None:
        """End the span with the task that has answered."""
        self._span.end()
