"""The planner's view of the catalog: one version of it, what a name finds there, and the session's settings."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from secateur.errors import NotSupportedError, UnknownTableError
from secateur.partitioning.pruning.select_partitions import COMBINATIONS_PER_PARTITION
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.statistics import StatisticsSnapshot
from secateur.partitioning.tables.table import ExternalTable, NamedType, TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.sql_text import folded
from secateur.planner.binding.session_claims import claims_in, reads_claims
from secateur.planner.cost_model import CostModel
from secateur.planner.system.information_schema import INFORMATION_SCHEMA
from secateur.planner.system.information_schema import SCHEMA as INFORMATION
from secateur.planner.system.tables import SCHEMA as SYSTEM
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.planner.text.tokens import Token, TokenKind, tokenize
from secateur.planner.views import FindRelation, ViewDef
from secateur.protocol.access import PolicyCommand, PolicyFilter, Rights, TableGuard

MAIN: Final = "main"
"""The schema of all tables and views."""

_CATALOG: Final = "secateur"
_SCHEMAS: Final[Mapping[str, Mapping[str, TableDef | ViewDef]]] = {
    SYSTEM: SYSTEM_TABLES,
    INFORMATION: INFORMATION_SCHEMA,
}


class CatalogView(Protocol):
    """The part of the catalog that the planner reads: one consistent version."""

    @property
    def version(self) -> int:
        """Grows with every change of any table."""
        ...

    @property
    def topology(self) -> Topology:
        """Members and owners."""
        ...

    def table(self, name: str) -> TableDef:
        """The table of a name; raises UnknownTableError with near names."""
        ...

    def relation(self, name: str) -> TableDef | ViewDef | ExternalTable:
        """The table, view or external table of a name; raises UnknownTableError with near names."""
        ...

    @property
    def types(self) -> Mapping[str, NamedType]:
        """The named types, by case-folded name."""
        ...

    @property
    def statistics_snapshot(self) -> StatisticsSnapshot:
        """The statistics of the tables."""
        ...


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whom a statement is planned for.

    Attributes:
        claims: What the server has verified of them, by name.
        rights: What they may do; None for everything.
        find: The table or view of a case-folded name, whether they may read it or not; None if there is none.
    """

    claims: Mapping[str, str] = field(default_factory=dict)
    rights: Rights | None = None
    find: Callable[[str], TableDef | ViewDef | ExternalTable | None] = lambda _: None

    @property
    def scope(self) -> str:
        """Equal for viewers for whom equal texts have equal plans: a claim that one lacks is NULL in the plan."""
        known = ",".join(sorted(self.claims))
        return known if self.rights is None else f"{self.rights.scope} {known}"

    def guards(self, table: TableDef) -> TableGuard | None:
        """The policies on a table."""
        return None if self.rights is None else self.rights.guards.get(table.origin)

    def values_of(self, claims: Iterable[str]) -> dict[str, str]:
        """The values of those claims that they have, in the order of their names."""
        return {claim: self.claims[claim] for claim in sorted(set(claims)) if claim in self.claims}


ANYBODY: Final = Viewer()


@dataclass(frozen=True, slots=True)
class PlanningCatalog:
    """One version of the catalog, and the session's settings for plans over it."""

    view: CatalogView
    settings: PlanSettings
    viewer: Viewer = ANYBODY

    def guard(
        self, table: TableDef, is_changed: bool = False, command: PolicyCommand = PolicyCommand.SELECT
    ) -> PolicyFilter | None:
        """The condition that row policies put on a scan of a table, or grants on one of a system table; None for none.

        Args:
            table: The table.
            is_changed: Whether it is the table that a statement changes, and not one that it reads.
            command: What that statement does.
        """
        if SYSTEM_TABLES.get(table.name) is table:
            return None if self.viewer.rights is None else self.viewer.rights.listed(table.name)
        found = self.viewer.guards(table)
        return None if found is None else found.scans[command if is_changed else PolicyCommand.SELECT]

    def claims_read(self, sql: str, tokens: Sequence[Token]) -> frozenset[str]:
        """The names of the claims that a statement reads: by itself, by its views, and by policies on its tables."""
        found = {call.claim for call in claims_in(sql, tokens)} if reads_claims(sql) else set()
        viewer, opened = self.viewer, set[str]()
        pending = [] if viewer is ANYBODY else _names(tokens)
        while pending:
            name = folded(pending.pop())
            relation = None if name in opened else viewer.find(name)
            opened.add(name)
            match relation:
                case TableDef() if (guards := viewer.guards(relation)) is not None:
                    found |= guards.claims
                case ViewDef():
                    inner = tokenize(relation.query)
                    found |= {call.claim for call in claims_in(relation.query, inner)}
                    pending += _names(inner)
                case _:
                    pass
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The session settings of a plan; equal settings give equal plans.

    Attributes:
        disabled_rules: Names of rewrites to leave out, sorted.
        combinations_per_partition: How many combinations of values are hashed before a hash component counts as
            unbounded, as a multiple of the table's partitions.
        cost_model: The costs by which the planner chooses between plans that give the same rows.
        is_verified: Whether statements are compared with the user's own text, for which their plans then have stages.
    """

    disabled_rules: tuple[str, ...] = ()
    combinations_per_partition: int = COMBINATIONS_PER_PARTITION
    is_verified: bool = False
    cost_model: CostModel = field(default_factory=CostModel)

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None, cost_model: CostModel) -> PlanSettings:
        """Read the settings of a session, by name; those that are not set have their defaults, others do not matter."""
        if not settings:
            return cls(cost_model=cost_model)
        rules, combinations = settings.get("disabled_rules"), settings.get("combinations_per_partition")
        is_verified = settings.get("pruning") == "verify"
        return cls(
            split_rules(rules) if rules else (),
            int(combinations) if combinations else COMBINATIONS_PER_PARTITION,
            is_verified,
            cost_model.with_settings(settings),
        )


def _names(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens if token.kind in (TokenKind.WORD, TokenKind.QUOTED)]


def split_rules(value: str) -> tuple[str, ...]:
    """The names in a value of ``disabled_rules``, sorted."""
    return tuple(sorted({name.strip().lower() for name in value.split(",") if name.strip()}))


def find_relation(catalog: str, schema: str, name: str, find: FindRelation) -> TableDef | ViewDef | ExternalTable:
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


def similar_names(name: str, names: Sequence[str], otherwise: str | None = None) -> str:
    """``did you mean a or b?`` for a name that is none of ``names``; else ``otherwise``, or the names there are."""
    by_name = {candidate.casefold(): candidate for candidate in names}
    near = [by_name[match] for match in difflib.get_close_matches(name.casefold(), list(by_name), n=3)]
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"there is {', '.join(by_name.values())}"
