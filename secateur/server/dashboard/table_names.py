"""The tables that a statement can name, with their columns, each name as a statement writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from secateur.partitioning.types.type_text import field_name


@dataclass(frozen=True, slots=True)
class NameableTable:
    """A table.

    Attributes:
        name: Its name, in quotation marks where SQL asks for them.
        columns: Name and type of each column.
    """

    name: str
    columns: tuple[tuple[str, str], ...]


def nameable_tables(rows: Sequence[Mapping[str, Any]]) -> list[NameableTable]:
    """The tables in the order of their rows.

    Args:
        rows: Those of ``secateur.columns``, in the order of tables and positions.
    """
    return [
        NameableTable(field_name(table), tuple((field_name(row["column_name"]), row["data_type"]) for row in columns))
        for table, columns in groupby(rows, key=lambda row: str(row["table_name"]))
    ]
