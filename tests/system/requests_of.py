"""The requests that reach the processes of an embedded cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Any

from secateur.cluster import Cluster
from secateur.protocol import Operation
from secateur.wire import Request

__all__ = ["requests_of"]


@contextmanager
def requests_of(cluster: Cluster, operations: Set[Operation]) -> Iterator[list[Operation]]:
    """Note each request for one of some operations that reaches the controller or a member.

    The native executor answers before there is a request, and does not do so meanwhile.
    """
    runtime: Any = cluster._runtime
    seen: list[Operation] = []

    def noted(handler: Callable[[Request[Any]], Any]) -> Callable[[Request[Any]], Any]:
        return lambda request: (seen.append(request.operation), handler(request))[1]

    servers = [each.handlers for each in (runtime._controller, *runtime._members.values())]
    original = [{operation: handlers[operation] for operation in operations & handlers.keys()} for handlers in servers]
    native = [member._statements.native for member in runtime._members.values()]
    executors = [each.executor for each in native if each is not None]
    for executor in executors:
        executor.tenants = {}, None  # nobody has an account, and so nobody an answer
    for handlers, known in zip(servers, original, strict=True):
        handlers.update({operation: noted(handler) for operation, handler in known.items()})
    try:
        yield seen
    finally:
        for handlers, known in zip(servers, original, strict=True):
            handlers.update(known)
        for executor in executors:
            executor.tenants = None
