"""The rows of a statement or a job that were read over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from secateur.client.dbapi.frames import pandas_frame, polars_frame
from secateur.client.dbapi.html_table import html_table
from secateur.client.dbapi.rows import Rows
from secateur.drawing.quantity import count_text
from secateur.errors import ProtocolError
from secateur.http.arrow_answers import description_of
from secateur.partitioning.tables.identifier import told_apart
from secateur.protocol.decoders import from_json
from secateur.protocol.statements import ResultColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars

_ROWS_SHOWN_MAX: Final = 20
_EMPTY: Final = pa.table({})


class _Column(msgspec.Struct, frozen=True):
    name: str
    type: str


class _Description(msgspec.Struct, frozen=True):
    columns: tuple[_Column, ...]


class HttpResult:
    """All rows of a result, with ``len()``, iteration and indices: tuples of plain Python values, as of a cursor.

    ``pl.DataFrame(result)``, ``pa.table(result)`` and DuckDB take it as it is.

    Args:
        table: The rows.
        columns: Their names and types of SQL.
    """

    def __init__(self, table: pa.Table = _EMPTY, columns: Sequence[ResultColumn] = ()) -> None:
        self.columns = tuple(columns)
        """Name and type of each; empty if the statement has no rows, such as an INSERT."""
        self._table = table

    @classmethod
    def of(cls, table: pa.Table) -> HttpResult:
        """The result in an Arrow answer of the server.

        Raises:
            ProtocolError: It came without its description.
        """
        try:
            found = from_json(description_of(table.schema), _Description)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"the description of an Arrow answer has another form ({error})") from error
        columns = [ResultColumn(column.name, column.type) for column in found.columns]
        return cls(table.replace_schema_metadata(None), columns)

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table; nothing is copied."""
        return self._table

    def df(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame, as of a cursor.

        Raises:
            NotSupportedError: pandas is not installed.
            DataError: A value that it cannot hold.
        """
        return pandas_frame(self.arrow)

    def pl(self) -> polars.DataFrame:
        """The rows as a polars DataFrame, as of a cursor.

        Raises:
            NotSupportedError: polars is not installed.
            DataError: A value that it cannot hold.
        """
        return polars_frame(self.arrow)

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by the names of their columns; of columns of one name, the second is ``a_1``."""
        names = list(told_apart(column.name for column in self.columns))
        return [dict(zip(names, row, strict=True)) for row in self]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow stream."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return Rows(self._table, self.columns).iterate()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        place = range(len(self))[index]
        return Rows(self._table.slice(place, 1), self.columns).take(1)[0]

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"<HttpResult of {count_text(len(self), 'row')}: {names or 'no columns'}>"

    def _repr_html_(self) -> str:
        """The first rows, as a notebook shows them."""
        return html_table(self.columns, Rows(self._table, self.columns).take(_ROWS_SHOWN_MAX), len(self))
