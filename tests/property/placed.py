"""Random statements over several tables that are to be placed: joins of every kind, groups, windows, set operations, and subqueries wherever they may stand.

Names are exact and orders are total, so that DuckDB takes most statements and each has one answer; :mod:`relational` is about names. Values are small integers,
texts, dates, decimals, doubles whose sums are exact, and lists, with NULLs and duplicates outside of the keys.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from secateur.planner.placement import search, semi_joins
from worlds import World

__all__ = ["EXCHANGES", "Placeable", "exchange_by", "placed_world"]

EXCHANGES = ("broadcast", "route", "shuffle")

_TYPES = {"i": "BIGINT", "s": "VARCHAR", "d": "DATE", "m": "DECIMAL(8, 2)", "f": "DOUBLE"}
_TABLES = {
    "orders": "kjisdmf",
    "items": "kjisdm",
    "hashed": "jkisf",
    "ranged": "kjisd",
    "single": "kjis",
    "copied": "kjis",
    "nothing": "kjis",
}
"""What the columns of a table are: the keys ``k`` and ``j``, and one column of each kind."""
_SCHEMES = {
    "orders": ["HASH (k) PARTITIONS 5"],
    "items": ["HASH (k) PARTITIONS 5", "HASH (k) PARTITIONS 5", "HASH (k, j) PARTITIONS 4"],
    "hashed": ["HASH (j) PARTITIONS 4", "HASH (k, j) PARTITIONS 4", "HASH (j, k) PARTITIONS 6"],
    "ranged": ["RANGE (k) SPLIT AT (0, 2), HASH (j) PARTITIONS 2", "RANGE (j) SPLIT AT (1, 2, 40)", "RANGE (k) SPLIT AT (-1, 3)"],
    "single": ["HASH (k) PARTITIONS 1"],
    "copied": [""],
    "nothing": ["HASH (k) PARTITIONS 5", "HASH (j) PARTITIONS 3"],
}
_KINDS = {"k": "i", "j": "i"}
_TEXTS = ["", "a", "A", "b", "é"]
_Columns = tuple[tuple[str, str], ...]


def exchange_by(patch: pytest.MonkeyPatch, exchange: str) -> None:
    """Let the planner prefer one of :data:`EXCHANGES` wherever it is right, whatever it costs."""
    never = float("inf")
    patch.setattr(search, "_ROUTED_MIN", 0.0 if exchange == "route" else never)
    patch.setattr(search, "_SHUFFLED_MIN", 0.0 if exchange == "shuffle" else never)
    patch.setattr(search, "_SHUFFLE_SHARE", 1e-6 if exchange == "shuffle" else 0.5)
    patch.setattr(semi_joins, "_SAVED_MIN", never if exchange == "shuffle" else -1.0)
    patch.setattr(semi_joins, "_SHARE_MAX", 1.0)


def placed_world(rng: random.Random, names: Sequence[str] = ()) -> World:
    """Some of seven small tables, or those that are named: a co-located pair, other keys, ranges, one partition, copies at all members, no rows."""
    world = World()
    world.duck.execute(f"SELECT setseed({rng.random()})")
    for name in names or ["orders", "items", *rng.sample(list(_TABLES)[2:], 3)]:
        columns = ", ".join(f"{column} {'INTEGER' if column in 'kj' else _TYPES[column]}" for column in _TABLES[name])
        scheme = rng.choice(_SCHEMES[name])
        values = {
            "k": "k",
            "j": "j",
            "i": "CASE WHEN random() < 0.25 THEN NULL ELSE CAST(floor(random() * 6) AS BIGINT) - 1 END",
            "s": f"[NULL, {', '.join(map(repr, _TEXTS))}][1 + CAST(floor(random() * 6) AS INTEGER)]",
            "d": "CASE WHEN random() < 0.2 THEN NULL ELSE DATE '2024-01-01' + CAST(floor(random() * 4) AS INTEGER) END",
            "m": "CASE WHEN random() < 0.2 THEN NULL ELSE CAST(floor(random() * 8) / 4 AS DECIMAL(8, 2)) END",
            "f": "CASE WHEN random() < 0.2 THEN NULL ELSE floor(random() * 8) / 4 - 1 END",
        }
        listed = ", ".join(values[column] for column in _TABLES[name])
        share = 0 if name == "nothing" else rng.choice([0.15, 0.5, 0.8])
        ddl = f"CREATE TABLE {name} ({columns}, PRIMARY KEY (k, j)) {f'PARTITION BY {scheme}' if scheme else 'REPLICATED'}"
        world.ddl[name] = ddl
        world.fill(ddl, f"SELECT {listed} FROM range(-2, 4) a(k), range(3) b(j) WHERE random() < {share}")
    return world


@dataclass(frozen=True, slots=True)
class _Column:
    """A column in reach: how it is written, and the kind of its values."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Source:
    """What stands in FROM: its text, the columns in reach, and those that ``*`` stands for."""

    sql: str
    reach: tuple[_Column, ...]
    starred: _Columns


