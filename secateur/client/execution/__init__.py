"""Statements from the client: which member is asked, retries, and what a run cost."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "filter_backoff": ["FilterBackoff"],
    "insert_template": ["InsertTemplate", "Literal"],
    "materialize": ["ANY_STATE", "RowState", "run_in_steps"],
    "outcome": ["RunOutcome", "StepResult", "combined_outcome"],
    "pruning": ["Pruning"],
    "routing": ["ExecutionMode"],
    "run_profile": ["combined_profile"],
    "statement": ["Materialized", "SelectStatement", "Step", "StepUse"],
    "statement_cache": ["StatementCache"],
    "verify": ["same_rows"],
}

__all__, __getattr__ = exports(__name__, _FILES)
