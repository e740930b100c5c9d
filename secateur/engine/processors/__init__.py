"""Processors that ship with the engine."""

from secateur.engine.processors.fragment_stage import FragmentStageSupplier
from secateur.engine.processors.result_sink import ResultSink
from secateur.engine.processors.transform import filter_rows, map_batches

__all__ = ["FragmentStageSupplier", "ResultSink", "filter_rows", "map_batches"]
