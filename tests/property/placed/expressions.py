"""Values, aggregates, predicates, and the subqueries in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from placed.literals import Literals
from placed.parts import Column, Columns

__all__ = ["Expressions", "aliases_in"]


def aliases_in(items: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of items with their kinds, those with a name that is no column's, and of a kind that has constants."""
    return [(name, kind) for name, kind in items if kind in "isd" and re.fullmatch(r"c\d+", name)]


class Expressions(Literals):
    """Makes expressions over the columns in reach."""

    def items(self, listed: Sequence[tuple[str, str]]) -> tuple[str, Columns]:
        """The SELECT list; names are sometimes those of columns in reach, so that they shadow them."""
        rng = self.rng
        free = ["k", "j", "i", "s", "v", "c", "m"]
        rng.shuffle(free)
        names: list[str] = []
        texts: list[str] = []
        for text, kind in listed:
            own = text.rpartition(".")[2]
            name = (
                own
                if own in free and rng.random() < 0.7
                else free[-1]
                if rng.random() < 0.3 and free
                else self.name("c")
            )
            if name in free:
                free.remove(name)
            # The alias of an earlier item may be used in a later one.
            earlier = aliases_in(zip(names, (other for _, other in listed), strict=False))
            if kind == "i" and earlier and rng.random() < 0.06:
                alias, other = rng.choice(earlier)
                if other == "i" and "(" not in text:
                    text = f"{text} + {alias}"
                else:
                    text = f"CASE WHEN {self.about(alias, other)} THEN 1 ELSE 0 END"
            names.append(name)
            texts.append(f"{name}: {text}" if rng.random() < 0.02 else f"{text} AS {name}")
        return ", ".join(texts), tuple(zip(names, (kind for _, kind in listed), strict=True))

    def about(self, alias: str, kind: str) -> str:
        """A condition of an alias."""
        return f"{alias} {self.rng.choice(['=', '>', '<='])} {self.constant(kind)}"

    def cast(self, kind: str, reach: Sequence[Column]) -> str:
        """A column as a value of another kind, to which no operator would convert it."""
        rng = self.rng
        match kind:
            case "i":
                return f"{self.column(reach, 'm').text}::BIGINT"
            case "s":
                return f"{self.column(reach, rng.choice('imd')).text}::VARCHAR"
            case _:
                return rng.choice(["date({})", "{}::DATE"]).format(self.column(reach, "t").text)

    def group_key(self, reach: Sequence[Column]) -> Column:
        """Something to group by: a column or an expression."""
        reach = [column for column in reach if column.kind in "isdmwt"] or reach
        column = self.key(reach, "i") if self.rng.random() < 0.4 else self.column(reach)
        if re.fullmatch(r"[-$\d\0].*|NULL.*|CAST.*", column.text):
            return Column(f"({column.text}) + 0", "i")
        return Column(f"{column.text} % 2", "i") if column.kind == "i" and self.rng.random() < 0.15 else column

    def expression(self, kind: str, reach: Sequence[Column]) -> str:
        """A value of a kind; most often a column."""
        rng = self.rng
        text = self.column(reach, kind).text
        if rng.random() < 0.75 and kind != "l":
            return text
        other = self.column(reach, kind).text
        match kind:
            case "i":
                choices = [
                    f"{text} + 1",
                    f"-{text}" if text[0] != "-" else f"- {text}",
                    f"coalesce({text}, {other})",
                    f"{text} - {other}",
                    f"CASE WHEN {self.predicate(reach, (), 0)} THEN {text} ELSE {other} END",
                    f"CASE {text} WHEN {other} THEN 1 WHEN {self.constant('i')} THEN {text} END",
                    f"if({self.predicate(reach, (), 0)}, {text}, {other})",
                    f"{{'a': {text}}}.a",
                    f"({{'a': {text}, 'b': {other}}})['b']",
                    f"length({self.column(reach, 's').text})",
                    f"greatest({text}, {other})",
                    f"nullif({text}, {other})",
                    f"try_cast({self.column(reach, 's').text} AS BIGINT)",
                    f"[{text}, {other}][2]",
                    f"list_sum([e + 1 for e in [{text}, {other}] if e > 0])::BIGINT",
                    f"len(list_filter([{text}, {other}], lambda e: e > {self.constant('i')}))",
                    f"extract('day' FROM {self.column(reach, 'd').text})",
                    f"date_diff('day', {self.column(reach, 'd').text}, DATE '2024-01-03')",
                    f"{text} // 2",
                    f"({text} % 3) ** 2 :: BIGINT",
                    f"round({self.column(reach, 'm').text})::BIGINT",
                    f"{text} & 1 | 2",
                    f"position('a' IN {self.column(reach, 's').text})",
                ]
                return rng.choice(choices)
            case "s":
                choices = [
                    f"upper({text})",
                    f"{text} || 'x'",
                    f"coalesce({text}, 'none')",
                    f"{self.column(reach, 'i').text}::VARCHAR",
                    f"{self.column(reach, 'w').text}::VARCHAR",
                    f"substring({text} FROM 1 FOR 1)",
                    f"({text})[1:1]",
                    f"trim(LEADING 'a' FROM {text})",
                    f"replace({text}, '''', '\"')",
                    f"concat_ws('--', {text}, {other})",
                    f"strftime({self.column(reach, 'd').text}, '%Y-%m')",
                    f"format('{{}}/{{}}', {text}, {other})",
                ]
                return rng.choice(choices)
            case "d":
                choices = [
                    f"CAST({text} + INTERVAL 1 DAY AS DATE)",
                    f"coalesce({text}, DATE '2024-01-02')",
                    f"({text} - INTERVAL '1 month')::DATE",
                    f"date_trunc('month', {text})::DATE",
                    f"{text} + 2",
                    f"least({text}, {other})",
                ]
                return rng.choice(choices)
            case "t":
                choices = [
                    f"{text} + INTERVAL 12 HOURS",
                    f"coalesce({text}, {other})",
                    f"date_trunc('day', {text})",
                    f"greatest({text}, {other})",
                    f"{self.column(reach, 'd').text}::TIMESTAMPTZ",
                ]
                return rng.choice(choices)
            case "m":
                choices = [
                    f"CAST({text} + 1 AS DECIMAL(8, 2))",
                    f"-{text}",
                    f"abs({text})",
                    f"CAST({text} * 2 AS DECIMAL(8, 2))",
                ]
                return rng.choice(choices).replace("--", "- -")
            case "f":
                return rng.choice(
                    [f"{text} + 0.5::DOUBLE", f"{text} * -1", f"{text} / 2", f"coalesce({text}, {other})"]
                )
            case "w":
                choices = [
                    f"-({text})",
                    f"abs({text})",
                    f"coalesce({text}, {other})",
                    f"({text}) / 1::DECIMAL(38, 0)::DECIMAL(38, 6)",
                ]
                return rng.choice(choices[:3])
            case "h":
                return rng.choice(
                    [
                        f"-({text})",
                        f"abs({text})",
                        f"coalesce({text}, {other})",
                        f"{self.column(reach, 'i').text}::HUGEINT",
                    ]
                )
            case _:
                return f"[{self.column(reach, 'i').text}, {self.column(reach, 'i').text}]"

    def aggregate(self, kind: str, reach: Sequence[Column]) -> str:
        """An aggregate whose value is the same in whatever order it reads the rows."""
        rng = self.rng
        text = self.expression(kind if kind != "l" else "i", reach)
        condition = (
            f" FILTER ({rng.choice(['WHERE ', 'WHERE ', ''])}{self.predicate(reach, (), 0)})"
            if rng.random() < 0.15
            else ""
        )
        match kind:
            case "i":
                choices = [f"count({text})", f"sum({text})::BIGINT", f"max({text})", f"count(DISTINCT {text})"]
                choices += [
                    "count(*)",
                    f"sum(DISTINCT {text})::BIGINT",
                    "count()",
                    f"count_if({self.predicate(reach, (), 0)})",
                ]
                choices += [
                    f"count(DISTINCT ({text}, {self.column(reach, 's').text}))",
                    f"arg_max({text}, {text})",
                    f"bit_or({text})",
                ]
                call = rng.choice(choices)
            case "m":
                call = rng.choice([f"max({text})", f"CAST(sum({text}) AS DECIMAL(8, 2))"])
            case "f":
                integer = self.column(reach, "i").text
                call = rng.choice(
                    [
                        f"sum({text})",
                        f"avg({text})",
                        f"avg({integer})",
                        f"min({text})",
                        f"avg(DISTINCT {integer})",
                        f"median({integer})",
                    ]
                )
            case "l":
                order = rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
                call = rng.choice(
                    [f"list({text} ORDER BY {text}{order})", f"array_agg(DISTINCT {text} ORDER BY {text}{order})"]
                )
            case "s":
                choices = [f"max({text})", f"min({text})", f"string_agg({text}, '-' ORDER BY {text})"]
                choices += [f"string_agg(DISTINCT {text}, '-' ORDER BY {text})", f"min({text} || '--')"]
                call = rng.choice(choices)
            case _:
                call = rng.choice([f"max({text})", f"min({text})", f"any_value({text} ORDER BY {text})"])
        # FILTER stands behind the call, not behind a cast of it.
        cast = re.fullmatch(r"(CAST\()?(sum\(.*\))(::BIGINT| AS DECIMAL\(8, 2\)\))", call, re.DOTALL)
        return f"{cast[1] or ''}{cast[2]}{condition}{cast[3]}" if cast else call + condition

    def where(self, reach: Sequence[Column], outer: tuple[Column, ...], depth: int) -> str:
        """A WHERE clause, or none; in a subquery it most often looks at the query around it."""
        rng = self.rng
        parts = [self.predicate(reach, outer, depth) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
        if outer and rng.random() < 0.8:
            theirs = self.key(outer, "i")
            parts.append(f"{self.key(reach, 'i').text} {rng.choice(['=', '=', '=', '=', '<'])} {theirs.text}")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def predicate(self, reach: Sequence[Column], outer: tuple[Column, ...], depth: int) -> str:
        """A condition, with subqueries down to a depth."""
        rng = self.rng
        roll = rng.random() if depth > 0 else rng.uniform(0.3, 1)
        if roll < 0.3:
            return self.subquery(reach, outer, depth)
        if roll < 0.36:
            return f"({self.predicate(reach, outer, depth - 1)} OR {self.predicate(reach, outer, depth - 1)})"
        if roll < 0.4:
            return f"NOT ({self.predicate(reach, outer, depth - 1)})"
        column = self.column([column for column in reach if column.kind != "l"])
        constant = self.extreme(column.kind)
        if roll < 0.7:
            return f"{column.text} {rng.choice(['=', '<', '>=', '<>', '=', '<=', '>', '!='])} {constant}"
        key, text = self.key(reach, "i").text, self.column(reach, "s").text
        choices = [
            f"{key} = {self.constant('i')}",
            f"{key} = {self.extreme('i')}",
            f"{key} IN ({self.constant('i')}, {self.extreme('i')}, {self.constant('i')})",
            f"{key} NOT IN ({self.constant('i')}, {self.extreme('i')})",
            f"{key} IN [{self.constant('i')}, {self.constant('i')}]",
            f"{key} = ANY([{self.constant('i')}, {self.constant('i')}])",
            f"list_contains([{self.constant('i')}, {self.constant('i')}], {key})",
            f"{constant} = {column.text}",
            f"{column.text} IS {rng.choice(['', 'NOT '])}NULL",
            f"{column.text} {rng.choice(['=', '<'])} {self.column(reach, column.kind).text}",
            f"{column.text} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {constant}",
            f"{column.text} {rng.choice(['', 'NOT '])}BETWEEN {constant} AND {self.extreme(column.kind)}",
            f"coalesce({column.text} = {constant}, TRUE)",
            f"({column.text} = {constant}) IS {rng.choice(['TRUE', 'NOT TRUE', 'FALSE', 'NULL'])}",
            f"-{key} >= {self.extreme('i')}" if key[0] not in "-\0" else "TRUE",
            f"{key} + 1 = {self.extreme('i')}",
            f"{key}::VARCHAR = '{rng.choice([-1, 0, 1])}'",
            (
                f"({key}, {self.column(reach, 'i').text}) {rng.choice(['=', '<', '>='])} ({self.constant('i')},"
                f" {self.constant('i')})"
            ),
            (
                f"({key}, {self.column(reach, 'i').text}) IN (({self.constant('i')}, {self.constant('i')}),"
                f" ({self.constant('i')}, 1))"
            ),
            (
                f"{text} {rng.choice(['LIKE', 'NOT LIKE', 'ILIKE', 'GLOB'])}"
                f" '{rng.choice(['a%', '%', '_', 'É', '--%', '*'])}'"
            ),
            f"{text} SIMILAR TO '[a-c]'",
            f"starts_with({text}, 'a')",
            f"{rng.choice(['TRUE', 'NULL', '1 = 1'])}",
            (
                f"{self.column(reach, 'd').text} <="
                f" {rng.choice(['current_date', 'today()', 'now()::TIMESTAMP', 'localtimestamp'])}"
            ),
            f"{self.column(reach, 'd').text} >= TIMESTAMP '2024-01-02 12:00:00'",
        ]
        return rng.choice(choices)

    def subquery(self, reach: Sequence[Column], outer: tuple[Column, ...], depth: int) -> str:
        """A condition with a subquery."""
        rng = self.rng
        around = (*outer, *reach) if rng.random() < 0.6 else ()
        column = self.key(reach, "i")
        kinds = ["IN"] * 3 + [
            "NOT IN",
            "EXISTS",
            "EXISTS",
            "NOT EXISTS",
            "scalar",
            "scalar",
            "ANY",
            "ALL",
            "row",
            "array",
        ]
        match rng.choice(kinds):
            case "IN":
                return f"{column.text} IN ({self.query(depth - 1, around, 'i').sql})"
            case "NOT IN":
                return f"{column.text} NOT IN ({self.query(depth - 1, around, 'i').sql})"
            case "EXISTS":
                return f"EXISTS ({self.query(depth - 1, around, None).sql})"
            case "NOT EXISTS":
                return f"NOT EXISTS ({self.query(depth - 1, around, None).sql})"
            case "ANY" | "ALL" as quantifier:
                return (
                    f"{column.text} {rng.choice(['=', '<', '<>'])} {quantifier}"
                    f" ({self.query(depth - 1, around, 'i').sql})"
                )
            case "row":
                row = f"({column.text}, {self.column(reach, 'i').text})"
                return f"{row} {rng.choice(['', 'NOT '])}IN ({self.query(depth - 1, around, 'ii').sql})"
            case "array":
                return f"list_contains(ARRAY({self.query(depth - 1, around, 'i').sql}), {column.text})"
            case _:
                return f"{self.column(reach, 'i').text} {rng.choice(['=', '<', '>='])} {self.scalar(depth - 1, around)}"

    def scalar(self, depth: int, around: tuple[Column, ...]) -> str:
        """A subquery of one integer."""
        rng = self.rng
        source = self.source(depth, around)
        where = self.where(source.reach, around, depth)
        column = self.column(source.reach, "i").text
        choices = ["count(*)", f"max({column})", f"sum({column})::BIGINT", f"0 + min({column})"]
        choices += [f"count(DISTINCT {column})", f"coalesce(max({column}), 0)"]
        return f"(SELECT {rng.choice(choices)} FROM {source.sql}{where})"
