from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import NotSupportedError, ParameterError, SqlSyntaxError
from secateur.planner.text import Parameters, ParameterStyle, read_parameters, tokenize


def read(sql: str) -> Parameters:
    return read_parameters(sql, tokenize(sql))[1]


@pytest.mark.parametrize(
    ("sql", "style", "count", "names"),
    [
        ("SELECT 1", ParameterStyle.NONE, 0, ()),
        ("SELECT ?, ?", ParameterStyle.QMARK, 2, ()),
        ("SELECT $2, $1, $2", ParameterStyle.NUMBERED, 2, ()),
        ("SELECT ?1", ParameterStyle.NUMBERED, 1, ()),
        ("SELECT $1,$2,$1", ParameterStyle.NUMBERED, 2, ()),
        ("SELECT $low,$high", ParameterStyle.NAMED, 2, ("low", "high")),
        (
            "SELECT '$1' || $1,$2 || $$a $1,$2 b$$ || $x$ $3 $x$ || E'\\'$4', \"$5\" -- $6\n /* $7 */",
            ParameterStyle.NUMBERED,
            2,
            (),
        ),
        ("SELECT $1 /* 'a' /* $2 */ \"b */, $q$a\"b$q$, $2,$1", ParameterStyle.NUMBERED, 2, ()),
        ("SELECT $low, $high, $low", ParameterStyle.NAMED, 2, ("low", "high")),
        ("SELECT '?', \"?\", $$?$$ -- ?\n /* ? */", ParameterStyle.NONE, 0, ()),
    ],
)
def test_styles(sql: str, style: ParameterStyle, count: int, names: tuple[str, ...]) -> None:
    parameters = read(sql)
    assert (parameters.style, parameters.count, parameters.names) == (style, count, names)


def test_tokens_come_out_numbered() -> None:
    sql = "SELECT $b + $a + $b"
    tokens, _ = read_parameters(sql, tokenize(sql))
    assert [token.text for token in tokens] == ["SELECT", "$", "1", "+", "$", "2", "+", "$", "1"]


@pytest.mark.parametrize(
    ("sql", "params", "expected"),
    [
        ("SELECT 1", [], ()),
        ("SELECT 1", {}, ()),
        ("SELECT ?, ?", [5, None], (5, None)),
        ("SELECT $2, $1", ("x", "y"), ("x", "y")),
        ("SELECT $low, $high", {"high": 9, "low": 1}, (1, 9)),
    ],
)
def test_values_are_arranged(sql: str, params: Any, expected: tuple[Any, ...]) -> None:
    assert read(sql).arrange(params) == expected


@pytest.mark.parametrize(
    ("sql", "params", "message"),
    [
        pytest.param("SELECT ?, ?", [1], "the statement has 2 parameters, 1 given", id="too few"),
        pytest.param("SELECT ?", [1, 2], "the statement has 1 parameter, 2 given", id="too many"),
        pytest.param("SELECT 1", [1], "the statement has 0 parameters, 1 given", id="none wanted"),
        pytest.param("SELECT ?", "x", "a sequence of values, not str", id="a text"),
        pytest.param("SELECT ?", {"a": 1}, "no named parameters but 1 positional", id="names for positions"),
        pytest.param("SELECT $a", [1], r"named parameters \(\$a\)", id="positions for names"),
        pytest.param("SELECT $a, $b", {"a": 1}, r"no value for parameter \$b", id="a name missing"),
        pytest.param("SELECT $a", {"a": 1, "c": 2}, r"no parameter \$c; it has \$a", id="a name too many"),
    ],
)
def test_wrong_values_are_refused(sql: str, params: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read(sql).arrange(params)


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("SELECT ?, $1", ParameterError, "mixes ? with $1", 11, id="two styles"),
        pytest.param("SELECT $a, $1", ParameterError, "mixes $name with $1", 12, id="names and numbers"),
        pytest.param("SELECT $0", ParameterError, "numbered $1", 8, id="zero"),
        pytest.param("SELECT $99999", ParameterError, "numbered $1", 8, id="too high"),
        pytest.param("SELECT $ 1", SqlSyntaxError, "is not a parameter", 8, id="apart"),
        pytest.param(
            "SELECT @x", NotSupportedError, "the operator @ is not supported: write abs(...)", 8, id="an operator"
        ),
    ],
)
def test_bad_parameters_are_shown(sql: str, kind: type[Exception], message: str, column: int) -> None:
    with pytest.raises(kind) as caught:
        read(sql)
    assert message in str(caught.value)
    assert caught.value.details["column"] == column  # type: ignore[attr-defined]


def test_gaps_are_refused() -> None:
    sql = "SELECT $3, $1"
    with pytest.raises(ParameterError, match=r"\$3 but not \$2"):
        read(sql).refuse_gaps(sql)


@pytest.mark.parametrize(
    ("sql", "given", "advice"),
    [
        ("SELECT * FROM t WHERE a = %s", ["x"], r"1 given: write \? or \$1, not %s; secateur's paramstyle is qmark"),
        ("INSERT INTO t VALUES (%s, %s)", ["x", 1], r"2 given: write \? or \$1, not %s"),
        ("SELECT * FROM t WHERE a = %(id)s", {"id": "x"}, r"write \$id, not %\(id\)s"),
        ("SELECT * FROM t WHERE a = :id", {"id": "x"}, r"write \$id, not :id"),
        ("SELECT * FROM t WHERE a = :1", ["x"], r"write \$1, not :1"),
        ("SELECT a % s, l[:n], {'a':b} FROM t", ["x"], "1 given"),
    ],
)
def test_the_styles_of_others_are_told_what_to_write(sql: str, given: Any, advice: str) -> None:
    with pytest.raises(ParameterError, match=advice):
        read(sql).arrange(given)


@pytest.mark.parametrize("sql", ["SELECT a % s FROM t", "SELECT l[:n] FROM t", "SELECT a %s FROM t WHERE b = ?"])
def test_what_only_looks_like_a_parameter_of_others_gets_no_advice(sql: str) -> None:
    assert read(sql).foreign == ""
