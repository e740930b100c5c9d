"""SQLAlchemy finds the dialect of this checkout, whatever is installed."""

from __future__ import annotations

from sqlalchemy.dialects import registry

registry.register("secateur", "secateur.sqlalchemy_dialect.dialect", "SecateurDialect")
