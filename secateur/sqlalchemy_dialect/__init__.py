"""The dialect of SQLAlchemy: ``create_engine("secateur://host:port")``, and what Alembic asks of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.sqlalchemy_dialect.compiler import InsertOnConflict, insert
    from secateur.sqlalchemy_dialect.dialect import SecateurDialect
    from secateur.sqlalchemy_dialect.types import (
        HUGEINT,
        TINYINT,
        UBIGINT,
        UINTEGER,
        USMALLINT,
        UTINYINT,
        FixedArray,
        NestedType,
        UnitTimestamp,
        reflected_type,
    )

__all__ = [
    "HUGEINT",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "FixedArray",
    "InsertOnConflict",
    "NestedType",
    "SecateurDialect",
    "UnitTimestamp",
    "insert",
    "reflected_type",
]

_FILES = {
    "dialect": ["SecateurDialect"],
    "types": [
        "HUGEINT",
        "TINYINT",
        "UBIGINT",
        "UINTEGER",
        "USMALLINT",
        "UTINYINT",
        "FixedArray",
        "NestedType",
        "UnitTimestamp",
        "reflected_type",
    ],
    "compiler": ["InsertOnConflict", "insert"],
}

_, __getattr__ = exports(__name__, _FILES)
