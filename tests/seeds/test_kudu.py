"""The seed "Scan Optimization & Partition Pruning" (Apache Kudu), section by section: its tables, its queries, what it
says of them.

Kudu numbers its tablets by bucket first, our partitions are numbered by range first; the letters are those of the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pytest
from client_process import in_client

import secateur
from secateur.cluster import Cluster
from secateur.partitioning.schemes.partial_ranges import PAGE_RANGES
from worlds import World

SPLIT_TIME: Final = 1451606400000
HOSTS: Final = ("host001.example.com", "host002.example.com", "a", "")
METRICS: Final = ("load-avg-1min", "load-avg-5min", "cpu")
TIMES: Final = (0, 499, 500, SPLIT_TIME - 1, SPLIT_TIME, SPLIT_TIME + 1, 2**62)
USERS: Final = (0, 499, 500, 501, 999, 1000, 1001, 5000)
TARGETS: Final = (0, 499, 500, 699, 700, 749, 750, 999, 1000, 1001)


@dataclass(frozen=True)
class Seed:
    """The two sample tables on a cluster, and the same rows in one DuckDB."""

    conn: secateur.Connection
    oracle: duckdb.DuckDBPyConnection

    def scan(self, sql: str, params: Any = ()) -> dict[str, Any]:
        """What EXPLAIN says of the one scan; the statement is executed as well, and gives what DuckDB gives over all
        rows.
        """
        assert sorted(self.conn.execute(sql, params).fetchall()) == sorted(self.oracle.execute(sql, params).fetchall())
        pruning: dict[str, Any] = self.conn.explain(sql, params).to_dict()["pruning"]
        (scan,) = pruning["scans"]
        return {**scan, "required_members": pruning["required_members"]}

    def tablets(self, sql: str, params: Any = ()) -> str:
        """The letters of the tablets that a scan keeps."""
        scan = self.scan(sql, params)
        letters = {4: "ACBD", 2: "AB"}[scan["partitions_total"]]
        return "".join(
            sorted(letters if scan["partitions"] is None else (letters[partition] for partition in scan["partitions"]))
        )


@pytest.fixture(scope="module")
def seed(cluster: Cluster) -> Iterator[Seed]:
    with cluster.connect() as conn, duckdb.connect() as oracle:
        for name, columns, key, scheme in (
            (
                "machine_metrics",
                "host VARCHAR, metric VARCHAR, time BIGINT, value DOUBLE",
                "host, metric, time",
                f"HASH (host, metric) PARTITIONS 2, RANGE (time) SPLIT AT ({SPLIT_TIME})",
            ),
            (
                "user_clicks",
                "user_id BIGINT, target_id BIGINT, click_id BIGINT",
                "user_id, target_id, click_id",
                "RANGE (user_id, target_id) SPLIT AT ((1000, 1000))",
            ),
        ):
            conn.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) PARTITION BY {scheme} BACKUPS 0")
            oracle.execute(f"CREATE TABLE {name} ({columns})")
        # Its optimizer makes two comparisons of one row a BETWEEN, which it cannot evaluate; our kernel knows.
        oracle.execute("SET disabled_optimizers = 'filter_pushdown'")
        oracle.executemany(
            "INSERT INTO machine_metrics VALUES (?, ?, ?, 1.5)", list(itertools.product(HOSTS, METRICS, TIMES))
        )
        oracle.executemany(
            "INSERT INTO user_clicks VALUES (?, ?, ?)", list(itertools.product(USERS, TARGETS, (1, 2**63 - 1)))
        )
        for name in ("machine_metrics", "user_clicks"):
            conn.table(name).load(oracle.sql(f"SELECT * FROM {name}").to_arrow_table(), mode="append")
        yield Seed(conn, oracle)
        for name in ("machine_metrics", "user_clicks"):
            conn.execute(f"DROP TABLE {name}")


class TestSampleSchemas:
    def test_machine_metrics_has_the_tablets_of_the_seed(self, seed: Seed) -> None:
        table = seed.conn.table("machine_metrics")
        for host, metric in itertools.product(HOSTS, METRICS):
            before, after = (
                table.partition_of({"host": host, "metric": metric, "time": time})
                for time in (SPLIT_TIME - 1, SPLIT_TIME)
            )
            assert (before in (0, 1), after in (2, 3), after - before) == (True, True, 2)

    @pytest.mark.parametrize(
        ("key", "tablet"),
        [((0, 0), "A"), ((1000, 999), "A"), ((1000, 1000), "B"), ((1000, 1001), "B"), ((1001, 0), "B")],
        ids=str,
    )
    def test_user_clicks_has_the_tablets_of_the_seed(self, seed: Seed, key: tuple[int, int], tablet: str) -> None:
        assert "AB"[seed.conn.table("user_clicks").partition_of({"user_id": key[0], "target_id": key[1]})] == tablet


class TestScanConstraints:
    @pytest.mark.parametrize(
        ("where", "params"),
        [
            ("(user_id, target_id) >= (500, 500) AND (user_id, target_id) < (500, 750)", ()),
            ("(user_id, target_id) >= (?, ?) AND (user_id, target_id) < (?, ?)", (500, 500, 500, 750)),
            ("user_id = 500 AND target_id >= 500 AND target_id < 750", ()),
        ],
        ids=["bounds", "bounds with parameters", "the predicates lifted from them"],
    )
    def test_lifting_bounds_into_predicates(self, seed: Seed, where: str, params: Any) -> None:
        scan = seed.scan(f"SELECT * FROM user_clicks WHERE {where}", params)
        assert scan["partitions"] == [0]
        assert scan["primary_key_bounds"] == {"lower": [500, 500], "upper": [500, 750]}

    @pytest.mark.parametrize(
        ("where", "params"),
        [("user_id = 500 AND target_id < 700", ()), ("target_id < ? AND user_id = ?", (700, 500))],
        ids=str,
    )
    def test_pushing_predicates_into_bounds(self, seed: Seed, where: str, params: Any) -> None:
        """The seed writes the lower bound (500, min); a bound on the prefix says the same."""
        sql = f"SELECT * FROM user_clicks WHERE {where}"
        assert seed.scan(sql, params)["primary_key_bounds"] == {"lower": [500], "upper": [500, 700]}
        assert "primary key bounds: (500) <= key < (500, 700)" in str(seed.conn.explain(sql, params))


class TestRangePruning:
    @pytest.mark.parametrize(
        ("where", "kept"),
        [
            ("time < 500", "AC"),
            (f"time < {SPLIT_TIME}", "AC"),
            (f"time <= {SPLIT_TIME}", "ABCD"),
            (f"time >= {SPLIT_TIME}", "BD"),
            (f"time BETWEEN 5 AND {SPLIT_TIME - 1}", "AC"),
            ("value < 500", "ABCD"),
        ],
    )
    def test_predicates_on_the_range_column(self, seed: Seed, where: str, kept: str) -> None:
        assert seed.tablets(f"SELECT * FROM machine_metrics WHERE {where}") == kept


class TestPrimaryKeyPruning:
    @pytest.mark.parametrize("params", [(), (500, 0, 1000, 500)], ids=["constants", "parameters"])
    def test_bounds_prune_what_the_lifted_predicates_cannot(self, seed: Seed, params: Any) -> None:
        values = (
            "(?, ?) AND (user_id, target_id) < (?, ?)" if params else "(500, 0) AND (user_id, target_id) < (1000, 500)"
        )
        sql = f"SELECT * FROM user_clicks WHERE (user_id, target_id) >= {values}"
        assert seed.tablets(sql, params) == "A"
        assert seed.scan(sql, params)["primary_key_bounds"] == {"lower": [500, 0], "upper": [1000, 500]}

    def test_the_lifted_predicates_alone_keep_both(self, seed: Seed) -> None:
        assert seed.tablets("SELECT * FROM user_clicks WHERE user_id >= 500 AND user_id < 1001") == "AB"

    @pytest.mark.parametrize(
        ("where", "kept"),
        [
            ("(user_id, target_id) < (1000, 1000)", "A"),
            ("(user_id, target_id) <= (1000, 1000)", "AB"),
            ("(user_id, target_id) >= (1000, 1000)", "B"),
            ("(user_id, target_id) > (1000, 999)", "B"),
            ("(user_id, target_id) >= (1000, 500) AND (user_id, target_id) <= (1000, 999)", "A"),
            ("(user_id, target_id, click_id) < (1000, 1000, 0)", "AB"),
            ("user_id = 1000 AND target_id > 999", "B"),
            ("user_id = 1000", "AB"),
            ("(user_id, target_id) IN ((500, 1), (1000, 999))", "A"),
            ("NOT (user_id, target_id) < (1000, 1000)", "B"),
        ],
    )
    def test_row_values_compare_lexicographically(self, seed: Seed, where: str, kept: str) -> None:
        assert seed.tablets(f"SELECT * FROM user_clicks WHERE {where}") == kept

    def test_an_upper_bound_on_a_prefix_takes_in_what_extends_it_kudu_2173(self, seed: Seed) -> None:
        scan = seed.scan("SELECT * FROM user_clicks WHERE user_id <= 1000")
        assert scan["partitions"] is None or scan["partitions"] == [0, 1]
        assert scan["primary_key_bounds"] == {"lower": None, "upper": [1000]}

    def test_the_largest_value_needs_no_next_one_kudu_1766(self, seed: Seed) -> None:
        largest = 2**63 - 1
        scan = seed.scan(f"SELECT * FROM user_clicks WHERE user_id = 500 AND target_id = 500 AND click_id = {largest}")
        assert scan["partitions"] == [0]
        assert scan["primary_key_bounds"] == {"lower": [500, 500, largest], "upper": [500, 500, largest]}
        assert seed.tablets(f"SELECT * FROM user_clicks WHERE (user_id, target_id) <= (500, {largest})") == "A"


class TestHashBucketPruning:
    def test_equality_on_all_columns_of_the_component(self, seed: Seed) -> None:
        tablets = seed.tablets(
            "SELECT * FROM machine_metrics WHERE host = 'host001.example.com' AND metric = 'load-avg-1min'"
        )
        assert tablets in ("AB", "CD")

    def test_equality_on_one_of_two_columns_does_not_prune_and_says_why(self, seed: Seed) -> None:
        scan = seed.scan("SELECT * FROM machine_metrics WHERE host = 'host001.example.com'")
        assert scan["partitions"] is None
        assert "metric" in scan["reason"]
        assert scan["primary_key_bounds"] == {"lower": ["host001.example.com"], "upper": ["host001.example.com"]}

    def test_hash_and_range_together(self, seed: Seed) -> None:
        tablets = seed.tablets("SELECT * FROM machine_metrics WHERE host = 'a' AND metric = 'cpu' AND time < 500")
        assert tablets in ("A", "C")


class TestTabletLookup:
    def test_only_the_owners_of_what_remains_are_asked_for(self, seed: Seed) -> None:
        scan = seed.scan("SELECT * FROM user_clicks WHERE user_id = 1 AND target_id = 1")
        assert scan["required_members"] == [seed.conn.table("user_clicks").owner_of(0)]


class TestTabletLookupOptimization:
    def test_metadata_is_requested_only_for_tablets_that_remain(self, cluster: Cluster) -> None:
        """A new client knows a page of ranges around its key, and every tablet that was pruned is left out."""
        with cluster.connect() as conn:
            splits = ", ".join(map(str, range(1, 2000)))
            conn.execute(
                "CREATE TABLE clicks_by_user (user_id BIGINT, PRIMARY KEY (user_id)) PARTITION BY RANGE (user_id)"
                f" SPLIT AT ({splits}) BACKUPS 0"
            )
            conn.execute("INSERT INTO clicks_by_user VALUES (1500)")
        found = in_client(
            cluster,
            """
