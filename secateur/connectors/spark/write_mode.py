"""The ways in which a DataFrame changes the rows of a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from secateur.errors import ProgrammingError
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef

_SAVE_MODES: Final = {
    "ignore": "Spark's mode 'ignore' would leave out the whole DataFrame if there is a table",
    "error": "Spark's mode 'error' would refuse every table that is there",
    "errorifexists": "Spark's mode 'errorifexists' would refuse every table that is there",
    "default": "Spark's default mode would refuse every table that is there",
}


class WriteMode(StrEnum):
    """The treatment of existing rows. The values are the modes of loads."""

    APPEND = "append"
    """Keep them; a key that is there already is an error."""
    OVERWRITE = "overwrite"
    """Replace them all."""
    OVERWRITE_RANGES = "overwrite_ranges"
    """Replace those of each range partition that gets a row, and keep those of others."""
    UPSERT = "upsert"
    """Replace those with the same key."""
    DELETE = "delete"
    """Remove those with the keys of the DataFrame."""

    @classmethod
    def of(cls, mode: str, overwrite_scope: str = "table") -> WriteMode:
        """Read the mode of :func:`secateur.spark.write`.

        Raises:
            ProgrammingError: There is no such mode or scope, or they contradict each other.
        """
        folded = mode.lower()
        if folded in _SAVE_MODES:
            raise ProgrammingError(
                f"{_SAVE_MODES[folded]}, and secateur adds rows to tables: use mode 'append', 'overwrite', 'upsert' or"
                " 'delete'"
            )
        if folded not in ("append", "overwrite", "upsert", "delete"):
            raise ProgrammingError(f"mode {mode!r} does not exist; use 'append', 'overwrite', 'upsert' or 'delete'")
        match overwrite_scope.lower():
            case "table":
                return cls(folded)
            case "partitions" if folded == cls.OVERWRITE:
                return cls.OVERWRITE_RANGES
            case "partitions":
                raise ProgrammingError(f"overwriteScope=partitions goes with mode 'overwrite', not with {mode!r}")
            case _:
                raise ProgrammingError(
                    f"overwriteScope={overwrite_scope!r} does not exist; use 'table' or 'partitions'"
                )

    @classmethod
    def of_options(cls, operation: str | None, overwrite_scope: str | None, *, overwrite: bool) -> WriteMode:
        """Read the options ``operation`` and ``overwriteScope`` beside Spark's save mode.

        Raises:
            ProgrammingError: As :meth:`of`.
        """
        saved = cls.OVERWRITE if overwrite else cls.APPEND
        mode = cls.of(saved if operation is None else operation, overwrite_scope or "table")
        if mode.is_overwrite is not overwrite:
            raise ProgrammingError(
                f'option operation={operation!r} contradicts .mode("{saved}"): upsert and delete go with'
                ' .mode("append"), the others with themselves'
            )
        return mode

    @classmethod
    def of_stream(cls, mode: str | None, *, complete: bool) -> WriteMode:
        """Read the option ``mode`` of a streaming write beside Spark's output mode.

        Raises:
            ProgrammingError: There is no such mode, or they contradict each other.
        """
        if complete:
            if mode is None:
                return cls.OVERWRITE
            raise ProgrammingError(
                f'option mode={mode!r} contradicts outputMode("complete"), in which each batch replaces the whole'
                " table: leave out one of them"
            )
        folded = (mode or cls.APPEND).lower()
        if folded not in (cls.APPEND, cls.UPSERT, cls.DELETE):
            raise ProgrammingError(
                f"option mode={mode!r} does not exist for a stream; use 'append', 'upsert' or 'delete', or"
                ' outputMode("complete") to replace the whole table by each batch'
            )
        return cls(folded)

    @property
    def is_overwrite(self) -> bool:
        return self in (WriteMode.OVERWRITE, WriteMode.OVERWRITE_RANGES)

    def check(self, table: TableDef) -> None:
        """Check that a table can be written so.

        Raises:
            ProgrammingError: It has no range partitions to overwrite, or no primary key by which rows are found.
        """
        if self in (WriteMode.UPSERT, WriteMode.DELETE):
            check_has_key(table, f"{self.value} cannot find its rows")
        if self is WriteMode.OVERWRITE_RANGES and table.scheme.range is None:
            raise ProgrammingError(
                f"table {table.name} has no range partitions, of which some could be overwritten: leave out"
                " overwriteScope, or upsert",
                table=table.name,
            )
