"""Pipelines: DAGs written as one chain of calls."""

from __future__ import annotations

from secateur.pipeline.pipeline import KeyedStage, Pipeline, Stage

__all__ = ["KeyedStage", "Pipeline", "Stage"]
