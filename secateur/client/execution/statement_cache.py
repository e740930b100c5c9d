"""The statement cache: a bounded number of plans of one connection."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, TypeAlias

from secateur.client.execution.insert_template import InsertTemplate
from secateur.client.execution.pruning import Pruning
from secateur.client.execution.statement import ChangeStatement, SelectStatement, WholeChange

__all__ = ["Cached", "StatementCache", "StatementKey"]

Cached: TypeAlias = SelectStatement | ChangeStatement | WholeChange | InsertTemplate
"""Statements that need not be prepared again."""

StatementKey: TypeAlias = tuple[str, Pruning, tuple[tuple[str, str], ...], tuple[Any, ...]]
"""SQL text, pruning setting, other settings that plans depend on, and the types of the parameters: a plan may depend on
all of them.
"""


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
                (key, kept)
                for key, kept in self._statements.items()
                if isinstance(kept, InsertTemplate) or not kept.is_estimated
            )

    def clear(self) -> None:
        """Drop everything: the catalog has changed."""
        with self._lock:
            self._statements.clear()
