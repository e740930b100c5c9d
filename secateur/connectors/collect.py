"""The rows that reach a vertex as the result of the job."""

from __future__ import annotations

from secateur.engine.processors.result_sink import ResultSink

__all__ = ["collect"]


def collect() -> ResultSink:
    """A sink that keeps its rows at the coordinator; ``JobResult.tables`` has them under the name of the vertex.

    Feed it through a distributed edge. What it may keep is bounded by ``JobConfig.result_bytes_max``.
    """
    return ResultSink()
