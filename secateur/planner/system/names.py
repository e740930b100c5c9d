"""Finds the object of a name that is qualified by a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from secateur.errors import NotSupportedError, UnknownTableError
from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.suggestions import similar_names
from secateur.planner.system.information_schema import INFORMATION_SCHEMA
from secateur.planner.system.information_schema import SCHEMA as INFORMATION
from secateur.planner.system.tables import SCHEMA as SYSTEM
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.planner.views.view import ViewDef

MAIN: Final = "main"
"""The schema of all tables and views."""

_CATALOG: Final = "secateur"
_SCHEMAS: Final[Mapping[str, Mapping[str, TableDef | ViewDef]]] = {
    SYSTEM: SYSTEM_TABLES,
    INFORMATION: INFORMATION_SCHEMA,
}


def find_relation(
    catalog: str, schema: str, name: str, find: Callable[[str], TableDef | ViewDef | ExternalTable]
) -> TableDef | ViewDef | ExternalTable:
    """Return the table, view or external table that a name refers to.

    Args:
        catalog: The qualifier before the schema, or empty.
        schema: The qualifier before the name, or empty.
        name: The name.
        find: The lookup of a name of one part.

    Raises:
        UnknownTableError: There is none, with similar names.
        NotSupportedError: There is no such schema, or catalog.
    """
    if catalog and folded(catalog) != _CATALOG:
        raise NotSupportedError(
            f"catalog {catalog!r} does not exist: there is one, {_CATALOG}, which need not be written"
        )
    if folded(schema or MAIN) in (MAIN, WITH_ROW_IDS):
        return find(name)
    known = _SCHEMAS.get(folded(schema))
    if known is None:
        listed = ", ".join(_SCHEMAS)
        raise NotSupportedError(
            f"schema {schema!r} is not supported: tables and views are in the schema {MAIN}, which need not be written;"
            f" beside it are {listed}"
        )
    found = known.get(folded(name))
    if found is None:
        raise UnknownTableError(
            f"table {name!r} does not exist in schema {folded(schema)}; {similar_names(name, list(known))}", table=name
        )
    return found
