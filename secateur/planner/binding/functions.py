"""The DuckDB functions that a statement may call: those of their arguments, the clock, or random numbers.

Functions that reach beyond the rows (settings, files, the kernel's own catalog, its memory and logs, other texts,
sleeping) would expose, or change, the process that runs a fragment. Allowed functions are listed, rather than forbidden
ones, so that a newer DuckDB adds none unnoticed: a name that DuckDB knows and that is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import NotSupportedError
from secateur.partitioning.types.sql_text import folded
from secateur.planner.aggregates import AGGREGATES
from secateur.planner.text.positions import located
from secateur.planner.text.syntax import Syntax, nodes_of
from secateur.planner.text.tokens import Token, TokenKind

_VALUE_FUNCTIONS: Final = """
abs acos acosh add age aggregate ago apply approx_count_distinct approx_quantile approx_top_k
arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin
array_agg array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains
array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct
array_dot_product array_extract array_filter array_grade_up array_has array_has_all array_has_any array_indexof
array_inner_product array_intersect array_length array_negative_dot_product array_negative_inner_product
array_pop_back array_pop_front array_position array_prepend array_push_back array_push_front array_reduce
array_resize array_reverse array_reverse_sort array_select array_slice array_sort array_to_json array_to_string
array_to_string_comma_default array_transform array_unique array_value array_where array_zip ascii asin asinh
assert_true atan atan2 atanh bar base64 bin binom bit_count bit_length bit_position
bitstring bitstring_agg bitstring_byte_comparable can_cast_implicitly cardinality cast_to_type
cbrt ceil ceiling century char_length character_length chr coalesce columns concat concat_ws constant_or_null
contains corr cos cosh cot countif covar_pop covar_samp create_sort_key cume_dist
current_catalog current_database current_date current_localtime current_localtimestamp current_role
current_schema current_schemas current_user damerau_levenshtein date_add date_diff date_part date_sub date_trunc
datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade
decimal_average decimal_division decode degrees dense_rank divide editdist3 element_at encode ends_with entropy
enum_code enum_first enum_last enum_range enum_range_boundary epoch epoch_ms epoch_ns epoch_us equi_width_bins
era error even exists exp factorial favg fdiv fill filter first_value flatten floor fmod format
format_bytes format_pg_type format_type formatreadabledecimalsize formatreadablesize from_base64 from_binary
from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid generate_series generate_subscripts geomean
geometric_mean get_bit get_current_time get_current_timestamp get_type grade_up greatest
greatest_common_divisor group_concat grouping grouping_id hamming has_any_column_privilege has_column_privilege
has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege has_tablespace_privilege
hash hex histogram histogram_exact hive_partition_component hour icu_sort_key if ifnull ilike_escape
inet_client_addr inet_client_port inet_server_addr inet_server_port instr invoke is_histogram_other_bin isfinite
isinf isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json json_array json_array_length
json_contains json_copy_strftime_if_date json_copy_strftime_if_timestamp json_deep_merge json_deserialize_sql
json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
json_group_object json_group_structure json_insert json_keys json_merge_patch json_merge_patch_diff
json_normalize json_object json_pretty json_quote json_remove json_replace json_serialize_sql json_set
json_strip_nulls json_structure json_transform json_transform_strict json_type json_valid json_value julian
kahan_sum kurtosis kurtosis_pop lag last_day last_value lcase lcm lead least least_common_multiple left
left_grapheme len length length_grapheme levenshtein lgamma like_escape list list_aggr list_aggregate
list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance list_cosine_similarity
list_count list_distance list_distinct list_dot_product list_element list_entropy list_extract list_filter
list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof list_inner_product
list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
list_var_samp list_where list_zip listagg ln log log10 log2 lower lpad ltrim lttb mad make_date make_time
make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz make_type map map_concat map_contains
map_contains_entry map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys
map_to_pg_oid map_values max_by md5 md5_number md5_number_lower md5_number_upper microsecond
millennium millisecond min_by minute mismatches mod mode month monthname multiply nanosecond nextafter
nfc_normalize normalized_interval not_ilike_escape not_like_escape now nth_value ntile nullif octet_length ord
overlay parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path path_join percent_rank
pg_collation_is_visible pg_conversion_is_visible pg_function_is_visible pg_has_role pg_is_other_temp_schema
pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible pg_size_pretty
pg_table_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
pg_ts_template_is_visible pg_type_is_visible pg_typeof pi position pow power prefix printf product quantile
quantile_cont quantile_disc quarter radians random range rank rank_dense reduce regexp_escape regexp_extract
regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy remap_struct repeat
replace replace_type reservoir_quantile reverse right right_grapheme round round_even roundbankers row
row_number row_to_json rpad rtrim second sem session_user set_bit sha1 sha256 sign signbit sin sinh skewness
split split_part sqrt st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_crs st_geomfromgeojson
st_geomfromwkb st_intersects_extent st_setcrs starts_with stddev stddev_pop stddev_samp str_split
str_split_regex strftime string_agg string_split string_split_regex string_to_array strip_accents strlen strpos
strptime struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
struct_keys struct_pack struct_position struct_update struct_values substr substring substring_grapheme subtract
suffix sum_no_overflow sumkahan switch tan tanh time_bucket timetz_byte_comparable timezone timezone_hour
timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex to_hours to_json
to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks
to_years today transaction_timestamp translate trim trunc try try_strptime typeof ucase unbin unhex unicode
union_extract union_tag union_value unnest unpivot_list upper url_decode url_encode user uuid
uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp variance variant_array_length
variant_bytes_to_variant variant_comparator variant_contains variant_exists variant_extract
variant_extract_string variant_group_array variant_group_object variant_keys variant_normalize
variant_to_parquet_variant variant_type variant_typeof vertex_extract wavg week weekday weekofyear
weighted_avg xor year yearweek
"""
VALUE_FUNCTIONS: Final = frozenset((*AGGREGATES, *_VALUE_FUNCTIONS.split()))
"""Functions that compute a value: scalar functions, aggregates, window functions, and macros of these.

