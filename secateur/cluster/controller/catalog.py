"""The catalog: all tables and views, by name. The controller keeps it and sends it to the members.

A frozen value: every change makes a new catalog with the next version, so each holder of one sees a consistent set.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar
from uuid import uuid4

from msgspec import structs

from secateur.errors import (
    NotSupportedError,
    ProgrammingError,
    TableExistsError,
    TopologyChangedError,
    UnknownTableError,
)
from secateur.partitioning.schemes.scheme import RANGES_INLINE_MAX, PartitionScheme
from secateur.partitioning.tables.table import ExternalTable, IndexDef, NamedType, TableDef, TableDefinition
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.system.tables import SCHEMA, SYSTEM_TABLES
from secateur.planner.views import ViewDef
from secateur.protocol.codec import encode

_ELSEWHERE: Final = {
    "processlist": f"the system table is {SCHEMA}.running_statements",
    "sqlite_master": "pandas takes the connection for SQLite: pass a SELECT to read_sql, and a DataFrame to"
    " conn.create_table(name, df, primary_key=[...]).load(df)",
}
"""Names of other databases, and where it is."""
_IF_TAKEN: Final = {
    "table": "DROP TABLE it first or use CREATE TABLE IF NOT EXISTS",
    "view": "DROP VIEW it first, use CREATE OR REPLACE VIEW or choose another name",
    "external table": "DROP TABLE it first, or choose another name",
}
"""What to do where a new table, view or external table has the name of another one of its kind."""
_FILE_ENDINGS: Final = (".parquet", ".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".gz", ".zst")


Relation: TypeAlias = TableDef | ViewDef | ExternalTable
N = TypeVar("N", TableDef, ViewDef, ExternalTable, NamedType)


@dataclass(frozen=True, slots=True)
class Catalog:
    """A set of tables at one moment.

    Attributes:
        version: Grows with every change; plans and clients record the version they were made for.
        last_table_id: The newest id of a table or a view; ids are never reused.
        by_name: The tables by case-folded name.
        views: The views by case-folded name, none of which is the name of a table.
        external_tables: The external tables by case-folded name, none of which is the name of a table or a view.
        types: The named types by case-folded name.
        book: Never reused; references of large schemes begin with it.
    """

    version: int = 1
    last_table_id: int = 0
    by_name: Mapping[str, TableDef] = field(default_factory=lambda: MappingProxyType({}))
    views: Mapping[str, ViewDef] = field(default_factory=lambda: MappingProxyType({}))
    external_tables: Mapping[str, ExternalTable] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, NamedType] = field(default_factory=lambda: MappingProxyType({}))
    book: str = field(default_factory=lambda: uuid4().hex)

    def tables(self) -> tuple[TableDef, ...]:
        """All tables, by name."""
        return tuple(self.by_name[name] for name in sorted(self.by_name))

    def find(self, name: str) -> TableDef | None:
        """The table of that name without regard to case, or None."""
        return self.by_name.get(name.casefold())

    def by_id(self, table_id: int) -> TableDef | None:
        """The table of that id, or None."""
        return next((table for table in self.by_name.values() if table.table_id == table_id), None)

    def table(self, name: str) -> TableDef:
        """The table of that name without regard to case.

        Raises:
            UnknownTableError: No such table; the message names the nearest ones. Or it is a view.
        """
        table = self.find(name)
        if table is None:
            if name.casefold() in self.external_tables:
                raise NotSupportedError(
                    f"{name!r} is an external table, which is read only: SELECT from it, or INSERT its rows into a"
                    " table",
                    table=name,
                )
            if name.casefold() in self.views:
                raise UnknownTableError(
                    f"{name!r} is a view, not a table: read it, or CREATE OR REPLACE VIEW, or DROP VIEW", table=name
                )
            raise UnknownTableError(f"table {name!r} does not exist; {self._hint(name, self.by_name)}", table=name)
        return table

    def external_table(self, name: str) -> ExternalTable | None:
        """The external table of that name without regard to case, or None."""
        return self.external_tables.get(name.casefold())

    @property
    def adopted_ids(self) -> list[int]:
        """The ids of the views, external tables and types: plans that were made of others do not run."""
        return [
            *(view.view_id for view in self.views.values()),
            *(external.table.table_id for external in self.external_tables.values()),
            *(named.type_id for named in self.types.values()),
        ]

    def relation(self, name: str) -> Relation:
        """The table, view or external table of that name without regard to case.

        Raises:
            UnknownTableError: Neither; the message names the nearest ones.
        """
        found = self.find_relation(name.casefold())
        if found is None:
            known: dict[str, Relation] = {**self.by_name, **self.views, **self.external_tables}
            raise UnknownTableError(f"table {name!r} does not exist; {self._hint(name, known)}", table=name)
        return found

    def find_relation(self, folded: str) -> Relation | None:
        """The table, view or external table of a case-folded name, or None."""
        return self.by_name.get(folded) or self.views.get(folded) or self.external_tables.get(folded)

    def _hint(self, name: str, known: Mapping[str, Relation]) -> str:
        if name.casefold().endswith(_FILE_ENDINGS):
            path = name.replace("'", "''")
            return f"a file is read where the client is: COPY table FROM '{path}'"
        if name.casefold() in SYSTEM_TABLES:
            return f"the system table is {SCHEMA}.{name.casefold()}"
        if name.casefold() in _ELSEWHERE:
            return _ELSEWHERE[name.casefold()]
        near = difflib.get_close_matches(name.casefold(), known, n=3)
        names = [known[key].name for key in near or sorted(known)[:10]]
        return (
            f"did you mean {' or '.join(names)}?"
            if near
            else f"there is {', '.join(names)}"
            if names
            else "there are no tables yet"
        )

    def with_table(self, table: TableDef, *, or_replace: bool = False) -> tuple[Catalog, TableDef]:
        """Return the catalog with a new table, which may replace one of its name, and the table with its id.

        Raises:
            TableExistsError: A table or a view has the name.
            NotSupportedError: The name has a schema in front.
            ProgrammingError: The name, or one in it, is empty.
        """
        check_names(table)
        self._check_free(table.name, "table", or_replace=or_replace)
        table = self._referred(structs.replace(table, table_id=self.last_table_id + 1))
        return replace(self._with(table), last_table_id=table.table_id), table

    def with_scheme(self, name: str, scheme: PartitionScheme) -> tuple[Catalog, TableDef]:
        """The catalog with other ranges of a table, and the table at its next version.

        Raises:
            UnknownTableError: No such table.
        """
        table = self.table(name)
        table = self._referred(structs.replace(table, scheme_or_reference=scheme, version=table.version + 1))
        return self._with(table), table

    def with_altered(self, before: TableDef, after: TableDef) -> Catalog:
        """The catalog with a table that has its columns, or its name, in the place of another one.

        Raises:
            TableExistsError: The new name is taken.
            NotSupportedError: The new name has a schema in front.
            ProgrammingError: A name in it is empty.
        """
        check_names(after)
        others = replace(self, by_name=_without(self.by_name, before.name))
        others._check_free(after.name, "table")
        return replace(others._with(after), last_table_id=max(self.last_table_id, after.table_id))

    def index_holder(self, name: str) -> TableDef | None:
        """The table with an index of that name without regard to case, or None."""
        folded = name.casefold()
        return next(
            (table for table in self.by_name.values() for index in table.indexes if index.name.casefold() == folded),
            None,
        )

    def with_index(self, checked: TableDef, index: IndexDef, *, if_not_exists: bool = False) -> Catalog:
        """The catalog with one more index of a table; members make it at the first search that wants it.

        Raises:
            UnknownTableError: No such table.
            TableExistsError: There is an index of that name.
            TopologyChangedError: The table is not the one for which the index was checked.
        """
        holder = self.index_holder(index.name)
        if holder is not None and if_not_exists:
            return self
        table = self.table(checked.name)
        if table.table_id != checked.table_id:
            raise TopologyChangedError(
                f"table {table.name} was dropped and created again meanwhile: try again", table=table.name
            )
        if holder is not None:
            raise TableExistsError(
                f"index {index.name!r} exists already, on table {holder.name}; DROP INDEX it first", table=holder.name
            )
        return self._with(structs.replace(table, indexes=(*table.indexes, index)))

    def with_comment(self, name: str, column: str | None, comment: str | None) -> Catalog:
        """The catalog with another comment on a table, or on a column of it; None for no comment.

        Raises:
            UnknownTableError, UnknownColumnError: There is none.
        """
        table = self.table(name)
        if column is None:
            return self._with(structs.replace(table, comment=comment))
        table.column(column)
        columns = (structs.replace(one, comment=comment) if one.name == column else one for one in table.columns)
        return self._with(structs.replace(table, columns=tuple(columns)))

    def without_index(self, name: str, *, if_exists: bool = False) -> Catalog:
        """The catalog without an index, whose memory goes with the rows that it was made for.

        Raises:
            UnknownTableError: There is no such index.
        """
        table = self.index_holder(name)
        if table is None and if_exists:
            return self
        if table is None:
            raise UnknownTableError(f"index {name!r} does not exist")
        left = tuple(index for index in table.indexes if index.name.casefold() != name.casefold())
        return self._with(structs.replace(table, indexes=left))

    def _with(self, table: TableDef) -> Catalog:
        return replace(self, version=self.version + 1, by_name=_with(self.by_name, table))

    def without_table(self, name: str) -> tuple[Catalog, TableDef]:
        """The catalog without a table, and the table that was dropped.

        Raises:
            UnknownTableError: No such table.
        """
        table = self.table(name)
        return replace(self, version=self.version + 1, by_name=_without(self.by_name, name)), table

    def with_view(self, view: ViewDef, *, or_replace: bool = False, if_not_exists: bool = False) -> Catalog:
        """The catalog with a view, which gets its id, and may replace one of its name.

        Raises:
            TableExistsError: The name is taken, by a table or by a view that is not to be replaced.
        """
        if if_not_exists and view.name.casefold() in self.views:
            return self
        self._check_free(view.name, "view", or_replace=or_replace)
        view = replace(view, view_id=self.last_table_id + 1)
        views = _with(self.views, view)
        return replace(self, version=self.version + 1, last_table_id=view.view_id, views=views)

    def without_view(self, name: str, *, if_exists: bool = False) -> Catalog:
        """The catalog without a view.

        Raises:
            UnknownTableError: No such view; or it is a table.
        """
        if name.casefold() not in self.views:
            if self.find(name) is not None:
                raise UnknownTableError(f"{name!r} is a table, not a view: use DROP TABLE", table=name)
            if if_exists:
                return self
            hint = self._hint(name, self.views) if self.views else "there are no views"
            raise UnknownTableError(f"view {name!r} does not exist; {hint}", table=name)
        return replace(self, version=self.version + 1, views=_without(self.views, name))

    def with_external_table(
        self, external: ExternalTable, *, or_replace: bool = False, if_not_exists: bool = False
    ) -> Catalog:
        """The catalog with a new external table, which gets its id, and may replace one of its name.

        Raises:
            TableExistsError: The name is taken, by a table, a view, or an external table that is not to be replaced.
            NotSupportedError: The name has a schema in front.
            ProgrammingError: The name, or one in it, is empty.
        """
        if if_not_exists and self.external_table(external.name) is not None:
            return self
        check_names(external.table)
        self._check_free(external.name, "external table", or_replace=or_replace)
        number = self.last_table_id + 1
        external = structs.replace(external, table=structs.replace(external.table, table_id=number))
        tables = _with(self.external_tables, external)
        return replace(self, version=self.version + 1, last_table_id=number, external_tables=tables)

    def without_external_table(self, name: str) -> Catalog:
        """The catalog without an external table.

        Raises:
            UnknownTableError: No such table.
        """
        if self.external_table(name) is None:
            raise UnknownTableError(f"table {name!r} does not exist", table=name)
        return replace(self, version=self.version + 1, external_tables=_without(self.external_tables, name))

    def with_type(self, named: NamedType, *, or_replace: bool = False, if_not_exists: bool = False) -> Catalog:
        """The catalog with a named type, which gets its id.

        Raises:
            ProgrammingError: There is a type of that name, which is not to be replaced.
        """
        is_known = named.name.casefold() in self.types
        if if_not_exists and is_known:
            return self
        if not or_replace and is_known:
            raise ProgrammingError(
                f"type {named.name!r} exists already; DROP TYPE it first, use CREATE OR REPLACE TYPE or choose another"
                " name"
            )
        named = structs.replace(named, type_id=self.last_table_id + 1)
        types = _with(self.types, named)
        return replace(self, version=self.version + 1, last_table_id=named.type_id, types=types)

    def without_type(self, name: str, *, if_exists: bool = False) -> Catalog:
        """The catalog without a named type.

        Raises:
            ProgrammingError: There is no such type, or a table has a column of it.
        """
        named = self.types.get(name.casefold())
        if named is None and if_exists:
            return self
        if named is None:
            listed = ", ".join(sorted(each.name for each in self.types.values()))
            raise ProgrammingError(f"type {name!r} does not exist; there is {listed or 'none'}")
        for table in (*self.tables(), *(external.table for external in self.external_tables.values())):
            for column in table.columns:
                if _has_part(column.type, named.type):
                    raise ProgrammingError(
                        f"type {named.name!r} is that of column {column.name} of table {table.name}: drop the table"
                        " first, or leave the type",
                        table=table.name,
                        column=column.name,
                    )
        return replace(self, version=self.version + 1, types=_without(self.types, name))

    def _check_free(self, name: str, wanted: str, *, or_replace: bool = False) -> None:
        """Refuse a name for a relation of a kind that another one has, but for one of this kind that is to be replaced.

        Raises:
            TableExistsError: The name is taken.
        """
        known = {"table": self.by_name, "view": self.views, "external table": self.external_tables}
        taken = next((kind for kind, relations in known.items() if name.casefold() in relations), None)
        if taken is not None and (taken != wanted or not or_replace):
            shared = "tables and views share their names: DROP it first, or choose another one"
            advice = _IF_TAKEN[taken] if taken == wanted else shared
            raise TableExistsError(f"{taken} {name!r} exists already; {advice}", table=name)

    def _referred(self, table: TableDef) -> TableDef:
        """The table with a reference for its scheme, if that is large."""
        component = table.scheme.range
        is_large = component is not None and len(component.ranges) > RANGES_INLINE_MAX
        return structs.replace(
            table,
            scheme_or_reference=table.scheme.referred(
                f"{self.book}/{table.table_id}.{table.version}" if is_large else None
            ),
        )


def by_folded_name(values: Iterable[N]) -> Mapping[str, N]:
    """Tables, views or types by their case-folded names."""
    return MappingProxyType({value.name.casefold(): value for value in values})


def _with(known: Mapping[str, N], value: N) -> Mapping[str, N]:
    return MappingProxyType({**known, value.name.casefold(): value})


def _without(known: Mapping[str, N], name: str) -> Mapping[str, N]:
    return MappingProxyType({key: value for key, value in known.items() if key != name.casefold()})


def _has_part(type_: SqlType, part: SqlType) -> bool:
    """Whether a type is another, or is made of it."""
    return type_ == part or any(_has_part(inner, part) for inner in type_.parts)


def check_names(table: TableDef) -> None:
    """Look at the name of a table, those of its columns, and those of fields inside of them.

    Raises:
        ProgrammingError: One is empty, which SQL cannot write.
        NotSupportedError: The name of the table has a schema in front.
    """
    if not table.name:
        raise ProgrammingError("a table has a name of at least one character: give it one")
    if "." in table.name:
        raise NotSupportedError(f"table name {table.name!r}: schemas are not supported, use a name without a dot")
    for position, column in enumerate(table.columns, 1):
        if not column.name:
            raise ProgrammingError(
                f"table {table.name}: column {position} has an empty name, by which no statement could read it: rename"
                " it first"
            )
        if _has_empty_name(column.type):
            raise ProgrammingError(
                f"table {table.name}: column {column.name} has a STRUCT with a field of an empty name, which no"
                " statement could read: rename it first",
                column=column.name,
            )


def _has_empty_name(type_: SqlType) -> bool:
    return any(not field.name for field in type_.fields) or any(map(_has_empty_name, type_.parts))


async def encoded_table(table: TableDef) -> bytes:
    """A table as an encoded :class:`~secateur.partitioning.tables.table.TableDefinition`.

    With many ranges that takes its time, which the event loop does not have.
    """
    if table.scheme.reference is None:
        return _encoded(table)
    return await asyncio.to_thread(_encoded, table)


def _encoded(table: TableDef) -> bytes:
    return encode(TableDefinition.of(table))
