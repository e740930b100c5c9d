"""Processors that ship with the engine."""

from secateur.engine.processors.result_sink import ResultSink
from secateur.engine.processors.transform import filter_rows, map_batches
from secateur.engine.sql.fragment_stage import FragmentStageSupplier

__all__ = ["FragmentStageSupplier", "ResultSink", "filter_rows", "map_batches"]
