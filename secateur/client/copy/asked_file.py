"""A file that is to be loaded, with what its columns are to be."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from secateur.client.copy.load_options import FileOptions
from secateur.client.loads.create_table import columns_of
from secateur.errors import DataError, UnknownColumnError
from secateur.partitioning.tables.identifier import text_literal
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType


def pattern_of(path: Path) -> str:
    """A path as SQL has it, where DuckDB would take some of its characters for a pattern."""
    return text_literal(glob.escape(str(path)))


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file, and what its columns are to be.

    Attributes:
        path: The file, as messages name it.
        options: What is said about it.
        table: The columns of the table; None if there is none yet.
        declared: The types that are said, by name; None for a name alone.
        same_names: Whether each row has to name the columns that others name.
    """

    path: Path
    options: FileOptions
    table: Sequence[Column] | None
    declared: dict[str, SqlType | None]
    same_names: bool

    @property
    def table_names(self) -> list[str]:
        return [column.name for column in self.table or ()]

    @property
    def in_order(self) -> list[str]:
        """The names of the columns of a file that does not name them; empty if they are not known."""
        return list(self.declared) or self.table_names

    def named(
        self, names: Sequence[str], place: Callable[[int], str] | None = None
    ) -> list[tuple[str, SqlType | None]]:
        """The columns of the file, as the table names them, and their types as far as they are known.

        Args:
            names: The names in the file.
            place: Where one of them is, by its position; None if that is of no use.

        Raises:
            UnknownColumnError: The table has no such column, or one that is declared is in neither.
            DataError: A name is there twice, or is none.
        """
        said = {name.casefold(): type_ for name, type_ in self.declared.items()}
        known = {column.name.casefold(): column for column in self.table or ()}
        found: dict[str, tuple[str, SqlType | None]] = {}

        def where(position: int) -> str:
            return f"{self.path}{'' if place is None else place(position)}"

        for position, name in enumerate(names):
            folded = name.casefold()
            if not name or folded in found:
                problem = f"column {name!r} is there twice" if name else "a column has no name"
                raise DataError(f"{where(position)}: {problem}")
            if self.table is not None and folded not in known:
                raise UnknownColumnError(
                    f"{where(position)}: the table has no column {name!r}; it has {', '.join(self.table_names)}",
                    column=name,
                )
            column = known.get(folded)
            found[folded] = (
                name if column is None else column.name,
                said.get(folded) or (None if column is None else column.type),
            )
        lacking = [name for name in self.declared if name.casefold() not in found]
        if lacking:
            raise UnknownColumnError(
                f"{self.path} has no column {lacking[0]!r}, which is said to be there; it has {', '.join(names)}",
                column=lacking[0],
            )
        return list(found.values())

    def columns_of(self, schema: pa.Schema) -> tuple[Column, ...]:
        """The columns of a file that has types of its own."""
        named = self.named(schema.names)
        own = {} if self.table is not None else {column.name: column.type for column in columns_of(schema)}
        return tuple(Column(name, own[name] if type_ is None else type_) for name, type_ in named)
