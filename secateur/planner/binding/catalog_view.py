"""The planner's view of the catalog: one version of it, and the session's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.statistics import StatisticsSnapshot
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.named_type import NamedType
from secateur.planner.plan_settings import PlanSettings
from secateur.planner.views.view import ViewDef


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

    def tables(self) -> Sequence[TableDef]:
        """All tables."""
        ...

    @property
    def statistics_snapshot(self) -> StatisticsSnapshot:
        """The statistics of the tables."""
        ...


@dataclass(frozen=True, slots=True)
class PlanningCatalog:
    """One version of the catalog, and the session's settings for plans over it."""

    view: CatalogView
    settings: PlanSettings

    @property
    def version(self) -> int:
        """The version of the catalog."""
        return self.view.version

    @property
    def types(self) -> Mapping[str, NamedType]:
        """The named types, by case-folded name."""
        return self.view.types

    @property
    def statistics_snapshot(self) -> StatisticsSnapshot:
        """The statistics of the tables."""
        return self.view.statistics_snapshot

    def table(self, name: str) -> TableDef:
        """The table of a name; raises UnknownTableError with near names."""
        return self.view.table(name)

    def relation(self, name: str) -> TableDef | ViewDef | ExternalTable:
        """The table, view or external table of a name; raises UnknownTableError with near names."""
        return self.view.relation(name)
