"""The execution of statements by the client: routing, retries, and the cost of a run."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "filter_backoff": ["FilterBackoff"],
    "insert_template": ["filled_rows"],
    "materialize": ["ANY_STATE", "RowState", "run_in_steps"],
    "outcome": ["RunOutcome", "StepResult", "combined_outcome"],
    "routing": ["ExecutionMode"],
    "run_profile": ["combined_profile"],
    "statement_cache": ["StatementCache"],
    "verify": ["same_rows"],
}

__all__, __getattr__ = exports(__name__, _FILES)
