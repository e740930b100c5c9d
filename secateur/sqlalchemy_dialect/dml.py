"""``insert()`` with ``ON CONFLICT``, by the interface of SQLAlchemy's PostgreSQL dialect."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql


class InsertOnConflict(postgresql.Insert):
    """An INSERT with ``on_conflict_do_update``, ``on_conflict_do_nothing`` and ``excluded``."""

    stringify_dialect = "secateur"
    inherit_cache = postgresql.Insert.inherit_cache  # SQLAlchemy 2.0 compiles each one anew


def insert(table: Any) -> InsertOnConflict:
    """Begin an INSERT that may say what happens to rows whose keys are there already.

    Args:
        table: A :class:`sqlalchemy.Table`, or a mapped class. ``index_elements`` of its ``on_conflict_...`` methods are
            columns of the primary key, which alone is unique; names of constraints are not known.
    """
    return InsertOnConflict(table)