Those that have a row in ``planner/aggregates.py`` are listed there. Collations are recognised by their prefix.
"""

_TABLE_FUNCTIONS: Final = """
duckdb_functions duckdb_keywords duckdb_types generate_series generate_subscripts icu_calendar_names json_each
json_tree pg_timezone_names pragma_collations range repeat repeat_row summary test_all_types test_vector_types
unnest
"""
TABLE_FUNCTIONS: Final = frozenset(_TABLE_FUNCTIONS.split())
"""Functions that may be items of FROM."""

_EXPORT_STATE: Final = "export_state"
"""Behind a call, it has the aggregate answer with its state."""

_COLLATIONS: Final = ("collate_", "icu_collate_")
_ON_BOTH_SIDES: Final = frozenset({"histogram"})
"""Names that are listed for values, and are something else in FROM."""

_BOUNDED: Final = "bitstring_agg"
"""This function, with one argument, takes the bounds of its values from statistics of DuckDB's own tables."""

_STATES: Final = "states of aggregates cannot leave a statement"
_INSTEAD: Final = {
    "alias": "its answer depends on how a statement is divided among members; write the name as a text",
    "stats": "it describes the DuckDB instance of one process; read conn.table(name).statistics()",
    "vector_type": "it describes the DuckDB instance of one process",
    **dict.fromkeys(
        ("current_setting", "duckdb_settings"),
        "it describes the DuckDB instance of one process; SHOW pruning and the like read the session",
    ),
    "version": "it tells the version of DuckDB; secateur.__version__ is that of secateur",
    "getvariable": "pass values as parameters",
    "setseed": "several members generate random numbers, each from its own seed",
    **dict.fromkeys(("nextval", "currval", "setval"), "there are no sequences"),
    **dict.fromkeys(("finalize", "combine", "combine_aggr", "to_aggregate_state"), f"{_STATES}; write the aggregate"),
    "histogram": "in FROM it reads a table of one process; write the aggregate histogram(column), or GROUP BY",
    "histogram_values": "it reads a table of one process; write the aggregate histogram(column), or GROUP BY",
    **dict.fromkeys(("query", "json_execute_serialized_sql"), "send the text as a statement"),
    "query_table": "write the name of the table",
    **dict.fromkeys(("pg_sleep", "sleep_ms"), "members do not wait on behalf of a statement"),
}
"""Replacements to suggest for some of those that are not listed."""

