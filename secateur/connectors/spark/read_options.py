"""The options by which the format ``secateur`` is read, and the query that they stand for."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql.types import StructField, StructType

from secateur.client.connect import TOKEN_VARIABLE
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_plan import TASK_BYTES
from secateur.connectors.spark.read_values import ReadOptions
from secateur.errors import ProgrammingError
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.values import pack, unpack

READ_OPTIONS: Final = (
    "address",
    "columns",
    "params",
    "query",
    "snapshotseconds",
    "table",
    "taskbytes",
    "tlsca",
    "tlsservername",
    "token",
    "where",
)
"""In small letters, since Spark does not distinguish."""
TUNING_OPTIONS: Final = ("snapshotseconds", "taskbytes")
"""Of these, the ones that a table of Spark's catalog may have though it is written to as well."""
_TABLE_PROPERTIES: Final = frozenset(
    {"collation", "comment", "external", "is_managed_location", "location", "owner", "path", "provider"}
)
"""Of Apache Spark, ``TableCatalog.RESERVED_PROPERTIES`` and what ``V1Table`` adds."""
_METADATA: Final = "secateur"
_CATALOG_PREFIX: Final = "option."
LEASE_S: Final = 600.0
"""Long enough for tasks that wait for others, and for the next action on a DataFrame in a notebook."""


def given_options(options: Mapping[str, str], schema: StructType | None = None) -> dict[str, str]:
    """The options that the user gave, by their names in small letters.

    The name in ``load("flights")``, ``save("flights")`` or ``start("flights")``, which Spark passes on as ``path``, is
    that of the table. A table of Spark's catalog has a ``path`` for other reasons.

    Args:
        options: As Spark passes them on. For a table of its catalog, as one is created, they come with its properties,
            and also with a prefix; later there are none.
        schema: The columns, which have the options of such a table from :func:`with_options`.

    Raises:
        ProgrammingError: Two tables are named.
    """
    folded = {name.casefold(): value for name, value in options.items()}
    if "path" in folded and not _is_of_catalog(options):
        path = folded.pop("path")
        if folded.setdefault("table", path).casefold() != path.casefold():
            raise ProgrammingError(
                f"option table names {folded['table']!r}, and load, save or start names {path!r}: leave one out"
            )
    prefixed = {name: value for name, value in folded.items() if name.startswith(_CATALOG_PREFIX)}
    kept = [field.metadata[_METADATA] for field in schema.fields if _METADATA in field.metadata] if schema else []
    return {
        **(dict(kept[0]) if kept and not {"table", "query"} & folded.keys() else {}),
        **{name.removeprefix(_CATALOG_PREFIX): value for name, value in prefixed.items()},
        **{name: value for name, value in folded.items() if name not in _TABLE_PROPERTIES and name not in prefixed},
    }


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns of a table that is created in Spark's catalog, with its options; any other columns as they are.

    Those of the catalog may be NULL for all that Spark knows: it would refuse to insert what it takes for nullable.

    Spark 4.3 keeps the options of such a table, but hands none on to who reads it, only the columns. Who writes to it
    gets, where names and types are equal, the columns of the query, perhaps with the options of another table: so an
    INSERT has to give the options itself.
    """
    if not _is_of_catalog(options):
        return schema
    given = {name: value for name, value in given_options(options).items() if name != "token"}
    first, *others = (StructField(field.name, field.dataType) for field in schema.fields)
    first.metadata = {_METADATA: given}
    return StructType([first, *others])


def check_secrets(options: Mapping[str, str]) -> None:
    """Refuse a token among the options of a table of Spark's catalog: everybody who sees the columns could read it.

    Raises:
        ProgrammingError: There is one.
    """
    if _is_of_catalog(options) and "token" in given_options(options):
        raise ProgrammingError(
            "a table of Spark's catalog cannot keep a token secret: leave option token out, and set"
            f" {TOKEN_VARIABLE}, or spark.secateur.token in the session"
        )


def _is_of_catalog(options: Mapping[str, str]) -> bool:
    """Whether a table is being created in Spark's catalog."""
    return "provider" in {name.casefold() for name in options}


def read_options(options: Mapping[str, str], schema: StructType | None = None) -> tuple[Endpoint, ReadOptions]:
    """Read the options of ``spark.read``, as Spark passes them on; with a schema see :func:`given_options`.

    Raises:
        ProgrammingError: An option is missing, unknown, or contradicts another.
        InterfaceError: There is no address.
    """
    given = given_options(options, schema)
    unknown = sorted(given.keys() - set(READ_OPTIONS))
    if unknown:
        raise ProgrammingError(
            f"format secateur has no option {', '.join(unknown)} to read with; it has {', '.join(READ_OPTIONS)}"
        )
    query, table = given.get("query"), given.get("table")
    if query is not None:
        contradicting = [name for name in ("table", "columns", "where") if name in given]
        if contradicting:
            raise ProgrammingError(
                f"option query says all that is to be read, and option {contradicting[0]} as well: leave one out"
            )
    elif not table:
        raise ProgrammingError(
            'format secateur needs to know what to read: .load("flights") or .option("table", "flights"), and perhaps'
            ' columns and where, or .option("query", "SELECT ...")'
        )
    columns = given.get("columns")
    sql = query or query_of(str(table), None if columns is None else _names(columns), given.get("where"))
    params = unpack(bytes.fromhex(given["params"])) if "params" in given else ()
    task_bytes = positive("taskBytes", given.get("taskbytes", str(TASK_BYTES)))
    lease_s = positive("snapshotSeconds", given.get("snapshotseconds", f"{LEASE_S:.0f}"))
    return Endpoint.of_options(given), ReadOptions(sql, None if query else table, params, task_bytes, lease_s)


def option_of_params(params: Any) -> str:
    """Parameters as the text of the option ``params``.

    Raises:
        SerializationError: A value that no column holds.
    """
    return pack(params).hex()


def query_of(table: str, columns: Sequence[str] | None, where: str | None) -> str:
    """The SELECT for a table, some of its columns, and a condition.

    Args:
        table: The name of a table, a view or a system table.
        columns: Names of columns; None for all.
        where: A condition in SQL, which may have parameters; None for none.
    """
    chosen = "*" if columns is None else ", ".join(map(quoted, columns))
    # The condition stands in lines of its own, in case it ends with a comment.
    condition = "" if where is None or not where.strip() else f" WHERE (\n{where}\n)"
    return f"SELECT {chosen} FROM {'.'.join(map(quoted, table.split('.', 1)))}{condition}"


def _names(columns: str) -> list[str]:
    """Names that are divided by commas; those with commas are in quotes."""
    names = [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), [])]
    if not names or not all(names):
        raise ProgrammingError(f"option columns={columns!r}: expected names that are divided by commas")
    return names


def is_change_feed(options: Mapping[str, str]) -> bool:
    """Whether the changes of a table are to be read, rather than its rows."""
    return given_options(options).get("changefeed", "false").strip().lower() == "true"


def positive(option: str, value: str) -> int:
    """The number that the text of an option is.

    Raises:
        ProgrammingError: It is none, or 0.
    """
    if not value.isdecimal() or int(value) == 0:
        raise ProgrammingError(f"option {option}={value!r}: expected a positive whole number")
    return int(value)