look = "SELECT user_id FROM clicks_by_user WHERE user_id = ?"
out["rows"], out["known"] = conn.execute(look, [1500]).fetchall(), known()
""",
        )
        assert found == {"rows": [[1500]], "known": PAGE_RANGES}


class TestSecondPruningAtTheServer:
    def test_bounds_beyond_what_the_tablet_holds_are_an_empty_answer(self, seed: Seed) -> None:
        """Tablet B is open above; its last row is of user 5000, which only its member knows."""
        sql = "SELECT user_id, count(*) OVER () AS n FROM user_clicks WHERE user_id > 5000"
        assert seed.tablets(sql) == "B"
        cursor = seed.conn.execute(sql)
        assert cursor.fetchall() == []
        assert cursor.stats is not None
        assert (cursor.stats.execution, cursor.stats.partitions_read) == ("local", 1)


LEAST: Final = (
    *(
        ("TINYINT", "-128"),
        ("BIGINT", "-9223372036854775808"),
        ("UTINYINT", "0"),
        ("VARCHAR", "''"),
        ("BLOB", "''::BLOB"),
    ),
    *(("BOOLEAN", "FALSE"), ("UUID", "'00000000-0000-0000-0000-000000000000'::UUID"), ("DECIMAL(4, 2)", "-99.99")),
    *(("DATE", "DATE '-infinity'"), ("TIMESTAMP", "TIMESTAMP '-infinity'")),
    ("TIMESTAMPTZ", "'-infinity'::TIMESTAMPTZ"),
)
GREATEST: Final = (
    *(("TINYINT", "127"), ("BIGINT", "9223372036854775807"), ("UTINYINT", "255"), ("BOOLEAN", "TRUE")),
    *(("UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID"), ("DECIMAL(4, 2)", "99.99")),
)


class TestLexicographicBounds:
    """Primary key bounds: a bound that ends with the least value of a column is a bound on the columns before it."""

    @pytest.mark.parametrize(("type_", "least"), LEAST, ids=[type_ for type_, _ in LEAST])
    def test_the_least_value_of_a_last_column_takes_no_key_in(self, type_: str, least: str) -> None:
        for strict in ("(a, b, c) < (1, 'b', {})", "NOT (a, b, c) >= (1, 'b', {})", "(1, 'b', {}) > (a, b, c)"):
            assert _kept_below(type_, strict.format(least)) == [0], strict
        assert _kept_below(type_, f"(a, b, c) <= (1, 'b', {least})") == [0, 1]

    @pytest.mark.parametrize(("type_", "greatest"), GREATEST, ids=[type_ for type_, _ in GREATEST])
    def test_nothing_is_greater_than_the_greatest_value(self, type_: str, greatest: str) -> None:
        assert _kept_below(type_, f"(a, b, c) > (1, 'b', {greatest}) AND (a, b) <= (1, 'b')") == []
        assert _kept_below(type_, f"(a, b, c) >= (1, 'b', {greatest}) AND (a, b) <= (1, 'b')") == [1]

    def test_null_is_greater_than_the_greatest_value(self) -> None:
        assert _kept_below("TINYINT", "(a, b, v) > (1, 'b', 127) AND (a, b) <= (1, 'b')") == [1]
        assert _kept_below("TINYINT", "(a, b, v) < (1, 'b', -128)") == [0]


def _kept_below(type_: str, where: str) -> list[int]:
    """The partitions kept of a table that is split at (1, 'b'), beside which DuckDB finds the rows."""
    world = World()
    world.fill(
        f"CREATE TABLE t (a INTEGER, b VARCHAR, c {type_}, v TINYINT, PRIMARY KEY (a, b, c))"
        " PARTITION BY RANGE (a, b) SPLIT AT ((1, 'b'))",
        f"SELECT 1, 'b', {dict(LEAST)[type_]}, NULL",
    )
    sql = f"SELECT * FROM t WHERE {where}"
    (kept,) = world.kept(world.prepare(sql, ()).plan, ())
    assert world.duck.sql(sql).fetchall() == [] or 1 in kept
    return list(kept)
