"""A statement that was submitted over HTTP: its state, its end, and rows that were read over HTTP."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
import pyarrow as pa

from secateur.client.dbapi.frames import pandas_frame, polars_frame
from secateur.client.dbapi.rows import Rows
from secateur.client.dbapi.shown_rows import html_table
from secateur.client.dbapi.stats import QueryStats
from secateur.drawing.quantity import count_text
from secateur.errors import DeadlineError, ProtocolError
from secateur.http.answers import ARROW_TYPE, StatementState, description_of
from secateur.http.http_transport import HttpTransport, ProblemAnswer
from secateur.partitioning.types.sql_text import told_apart
from secateur.protocol.arrow_ipc import decode_batches, decode_table
from secateur.protocol.codec import from_json
from secateur.protocol.statements import ResultColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars


Info = TypeVar("Info")
"""What is known of a thing at one moment."""

_ROWS_SHOWN_MAX: Final = 20
_EMPTY: Final = pa.table({})


class Items(msgspec.Struct, Generic[Info], frozen=True):
    """A list of all that the server has of a kind."""

    items: list[Info]


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


_POLL_S: Final = 30.0
"""For so long the server holds back one answer that something has not ended yet; less than its ``wait_s_max``."""


class StatementInfo(msgspec.Struct, frozen=True):
    """A statement as it was at one moment.

    Attributes:
        id: Unique in the server.
        sql: Its text; after its end, the beginning of it.
        state: Where it was.
        submitted: When, in UTC by the clock of the server.
        started: When; None before.
        ended: When; None before.
        elapsed_ms: Milliseconds from its start to its end; None before.
        row_count: Rows of its result, or rows that it changed; None where there is no such number.
        stats: What it cost; None for what is no query, and before its end.
        error: Why it failed or was cancelled; None otherwise.
    """

    id: str
    sql: str
    state: StatementState
    submitted: datetime
    started: datetime | None = None
    ended: datetime | None = None
    elapsed_ms: float | None = None
    row_count: int | None = None
    stats: QueryStats | None = None
    error: ProblemAnswer | None = None


class Submitted(ABC, Generic[Info]):
    """What the server runs, a statement or a job, with what is known of it. Made by :class:`HttpClient`."""

    def __init__(self, transport: HttpTransport, path: str, name: str) -> None:
        self._transport = transport
        self._path = path
        self._name = name
        self._final: Info | None = None

    @abstractmethod
    def _asked(self, method: str, **how: Any) -> tuple[Info, bool]:
        """Send a request about it; how it is then, and whether it has ended."""

    @property
    def info(self) -> Info:
        """The statement or job as it is now. Costs one request, none once it has ended."""
        return self._look(0.0)

    def wait(self, timeout_s: float | None = None) -> Info:
        """Wait until it has ended.

        Args:
            timeout_s: Seconds to wait; None waits for ever.

        Raises:
            DeadlineError: It has not ended by then; it goes on.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            found = self._look(_POLL_S if end_s is None else min(_POLL_S, max(0.0, end_s - time.monotonic())))
            if self._final is not None:
                return found
            if end_s is not None and time.monotonic() >= end_s:
                raise DeadlineError(
                    f"{self._name} has not ended within {timeout_s:g} s; it goes on: ask again, or cancel() it",
                    timeout_s=timeout_s,
                )

    def _look(self, wait_s: float) -> Info:
        """Ask the server, which may hold back its answer for the given seconds."""
        return self._noted("GET", query={"wait": wait_s}, wait_s=wait_s) if self._final is None else self._final

    def _noted(self, method: str, **how: Any) -> Info:
        found, has_ended = self._asked(method, **how)
        if has_ended:
            self._final = found
        return found


class HttpStatement(Submitted[StatementInfo]):
    """A statement that the server runs. Made by :class:`HttpClient`, on which it depends.

    Attributes:
        id: Unique in the server; ``client.statement(id)`` is the same one.
    """

    def __init__(self, transport: HttpTransport, statement_id: str) -> None:
        super().__init__(transport, f"/api/v1/statements/{statement_id}", f"statement {statement_id}")
        self.id = statement_id

    @property
    def state(self) -> StatementState:
        """Its state. Costs as much as :attr:`info`."""
        return self.info.state

    def result(self, timeout_s: float | None = None) -> HttpResult:
        """Wait until it has ended, and return its rows; none if it is no query.

        Args:
            timeout_s: Seconds to wait; None waits for ever.

        Raises:
            DeadlineError: It has not ended by then; it goes on.
            LimitExceededError: The server has dropped the rows for newer ones.
            Error: Why it failed, or was cancelled.
        """
        self.wait(timeout_s)
        return read_result(self._transport, f"{self._path}/result", {})

    def batches(self, timeout_s: float | None = None) -> Iterator[pa.RecordBatch]:
        """Wait until it has ended, and yield its rows as they arrive: one batch is in memory at a time.

        Raises:
            Error: As :meth:`result`.
        """
        self.wait(timeout_s)
        yield from batches_at(self._transport, f"{self._path}/result", {})

    def cancel(self) -> StatementInfo:
        """End it on every member, and return how it ended. The change of a statement that ends just then may be made.

        Raises:
            ProgrammingError: The server does not know it any more.
        """
        info = self._look(0.0)
        return info if info.state.is_final else self._noted("DELETE")

    def forget(self) -> None:
        """Let the server drop a statement that has ended, and its rows; one that runs is cancelled first."""
        self.cancel()
        self._transport.send("DELETE", self._path)

    def __repr__(self) -> str:
        return f"<HttpStatement {self.id}{'' if self._final is None else ' ' + self._final.state}>"

    def _asked(self, method: str, **how: Any) -> tuple[StatementInfo, bool]:
        info = self._transport.read(method, self._path, StatementInfo, **how)
        return info, info.state.is_final


def read_result(transport: HttpTransport, path: str, query: dict[str, Any]) -> HttpResult:
    """All rows of what has ended.

    Raises:
        Error: It failed, or its rows are not there any more.
    """
    return result_of(transport.send("GET", path, query=query, accept=ARROW_TYPE))


def result_of(answer: Any) -> HttpResult:
    """The rows in an answer; those of a statement without rows come as JSON, and are none."""
    if answer.headers.get("content-type", "").startswith(ARROW_TYPE):
        return HttpResult.of(decode_table(answer.content, ranges=False))
    return HttpResult()


def batches_at(transport: HttpTransport, path: str, query: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of what has ended, as they arrive.

    Raises:
        Error: It failed, or its rows are not there any more.
    """
    with transport.streamed(path, query) as (kind, file):
        if kind == ARROW_TYPE:
            _, batches = decode_batches(file)
            for batch in batches:
                yield batch.replace_schema_metadata(None)