@dataclass(frozen=True, slots=True)
class _Made:
    """A query: its text and its columns."""

    sql: str
    columns: _Columns


@dataclass
class Placeable:
    """Makes one statement.

    Attributes:
        rng: Decides.
        tables: The tables that there are.
        params: The values of the parameters of what has been made.
    """

    rng: random.Random
    tables: Sequence[str]
    params: list[Any] = field(default_factory=list)
    _ctes: list[tuple[str, _Columns]] = field(default_factory=list)
    _count: int = 0
    _room: int = 7

    def statement(self) -> str:
        """One statement; ``params`` are its parameters then."""
        sql = self._query(self.rng.choice([1, 1, 2, 2, 3]), (), None, ctes=True).sql
        used = list(dict.fromkeys(re.findall(r"\$(\d+)", sql)))
        self.params = [self.params[int(number) - 1] for number in used]
        return re.sub(r"\$(\d+)", lambda match: f"${used.index(match[1]) + 1}", sql)

    # Queries.

    def _query(self, depth: int, outer: tuple[_Column, ...], kinds: str | None, *, ctes: bool = False) -> _Made:
        rng = self.rng
        if depth > 0 and rng.random() < (0.3 if ctes else 0.06):
            return self._with(depth, outer, kinds)
        depth = depth if self._room > 0 else 0
        made = self._set_operation(depth, outer, kinds) if depth > 0 and rng.random() < 0.13 else self._select(depth, outer, kinds)
        if rng.random() < 0.15 and "l" not in {kind for _, kind in made.columns} and " ORDER BY " not in made.sql[-30:]:
            if rng.random() < 0.5:
                positions = rng.sample(range(len(made.columns)), len(made.columns))
                order = ", ".join(f"{self._position(at)}{rng.choice(['', ' DESC', ' NULLS FIRST'])}" for at in positions)
                return _Made(f"{made.sql} ORDER BY {order} {rng.choice(['LIMIT 3', 'LIMIT 1', 'LIMIT 4 OFFSET 2', 'OFFSET 1'])}", made.columns)
            return _Made(
                f"{made.sql} ORDER BY ALL{rng.choice(['', ' DESC'])} {rng.choice(['LIMIT 3', 'LIMIT 1', 'LIMIT 4 OFFSET 2', 'OFFSET 1', '', 'LIMIT 0'])}",
                made.columns,
            )
        return made

    def _with(self, depth: int, outer: tuple[_Column, ...], kinds: str | None) -> _Made:
        rng = self.rng
        before = len(self._ctes)
        texts = []
        recursive = rng.random() < 0.25
        if recursive:
            texts.append(self._recursion())
        for _ in range(rng.choice([1, 1, 2]) - recursive):
            made = self._query(depth - 1, (), None)
            name = rng.choice([self._name("cte"), self._name("cte"), self._name("cte"), *(["items"] if "items" not in {cte for cte, _ in self._ctes} else [])])
            texts.append(f"{name} AS {rng.choice(['', '', 'MATERIALIZED ', 'NOT MATERIALIZED '])}({made.sql})")
            self._ctes.append((name, made.columns))
        made = self._query(depth, outer, kinds)
        del self._ctes[before:]
        inside = f"SELECT * FROM ({made.sql})" if made.sql.startswith("WITH") else made.sql
        return _Made(f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(texts)} {inside}", made.columns)

    def _recursion(self) -> str:
        """Rows that are reached from some rows in a few steps."""
        rng = self.rng
        name, alias = self._name("cte"), self._name("x")
        hidden = {cte for cte, _ in self._ctes}
        tables = [table for table in self.tables if table not in hidden]
        first = f"SELECT k::BIGINT AS k, 0 AS i FROM {rng.choice(tables)} {alias}{self._where(self._source('', alias, (('k', 'i'), ('i', 'i'))).reach, (), 0)}"
        step = (
            f"SELECT {alias}.{rng.choice('ij')}::BIGINT, {name}.i + 1 FROM {rng.choice(tables)} {alias} JOIN {name} ON {alias}.k = {name}.k WHERE {name}.i < 2"
        )
        self._ctes.append((name, (("k", "i"), ("i", "i"))))
        return f"{name} AS ({first} {rng.choice(['UNION', 'UNION ALL'])} {step})"

    def _set_operation(self, depth: int, outer: tuple[_Column, ...], kinds: str | None) -> _Made:
        rng = self.rng
        kinds = kinds or "".join(rng.choice("iisd") for _ in range(rng.choice([1, 2, 2])))
        parts = [self._query(depth - 1, outer, kinds) for _ in range(rng.choice([2, 2, 2, 3]))]
        if rng.random() < 0.1:
            names = [f"SELECT {', '.join(f'{name} AS {kind}{at}' for at, (name, kind) in enumerate(part.columns))} FROM ({part.sql})" for part in parts]
            columns = tuple((f"{kind}{at}", kind) for at, (_, kind) in enumerate(parts[0].columns))
            return _Made(f" UNION {rng.choice(['', 'ALL '])}BY NAME ".join(f"({name})" for name in names), columns)
        operation = rng.choice(["UNION ALL", "UNION ALL", "UNION", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        return _Made(f" {operation} ".join(f"({part.sql})" for part in parts), parts[0].columns)

    def _select(self, depth: int, outer: tuple[_Column, ...], kinds: str | None) -> _Made:
        rng = self.rng
        source = self._from(depth, outer)
        where = self._where(source.reach, outer, depth)
        if kinds is None and rng.random() < 0.12 and len({name for name, _ in source.starred}) == len(source.starred):
            return self._starred(source, where)
        kinds = kinds or "".join(rng.choice("iiisdmfl" if rng.random() < 0.5 else "iis") for _ in range(rng.choice([1, 2, 2, 3, 4])))
        shape = rng.choice([self._plain] * 4 + [self._grouped] * 4 + [self._total] + [self._windowed] * 2 + [self._distinct])
        return shape(source, where, kinds, outer, depth)

    def _starred(self, source: _Source, where: str) -> _Made:
        """All columns, some of them left out, replaced or renamed; of one item of FROM by its name."""
        rng = self.rng
        columns, qualifier = source.starred, ""
        holder = source.reach[0].text.partition(".")
        mine = [column for column in source.reach if column.text.startswith(f"{holder[0]}.")]
        if holder[2] and rng.random() < 0.6:
            columns, qualifier = tuple((column.text.partition(".")[2], column.kind) for column in mine), f"{holder[0]}."
        name, kind = rng.choice(columns)
        changes = ["", ""]
        if len(columns) > 1:
            changes.append("EXCLUDE")
        if kind == "i" and qualifier:
            changes += ["REPLACE", "REPLACE"]
        match rng.choice(changes):
            case "EXCLUDE":
                rest = tuple(column for column in columns if column[0] != name)
                return _Made(f"SELECT {qualifier}* EXCLUDE ({name}) FROM {source.sql}{where}", rest)
            case "REPLACE":
                return _Made(f"SELECT {qualifier}* REPLACE ({qualifier}{name} + {rng.choice([1, 100, -7])} AS {name}) FROM {source.sql}{where}", columns)
            case _:
                return _Made(f"SELECT {qualifier}* FROM {source.sql}{where}", columns)

    def _position(self, at: int) -> str:
        """The number of a column of the SELECT list, in parentheses or not."""
        return self.rng.choice(["{}", "({})", "({})", "(({}))"]).format(at + 1)

    def _plain(self, source: _Source, where: str, kinds: str, outer: tuple[_Column, ...], depth: int) -> _Made:
        items = [(self._scalar(depth - 1, (*outer, *source.reach)) if kind == "i" and depth > 0 and self.rng.random() < 0.12 else None, kind) for kind in kinds]
        text, columns = self._items([(made or self._expression(kind, source.reach), kind) for made, kind in items])
        return _Made(f"SELECT {text} FROM {source.sql}{where}", columns)

    def _distinct(self, source: _Source, where: str, kinds: str, outer: tuple[_Column, ...], depth: int) -> _Made:
        kinds = kinds.replace("l", "i")
        text, columns = self._items([(self._expression(kind, source.reach), kind) for kind in kinds])
        if self.rng.random() < 0.5:
            return _Made(f"SELECT DISTINCT {text} FROM {source.sql}{where}", columns)
        key = self._position(0) if self.rng.random() < 0.3 else self._column(source.reach).text
        return _Made(f"SELECT DISTINCT ON ({key}) {text} FROM {source.sql}{where} ORDER BY {key}, {', '.join(map(self._position, range(len(kinds))))}", columns)

    def _total(self, source: _Source, where: str, kinds: str, outer: tuple[_Column, ...], depth: int) -> _Made:
        text, columns = self._items([(self._aggregate(kind, source.reach), kind) for kind in kinds])
        having = self.rng.choice(["", "", "", " HAVING count(*) > 1", f" HAVING {self._aggregate('i', source.reach)} > 0"])
        return _Made(f"SELECT {text} FROM {source.sql}{where}{having}", columns)

    def _grouped(self, source: _Source, where: str, kinds: str, outer: tuple[_Column, ...], depth: int) -> _Made:
        rng = self.rng
        keys = [self._group_key(source.reach) for _ in range(rng.choice([1, 1, 2, 2]))]
        texts = [key.text for key in keys]
        by = rng.choice(["plain"] * 5 + ["ALL", "ordinals", "ROLLUP", "CUBE", "SETS"])
        sets = by in ("ROLLUP", "CUBE", "SETS")
        by_position = sets and rng.random() < 0.5
        items: list[tuple[str, str]] = []
        for kind in kinds:
            alike = [key.text for key in keys if key.kind == kind]
            if alike and rng.random() < 0.6:
                items.append((rng.choice(alike), kind))
            elif kind == "i" and sets and rng.random() < 0.3:
                items.append((f"grouping({rng.choice(texts)})", kind))
            elif kind == "i" and rng.random() < 0.12:
                items.append((f"{rng.choice(['rank()', 'count(*)', 'max(count(*))'])} OVER ({self._partition(keys)} ORDER BY count(*), {texts[0]})", kind))
            elif kind == "i" and depth > 0 and not sets and rng.random() < 0.1:
                items.append((self._scalar(depth - 1, tuple(keys)), kind))
            else:
                items.append((self._aggregate(kind, source.reach), kind))
        if by == "ordinals" or by_position:
            items[:0] = [(key.text, key.kind) for key in keys]
            items = items[: max(len(kinds), len(keys))] if len(items) == len(kinds) else items
        named = [self._position(at) for at in range(len(keys))] if by_position else texts
        head = {
            "plain": ", ".join(texts),
            "ALL": "ALL",
            "ordinals": ", ".join(map(self._position, range(len(keys)))),
            "ROLLUP": f"ROLLUP ({', '.join(named)})",
            "CUBE": f"CUBE ({', '.join(named)})",
            "SETS": f"GROUPING SETS (({', '.join(named)}), ({named[0]}), ())",
        }[by]
        having = ""
        if rng.random() < 0.35:
            choices = [
                f"count(*) {rng.choice(['>', '=', '<'])} {rng.choice([1, 2])}",
                f"{self._aggregate('i', source.reach)} >= 0",
                self._predicate(tuple(keys), (), 0),
            ]
            if depth > 0 and not sets:
                choices.append(self._subquery(tuple(keys), outer, depth - 1))
            having = f" HAVING {rng.choice(choices)}"
        text, columns = self._items(items)
        if (by == "ordinals" or by_position) and len(columns) > len(kinds):
            wanted = columns[len(keys) :]
            return _Made(f"SELECT {', '.join(name for name, _ in wanted)} FROM (SELECT {text} FROM {source.sql}{where} GROUP BY {head}{having})", wanted)
        return _Made(f"SELECT {text} FROM {source.sql}{where} GROUP BY {head}{having}", columns)

    def _windowed(self, source: _Source, where: str, kinds: str, outer: tuple[_Column, ...], depth: int) -> _Made:
        rng = self.rng
        partition = self._partition(source.reach)
        total = ", ".join(column.text for column in source.reach)
        over = rng.choice([partition, f"{partition} ORDER BY {self._column(source.reach, 'i').text}", f"{partition} ORDER BY {total}"])
        named = rng.random() < 0.3
        use = "w" if named else f"({over})"
        calls = [
            f"count(*) OVER {use}",
            f"(sum({self._column(source.reach, 'i').text}) OVER {use})::BIGINT",
            f"max({self._column(source.reach, 'i').text}) OVER {use}",
        ]
        if "ORDER" in over:
            calls += [f"rank() OVER {use}", f"dense_rank() OVER {use}"]
        if over.endswith(total):
            calls += [f"row_number() OVER {use}", f"lag({self._column(source.reach, 'i').text}) OVER {use}"]
            if not named:
                calls.append(f"(sum({self._column(source.reach, 'i').text}) OVER ({over} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))::BIGINT")
        text, columns = self._items([(rng.choice(calls) if kind == "i" else self._expression(kind, source.reach), kind) for kind in kinds])
        window = f" WINDOW w AS ({over})" if named else ""
        qualify = f" QUALIFY {rng.choice(calls)} {rng.choice(['<=', '>'])} {rng.choice([1, 2])}" if rng.random() < 0.4 else ""
        return _Made(f"SELECT {text} FROM {source.sql}{where}{window}{qualify}", columns)

    def _partition(self, reach: Sequence[_Column]) -> str:
        return self.rng.choice(["", f"PARTITION BY {self._group_key(reach).text}", f"PARTITION BY {self._group_key(reach).text}"])

    # FROM.

    def _from(self, depth: int, outer: tuple[_Column, ...]) -> _Source:
        rng = self.rng
        source = self._item(depth, outer)
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3] if depth > 0 else [0, 0, 1])):
            # Products of products would take all memory.
            source = self._joined(source, depth, outer) if self._room > 0 else source
        return source

    def _item(self, depth: int, outer: tuple[_Column, ...]) -> _Source:
        rng = self.rng
        alias = self._name("x")
        self._room -= 1
        if rng.random() < 0.04:
            return self._source(f"{rng.choice(['range(-1, 3)', 'generate_series(3)'])} {alias}(k)", alias, (("k", "i"),))
        if depth <= 0 or rng.random() < 0.75:
            hidden = {name for name, _ in self._ctes}
            tables = [(name, tuple((column, _KINDS.get(column, column)) for column in _TABLES[name])) for name in self.tables if name not in hidden]
            if self._ctes and rng.random() < 0.5:
                tables = self._ctes
            name, columns = rng.choice([table for table in tables if table[0] in ("orders", "items")] * 2 + tables)
            if rng.random() < 0.06:
                return self._renamed(rng.choice([name, f"({name})", f"(({name}))", f"({name} {self._name('x')})"]), columns)
            return self._source(f"{name} {alias}", alias, columns)
        if rng.random() < 0.06:
            values = ", ".join(f"({rng.choice([-1, 0, 1, 'NULL'])}, {rng.choice(_TEXTS)!r})" for _ in range(rng.choice([1, 3])))
            return self._source(f"(VALUES {values}) {alias}(i, s)", alias, (("i", "i"), ("s", "s")))
        made = self._query(depth - 1, (), None)
        if rng.random() < 0.15:
            return self._renamed(f"({made.sql})", made.columns)
        return self._source(f"({made.sql}) {alias}", alias, made.columns)

    def _renamed(self, sql: str, columns: _Columns) -> _Source:
        """An item of FROM whose alias gives names to its columns, to all or to the first of them."""
        alias = self._name("x")
        given = [self._name("n") for _ in columns[: self.rng.randint(1, len(columns))]]
        named = tuple((given[at] if at < len(given) else name, kind) for at, (name, kind) in enumerate(columns))
        return self._source(f"{sql} AS {alias}({', '.join(given)})", alias, named)

    @staticmethod
    def _source(sql: str, alias: str, columns: _Columns) -> _Source:
        return _Source(sql, tuple(_Column(f"{alias}.{name}", kind) for name, kind in columns), columns)

    def _joined(self, left: _Source, depth: int, outer: tuple[_Column, ...]) -> _Source:
        rng = self.rng
        kind = rng.choice(
            ["JOIN"] * 6
            + ["LEFT JOIN"] * 4
            + ["RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"] * 2
            + [",", "CROSS JOIN", "LATERAL", "USING", "USING", "NATURAL", "ASOF", "UNNEST"]
        )
        if kind == "UNNEST":
            alias = self._name("x")
            elements = f"[{self._column(left.reach, 'i').text}, {self._column(left.reach, 'i').text}]"
            column = self._source("", alias, (("i", "i"),))
            return _Source(f"{left.sql}, unnest({elements}) {alias}(i)", (*left.reach, *column.reach), (*left.starred, *column.starred))
        if kind == "LATERAL":
            return self._lateral(left, depth, outer)
        right = self._item(depth, outer)
        if depth > 1 and rng.random() < 0.1:
            right = self._joined(right, 0, outer)
            is_named = rng.random() < 0.6 and len({name for name, _ in right.starred}) == len(right.starred)
            right = self._renamed(f"({right.sql})", right.starred) if is_named else _Source(f"({right.sql})", right.reach, right.starred)
        both = (*left.reach, *right.reach), (*left.starred, *right.starred)
        match kind:
            case "," | "CROSS JOIN":
                return _Source(f"{left.sql} {kind} {right.sql}", *both)
            case "USING" | "NATURAL":
                return self._merged(kind, left, right)
            case "ASOF" if {"k", "j"} <= {name for name, _ in right.starred} and right.sql.split(" ")[0] in self.tables and right.sql.count(" ") == 1:
                alias = right.sql.split(" ")[1]
                how = rng.choice(["ASOF JOIN", "ASOF LEFT JOIN"])
                left_key, value = self._key(left.reach, "i").text, self._column(left.reach, "i").text
                if "." not in value:
                    return _Source(f"{left.sql}, {right.sql}", *both)
                on = f"{left_key} = {alias}.k AND {value} >= {alias}.j"
                return _Source(f"{left.sql} {how} {right.sql} ON {on}", *both)
            case "ASOF":
                kind = "JOIN"
        on = self._on(left.reach, right.reach, outer, depth)
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return _Source(f"{left.sql} {kind} {right.sql} ON {on}", left.reach, left.starred)
        return _Source(f"{left.sql} {kind} {right.sql} ON {on}", *both)

    def _lateral(self, left: _Source, depth: int, outer: tuple[_Column, ...]) -> _Source:
        rng = self.rng
        alias = self._name("x")
        made = self._query(depth - 1, (*outer, *left.reach), None) if rng.random() < 0.5 else self._correlated(left.reach, outer)
        right = self._source("", alias, made.columns)
        how, behind = rng.choice([(",", ""), (", LATERAL", ""), ("LEFT JOIN LATERAL", " ON TRUE"), ("JOIN LATERAL", " ON TRUE")])
        return _Source(f"{left.sql} {how} ({made.sql}) {alias}{behind}", (*left.reach, *right.reach), (*left.starred, *right.starred))

    def _correlated(self, around: tuple[_Column, ...], outer: tuple[_Column, ...]) -> _Made:
        """A query of the rows that equal the rows around it, perhaps the first of them only."""
        item = self._item(0, outer)
        ours, theirs = self._key(item.reach, "i").text, self._key(around, "i").text
        column = self._column(item.reach, "i").text
        tail = self.rng.choice(["", " ORDER BY ALL LIMIT 1", " ORDER BY ALL LIMIT 2"])
        value = self.rng.choice([column, f"max({column})", f"{column} + {theirs}"])
        return _Made(f"SELECT {value} AS c FROM {item.sql} WHERE {ours} = {theirs}{tail}", (("c", "i"),))

    def _merged(self, kind: str, left: _Source, right: _Source) -> _Source:
        rng = self.rng
        ours, theirs = [name for name, _ in left.starred], dict(right.starred)
        shared = [(name, kind) for name, kind in left.starred if ours.count(name) == 1 and theirs.get(name) == kind and kind != "l"]
        how = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
        if not shared:
            return _Source(f"{left.sql}, {right.sql}", (*left.reach, *right.reach), (*left.starred, *right.starred))
        only = how in ("SEMI JOIN", "ANTI JOIN")
        natural = kind == "NATURAL" and not only
        used = dict(shared) if natural else dict(rng.sample(shared, 1))
        if not natural and "k" in dict(shared) and rng.random() < 0.6:
            used = {"k": "i"}
        sql = f"{left.sql} NATURAL {how} {right.sql}" if natural else f"{left.sql} {how} {right.sql} USING ({', '.join(used)})"
        if only:
            return _Source(sql, left.reach, left.starred)
        merged = tuple(_Column(name, kind) for name, kind in used.items())
        return _Source(sql, (*left.reach, *right.reach, *merged), (*left.starred, *(column for column in right.starred if column[0] not in used)))

    def _on(self, left: tuple[_Column, ...], right: tuple[_Column, ...], outer: tuple[_Column, ...], depth: int) -> str:
        rng = self.rng
        ours = self._key(left, "i") if rng.random() < 0.8 else self._column([column for column in left if column.kind != "l"] or left)
        theirs = self._key(right, ours.kind)
        parts = [f"{ours.text} {rng.choice(['='] * 9 + ['<', 'IS NOT DISTINCT FROM'])} {theirs.text}"]
        if rng.random() < 0.25:
            ours = self._column(left, "i")
            parts.append(f"{ours.text} {rng.choice(['=', '=', '<=', '<>'])} {self._column(right, 'i').text}")
        if rng.random() < 0.3:
            parts.append(self._predicate(rng.choice([left, right]), outer, depth - 1 if rng.random() < 0.15 else 0))
        return f" {'AND' if rng.random() < 0.96 else 'OR'} ".join(parts)

    # Expressions.

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _items(self, listed: Sequence[tuple[str, str]]) -> tuple[str, _Columns]:
        """The SELECT list; names are sometimes those of columns in reach, so that they shadow them."""
        free = ["k", "j", "i", "s", "v", "c", "m"]
        self.rng.shuffle(free)
        names = []
        for text, _ in listed:
            own = text.rpartition(".")[2]
            name = own if own in free and self.rng.random() < 0.7 else free[-1] if self.rng.random() < 0.3 and free else self._name("c")
            if name in free:
                free.remove(name)
            names.append(name)
        return ", ".join(f"{text} AS {name}" for (text, _), name in zip(listed, names, strict=True)), tuple(
            zip(names, (kind for _, kind in listed), strict=True)
        )

    def _column(self, reach: Sequence[_Column], kind: str | None = None) -> _Column:
        found = [column for column in reach if kind is None or column.kind == kind]
        return self.rng.choice(found) if found else _Column(self._constant(kind or "i"), kind or "i")

    def _key(self, reach: Sequence[_Column], kind: str) -> _Column:
        """A column to be compared with others: most often the first that is called ``k``, then ``j``."""
        for name, share in (("k", 0.65), ("j", 0.5)):
            found = [column for column in reach if column.kind == kind and column.text.endswith(f".{name}")]
            if found and self.rng.random() < share:
                return self.rng.choice(found)
        return self._column(reach, kind)

    def _group_key(self, reach: Sequence[_Column]) -> _Column:
        """Something to group by: a column or an expression."""
        reach = [column for column in reach if column.kind in "isdm"] or reach
        column = self._key(reach, "i") if self.rng.random() < 0.4 else self._column(reach)
        if re.fullmatch(r"[-$\d].*", column.text):
            return _Column(f"({column.text}) + 0", "i")
        return _Column(f"{column.text} % 2", "i") if column.kind == "i" and self.rng.random() < 0.15 else column

    def _constant(self, kind: str) -> str:
        rng = self.rng
        value: Any
        match kind:
            case "i":
                value, text = (number := rng.choice([-1, 0, 1, 1, 2, 2, 3])), str(number)
            case "s":
                value = rng.choice(_TEXTS)
                text = f"'{value}'"
            case "d":
                return f"DATE '2024-01-0{rng.randint(1, 4)}'"
            case "m":
                return rng.choice(["0.25", "1.50", "1"]) + "::DECIMAL(8, 2)"
            case "f":
                return rng.choice(["0.25", "1.5", "-1"]) + "::DOUBLE"
            case _:
                return "[1, 2]"
        if rng.random() < 0.08:
            self.params.append(value)
            return f"${len(self.params)}{'::BIGINT' if kind == 'i' else ''}"
        return text

    def _expression(self, kind: str, reach: Sequence[_Column]) -> str:
        rng = self.rng
        text = self._column(reach, kind).text
        if rng.random() < 0.75 and kind != "l":
            return text
        match kind:
            case "i":
                other = self._column(reach, "i").text
                choices = [
                    f"{text} + 1",
                    f"coalesce({text}, {other})",
                    f"{text} - {other}",
                    f"CASE WHEN {self._predicate(reach, (), 0)} THEN {text} ELSE {other} END",
                ]
                return rng.choice([*choices, f"{{'a': {text}}}.a", f"length({self._column(reach, 's').text})"])
            case "s":
                return rng.choice([f"upper({text})", f"{text} || 'x'", f"coalesce({text}, 'none')", f"{self._column(reach, 'i').text}::VARCHAR"])
            case "d":
                return rng.choice([f"CAST({text} + INTERVAL 1 DAY AS DATE)", f"coalesce({text}, DATE '2024-01-02')"])
            case "m":
                return f"CAST({text} + 1 AS DECIMAL(8, 2))"
            case "f":
                return f"{text} + 0.5::DOUBLE"
            case _:
                return f"[{self._column(reach, 'i').text}, {self._column(reach, 'i').text}]"

    def _aggregate(self, kind: str, reach: Sequence[_Column]) -> str:
        rng = self.rng
        text = self._expression(kind if kind != "l" else "i", reach)
        condition = f" FILTER (WHERE {self._predicate(reach, (), 0)})" if rng.random() < 0.15 else ""
        match kind:
            case "i":
                call = rng.choice(
                    ["count(*)", f"count({text})", f"sum({text})::BIGINT", f"max({text})", f"count(DISTINCT {text})", f"sum(DISTINCT {text})::BIGINT"]
                )
            case "m":
                call = rng.choice([f"max({text})", f"CAST(sum({text}) AS DECIMAL(8, 2))"])
            case "f":
                integer = self._column(reach, "i").text
                call = rng.choice([f"sum({text})", f"avg({text})", f"avg({integer})", f"min({text})", f"avg(DISTINCT {integer})"])
            case "l":
                call = f"list({text} ORDER BY {text})"
            case "s":
                call = rng.choice(
                    [f"max({text})", f"min({text})", f"string_agg({text}, '-' ORDER BY {text})", f"string_agg(DISTINCT {text}, '-' ORDER BY {text})"]
                )
            case _:
                call = rng.choice([f"max({text})", f"min({text})"])
        # FILTER stands behind the call, not behind a cast of it.
        cast = re.fullmatch(r"(CAST\()?(sum\(.*\))(::BIGINT| AS DECIMAL\(8, 2\)\))", call)
        return f"{cast[1] or ''}{cast[2]}{condition}{cast[3]}" if cast else call + condition

    def _where(self, reach: Sequence[_Column], outer: tuple[_Column, ...], depth: int) -> str:
        rng = self.rng
        parts = [self._predicate(reach, outer, depth) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
        if outer and rng.random() < 0.8:
            theirs = self._key(outer, "i")
            parts.append(f"{self._key(reach, 'i').text} {rng.choice(['=', '=', '=', '=', '<'])} {theirs.text}")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _predicate(self, reach: Sequence[_Column], outer: tuple[_Column, ...], depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if depth > 0 and roll < 0.3:
            return self._subquery(reach, outer, depth)
        if roll < 0.36:
            return f"({self._predicate(reach, outer, depth - 1)} OR {self._predicate(reach, outer, depth - 1)})"
        if roll < 0.4:
            return f"NOT ({self._predicate(reach, outer, depth - 1)})"
        column = self._column([column for column in reach if column.kind != "l"])
        constant = self._constant(column.kind)
        return rng.choice(
            [f"{column.text} {rng.choice(['=', '<', '>=', '<>'])} {constant}"] * 4
            + [
                f"{self._key(reach, 'i').text} = {self._constant('i')}",
                f"{self._key(reach, 'i').text} IN ({self._constant('i')}, {self._constant('i')}, {self._constant('i')})",
                f"{column.text} IS {rng.choice(['', 'NOT '])}NULL",
                f"{column.text} {rng.choice(['=', '<'])} {self._column(reach, column.kind).text}",
                f"{column.text} BETWEEN {constant} AND {self._constant(column.kind)}",
                f"coalesce({column.text} = {constant}, TRUE)",
                f"{self._column(reach, 'd').text} <= {rng.choice(['current_date', 'today()', 'now()::TIMESTAMP', 'localtimestamp'])}",
            ]
        )

    def _subquery(self, reach: Sequence[_Column], outer: tuple[_Column, ...], depth: int) -> str:
        rng = self.rng
        around = (*outer, *reach) if rng.random() < 0.6 else ()
        column = self._key(reach, "i")
        match rng.choice(["IN"] * 3 + ["NOT IN", "EXISTS", "EXISTS", "NOT EXISTS", "scalar", "scalar", "ANY", "ALL", "row"]):
            case "IN":
                return f"{column.text} IN ({self._query(depth - 1, around, 'i').sql})"
            case "NOT IN":
                return f"{column.text} NOT IN ({self._query(depth - 1, around, 'i').sql})"
            case "EXISTS":
                return f"EXISTS ({self._query(depth - 1, around, None).sql})"
            case "NOT EXISTS":
                return f"NOT EXISTS ({self._query(depth - 1, around, None).sql})"
            case "ANY" | "ALL" as quantifier:
                return f"{column.text} {rng.choice(['=', '<', '<>'])} {quantifier} ({self._query(depth - 1, around, 'i').sql})"
            case "row":
                return f"({column.text}, {self._column(reach, 'i').text}) {rng.choice(['', 'NOT '])}IN ({self._query(depth - 1, around, 'ii').sql})"
            case _:
                return f"{self._column(reach, 'i').text} {rng.choice(['=', '<', '>='])} {self._scalar(depth - 1, around)}"

    def _scalar(self, depth: int, around: tuple[_Column, ...]) -> str:
        """A subquery of one integer."""
        rng = self.rng
        source = self._from(depth, around)
        where = self._where(source.reach, around, depth)
        column = self._column(source.reach, "i").text
        value = rng.choice(
            ["count(*)", f"max({column})", f"sum({column})::BIGINT", f"0 + min({column})", f"count(DISTINCT {column})", f"coalesce(max({column}), 0)"]
        )
        return f"(SELECT {value} FROM {source.sql}{where})"
