"""Random statements of every relation over the tables of :mod:`worlds`: derived tables, common table expressions, set
operations, groups, windows, joins of all kinds, and subqueries in WHERE and SELECT. Every query has the columns
``a, b, c, v``, so that any may stand where a table may.
"""

from __future__ import annotations

import random

from predicates import Predicates

__all__ = ["Statements"]

_COLUMNS = "abcv"
_KINDS = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", ","]


class Statements:
    """Makes statements; the parameters of all parts are numbered together.

    Attributes:
        predicates: Has the makers of the parameters.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.predicates = Predicates(rng)
        self._alias_count = 0
        self._ctes: list[str] = []

    def statement(self) -> str:
        query = self.query(3)
        return (
            query
            if self.rng.random() < 0.7
            else f"SELECT count(*), sum(v), min(a), max(b), max(c) FROM ({query}) q WHERE {self.filter('q')}"
        )

    def query(self, depth: int) -> str:
        if depth <= 0:
            return self._plain(0)
        make = self.rng.choice(
            [
                self._plain,
                self._plain,
                self._computed,
                self._grouped,
                self._windowed,
                self._distinct,
                self._limited,
                self._union,
                self._joined,
                self._joined,
                self._joined,
                self._three,
                self._cte,
                self._total,
                self._scalar,
                self._lateral,
            ]
        )
        return make(depth)

    def source(self, depth: int) -> str:
        """What may stand in FROM, without an alias."""
        if self._ctes and self.rng.random() < 0.4:
            return self.rng.choice(self._ctes)
        return self.rng.choice(["t", "u"]) if depth <= 0 or self.rng.random() < 0.5 else f"({self.query(depth - 1)})"

    def filter(self, alias: str, depth: int = 0, *, least: int = 0) -> str:
        """Some conjuncts about an alias, most of which name values."""
        conjuncts = [self.conjunct(alias, depth) for _ in range(self.rng.choice([least, 1, 1, 2]))]
        return " AND ".join(conjuncts) or "TRUE"

    def conjunct(self, alias: str, depth: int = 0) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.5:
            column = rng.choice(_COLUMNS)
            return f"{alias}.{column} {rng.choice(['=', '=', 'IN'])} ({self._value(column)})"
        if roll < 0.6:
            return f"{alias}.{rng.choice(_COLUMNS)} IS {rng.choice(['NULL', 'NOT NULL'])}"
        if roll < 0.65:
            return f"{alias}.a = {alias}.v"
        if roll < 0.8 or depth <= 0:
            return self._predicate(alias)
        return self._subquery(alias, depth)

    def _value(self, column: str) -> str:
        return self.predicates.value(column)

    def _predicate(self, alias: str) -> str:
        own = Predicates(self.rng, f"{alias}.")
        own.makers = self.predicates.makers
        text = own.predicate(1)
        # DuckDB binds rows between rows, and fails where it evaluates them.
        return "TRUE" if ") BETWEEN (" in text else text

    def _alias(self) -> str:
        self._alias_count += 1
        return f"x{self._alias_count}"

    def _subquery(self, alias: str, depth: int) -> str:
        rng = self.rng
        inner = self._alias()
        column = rng.choice(_COLUMNS)
        source = self.source(depth - 1)
        correlation = rng.choice(
            [
                "",
                "",
                f" AND {inner}.{column} = {alias}.{column}",
                f" AND {inner}.a = {alias}.a AND {inner}.b = {alias}.b",
            ]
        )
        where = f"{self.filter(inner)}{correlation}"
        behind = rng.choice(
            ["", "", "", f" GROUP BY {inner}.{column}", f" GROUP BY {inner}.{column} HAVING count(*) > 1"]
        )
        match rng.choice(["IN", "IN", "NOT IN", "EXISTS", "EXISTS", "NOT EXISTS", "=", "OR", "row", "count"]):
            case "IN":
                return f"{alias}.{column} IN (SELECT {inner}.{column} FROM {source} {inner} WHERE {where}{behind})"
            case "NOT IN":
                return f"{alias}.{column} NOT IN (SELECT {inner}.{column} FROM {source} {inner} WHERE {where}{behind})"
            case "EXISTS":
                return f"EXISTS (SELECT {rng.choice(['1', '*', f'{inner}.a'])} FROM {source} {inner} WHERE {where})"
            case "NOT EXISTS":
                return f"NOT EXISTS (SELECT 1 FROM {source} {inner} WHERE {where})"
            case "=":
                return f"{alias}.{column} = (SELECT max({inner}.{column}) FROM {source} {inner} WHERE {where})"
            case "OR":
                return (
                    f"({alias}.a = 1 OR {alias}.{column} IN (SELECT {inner}.{column} FROM {source} {inner} WHERE"
                    f" {where}))"
                )
            case "row":
                return f"({alias}.a, {alias}.b) IN (SELECT {inner}.a, {inner}.b FROM {source} {inner} WHERE {where})"
            case _:
                return (
                    f"(SELECT count(*) FROM {source} {inner} WHERE {where}) {rng.choice(['=', '>', '<'])}"
                    f" {rng.choice([0, 1, 2])}"
                )

    def _plain(self, depth: int) -> str:
        alias = self._alias()
        order = self.rng.choice([list(_COLUMNS)] * 3 + [["v", "b", "c", "a"]])
        items = ", ".join(f"{alias}.{source} AS {name}" for source, name in zip(order, _COLUMNS, strict=True))
        if self.rng.random() < 0.3:
            items = self.rng.choice(["*", f"{alias}.*"])
        return f"SELECT {items} FROM {self.source(depth - 1)} {alias} WHERE {self.filter(alias, depth)}"

    def _computed(self, depth: int) -> str:
        alias = self._alias()
        items = self.rng.choice(
            [
                "a + 1 AS a, b, c, v",
                "a, upper(b) AS b, c, a AS v",
                "a, b, c, coalesce(v, 0) AS v",
                "CAST(v AS INTEGER) AS a, b, c, a AS v",
            ]
        )
        return f"SELECT {items} FROM {self.source(depth - 1)} {alias} WHERE {self.filter(alias, depth)}"

    def _grouped(self, depth: int) -> str:
        rng = self.rng
        alias = self._alias()
        items, keys = rng.choice(
            [
                ("a, b, max(c) AS c, count(*) AS v", "a, b"),
                ("a, min(b) AS b, c, sum(v)::BIGINT AS v", "1, 3"),
                ("max(a) AS a, b, max(c) AS c, max(v) AS v", "b"),
                ("a, b, c, count(v) AS v", "ALL"),
                ("a, b, max(c) AS c, count(*) AS v", "ROLLUP (a, b)"),
                ("a, b, max(c) AS c, count(*) AS v", "GROUPING SETS ((a, b), (a))"),
                ("a AS v, b, max(c) AS c, max(v)::INTEGER AS a", f"{alias}.a, b"),
            ]
        )
        having = rng.choice(["", "", " HAVING count(*) > 1", " HAVING {}({}.a) IN ({}, 3)"])
        if having.endswith("3)"):
            having = having.format(rng.choice(["min", "max"]), alias, self._value("a"))
        if not having and keys == "a, b":
            having = f" HAVING {alias}.a IN ({self._value('a')}, {self._value('a')}) AND count(*) > 0"
        return (
            f"SELECT {items} FROM {self.source(depth - 1)} {alias} WHERE {self.filter(alias, depth)} GROUP BY"
            f" {keys}{having}"
        )

    def _windowed(self, depth: int) -> str:
        alias = self._alias()
        over = self.rng.choice(
            ["PARTITION BY a", "PARTITION BY a, b", "PARTITION BY b ORDER BY a, c, v", "", "ORDER BY a, b, c, v", "w"]
        )
        named = " WINDOW w AS (PARTITION BY b, c)" if over == "w" else ""
        qualify = self.rng.choice(
            ["", "", f" QUALIFY {alias}.a = {self._value('a')}", " QUALIFY count(*) OVER (PARTITION BY a) > 1"]
        )
        window = f"count(*) OVER {over if over == 'w' else f'({over})'}"
        return (
            f"SELECT a, b, c, {window} AS v FROM {self.source(depth - 1)} {alias} WHERE"
            f" {self.filter(alias, depth)}{named}{qualify}"
        )

    def _distinct(self, depth: int) -> str:
        alias = self._alias()
        if self.rng.random() < 0.6:
            return f"SELECT DISTINCT a, b, c, v FROM {self.source(depth - 1)} {alias} WHERE {self.filter(alias, depth)}"
        keys = self.rng.choice(["a", "b", "a, b", f"{alias}.c", "1, 2"])
        return (
            f"SELECT DISTINCT ON ({keys}) a, b, c, v FROM {self.source(depth - 1)} {alias} WHERE"
            f" {self.filter(alias, depth)} ORDER BY ALL"
        )

    def _limited(self, depth: int) -> str:
        alias = self._alias()
        last = self.rng.choice(["LIMIT 3", "LIMIT 20", "LIMIT 5 OFFSET 2", "OFFSET 4"])
        return (
            f"SELECT a, b, c, v FROM {self.source(depth - 1)} {alias} WHERE {self.filter(alias, depth)} ORDER BY a, b,"
            f" c, v {last}"
        )

    def _union(self, depth: int) -> str:
        rng = self.rng
        operation = rng.choice(
            [
                "UNION ALL",
                "UNION ALL",
                "UNION",
                "INTERSECT",
                "EXCEPT",
                "INTERSECT ALL",
                "EXCEPT ALL",
                "UNION ALL BY NAME",
            ]
        )
        parts = [self.query(depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return (
            f"SELECT a, b, c, v FROM ({f' {operation} '.join(f'({part})' for part in parts)}) s{depth} WHERE"
            f" {self.filter(f's{depth}', depth)}"
        )

    def _joined(self, depth: int) -> str:
        rng = self.rng
        left, right = self._alias(), self._alias()
        kind = rng.choice(_KINDS)
        hidden = kind in ("SEMI JOIN", "ANTI JOIN")
        source = f"{self.source(depth - 1)} {left} {self._join(kind, left, right, depth)}"
        either = left if hidden else rng.choice([left, left, right])
        items = (
            f"{left}.a, {left}.b, {left}.c, {left}.v"
            if hidden
            else f"{either}.a, {left}.b, {right}.c, {rng.choice([left, right])}.v"
        )
        where = (
            self.filter(left, depth)
            if hidden
            else f"{self.filter(rng.choice([left, right]), depth)} AND {self.filter(rng.choice([left, right]))}"
        )
        if kind == ",":
            where = f"{left}.a = {right}.a AND {where}"
        if " USING " in source and " USING (a, b)" in source:
            where = (
                f"{where} AND {rng.choice(['a', 'b'])} IS NOT NULL AND a = {self._value('a')}"
                if rng.random() < 0.5
                else where
            )
        return f"SELECT {items} FROM {source} WHERE {where}"

    def _join(self, kind: str, left: str, right: str, depth: int) -> str:
        rng = self.rng
        if kind == ",":
            return f", {self.source(depth - 1)} {right}"
        if rng.random() < 0.2:
            return f"{kind} {self.source(depth - 1)} {right} USING (a, b)"
        on = rng.choice(
            [
                f"{left}.a = {right}.a",
                f"{left}.a = {right}.a AND {left}.b = {right}.b",
                f"{left}.a = {right}.v",
                f"{left}.c = {right}.c AND {left}.a < {right}.a",
                f"{left}.a IS NOT DISTINCT FROM {right}.v",
                f"{left}.a = {right}.a OR {left}.b = {right}.b",
            ]
        )
        if rng.random() < 0.4:
            on = f"{on} AND {self.filter(rng.choice([left, right]))}"
        return f"{kind} {self.source(depth - 1)} {right} ON {on}"

    def _three(self, depth: int) -> str:
        rng = self.rng
        x, y, z = self._alias(), self._alias(), self._alias()
        kinds = [kind for kind in _KINDS if kind not in ("SEMI JOIN", "ANTI JOIN")]
        first = self._join(rng.choice(kinds), x, y, 0)
        second = self._join(rng.choice([kind for kind in kinds if kind != ","]), rng.choice([x, y]), z, 0)
        where = " AND ".join(self.filter(alias, depth - 1) for alias in (x, y, z) if rng.random() < 0.5) or "TRUE"
        if rng.random() < 0.3:
            where = f"{where} AND {x}.a = {y}.a AND {y}.a = {z}.v"
        return f"SELECT {x}.a, {y}.b, {z}.c, {y}.v FROM {self.source(depth - 1)} {x} {first} {second} WHERE {where}"

    def _cte(self, depth: int) -> str:
        self._alias_count += 1
        name = f"w{self._alias_count}"
        body = self.query(depth - 1)
        self._ctes.append(name)
        query = self.query(depth - 1)
        self._ctes.pop()
        materialized = self.rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
        return f"SELECT * FROM (WITH {name} AS {materialized}({body}) {query})"

    def _total(self, depth: int) -> str:
        alias = self._alias()
        return (
            f"SELECT max(a) AS a, min(b) AS b, max(c) AS c, count(*) AS v FROM {self.source(depth - 1)} {alias} WHERE"
            f" {self.filter(alias, depth)}"
        )

    def _scalar(self, depth: int) -> str:
        x, y = self._alias(), self._alias()
        correlation = self.rng.choice([f"{y}.a = {x}.a", f"{y}.a = {x}.a AND {y}.b = {x}.b", f"{y}.a < {x}.a"])
        inner = (
            f"SELECT {self.rng.choice(['count(*)', f'max({y}.v)'])} FROM {self.source(depth - 1)} {y} WHERE"
            f" {correlation} AND {self.filter(y)}"
        )
        return (
            f"SELECT {x}.a, {x}.b, {x}.c, ({inner}) AS v FROM {self.source(depth - 1)} {x} WHERE"
            f" {self.filter(x, depth)}"
        )

    def _lateral(self, depth: int) -> str:
        x, y, z = self._alias(), self._alias(), self._alias()
        behind = self.rng.choice(["", " ORDER BY ALL LIMIT 1"])
        inner = (
            f"SELECT {y}.a, {y}.b, {y}.c, {y}.v FROM {self.source(0)} {y} WHERE {y}.a = {x}.a AND"
            f" {self.filter(y)}{behind}"
        )
        join = self.rng.choice(
            [f", LATERAL ({inner}) {z}", f"LEFT JOIN LATERAL ({inner}) {z} ON {self.filter(z)}", f", ({inner}) {z}"]
        )
        return (
            f"SELECT {x}.a, {z}.b, {z}.c, {x}.v FROM {self.source(depth - 1)} {x} {join} WHERE"
            f" {self.filter(self.rng.choice([x, z]), depth)}"
        )
