"""Random statements that try to be misread: names that shadow one another, columns by position, keys of several types,
subqueries anywhere.

Unlike :mod:`statements`, where every query has the same columns, a query here has those that it happens to have, and
each part is made of what is in reach. What is ambiguous DuckDB refuses; the rest has one answer, whatever the order of
the rows.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

from secateur.planner import CostModel, Planner
from worlds import World

__all__ = ["Relational", "relational_world"]

_COLUMNS = {
    "t": (("a", "i"), ("b", "s"), ("c", "d"), ("v", "i")),
    "u": (("a", "i"), ("b", "s"), ("c", "d"), ("v", "i")),
    "n": (("k", "i"), ("a", "i"), ("b", "s"), ("v", "i")),
    "small": (("a", "i"), ("b", "s")),
    "e": (("a", "i"), ("b", "s"), ("v", "i")),
}
_SCHEMES = {
    "t": [
        "HASH (a) PARTITIONS 7",
        "HASH (a, b) PARTITIONS 8",
        "HASH (b) PARTITIONS 5, RANGE (a) SPLIT AT (0, 2, 4)",
        "RANGE (c) SPLIT AT (DATE '2024-01-02')",
    ],
    "u": [
        "HASH (a) PARTITIONS 7",
        "RANGE (a) SPLIT AT (-1, 1, 2, 3)",
        "HASH (b) PARTITIONS 5, HASH (a) PARTITIONS 3",
        "HASH (c) PARTITIONS 6",
    ],
    "n": [
        "HASH (k) PARTITIONS 5",
        "HASH (a) PARTITIONS 4, HASH (k) PARTITIONS 3",
        "RANGE (k, a) SPLIT AT ((0, 0), (2, 1), (4, 0))",
        "HASH (k, a) PARTITIONS 8",
    ],
}
_TEXTS = ["", "a", "A", "1", "b"]
_NAMES = ["a", "a", "b", "v", "k", "x", "c"]
_ALIASES = ["x", "y", "z", "t", "u", "n", "a"]
_JOINS = (
    ["JOIN"] * 4
    + ["LEFT JOIN"] * 4
    + ["RIGHT JOIN", "FULL JOIN"] * 2
    + ["SEMI JOIN", "ANTI JOIN", ",", ",", "CROSS JOIN", "lateral"]
)


def relational_world(rng: random.Random, model: CostModel | None = None) -> World:
    """Small tables of three schemes, one that is replicated and an empty one; planned over by a cost model."""
    world = World(planner=Planner(cost_model=model))
    keys = "range(-2, 6) r(x), (VALUES ('a'), ('A'), ('1'), (''), ('b')) q(y)"
    value = "CASE WHEN random() < 0.3 THEN NULL ELSE CAST(floor(random() * 6) AS INTEGER) - 1 END"
    world.duck.execute(f"SELECT setseed({rng.random()})")
    for name in "tu":
        ddl = (
            f"CREATE TABLE {name} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY"
            f" {rng.choice(_SCHEMES[name])}"
        )
        world.fill(
            ddl,
            f"SELECT x, y, DATE '2024-01-01' + CAST(x + 3 AS INTEGER) % 3, {value} FROM {keys} WHERE random() < 0.6",
        )
    ddl = (
        "CREATE TABLE n (k BIGINT, a TINYINT, b VARCHAR, v INTEGER, PRIMARY KEY (k, a)) PARTITION BY"
        f" {rng.choice(_SCHEMES['n'])}"
    )
    world.fill(
        ddl,
        f"SELECT x, z, CASE WHEN random() < 0.3 THEN NULL ELSE 'a' END, {value} FROM range(-2, 6) r(x), range(4) s(z)"
        " WHERE random() < 0.6",
    )
    world.fill("CREATE TABLE small (a INTEGER PRIMARY KEY, b VARCHAR) REPLICATED", "SELECT x, 'a' FROM range(4) r(x)")
    world.fill(
        "CREATE TABLE e (a INTEGER PRIMARY KEY, b VARCHAR, v BIGINT) PARTITION BY HASH (a) PARTITIONS 3",
        "SELECT 1, 'a', 1 FROM range(0)",
    )
    return world


@dataclass(frozen=True, slots=True)
class Column:
    """A column in reach: how it is written, and whether it is an integer (``i``), a text (``s``) or a date (``d``)."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Made:
    """A query and its columns: name and kind."""

    sql: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of FROM, or several joined: the sources with their columns, and those columns that USING hides from
    ``*``.
    """

    sql: str
    sources: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    hidden: frozenset[tuple[int, str]] = frozenset()
    merged: tuple[tuple[str, str], ...] = ()

    def reach(self, rng: random.Random) -> list[Column]:
        found = [Column(f"{alias}.{name}", kind) for alias, columns in self.sources for name, kind in columns]
        often = 0.3 if len(self.sources) == 1 else 0.04
        bare = [Column(name, kind) for _, columns in self.sources for name, kind in columns if rng.random() < often]
        return [*found, *bare, *(Column(name, kind) for name, kind in self.merged for _ in range(3))]

    def starred(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (name, kind)
            for number, (_, columns) in enumerate(self.sources)
            for name, kind in columns
            if (number, name) not in self.hidden
        )


class Relational:
    """Makes statements.

    Attributes:
        params: The values of the parameters of all that has been made.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: list[Any] = []
        self._ctes: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self._cte_count = 0

    def statement(self) -> str:
        """One statement; ``params`` are its parameters then."""
        made = self.query(self.rng.choice([1, 2, 2, 3]), [])
        used = list(dict.fromkeys(re.findall(r"\$(\d+)", made.sql)))
        self.params = [self.params[int(number) - 1] for number in used]
        return re.sub(r"\$(\d+)", lambda match: f"${used.index(match[1]) + 1}", made.sql)

    def query(self, depth: int, outer: list[Column], wanted: str | None = None) -> Made:
        rng = self.rng
        roll = rng.random()
        if depth > 0 and roll < 0.16:
            return self._set_operation(depth, outer, wanted)
        if depth > 0 and roll < 0.32:
            return self._with(depth, outer, wanted)
        made = self._select(depth, outer, wanted)
        if rng.random() < 0.12 and "ON (" not in made.sql:
            tail = rng.choice(["LIMIT 3", "LIMIT 1", "LIMIT 4 OFFSET 1", "OFFSET 2", ""])
            return Made(f"{made.sql} ORDER BY ALL {tail}", made.columns)
        return made

    # Queries.

    def _with(self, depth: int, outer: list[Column], wanted: str | None) -> Made:
        rng = self.rng
        body = self.query(depth - 1, [])
        self._cte_count += 1
        name = rng.choice([f"w{self._cte_count}"] * 4 + ["u", "small"])
        columns = self._unique(body.columns)
        listed = ""
        if columns != body.columns or rng.random() < 0.3:
            columns = self._renamed(columns, all_of_them=True)
            listed = f"({', '.join(column for column, _ in columns)})"
        self._ctes.append((name, columns))
        query = self.query(depth - 1, outer, wanted)
        self._ctes.pop()
        how = rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
        return Made(
            f"WITH {name}{listed} AS {how}({body.sql})"
            f" {f'SELECT * FROM ({query.sql}) q' if query.sql.startswith('WITH') else query.sql}",
            query.columns,
        )

    def _set_operation(self, depth: int, outer: list[Column], wanted: str | None) -> Made:
        rng = self.rng
        wanted = wanted or "".join(rng.choice("iiis") for _ in range(rng.choice([1, 2, 3])))
        operation = rng.choice(
            ["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        )
        parts = [self.query(depth - 1, outer, wanted) for _ in range(rng.choice([2, 2, 3]))]
        bare = rng.random() < 0.3 and not any("ORDER BY" in part.sql or part.sql.startswith("WITH") for part in parts)
        sql = f" {operation} ".join(part.sql if bare else f"({part.sql})" for part in parts)
        return Made(sql, parts[0].columns)

    def _select(self, depth: int, outer: list[Column], wanted: str | None) -> Made:
        rng = self.rng
        item = self._from(depth, outer)
        reach = item.reach(rng)
        if wanted is not None and not {"i", "s"} <= {column.kind for column in reach}:
            reach = [*reach, Column("3", "i"), Column("'a'", "s")]
        where = self._where(reach, outer, depth)
        if wanted is None and rng.random() < 0.25:
            columns = item.starred()
            star = "*"
            if len(item.sources) == 1 and rng.random() < 0.3:
                star = f"{item.sources[0][0]}.*"
            return Made(f"SELECT {star} FROM {item.sql}{where}", columns)
        kinds = wanted or "".join(rng.choice("iiisd") for _ in range(rng.choice([1, 2, 2, 3, 4])))
        match rng.choice(["plain"] * 6 + ["grouped"] * 3 + ["windowed"] * 2 + ["distinct", "distinct on", "total"]):
            case "grouped":
                return self._grouped(item, reach, where, kinds, outer, depth)
            case "windowed":
                return self._windowed(item, reach, where, kinds, outer, depth)
            case "total":
                listed = [(self._aggregate(kind, reach), kind) for kind in kinds]
                having = rng.choice(["", "", " HAVING count(*) > 1"])
                items, columns = self._items(listed)
                return Made(f"SELECT {items} FROM {item.sql}{where}{having}", columns)
            case "distinct on":
                items, columns = self._items([(self._expression(kind, reach, outer, depth), kind) for kind in kinds])
                keys = rng.choice(["1", self._column(reach).text, f"{self._column(reach).text}, 1"])
                return Made(f"SELECT DISTINCT ON ({keys}) {items} FROM {item.sql}{where} ORDER BY ALL", columns)
            case shape:
                items, columns = self._items([(self._expression(kind, reach, outer, depth), kind) for kind in kinds])
                return Made(
                    f"SELECT {'DISTINCT ' if shape == 'distinct' else ''}{items} FROM {item.sql}{where}", columns
                )

    def _grouped(
        self, item: Item, reach: list[Column], where: str, kinds: str, outer: list[Column], depth: int
    ) -> Made:
        rng = self.rng
        keys = [self._column(reach) for _ in range(rng.choice([1, 2, 2]))]
        listed = []
        for kind in kinds:
            alike = [key for key in keys if key.kind == kind]
            if alike and rng.random() < 0.7:
                listed.append((rng.choice(alike).text, kind))
            elif kind == "i" and depth > 0 and rng.random() < 0.1:
                listed.append((self._scalar(depth - 1, keys), kind))
            else:
                listed.append((self._aggregate(kind, reach), kind))
        texts = ", ".join(key.text for key in keys)
        by = rng.choice(
            [
                texts,
                texts,
                texts,
                f"ROLLUP ({texts})",
                f"GROUPING SETS (({texts}), ({keys[0].text}))",
                f"{keys[0].text}, CUBE ({keys[-1].text})",
                "ALL",
            ]
        )
        items, columns = self._items(listed)
        having = ""
        if rng.random() < 0.5:
            alias = [Column(name, kind) for name, kind in columns] if rng.random() < 0.3 else []
            having = " HAVING " + rng.choice(
                [self._predicate([*keys, *alias], outer, 0), "count(*) > 1", self._predicate(keys, outer, depth)]
            )
        return Made(f"SELECT {items} FROM {item.sql}{where} GROUP BY {by}{having}", columns)

    def _windowed(
        self, item: Item, reach: list[Column], where: str, kinds: str, outer: list[Column], depth: int
    ) -> Made:
        rng = self.rng
        partition = ", ".join(self._column(reach).text for _ in range(rng.choice([1, 1, 2])))
        specification = rng.choice(
            [
                f"PARTITION BY {partition}",
                f"PARTITION BY {partition}",
                "",
                f"PARTITION BY {partition} ORDER BY {self._column(reach).text}",
            ]
        )
        named = rng.random() < 0.3
        over = "w" if named else f"({specification})"
        calls = [
            f"{call} OVER {over}"
            for call in (
                "count(*)",
                f"max({self._column(reach, 'i').text})",
                "rank()" if "ORDER" in specification else "count(*)",
            )
        ]
        listed = [
            (rng.choice(calls) if kind == "i" and rng.random() < 0.5 else self._expression(kind, reach, outer, 0), kind)
            for kind in kinds
        ]
        items, columns = self._items(listed)
        named_text = f" WINDOW w AS ({specification})" if named else ""
        qualify = ""
        if rng.random() < 0.6:
            alias = [Column(name, kind) for name, kind in columns] if rng.random() < 0.3 else []
            qualify = f" QUALIFY {self._predicate([*reach, *alias], [], 0)} AND {rng.choice(calls)} >= 0"
        return Made(f"SELECT {items} FROM {item.sql}{where}{named_text}{qualify}", columns)

    # FROM.

    def _from(self, depth: int, outer: list[Column]) -> Item:
        rng = self.rng
        item = self._item(depth, outer, ())
        for _ in range(rng.choice([0, 0, 1, 1, 2] if depth > 0 else [0, 0, 1])):
            item = self._joined(item, depth, outer)
        return item

    def _joined(self, left: Item, depth: int, outer: list[Column]) -> Item:
        rng = self.rng
        used = tuple(alias for alias, _ in left.sources)
        kind = rng.choice(_JOINS)
        if kind == "lateral":
            right = self._item(depth, [*outer, *left.reach(rng)], used, subquery=True)
            how = rng.choice([", LATERAL", "LEFT JOIN LATERAL", ","])
            on = f" ON {self._predicate(right.reach(rng), [], 0)}" if how.startswith("LEFT") else ""
            return Item(f"{left.sql} {how} {right.sql}{on}", (*left.sources, *right.sources), left.hidden, left.merged)
        right = self._item(depth, outer, used)
        if depth > 1 and kind != "," and rng.random() < 0.15:
            right = self._joined(right, 0, outer)
            right = Item(f"({right.sql})", right.sources, right.hidden, right.merged)
        both = (*left.sources, *right.sources)
        hidden = left.hidden | {(number + len(left.sources), name) for number, name in right.hidden}
        merged = (*left.merged, *right.merged)
        if kind in (",", "CROSS JOIN"):
            return Item(f"{left.sql} {kind} {right.sql}", both, hidden, merged)
        ours, theirs = dict(left.merged or left.starred()), dict(right.merged or right.starred())
        shared = [name for name in ours if theirs.get(name) == ours[name]]
        if shared and rng.random() < 0.3:
            using = rng.sample(shared, rng.randint(1, min(2, len(shared))))
            if kind in ("SEMI JOIN", "ANTI JOIN"):
                return Item(
                    f"{left.sql} {kind} {right.sql} USING ({', '.join(using)})", left.sources, left.hidden, left.merged
                )
            hidden |= {
                (number, name)
                for number, (_, columns) in enumerate(both)
                if number >= len(left.sources)
                for name, _ in columns
                if name in using
            }
            return Item(
                f"{left.sql} {kind} {right.sql} USING ({', '.join(using)})",
                both,
                frozenset(hidden),
                (*merged, *((name, ours[name]) for name in using)),
            )
        on = self._on(left.reach(rng), right.reach(rng), outer, depth)
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return Item(f"{left.sql} {kind} {right.sql} ON {on}", left.sources, left.hidden, left.merged)
        return Item(f"{left.sql} {kind} {right.sql} ON {on}", both, frozenset(hidden), merged)

    def _on(self, left: list[Column], right: list[Column], outer: list[Column], depth: int) -> str:
        rng = self.rng
        parts = []
        for _ in range(rng.choice([1, 1, 2])):
            ours = self._column(left)
            theirs = self._column(right, ours.kind)
            parts.append(f"{ours.text} {rng.choice(['=', '=', '=', '=', 'IS NOT DISTINCT FROM', '<='])} {theirs.text}")
        if rng.random() < 0.4:
            parts.append(
                self._predicate(
                    rng.choice([left, right, [*left, *right]]), outer, 0 if rng.random() < 0.7 else depth - 1
                )
            )
        return f" {'AND' if rng.random() < 0.93 else 'OR'} ".join(parts)

    def _item(self, depth: int, outer: list[Column], used: tuple[str, ...], *, subquery: bool = False) -> Item:
        rng = self.rng
        alias = rng.choice([alias for alias in _ALIASES if alias not in used])
        roll = rng.random()
        if not subquery and (depth <= 0 or roll < 0.5):
            name, columns = rng.choice(
                [*((name, _COLUMNS[name]) for name in ("t", "t", "u", "u", "n", "n", "small", "e")), *self._ctes * 3]
            )
            hiding = [cte for cte in self._ctes if cte[0] == name]
            columns = hiding[-1][1] if hiding else columns
            if rng.random() < 0.15:
                columns = self._renamed(columns)
                return Item(
                    f"{name} AS {alias}({', '.join(column for column, _ in columns[: self._renamed_count])})",
                    ((alias, columns),),
                )
            return Item(f"{name} {alias}", ((alias, columns),))
        if not subquery and roll < 0.56:
            rows = ", ".join(f"({rng.choice([1, 2, 3, 'NULL'])}, {rng.choice(_TEXTS)!r})" for _ in range(2))
            return Item(f"(VALUES {rows}) {alias}(a, b)", ((alias, (("a", "i"), ("b", "s"))),))
        made = self.query(depth - 1, outer if subquery else [])
        columns = self._unique(made.columns)
        if columns != made.columns or rng.random() < 0.2:
            columns = self._renamed(columns)
            return Item(
                f"({made.sql}) AS {alias}({', '.join(column for column, _ in columns[: self._renamed_count])})",
                ((alias, columns),),
            )
        return Item(f"({made.sql}) {alias}", ((alias, columns),))

    def _renamed(
        self, columns: tuple[tuple[str, str], ...], *, all_of_them: bool = False
    ) -> tuple[tuple[str, str], ...]:
        """New names for the first columns, or for all; ``_renamed_count`` is for how many."""
        rng = self.rng
        repeated = len({name for name, _ in columns}) < len(columns) or any(name.startswith("?") for name, _ in columns)
        self._renamed_count = len(columns) if all_of_them or repeated else rng.randint(1, len(columns))
        kept = {name for name, _ in columns[self._renamed_count :]}
        pool = [
            name
            for name in dict.fromkeys([*rng.sample(_NAMES, len(_NAMES)), *(f"c{i}" for i in range(20))])
            if name not in kept
        ]
        return tuple((pool[i] if i < self._renamed_count else name, kind) for i, (name, kind) in enumerate(columns))

    @staticmethod
    def _unique(columns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Names that stand for one column; the others, which DuckDB renames, begin with a question mark."""
        seen: set[str] = set()
        return tuple(
            (f"?{i}" if name in seen or seen.add(name) else name, kind) for i, (name, kind) in enumerate(columns)
        )  # type: ignore[func-returns-value]

    # Expressions.

    def _items(self, listed: list[tuple[str, str]]) -> tuple[str, tuple[tuple[str, str], ...]]:
        rng = self.rng
        texts, columns = [], []
        free = list(dict.fromkeys(rng.sample(_NAMES, len(_NAMES))))
        for text, kind in listed:
            own = text.rpartition(".")[2]
            if own.isidentifier() and rng.random() < 0.5 and own in free:
                free.remove(own)
                texts.append(text)
                columns.append((own, kind))
            else:
                name = free.pop() if free else f"c{len(columns)}"
                texts.append(f"{text} AS {name}")
                columns.append((name, kind))
        return ", ".join(texts), tuple(columns)

    def _column(self, reach: list[Column], kind: str | None = None) -> Column:
        found = [column for column in reach if kind is None or column.kind == kind]
        return self.rng.choice(found) if found else Column(self._constant(kind or "i"), kind or "i")

    def _constant(self, kind: str) -> str:
        rng = self.rng
        value: Any
        match kind:
            case "i":
                value = rng.choice([-1, 0, 1, 1, 2, 2, 3, 4, 9])
                if rng.random() < 0.05:
                    return rng.choice(["NULL", "300", "3000000000", "1.5", "'2'"])
                text = str(value)
            case "s":
                value = rng.choice(_TEXTS)
                text = f"'{value}'"
            case _:
                value = f"2024-01-0{rng.randint(1, 3)}"
                text = f"DATE '{value}'"
        if rng.random() < 0.06 and kind != "d":
            self.params.append(value)
            return f"${len(self.params)}"
        return text

    def _expression(self, kind: str, reach: list[Column], outer: list[Column], depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.05:
            # Where NULL fills the rows of a side, a constant of that side is NULL as well.
            return self._constant(kind)
        if roll < 0.78:
            return self._column(reach, kind).text
        if kind == "i" and depth > 0 and roll < 0.86:
            return self._scalar(depth - 1, [*outer, *reach])
        column = self._column(reach, kind).text
        match kind:
            case "i":
                return rng.choice(
                    [
                        f"{column} + 1",
                        f"coalesce({column}, 2)",
                        f"CAST({column} AS INTEGER)",
                        self._constant("i"),
                        f"abs({column})",
                    ]
                )
            case "s":
                return rng.choice([f"upper({column})", f"{column} || ''", "'a'"])
            case _:
                return column

    def _aggregate(self, kind: str, reach: list[Column]) -> str:
        column = self._column(reach, kind).text
        return self.rng.choice(
            [f"max({column})", f"min({column})", *(["count(*)", f"count({column})"] if kind == "i" else [])]
        )

    def _scalar(self, depth: int, outer: list[Column]) -> str:
        """A scalar subquery, an integer."""
        rng = self.rng
        item = self._from(depth, outer)
        reach = item.reach(rng)
        where = self._where(reach, outer, depth)
        ours, any_ones = self._column(reach, "i").text, self._column([*reach, *outer], "i").text
        value = rng.choice(["count(*)", f"max({ours})", f"min({any_ones})"])
        return f"(SELECT {value} FROM {item.sql}{where})"

    def _where(self, reach: list[Column], outer: list[Column], depth: int) -> str:
        rng = self.rng
        parts = [self._predicate(reach, outer, depth) for _ in range(rng.choice([0, 0, 1, 1, 1, 2]))]
        for _ in range(rng.choice([1, 1, 2]) if outer and rng.random() < 0.6 else 0):
            theirs = self._column(outer)
            parts.append(
                f"{self._column(reach, theirs.kind).text} {rng.choice(['=', '=', '=', 'IS NOT DISTINCT FROM', '<'])}"
                f" {theirs.text}"
            )
        rng.shuffle(parts)
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _predicate(self, reach: list[Column], outer: list[Column], depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.08:
            return f"NOT ({self._predicate(reach, outer, depth - 1)})"
        if roll < 0.2:
            return (
                f"({self._predicate(reach, outer, depth - 1)} {rng.choice(['OR', 'OR', 'AND'])}"
                f" {self._predicate(reach, outer, depth - 1)})"
            )
        if roll < 0.23:
            return (
                f"({self._predicate(reach, outer, depth - 1)}) IS"
                f" {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL'])}"
            )
        if depth > 0 and roll < 0.42:
            return self._subquery(reach, outer, depth)
        column = self._column(reach)
        text = column.text
        constant = self._constant(column.kind)
        choice = rng.random()
        if choice < 0.5:
            return f"{text} {rng.choice(['=', '=', '=', '=', '<', '>=', '<>'])} {constant}"
        if choice < 0.62:
            return f"{text} {rng.choice(['', '', 'NOT '])}IN ({constant}, {self._constant(column.kind)})"
        if choice < 0.70:
            return f"{text} IS {rng.choice(['', 'NOT '])}NULL"
        if choice < 0.76:
            return f"{text} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {constant}"
        if choice < 0.86:
            return (
                f"{text} {rng.choice(['=', '=', 'IS NOT DISTINCT FROM', '<'])} {self._column(reach, column.kind).text}"
            )
        if choice < 0.90:
            return f"coalesce({text}, {self._column(reach, column.kind).text}) = {constant}"
        return rng.choice(
            [
                f"typeof({text}) {rng.choice(['=', '<>'])} '{rng.choice(['BIGINT', 'INTEGER', 'TINYINT', 'VARCHAR'])}'",
                f"{text}::VARCHAR = '1'",
                f"({text} = {constant} OR random() < 2)",
                f"({text} = {constant} AND random() >= 0)",
                f"CASE WHEN {text} = {constant} THEN TRUE ELSE {text} IS NULL END",
                f"{text} BETWEEN {constant} AND {self._constant(column.kind)}",
                f"len([a FOR a IN [1, 2, 3] IF a > 1]) = 2 AND {text} = {constant}",
                rng.choice(["TRUE", "FALSE", "NULL IS NULL"]),
            ]
        )

    def _subquery(self, reach: list[Column], outer: list[Column], depth: int) -> str:
        rng = self.rng
        around = [*outer, *reach] if rng.random() < 0.6 else []
        column = self._column(reach)
        match rng.choice(
            ["IN", "IN", "IN", "NOT IN", "EXISTS", "EXISTS", "NOT EXISTS", "scalar", "scalar", "ANY", "ALL", "row"]
        ):
            case "IN":
                return f"{column.text} IN ({self.query(depth - 1, around, column.kind).sql})"
            case "NOT IN":
                return f"{column.text} NOT IN ({self.query(depth - 1, around, column.kind).sql})"
            case "EXISTS":
                return f"EXISTS ({self.query(depth - 1, around).sql})"
            case "NOT EXISTS":
                return f"NOT EXISTS ({self.query(depth - 1, around).sql})"
            case "ANY":
                return (
                    f"{column.text} {rng.choice(['=', '<', '<>'])} ANY"
                    f" ({self.query(depth - 1, around, column.kind).sql})"
                )
            case "ALL":
                return (
                    f"{column.text} {rng.choice(['=', '<', '<>'])} ALL"
                    f" ({self.query(depth - 1, around, column.kind).sql})"
                )
            case "row":
                other = self._column(reach)
                return (
                    f"({column.text}, {other.text}) {rng.choice(['', 'NOT '])}IN"
                    f" ({self.query(depth - 1, around, column.kind + other.kind).sql})"
                )
            case _:
                return (
                    f"{self._column(reach, 'i').text} {rng.choice(['=', '=', '<', '>='])}"
                    f" {self._scalar(depth - 1, around)}"
                )
