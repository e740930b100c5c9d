"""Name resolution: the attribute that a column of the text refers to in one SELECT, as DuckDB resolves it.

An uncertain name resolves to None, never to a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.relations.attribute import Attribute


@dataclass(frozen=True, slots=True)
class FromItem:
    """One item of a FROM clause.

    Attributes:
        alias: Its name in lower case; None for a subquery without one.
        columns: Its columns by name in lower case, in order; None for one that is computed.
        complete: Whether these are all.
    """

    alias: str | None
    columns: tuple[tuple[str, Attribute | None], ...]
    complete: bool = True

    def find(self, name: str) -> Attribute | None:
        return next((attribute for known, attribute in self.columns if known == name), None)

    def may_have(self, name: str) -> bool:
        return not self.complete or self.has(name)

    def has(self, name: str) -> bool:
        return any(known == name for known, _ in self.columns)


@dataclass(frozen=True, slots=True)
class VisibleNames:
    """The names that are visible in a SELECT.

    Attributes:
        sources: The items of its FROM clause.
        merged: The attribute of a name that USING has merged; None where that is not one column.
        hidden: Columns that ``*`` leaves out because USING has merged them: number of the source, and name.
        shown: The merged columns that ``*`` shows in their place, by the same.
        may_merge: Whether a NATURAL JOIN may have merged columns that are not known: a bare name that one of the
            sources has may then be a merged one of others, which takes precedence.
        aliases: Names given in the SELECT list, and their attribute where the item is a bare column.
        outer: The names of the enclosing SELECT, for a correlated subquery.
    """

    sources: tuple[FromItem, ...] = ()
    merged: Mapping[str, Attribute | None] = field(default_factory=dict)
    hidden: frozenset[tuple[int, str]] = frozenset()
    shown: Mapping[tuple[int, str], Attribute | None] = field(default_factory=dict)
    may_merge: bool = False
    aliases: Mapping[str, Attribute | None] = field(default_factory=dict)
    outer: VisibleNames | None = None

    def resolve(self, column: exp.Column) -> Attribute | None:
        """Resolve a column node in FROM and WHERE; a column takes precedence over an alias of the same name."""
        if column.args.get("db") is not None:
            return None
        name = folded(column.name)
        return self._qualified(folded(column.table), name) if column.table else self._bare(name)

    def resolve_beside_aliases(self, column: exp.Column) -> Attribute | None:
        """Resolve a column node in GROUP BY, HAVING, QUALIFY or a window, where an alias may take precedence.

        If column and alias differ, the result is None.
        """
        found = self.resolve(column)
        name = folded(column.name)
        if not column.table and name in self.aliases and self.aliases[name] != found:
            return None
        return found

    def is_local(self, column: exp.Column) -> bool:
        """Whether a column node certainly refers to a column of the FROM clause itself."""
        name = folded(column.name)
        if column.table:
            return any(source.alias == folded(column.table) and source.has(name) for source in self.sources)
        return name in self.merged or any(source.has(name) for source in self.sources)

    def _qualified(self, alias: str, name: str) -> Attribute | None:
        for source in self.sources:
            if source.alias == alias:
                return source.find(name)
        # It may be a field of a column of that name.
        if any(source.may_have(alias) for source in self.sources):
            return None
        return None if self.outer is None else self.outer._qualified(alias, name)

    def _bare(self, name: str) -> Attribute | None:
        if self.may_merge:
            return None
        if name in self.merged:
            return self.merged[name]
        having = [source for source in self.sources if source.has(name)]
        if having:
            return having[0].find(name) if len(having) == 1 else None
        if any(not source.complete for source in self.sources):
            return None
        around = None if self.outer is None else self.outer._bare(name)
        if name in self.aliases:
            return self.aliases[name] if around is None else None
        return around

    def star(self, alias: str | None = None) -> list[tuple[str, Attribute | None]] | None:
        """The columns of ``*`` or ``alias.*``, None when they are not all known."""
        if alias is not None:
            found = [source for source in self.sources if source.alias == alias]
            return list(found[0].columns) if len(found) == 1 and found[0].complete else None
        if not all(source.complete for source in self.sources):
            return None
        shown = []
        for number, source in enumerate(self.sources):
            for name, attribute in source.columns:
                if (number, name) not in self.hidden:
                    shown.append((name, self.shown.get((number, name), attribute)))
        return shown

    def beside(self, other: VisibleNames) -> VisibleNames:
        """The names of two sides of a join."""
        shift = len(self.sources)
        merged = {**self.merged, **other.merged}
        for name in self.merged.keys() & other.merged.keys():
            merged[name] = None
        hidden = self.hidden | {(number + shift, name) for number, name in other.hidden}
        shown = {
            **self.shown,
            **{(number + shift, name): attribute for (number, name), attribute in other.shown.items()},
        }
        return replace(
            self,
            sources=(*self.sources, *other.sources),
            merged=merged,
            hidden=frozenset(hidden),
            shown=shown,
            may_merge=self.may_merge or other.may_merge,
        )

    def unknown(self) -> VisibleNames:
        """The same items and merged names where no column is known any more."""
        return VisibleNames(
            tuple(replace(source, columns=(), complete=False) for source in self.sources),
            dict.fromkeys(self.merged),
            may_merge=self.may_merge,
            outer=self.outer,
        )

    def joined_by(self, shared: Mapping[str, Attribute | None], left_count: int) -> VisibleNames:
        """After a join whose USING merges ``shared``; the first ``left_count`` sources are its left side."""
        both = [(number, name) for number, source in enumerate(self.sources) for name in shared if source.has(name)]
        hidden = {place for place in both if place[0] >= left_count}
        shown = {place: shared[place[1]] for place in both if place[0] < left_count}
        return replace(
            self, merged={**self.merged, **shared}, hidden=self.hidden | hidden, shown={**self.shown, **shown}
        )
