"""Spoilt statements at the SQL front door: each has a result or an error of the tree, and the connection goes on.

``SECATEUR_FUZZ`` sets how many statements are made, ``SECATEUR_SEED`` how.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import DeadlineError, Error, InternalError

STATEMENTS = int(os.environ.get("SECATEUR_FUZZ", "400"))
SEED = int(os.environ.get("SECATEUR_SEED", "0"))
LOOK_EVERY = 50
ENDS_S = 20.0
"""Longer than any of these statements takes on a busy machine."""

SEEDS = (
    "SELECT v FROM t WHERE k = 5",
    "SELECT k, sum(v) AS s FROM t WHERE k IN (1, 2, 3) GROUP BY k HAVING sum(v) > 0 ORDER BY s DESC LIMIT 3",
    "SELECT a.k FROM t a JOIN t b ON a.k = b.v WHERE a.k BETWEEN 3 AND 9",
    "WITH c AS (SELECT k FROM t) SELECT count(*) FROM c WHERE EXISTS (SELECT 1 FROM t WHERE t.k = c.k)",
    "SELECT CASE WHEN s LIKE 'a%' THEN 1 ELSE CAST(v AS VARCHAR) END FROM t",
    "SELECT *, row_number() OVER (PARTITION BY s ORDER BY v) FROM t WHERE k = 1 UNION ALL SELECT *, 1 FROM t",
    "INSERT INTO t VALUES (100, 1, 'x'), (101, 2, 'y') ON CONFLICT DO NOTHING",
    "UPDATE t SET v = v + 1 WHERE k = 100",
    "DELETE FROM t WHERE k = 101",
    "EXPLAIN SELECT v FROM t WHERE k = DATE '2024-02-29' - DATE '2024-02-28'",
    "CREATE TABLE u (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 4",
    "SHOW TABLES",
    "SET pruning = on",
)
ODD = (
    "'", '"', "(", ")", ";", "--", "/*", "*/", "$1", "?", "::", "\x00", "\ufeff", "\u202e", "\U0001f333", "e\u0301",
    "NULL", "NaN", "1e999", "-9223372036854775808", "9" * 400, "0x", "'" + "a" * 20_000 + "'", "[", "{'a': 1}", ",,",
    "SELECT", "FROM", "t.", "*", "NOT", "\\", "\t\r\n", "E'\\", "U&'\\d800'", "$$", "%", "@", "#",
)  # fmt: skip


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as running:
        with running.connect() as conn:
            conn.execute(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) PARTITION BY HASH (k) PARTITIONS 8"
            )
            conn.execute("INSERT INTO t SELECT range, range, 'a' || range FROM range(64)")
        yield running


def spoilt(drawn: random.Random) -> str:
    """A statement, in which some words and characters are others."""
    text = drawn.choice(SEEDS)
    for _ in range(drawn.randint(1, 4)):
        at, end = sorted(drawn.randint(0, len(text)) for _ in range(2))
        match drawn.randrange(6):
            case 0:
                text = text[:at] + drawn.choice(ODD) + text[at:]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:end] + text[at:end] + text[end:]
            case 3:
                words = text.split(" ")
                drawn.shuffle(words)
                text = " ".join(words)
            case 4:
                other = drawn.choice(SEEDS)
                text = text[:at] + other[drawn.randint(0, len(other)) :]
            case _:
                text = (
                    text[:at]
                    + chr(drawn.choice([drawn.randrange(0xD800), drawn.randrange(0xE000, 0x110000)]))
                    + text[end:]
                )
    return text


def outcome(conn: secateur.Connection, sql: str) -> str:
    """What became of a statement: ``rows``, or the name of its error, which is one of the tree and not INTERNAL."""
    try:
        conn.execute(sql, timeout=ENDS_S).fetchall()
    except (InternalError, DeadlineError) as error:
        raise AssertionError(f"{sql[:2000]!a}: {error!r}") from error
    except Error as error:
        return type(error).__name__
    return "rows"


def assert_serves(conn: secateur.Connection) -> None:
    assert conn.execute("SELECT 40 + 2").fetchall() == [(42,)]


def test_spoilt_statements_have_a_result_or_an_error_of_the_tree(own: Cluster) -> None:
    drawn = random.Random(SEED)
    seen = set()
    with own.connect() as conn:
        for number in range(STATEMENTS):
            seen.add(outcome(conn, spoilt(drawn)))
            if number % LOOK_EVERY == 0:
                assert_serves(conn)
        assert_serves(conn)
    assert {"rows", "ProgrammingError"} <= seen, "the fuzzer reaches both"
    assert all(member.is_alive for member in own.members())


def test_garbage_is_refused(own: Cluster) -> None:
    drawn = random.Random(SEED)
    with own.connect() as conn:
        for _ in range(max(STATEMENTS // 10, 20)):
            length = drawn.randint(0, 200)
            outcome(conn, "".join(chr(drawn.randrange(0xD800)) for _ in range(length)))
        assert_serves(conn)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, id="parentheses"),
        pytest.param("SELECT " + "NOT " * 5_000 + "true", id="not"),
        pytest.param("SELECT " + "- " * 5_000 + "1", id="minus"),
        pytest.param("SELECT * FROM " + "(SELECT * FROM " * 500 + "t" + ")" * 500, id="subqueries"),
        pytest.param("SELECT " + "CASE WHEN true THEN " * 1_000 + "1" + " END" * 1_000, id="case"),
        pytest.param("SELECT " + "[" * 2_000 + "]" * 2_000, id="lists"),
        pytest.param("SELECT 1" + " + 1" * 5_000, id="a long sum"),
        pytest.param("SELECT v FROM t WHERE k = 1" + " OR k = 1" * 1_500, id="a long OR"),
        pytest.param("SELECT 1 " + "UNION ALL SELECT 1 " * 1_000, id="a long union"),
        pytest.param(f"SELECT {'9' * 100_000}", id="a number of 100,000 digits"),
        pytest.param(f"SELECT v FROM t WHERE k = {'9' * 1_000}", id="a key of 1,000 digits"),
        pytest.param(f"SELECT v FROM t WHERE k = 1e{'9' * 1_000}", id="an exponent of 1,000 digits"),
        pytest.param(f"SELECT length('{'x' * 1_000_000}')", id="a text of a megabyte"),
        pytest.param(f'SELECT 1 AS "{"x" * 100_000}"', id="a name of 100,000 letters"),
        pytest.param("SELECT '\ud800'", id="half a surrogate pair"),
        pytest.param("SELECT '\x00'", id="a null byte"),
        pytest.param("SELECT v FROM t WHERE s = '\U0001f333\u202e\u0301'", id="unicode"),
        pytest.param("/*" * 5_000, id="comments"),
        pytest.param(";" * 5_000, id="semicolons"),
        pytest.param("", id="nothing"),
    ],
)
@pytest.mark.sampled(one_in=4)
def test_deep_and_large_statements_end(own: Cluster, sql: str) -> None:
    with own.connect() as conn:
        outcome(conn, sql)
        assert_serves(conn)
