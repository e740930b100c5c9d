"""The statement cache: a bounded number of plans of one connection."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, TypeAlias, assert_never

from secateur.protocol.pruning import Pruning
from secateur.protocol.statements import (
    BackupTo,
    ChangeStatement,
    CoordinatedChange,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    Done,
    EvaluatedInsert,
    InsertRows,
    InsertSelect,
    PlanText,
    PreparedStatement,
    RestoreFrom,
    SelectStatement,
    SetOption,
    SetPruning,
    SetTimeout,
    ShowSettings,
)

__all__ = ["Cached", "Prepared", "StatementCache", "StatementKey", "cacheable", "catalog_version", "is_estimated"]

Prepared: TypeAlias = PreparedStatement | EvaluatedInsert
"""A statement to execute: an INSERT ... VALUES that the controller has just prepared comes with its rows."""

Cached: TypeAlias = SelectStatement | ChangeStatement[SelectStatement] | CoordinatedChange[SelectStatement] | InsertRows
"""Statements that need not be prepared again. An INSERT has a template."""

StatementKey: TypeAlias = tuple[str, Pruning, tuple[tuple[str, str], ...], tuple[Any, ...]]
"""SQL text, pruning setting, other settings that plans depend on, and the types of the parameters: a plan may depend on
all of them.
"""


def cacheable(prepared: Prepared) -> Cached | None:
    """The statement to keep; None for one that is prepared anew each time."""
    match prepared:
        case SelectStatement() | ChangeStatement() | CoordinatedChange():
            return prepared
        case EvaluatedInsert(insert) if insert.template is not None:
            return insert
        case (
            EvaluatedInsert()
            | InsertRows()
            | InsertSelect()
            | CreateTableAs()
            | CopyFrom()
            | CopyTo()
            | BackupTo()
            | RestoreFrom()
            | Done()
            | PlanText()
            | SetPruning()
            | SetTimeout()
            | SetOption()
            | ShowSettings()
        ):
            return None
        case _:
            assert_never(prepared)


def catalog_version(kept: Cached) -> int:
    """The catalog that a statement was prepared for."""
    return kept.catalog_version if isinstance(kept, (SelectStatement, InsertRows)) else kept.select.catalog_version


def is_estimated(kept: Cached) -> bool:
    """Whether estimates had a say in its plan, so that newer statistics may give another one."""
    match kept:
        case InsertRows():
            return False
        case SelectStatement():
            return kept.is_estimated
        case ChangeStatement() | CoordinatedChange():
            return kept.select.is_estimated


class StatementCache:
    """Planned statements of one catalog version; the least recently used goes first. Thread-safe.

    Args:
        size_max: How many statements are kept.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._statements: OrderedDict[StatementKey, Cached] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._statements)

    def get(self, key: StatementKey) -> Cached | None:
        """The plan of a statement, or None."""
        with self._lock:
            found = self._statements.get(key)
            if found is not None:
                self._statements.move_to_end(key)
            return found

    def put(self, key: StatementKey, statement: Cached) -> None:
        with self._lock:
            self._statements[key] = statement
            self._statements.move_to_end(key)
            if len(self._statements) > self._size_max:
                self._statements.popitem(last=False)

    def forget(self, key: StatementKey) -> None:
        """Drop a plan that turned out to be stale."""
        with self._lock:
            self._statements.pop(key, None)

    def forget_estimated(self) -> None:
        """Drop the plans that may be other ones, now that tables have other sizes."""
        with self._lock:
            self._statements = OrderedDict(
                (key, kept) for key, kept in self._statements.items() if not is_estimated(kept)
            )

    def clear(self) -> None:
        """Drop everything: the catalog has changed."""
        with self._lock:
            self._statements.clear()
