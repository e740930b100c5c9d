"""Which functions may be called: every one that the installed DuckDB has is in one of the lists, or is refused by
name.
"""

from __future__ import annotations

from typing import Any

import duckdb

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import Error
from secateur.planner.binding import TABLE_FUNCTIONS, VALUE_FUNCTIONS, is_listed

REFUSED_NAMES = """
add_grammar_extension alias arrow_scan arrow_scan_dumb checkpoint col_description combine combine_aggr
create_external_resource current_connection_id current_query current_query_id current_setting
current_transaction_id currval deregister_external_resource destroy_external_resource disable_logging
disable_profiling enable_logging enable_profiling finalize force_checkpoint get_block_size getvariable glob
histogram_values in_search_path index_key json_execute_serialized_sql json_serialize_plan map_type_id_to_pg_oid
nextval obj_description pandas_scan parse_duckdb_log_message pg_conf_load_time pg_get_constraintdef pg_get_expr
pg_get_viewdef pg_postmaster_start_time pg_sleep python_arrow_scan python_map_function query query_table
register_external_resource register_external_resource_type remove_grammar_extension seq_scan setseed setval
shobj_description sleep_ms sniff_csv stats to_aggregate_state truncate_duckdb_logs txid_current vector_type
version which_secret write_log
"""
REFUSED = frozenset(REFUSED_NAMES.split())
"""Those that were looked at and are not for statements; beside them, whatever begins with one of the prefixes."""

CALLS = (
    "SELECT {0}('x')",
    'SELECT id FROM orders WHERE "{0}"(amount) IS NULL',
    "INSERT INTO airlines VALUES ('a', {0}())",
)
READS = (
    "SELECT * FROM {0}('x')",
    "SELECT id FROM orders, LATERAL {0}(amount)",
    "INSERT INTO airlines SELECT 'a', 'b' FROM main.{0}()",
)
PREFIXES = ("__", "duckdb_", "parquet_", "pragma_", "read_")


def functions(*kinds: str) -> set[str]:
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE list_contains($1, function_type)",
            [list(kinds)],
        ).fetchall()
    return {name.lower() for (name,) in rows if name.isidentifier()}


def test_every_function_of_the_installed_version_was_looked_at() -> None:
    values, tables = functions("scalar", "aggregate", "macro", "window"), functions("table", "table_macro")
    assert len(values) > 800
    assert len(tables) > 100
    unknown = {name for name in values if not is_listed(name)} | {
        name for name in tables - values if not is_listed(name, in_from=True)
    }
    assert {name for name in unknown if name not in REFUSED and not name.startswith(PREFIXES)} == set()
    assert REFUSED.isdisjoint(VALUE_FUNCTIONS | TABLE_FUNCTIONS)


def test_what_is_not_listed_is_refused_by_name(context: Any) -> None:
    values = [name for name in functions("scalar", "aggregate", "macro", "window") if not is_listed(name)]
    tables = functions("table", "table_macro") - TABLE_FUNCTIONS
    texts = [(name, text.format(name)) for name in values for text in CALLS] + [
        (name, text.format(name)) for name in tables for text in READS
    ]
    wrong = []
    for name, sql in texts:
        try:
            context.prepare(sql)
            wrong.append((sql, "answered"))
        except Error as error:
            if error.details.get("function") != name:
                wrong.append((sql, error.message))
    assert len(texts) > 300
    assert wrong == []


def test_a_name_may_be_that_of_a_function(context: Any) -> None:
    context.create("CREATE TABLE stats (query INTEGER PRIMARY KEY, alias INTEGER, rowid INTEGER)")
    for sql in (
        "SELECT query, alias, rowid FROM stats",
        "WITH query(a) AS (SELECT 1) SELECT a FROM query",
        "SELECT a FROM stats AS alias(a, b, c)",
        "INSERT INTO stats (query, alias) VALUES (1, 2)",
        "SELECT histogram(alias) FROM stats",
        "SELECT bitstring_agg(alias, 1, 5) FROM stats",
        "SELECT alias AS version FROM stats",
        "SELECT query IN (1, 2) AND (alias) > 1 FROM stats",
    ):
        context.prepare(sql)


def test_names_are_asked_of_the_kernel_once() -> None:
    assert default_kernel().function_names() is default_kernel().function_names()
