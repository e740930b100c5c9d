"""The forms of requests and answers: what openapi.json describes."""

from __future__ import annotations

from datetime import UTC, datetime
from types import GenericAlias
from typing import Annotated, Any, Final

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.config import JsonDict

from secateur.http.json_values import PARAMETER_TYPES
from secateur.partitioning.tables.table import TableDef
from secateur.server.answers import Problem
from secateur.server.limits import ServerLimits

_LIMITS: Final = ServerLimits()

PAGE_ROWS: Final = 10_000
"""Rows of an answer, unless the request says."""

EXAMPLE: Final[JsonDict] = {"sql": "SELECT * FROM orders WHERE customer = ?", "params": ["C1"]}
"""A body for those who read about the requests."""

SqlText = Annotated[str, Field(min_length=1, description="one statement of SQL")]
Params = Annotated[
    list[Any] | dict[str, Any],
    Field(
        description="values for `?` and `$1` in order, or for `$name` by name. A value of a type that JSON lacks is an"
        ' object: `{"type": "DATE", "value": "2024-01-31"}`; the types are ' + ", ".join(PARAMETER_TYPES),
    ),
]
Settings = Annotated[
    dict[str, str],
    Field(description='settings of a connection, for this request only, such as `{"pruning": "off"}`'),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="a text that is new for each thing that is wanted: a request that is sent again with the same key"
        " and body is answered with what the first one made, and makes nothing",
    ),
]
ResourceId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_.:-]{1,128}$")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="the number of the first row, from 0")]
PageRows = Annotated[int, Query(ge=1, le=_LIMITS.page_rows_max, description="rows of the answer, at most")]
WaitSeconds = Annotated[
    float, Query(ge=0, le=_LIMITS.wait_s_max, allow_inf_nan=False, description="seconds to wait for the end")
]


class ExplainForm(BaseModel):
    """A statement whose plan is asked for."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    sql: SqlText
    params: Params = []
    settings: Settings = {}


class StatementForm(ExplainForm):
    """A statement to be executed."""

    wait: Annotated[bool, Field(strict=True)] | Annotated[float, Field(ge=0, le=_LIMITS.wait_s_max, strict=True)] = (
        Field(
            default=True,
            description="seconds to wait for the rows; an id comes in their place when they have passed. `true` waits"
            " as long as the server may, `false` not at all",
        )
    )


class ResultColumnForm(BaseModel):
    """A column of a result."""

    name: str
    type: str = Field(description="its type in SQL")


class StatementStatus(BaseModel):
    """A statement that was submitted to this server."""

    id: str
    sql: str
    state: str = Field(description="`waiting`, `running`, `done`, `failed` or `cancelled`")
    submitted: str = Field(description="a moment in ISO 8601, UTC")
    started: str | None = None
    ended: str | None = None
    elapsed_ms: float | None = Field(default=None, description="milliseconds since it started, until it ended")
    row_count: int | None = Field(default=None, description="rows of the result, or rows that were changed")
    stats: dict[str, Any] | None = Field(default=None, description="what it cost: `QueryStats` of the Python client")
    error: Problem | None = None
    result: str | None = Field(default=None, description="the path of the rows, as long as they are kept")


class ResultRows(BaseModel):
    """Rows of a result."""

    columns: list[ResultColumnForm]
    rows: list[list[Any]] = Field(description="values in the order of the columns; docs/http.md has the encoding")
    next_offset: int | None = Field(description="the `offset` of the rows that follow; null at the end")


class StatementResult(ResultRows, StatementStatus):
    """A statement that has ended, with rows of its result."""


_PYTHON_TYPES: Final[dict[str, Any]] = {
    "VARCHAR": str,
    "BIGINT": int,
    "INTEGER": int,
    "BOOLEAN": bool,
    "DOUBLE": float,
    "VARCHAR[]": list[str],
    "DOUBLE[]": list[float],
    "BIGINT[]": list[int],
    "TIMESTAMP": str,
}


def row_of_table(table: TableDef) -> type[BaseModel]:
    """The form of a row of a system table, as an object."""
    fields: dict[str, Any] = {
        column.name: (_PYTHON_TYPES.get(str(column.type), Any) | None, None) for column in table.columns
    }
    return create_model(
        f"{table.name.capitalize()}Row",
        __config__=ConfigDict(extra="forbid"),
        __doc__=f"A row of `secateur.{table.name}`.",
        **fields,
    )


def page_of_table(table: TableDef) -> type[BaseModel]:
    """The form of some rows of a system table."""
    fields: dict[str, Any] = {
        "items": (GenericAlias(list, (row_of_table(table),)), ...),
        "next_offset": (int | None, Field(description="the `offset` of the rows that follow; null at the end")),
    }
    return create_model(f"{table.name.capitalize()}Page", __doc__=f"Rows of `secateur.{table.name}`.", **fields)


def iso_moment(seconds: float | None) -> str | None:
    """Seconds since the epoch in ISO 8601."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
