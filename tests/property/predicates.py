"""Random predicates over the columns of the tables of :mod:`worlds`, with literals, parameters, conversions, NULLs and
functions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from extremes import BEYOND_SPELLED, BEYOND_TEXTS, literal, now_and_then
from worlds import DAYS, INTEGERS, TEXTS

__all__ = ["Predicates"]

COMPUTED = {
    "a": [
        "({} + 1)",
        "CAST({} AS INTEGER)",
        "abs({})",
        "(- {})",
        "coalesce({}, 3)",
        "TRY_CAST({} AS SMALLINT)",
        "nullif({}, 2)",
        "{}::BIGINT",
    ],
    "b": [
        "upper({})",
        "({} || 'a')",
        "CAST({} AS VARCHAR)",
        "left({}, 1)",
        "coalesce({}, 'a')",
        "concat({}, '')",
        "trim({})",
        "lower({})",
    ],
    "c": [
        "CAST({} AS DATE)",
        "({} + INTERVAL 1 DAY)",
        "date_trunc('day', {})",
        "CAST({} AS TIMESTAMP)",
        "({} - INTERVAL '2 days')",
        "({} + 1)",
        "{}::DATE",
    ],
}
COMPUTED["v"] = COMPUTED["a"]

REGULAR_EXPRESSIONS = [
    *(
        "a",
        "A",
        "1",
        "é",
        "0",
        "[ab]",
        "[0-9]",
        "[^a]",
        "(a|b)",
        "(0|1)?",
        "a?",
        "[01]{1,2}",
        "a*",
        ".",
        ".*",
        "|",
        "a|b",
    ),
    *(r"\d", r"\w", r"\d{2}", r"\w+", "(a|)", "(?:ab)?", "(?i)a", "^", "$", "[[:alpha:]]", "a{2", r"\."),
]


class Predicates:
    """Random predicates over the columns of ``t``; parameters are numbered as they appear."""

    def __init__(self, rng: random.Random, qualifier: str = "") -> None:
        self.rng = rng
        self.qualifier = qualifier
        self.makers: list[Callable[[], Any]] = []

    def predicate(self, depth: int = 3) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf()
        form = rng.choice(["AND", "AND", "OR", "OR", "NOT"])
        if form == "NOT":
            return f"NOT ({self.predicate(depth - 1)})"
        return f"({self.predicate(depth - 1)} {form} {self.predicate(depth - 1)})"

    def leaf(self) -> str:
        rng = self.rng
        column = rng.choice("abcv")
        name = self.qualifier + column
        form = rng.choice(
            [
                "=",
                "=",
                "=",
                "IN",
                "IN",
                "<",
                "<=",
                ">",
                ">=",
                "BETWEEN",
                "<>",
                "NOT IN",
                "NULL",
                "NOT NULL",
                "function",
                "mirrored",
                "constant",
                "DISTINCT",
                "columns",
                "list",
                "long list",
                "IS DISTINCT FROM",
                "truth",
                "row",
                "pattern",
                "regular expression",
                "short text",
                "elements",
                "among columns",
                "shifted",
                "cast",
                "conditional",
            ]
        )
        value = lambda: self.value(column)  # noqa: E731
        match form:
            case "IN" | "NOT IN":
                return f"{name} {form} ({', '.join(value() for _ in range(rng.randint(1, 4)))})"
            case "BETWEEN":
                return f"{name} BETWEEN {value()} AND {value()}"
            case "NULL" | "NOT NULL":
                return f"{name} IS {form}"
            case "function":
                wrapped = {"a": "abs({})", "b": "lower({})", "c": "{} + 1", "v": "coalesce({}, 0)"}[column].format(name)
                return f"{wrapped} = {value()}" if column != "c" else f"{wrapped} = DATE '2024-01-04'"
            case "mirrored":
                return f"{value()} {rng.choice(['=', '<', '>='])} {name}"
            case "constant":
                return rng.choice(["TRUE", "FALSE", "NULL", "1 = 1", "NULL = 1"])
            case "DISTINCT":
                return f"{name} IS NOT DISTINCT FROM {value()}"
            case "long list":
                values = (
                    [f"'{text}'" for text in [*TEXTS, "it''s"]]
                    if column == "b"
                    else [str(number) for number in INTEGERS]
                )
                if column == "c":
                    values = [f"'{day}'" for day in DAYS]
                return (
                    f"{name} {rng.choice(['IN', 'IN', 'NOT IN'])}"
                    f" ({', '.join(rng.sample(values, rng.randint(1, 5)) * 70)})"
                )
            case "list":
                return self.list_form(column).format(name)
            case "truth":
                tested = rng.choice(["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "NULL", "NOT NULL"])
                return f"({self.predicate(rng.randint(0, 1))}) IS {tested}"
            case "row":
                return self.row_form()
            case "conditional":
                return self.conditional_form(column)
            case "regular expression":
                return self.matching_form()
            case "short text":
                return self.short_text_form()
            case "elements":
                return self.elements_form(column)
            case "among columns":
                return self.among_columns_form()
            case "pattern" | "shifted" | "cast" if form == "pattern" or column == "b":
                return self.pattern_form()
            case "shifted" if column != "c":
                shifted = rng.choice(
                    [
                        *("{} + 1", "{} - 2", "-{}", "3 - {}", "1 + {} + 1", "-(2 - {})"),
                        *("{} * 2", "2 * {} + 1", "-3 * ({} - 1)", "abs({})"),
                    ]
                ).format(name)
                return f"{shifted} {rng.choice(['=', '<', '>=', '<>', 'IN'])} ({value()})"
            case "shifted":
                return f"{name} {rng.choice(['+ 1', '- 2'])} {rng.choice(['=', '<', '>='])} {value()}"
            case "cast":
                expression = rng.choice(
                    {"c": ["date_trunc('{1}', {0})", "CAST({0} AS DATE)"]}.get(
                        column, ["CAST({0} AS BIGINT)", "CAST({0} AS HUGEINT)", "{0}::DOUBLE"]
                    )
                )
                expression = expression.format(name, rng.choice(["day", "week", "month", "year", "quarter"]))
                if column in "av" and rng.random() < 0.4:
                    form = rng.choice(["{}::VARCHAR = {}", "CAST({} AS VARCHAR) IN ({}, '01')", "{}::TEXT <> {}"])
                    return form.format(name, self.value("b"))
                form = rng.choice(["{0} = {1}", "{0} <= {1}", "{0} NOT IN ({1}, {1})", "{0} BETWEEN {1} AND {1}"])
                return _filled(form, lambda: expression, value)
            case "columns":
                form = rng.choice(
                    [
                        *("{0} = {1}", "({0} = {1} AND {1} = {2})", "{0} + 1 = {1}", "NOT ({0} <> {1} OR {1} < {2})"),
                        *("({1} = {2} AND {0} = {1} + 1)", "({1} * 2 = {0} AND {2} = {1})"),
                        *("({1} = {2} AND {0} IN ({1}, {1} - 1))", "({1} = {2} AND {0} BETWEEN {1} AND {1} + 1)"),
                        *(
                            "({1} = {2} AND NOT ({0} <> {1} - 1 OR {1} IS NULL))",
                            "({1} <> {2} AND ({0} = 1 OR {1} = {2}))",
                        ),
                    ]
                )
                return _filled(
                    form, lambda: f"{self.qualifier}a", lambda: f"{self.qualifier}v", lambda: self.value("v")
                )
            case _:
                return f"{name} {form} {value()}"

    def value(self, column: str) -> str:
        rng = self.rng
        if rng.random() < 0.35:
            self.makers.append(self.maker(column))
            parameter = f"${len(self.makers)}"
            return rng.choice(COMPUTED[column]).format(parameter) if rng.random() < 0.3 else parameter
        if rng.random() < 0.05:
            return "NULL"
        match column:
            case "a" | "v":
                return rng.choice(
                    [
                        str(rng.choice(INTEGERS)),
                        str(rng.choice(INTEGERS)),
                        "1.5",
                        "2.0",
                        "'3'",
                        "'2.4'",
                        "1 + 1",
                        "2e0",
                        "CAST(2 AS SMALLINT)",
                        "300",
                        "99999999999",
                        "-2147483648",
                        "9223372036854775807",
                        "-0.0",
                        "'NaN'::DOUBLE",
                        "'-inf'::FLOAT",
                        "1e300",
                        "170141183460469231731687303715884105727",
                    ]
                )
            case "b":
                return rng.choice(
                    [
                        literal(now_and_then(rng, TEXTS, BEYOND_TEXTS)),
                        literal(now_and_then(rng, TEXTS, BEYOND_TEXTS)),
                        "upper('a')",
                        "'a' || ''",
                        "'zz'",
                        "CAST(1 AS VARCHAR)",
                    ]
                )
            case _:
                day = rng.choice(DAYS)
                return rng.choice(
                    [
                        f"DATE '{day}'",
                        f"'{day}'",
                        f"'{day} 12:00:00'",
                        f"TIMESTAMP '{day} 00:00:00'",
                        f"TIMESTAMP '{day} 12:00:00'",
                        "DATE '2024-01-01' + 2",
                        "DATE '2030-01-01'",
                        "DATE 'infinity'",
                        "DATE '-infinity'",
                        "'infinity'",
                        "DATE '9999-12-31'",
                        "DATE '5877642-06-25 (BC)'",
                        "TIMESTAMPTZ 'infinity'",
                        "'-infinity'::TIMESTAMPTZ",
                        "TIMESTAMP '-infinity'",
                        "'10000-01-01'",
                        "DATE '0044-03-15 (BC)'",
                        "TIMESTAMP '2024-01-03 23:59:59.999999'",
                    ]
                )

    def row_form(self) -> str:
        """A comparison of row values."""
        rng = self.rng
        columns = rng.sample("abcv", rng.randint(2, 3))
        row = f"({', '.join(self.qualifier + column for column in columns)})"

        def values() -> str:
            return f"({', '.join(self.value(column) for column in columns)})"

        match rng.choice(["compare", "compare", "IN", "NOT IN", "BETWEEN"]):
            case "compare":
                return f"{row} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {values()}"
            case "BETWEEN":
                return f"{row} {rng.choice(['', 'NOT '])}BETWEEN {values()} AND {values()}"
            case form:
                return f"{row} {form} ({', '.join(values() for _ in range(rng.randint(1, 3)))})"

    def conditional_form(self, column: str) -> str:
        """CASE, IF, COALESCE and NULLIF, as a predicate or compared."""
        rng = self.rng
        name = f"{self.qualifier}{column}"

        def condition() -> str:
            return self.predicate(rng.choice([0, 0, 1]))

        def chosen(value: Callable[[], str]) -> str:
            end = f" ELSE {value()}" if rng.random() < 0.7 else ""
            match rng.choice(["CASE", "CASE", "CASE WHEN", "IF", "COALESCE", "NULLIF"]):
                case "CASE":
                    cases = [f" WHEN {condition()} THEN {value()}" for _ in range(rng.randint(1, 3))]
                    return f"CASE{''.join(cases)}{end} END"
                case "CASE WHEN":
                    cases = [f" WHEN {self.value(column)} THEN {value()}" for _ in range(rng.randint(1, 3))]
                    return f"CASE {name}{''.join(cases)}{end} END"
                case "IF":
                    return f"if({condition()}, {value()}, {value()})"
                case "COALESCE":
                    return f"{rng.choice(['coalesce', 'ifnull'])}({value()}, {value()})"
                case _:
                    return f"nullif({value()}, {value()})"

        if rng.random() < 0.4:
            truth = ["TRUE", "FALSE", "NULL"]
            return f"({chosen(lambda: condition() if rng.random() < 0.4 else rng.choice(truth))})"
        form = rng.choice(
            [
                *("{0} = {1}", "{1} = {0}", "{0} < {1}", "{0} >= {1}", "{0} <> {1}", "{0} IN ({1}, {1})"),
                *("{0} NOT IN ({1}, {1})", "{0} BETWEEN {1} AND {1}", "{0} IS NOT DISTINCT FROM {1}", "{0} IS NULL"),
            ]
        )
        value = lambda: self.value(column)  # noqa: E731
        return _filled(form, lambda: f"({chosen(lambda: name if rng.random() < 0.5 else value())})", value)

    def pattern_form(self) -> str:
        """LIKE and the tests of a prefix, on the text column."""
        rng = self.rng
        name = f"{self.qualifier}b"
        patterns = [
            "%",
            "a%",
            "a",
            "_",
            "0_",
            "é%",
            "",
            "a%%",
            "!%%",
            "a!",
            "%1",
            "A",
            "0%",
            "[ab]",
            "[0-9]*",
            "?",
            "a*",
        ]
        pattern = f"'{rng.choice(patterns)}'"
        if rng.random() < 0.35:
            self.makers.append(lambda: rng.choice([*patterns, None]))
            pattern = f"${len(self.makers)}"
        form = rng.choice(
            [
                "{} LIKE {}",
                "{} NOT LIKE {}",
                "{} LIKE {} ESCAPE '!'",
                "starts_with({}, {})",
                "{} ^@ {}",
                "prefix({}, {})",
                "{} ILIKE {}",
                "{} NOT ILIKE {}",
                "{} ILIKE {} ESCAPE '!'",
                "{} GLOB {}",
                "NOT ({} GLOB {})",
            ]
        )
        return str(form.format(name, pattern))

    def matching_form(self) -> str:
        """A regular expression, on the text column."""
        rng = self.rng

        def expression() -> str:
            text = "".join(rng.choice(REGULAR_EXPRESSIONS) for _ in range(rng.randint(0, 3)))
            return f"{rng.choice(['', '^', '^'])}{text}{rng.choice(['', '$'])}"

        pattern = f"'{expression()}'"
        if rng.random() < 0.35:
            self.makers.append(lambda: rng.choice([expression(), expression(), None]))
            pattern = f"${len(self.makers)}"
        form = rng.choice(
            [
                *("{} SIMILAR TO {}", "{} NOT SIMILAR TO {}", "{} ~ {}", "{} !~ {}"),
                *("regexp_full_match({}, {})", "regexp_matches({}, {})", "NOT regexp_full_match({}, {})"),
                *("regexp_full_match({}, {}, 'i')", "NOT regexp_matches({}, {}, 'i')", "regexp_matches({}, {}, 'c')"),
                *("regexp_full_match({}, {}, 'is')", "regexp_full_match({}, {}, 'l')", "regexp_matches({}, {}, 'cim')"),
            ]
        )
        return str(form.format(f"{self.qualifier}b", pattern))

    def short_text_form(self) -> str:
        """A pattern beside a bound on the length of the text, or a comparison of the length."""
        rng = self.rng
        length = f"{rng.choice(['length', 'len', 'strlen', 'char_length'])}({self.qualifier}b)"
        number = rng.randint(-1, 3)
        bound = rng.choice(
            [
                *(f"{length} < {number}", f"{length} <= {number}", f"{length} = {number}", f"{number} > {length}"),
                *(f"{length} BETWEEN 0 AND {number}", f"{length} > {number}", f"{length} < {number}.5"),
                *(f"{length} < ", f"{length} <= 1 + ", f"{length} = "),
            ]
        )
        if bound.endswith(" "):
            self.makers.append(lambda: rng.choice([-1, 0, 1, 2, 3, None]))
            bound += f"${len(self.makers)}"
        form = rng.choice(["({0} AND {1})", "({0} AND NOT ({1}))", "({0} AND ({1} OR {2}))", "NOT ({0} OR {1})", "{0}"])
        return _filled(form, lambda: bound, rng.choice([self.pattern_form, self.matching_form]), self.leaf)

    def elements_form(self, column: str) -> str:
        """Membership in a list that is written out."""
        rng = self.rng
        name = f"{self.qualifier}{column}"
        elements = ", ".join(self.value(column) for _ in range(rng.randint(0, 3)))
        form = rng.choice(
            [
                *("{0} IN [{1}]", "{0} NOT IN [{1}]", "{0} = ANY([{1}])", "NOT ({0} = ANY([{1}]))"),
                *("list_contains([{1}], {0})", "{0} IN (SELECT unnest([{1}]))", "{0} NOT IN (SELECT unnest([{1}]))"),
            ]
        )
        return str(form.format(name, elements))

    def among_columns_form(self) -> str:
        """A value in the place of the column, and columns in the place of the values."""
        rng = self.rng
        columns = [f"{self.qualifier}{column}" for column in rng.choice(["a", "aa", "av", "va", "b", "c"])]
        column = columns[0][-1]
        form = rng.choice(
            [
                *("{0} IN ({1})", "{0} NOT IN ({1})", "{0} BETWEEN {2} AND {3}", "{0} NOT BETWEEN {2} AND {3}"),
                *("({4}) IS DISTINCT FROM TRUE", "({4}) IS NOT DISTINCT FROM FALSE", "TRUE IS NOT DISTINCT FROM ({4})"),
            ]
        )
        return _filled(
            form,
            lambda: self.value(column),
            lambda: ", ".join(columns),
            lambda: columns[0],
            lambda: columns[-1],
            lambda: self.predicate(0),
        )

    def list_form(self, column: str) -> str:
        """Membership in a list that is a parameter."""
        make = self.maker(column)
        self.makers.append(
            lambda: self.rng.choice([None, [], *([make() for _ in range(self.rng.randint(1, 3))] for _ in range(4))])
        )
        spelling = self.rng.choice(
            [
                "{{}} = ANY({0})",
                "{{}} IN {0}",
                "{{}} IN (SELECT unnest({0}))",
                "list_contains({0}, {{}})",
                "NOT ({{}} = ANY({0}))",
            ]
        )
        return spelling.format(f"${len(self.makers)}")

    def maker(self, column: str) -> Callable[[], Any]:
        """A parameter keeps to one Python type, as a prepared statement does."""
        rng = self.rng
        match column:
            case "a" | "v":
                kind = rng.choice(["int", "int", "int", "float", "decimal", "str", "none"])
                return lambda: {
                    "int": rng.choice([*INTEGERS, 77]),
                    "float": rng.choice(
                        [1.0, 2.5, -1.0, 3.0, -0.0, float("nan"), float("inf"), -float("inf"), 2.0**53]
                    ),
                    "decimal": rng.choice([Decimal("1.0"), Decimal("2.5"), Decimal("-1"), Decimal("0E+3")]),
                    "str": str(rng.choice(INTEGERS)),
                    "none": None,
                }[kind]
            case "b":
                return lambda: now_and_then(rng, [*TEXTS, "nobody", None], BEYOND_TEXTS)
            case _:
                kind = rng.choice(["date", "date", "datetime", "str"])
                return lambda: {
                    "date": rng.choice([*DAYS, date(1999, 1, 1), date.min, date.max]),
                    "datetime": now_and_then(
                        rng,
                        [datetime.combine(day, time(hour)) for day in DAYS for hour in (0, 0, 5)],
                        [datetime.min, datetime.max, datetime.min.replace(tzinfo=UTC)],
                    ),
                    "str": now_and_then(rng, list(map(str, DAYS)), BEYOND_SPELLED),
                }[kind]

    def params(self) -> list[Any]:
        return [make() for make in self.makers]


def _filled(form: str, *parts: Callable[[], str]) -> str:
    """A form with its parts, each made where it stands, so that no parameter is made for nothing."""
    return re.sub(r"\{(\d)\}", lambda place: parts[int(place[1])](), form)
