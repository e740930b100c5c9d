"""Pipelines: DAGs written as one chain of calls."""

from __future__ import annotations

from secateur.pipeline.keyed_stage import KeyedStage
from secateur.pipeline.pipeline import Pipeline
from secateur.pipeline.stage import Stage

__all__ = ["KeyedStage", "Pipeline", "Stage"]
