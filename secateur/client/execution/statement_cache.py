"""The statements whose plans a connection keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from secateur.protocol import statements
from secateur.protocol.pruning import Pruning

Prepared: TypeAlias = statements.PreparedStatement | statements.EvaluatedInsert
"""A statement to execute: an INSERT ... VALUES that the controller has just prepared comes with its rows."""

Cached: TypeAlias = (
    statements.SelectStatement
    | statements.ChangeStatement[statements.SelectStatement]
    | statements.CoordinatedChange[statements.SelectStatement]
    | statements.InsertRows
)
"""Statements that need not be prepared again. An INSERT has a template."""

StatementKey: TypeAlias = tuple[str, Pruning, tuple[tuple[str, str], ...]]
"""SQL text, pruning setting, and other settings that plans depend on: a plan may depend on all of them."""


def cacheable(prepared: Prepared) -> Cached | None:
    """The statement to keep; None for one that is prepared anew each time."""
    match prepared:
        case statements.SelectStatement() | statements.ChangeStatement() | statements.CoordinatedChange():
            return prepared
        case statements.EvaluatedInsert(insert) if insert.template is not None:
            return insert
        case _:
            return None


def catalog_version(kept: Cached) -> int:
    """The catalog that a statement was prepared for."""
    return (
        kept.catalog_version
        if isinstance(kept, (statements.SelectStatement, statements.InsertRows))
        else kept.select.catalog_version
    )


def is_estimated(kept: Cached) -> bool:
    """Whether estimates had a say in its plan, so that newer statistics may give another one."""
    match kept:
        case statements.InsertRows():
            return False
        case statements.SelectStatement():
            return kept.is_estimated
        case statements.ChangeStatement() | statements.CoordinatedChange():
            return kept.select.is_estimated


def types_needed(kept: Cached) -> tuple[Sequence[int], Sequence[str]]:
    """The indexes of the parameters on whose types its plan depends, and the names of the parameters."""
    match kept:
        case statements.InsertRows():
            return (), ()
        case statements.SelectStatement():
            return kept.typed, kept.parameter_names
        case statements.ChangeStatement() | statements.CoordinatedChange():
            return kept.select.typed, kept.select.parameter_names
