"""Pipelines: DAGs written as one chain of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.pipeline.pipeline import KeyedStage, Pipeline, Stage

__all__ = ["KeyedStage", "Pipeline", "Stage"]

_FILES = {"pipeline": ["KeyedStage", "Pipeline", "Stage"]}

_, __getattr__ = exports(__name__, _FILES)
