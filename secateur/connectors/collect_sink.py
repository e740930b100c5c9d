"""Collects the rows that reach a vertex as a result of the job."""

from __future__ import annotations

from secateur.engine.processors.result_sink import ResultSink


def collect() -> ResultSink:
    """A sink that keeps its rows at the coordinator; ``JobResult.tables`` has them under the vertex's name.

    Feed it through a distributed edge. ``JobConfig.result_bytes_max`` bounds the rows that it may keep.
    """
    return ResultSink()