_OWN_CATALOG: Final = {
    **dict.fromkeys(("duckdb_tables", "duckdb_views", "duckdb_indexes"), "secateur.tables"),
    **dict.fromkeys(("duckdb_columns", "pragma_table_info", "pragma_show"), "secateur.columns"),
    "duckdb_constraints": "information_schema.table_constraints",
    **dict.fromkeys(("duckdb_schemas", "duckdb_databases"), "information_schema.schemata"),
}
"""Functions that list the tables of the process that runs a fragment, and those that list the tables of the cluster."""

UNNESTING: Final = frozenset({"unnest", "unlist"})
"""The functions that make several rows of one."""

_FILES: Final = ("read_", "parquet_", "sniff_", "glob")


def is_listed(name: str, *, in_from: bool = False) -> bool:
    """Whether a function may be called; ``name`` is folded."""
    return name in TABLE_FUNCTIONS if in_from else name in VALUE_FUNCTIONS or name.startswith(_COLLATIONS)


def doubtful_calls(tokens: Sequence[Token]) -> list[Token]:
    """Return the unlisted names before parentheses, most of which are not functions, and EXPORT_STATE."""
    found = []
    for token, behind in pairwise(tokens):
        if token.text == ")" and token.word and behind.word == _EXPORT_STATE.upper():
            found.append(behind)
        if behind.text == "(" and behind.word and token.kind in (TokenKind.WORD, TokenKind.QUOTED):
            name = folded(token.text)
            if name in _ON_BOTH_SIDES or name == _BOUNDED or not (is_listed(name) or name in TABLE_FUNCTIONS):
                found.append(token)
    return found


def refuse_calls(doubtful: Sequence[Token], syntax: Syntax, text: str) -> None:
    """Refuse calls, of those that :func:`doubtful_calls` has found, that are not listed.

    A name that DuckDB does not know is left to DuckDB, which suggests similar names.

    Raises:
        NotSupportedError: Names the function and its position, and what to do instead.
    """
    for token in doubtful:
        if folded(token.text) == _EXPORT_STATE:
            message = f"EXPORT_STATE is not supported: {_STATES}; write the aggregate without it"
            raise located(NotSupportedError, message, text, token.start, len(token.text))
    written = {folded(token.text) for token in doubtful}
    for node in nodes_of(syntax.node):
        is_in_from = node.get("type") == "TABLE_FUNCTION"
        call = node["function"] if is_in_from else node
        name, start = str(call.get("function_name", "")), syntax.start(node)
        if folded(name) not in written or start < 0:
            continue
        token = syntax.tokens[syntax.token_at(start)]
        if folded(token.text) == folded(name):
            name = token.text
        if folded(name) == _BOUNDED and len(call.get("arguments", ())) == 1:
            message = f"{name}(x) without bounds is not supported: write {name}(x, min, max)"
            raise located(NotSupportedError, message, text, start, len(name), function=_BOUNDED)
        if not is_listed(folded(name), in_from=is_in_from):
            _refuse(name, text, start)


def refuse_calls_of(tokens: Sequence[Token], text: str) -> None:
    """As :func:`refuse_calls`, for the tokens of values, in which every name in front of parentheses is called.

    Raises:
        NotSupportedError: As :func:`refuse_calls`.
    """
    for token in doubtful_calls(tokens):
        if not is_listed(folded(token.text)):
            _refuse(token.text, text, token.start)


def _refuse(name: str, text: str, offset: int) -> None:
    known = folded(name)
    if known not in default_kernel().function_names():
        return
    if known in _OWN_CATALOG:
        instead = f"it does not know the tables of a cluster; read {_OWN_CATALOG[known]}"
    elif known.startswith(_FILES):
        instead = "members read no files; the client reads one with COPY table FROM 'file'"
    else:
        instead = _INSTEAD.get(known, "it reads the state of one process, not the rows of the statement")
    raise located(NotSupportedError, f"{name}() is not supported: {instead}", text, offset, len(name), function=known)


@cache
def aggregate_names() -> frozenset[str]:
    """The names of functions that aggregate rows, in lower case."""
    rows = default_kernel().run(
        "SELECT DISTINCT lower(function_name) AS name FROM duckdb_functions() WHERE function_type = 'aggregate'", {}
    )
    return frozenset(rows.column("name").to_pylist())
