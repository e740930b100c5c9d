"""Aliases of the rows that a stage gets from earlier ones."""

from __future__ import annotations

from typing import NamedTuple


class InputAlias(NamedTuple):
    """A name by which a fragment calls the rows of an input, such as that of the scan whose rows these are.

    Attributes:
        relation: The name.
        source: The input, as :func:`~secateur.engine.sql.stage.stage_relation` names it.
    """

    relation: str
    source: str
