"""What secateur has of that which SQLAlchemy's suite tests, and what it does not have, each with the reason."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_NO_TRANSACTIONS: Final = "every statement commits by itself: there are no transactions over several statements"
_ONE_LEVEL: Final = "every connection commits each statement, and cannot be told to do otherwise"
_ONE_SCHEMA: Final = "all tables and views are in the schema main"
_NO_TEMPORARY: Final = "every table is of all connections"
_KEY_ALONE: Final = "a table has no constraint but CHECK and its primary key, which has no name"
_NO_NUMBERING: Final = "the server numbers no rows, and computes no columns: no sequences, identities, computed columns"
_NO_KEY: Final = "the table of the test has no primary key, and the plugin gives it one"
_CONDITIONS: Final = "an index has columns, and is searched for values: no direction, expression or condition"
_CALENDAR: Final = "DuckDB's TIME WITH TIME ZONE is no type of columns"

NOT_SUPPORTED: Final = {
    "savepoints": _NO_TRANSACTIONS,
    "two_phase_transactions": _NO_TRANSACTIONS,
    "independent_connections": _NO_TRANSACTIONS,
    "autocommit": _ONE_LEVEL,
    "skip_autocommit_rollback": _ONE_LEVEL,
    "schemas": _ONE_SCHEMA,
    "temporary_tables": _NO_TEMPORARY,
    "temp_table_reflection": _NO_TEMPORARY,
    "temp_table_reflect_indexes": _NO_TEMPORARY,
    "named_constraints": _KEY_ALONE,
    "reflects_pk_names": _KEY_ALONE,
    "on_update_cascade": _KEY_ALONE,
    "unique_constraint_reflection": _KEY_ALONE,
    "foreign_key_constraint_reflection": _KEY_ALONE,
    "sequences": _NO_NUMBERING,
    "identity_columns": _NO_NUMBERING,
    "computed_columns": _NO_NUMBERING,
    "empty_inserts": _NO_NUMBERING,
    "implements_get_lastrowid": _NO_NUMBERING,
    "autoincrement_without_sequence": _NO_NUMBERING,
    "reflect_indexes_with_ascdesc": _CONDITIONS,
    "indexes_with_expressions": _CONDITIONS,
    "reflect_indexes_with_expressions": _CONDITIONS,
    "index_reflects_included_columns": _CONDITIONS,
    "foreign_key_constraint_option_reflection_ondelete": _KEY_ALONE,
    "foreign_key_constraint_option_reflection_onupdate": _KEY_ALONE,
    "temp_table_names": _NO_TEMPORARY,
    "has_temp_table": _NO_TEMPORARY,
    "temporary_views": _NO_TEMPORARY,
    "create_table_as": "CREATE TABLE ... AS needs a PRIMARY KEY, which SQLAlchemy cannot say",
    "materialized_views": "a view is computed when it is read",
    "fetch_percent": "DuckDB's FETCH takes a number of rows",
    "fetch_ties": "DuckDB's FETCH takes a number of rows",
    "time_timezone": _CALENDAR,
    "server_side_cursors": "every cursor reads a large result in parts, so none is told apart from the others",
    "window_range": "the test expects rows in an order that its query does not ask for",
    "window_range_numeric": "the test expects rows in an order that its query does not ask for",
}
"""Requirements of the suite that are not met."""

EXCLUDED: Final = {
    "BizarroCharacterTest.test_fk_ref": _KEY_ALONE,
    "ComponentReflectionTestExtra.test_check_constraint_inline[True]": _ONE_SCHEMA,
    "ComponentReflectionTestExtra.test_check_constraint_mixed[True]": _ONE_SCHEMA,
    "ComponentReflectionTestExtra.test_check_constraint_no_constraint[True]": _ONE_SCHEMA,
    "ComponentReflectionTestExtra.test_check_constraint_parenthesized_expressions[True]": _ONE_SCHEMA,
    "ComponentReflectionTestExtra.test_check_constraint_standalone[True]": _ONE_SCHEMA,
    "CompositeKeyReflectionTest.test_fk_column_order": _KEY_ALONE,
    "QuotedNameArgumentTest.test_get_foreign_keys": _KEY_ALONE,
    "ComponentReflectionTestExtra.test_nullable_reflection": _NO_KEY,
    "ComponentReflectionTestExtra.test_string_length_reflection": "a VARCHAR has no length, nor has a CHAR",
    "ComponentReflectionTestExtra.test_numeric_reflection": _NO_KEY,
    "InsertBehaviorTest.test_autoclose_on_insert_implicit_returning": _NO_NUMBERING,
    "InsertBehaviorTest.test_insert_from_select_autoinc": _NO_NUMBERING,
    "InsertBehaviorTest.test_insert_from_select_autoinc_no_rows": _NO_NUMBERING,
    "ReturningTest.test_insertmanyvalues_returning": "rows of RETURNING have no order, and the test expects one",
    "TableViaSelectTest.test_without_metadata": "CREATE TABLE ... AS needs a PRIMARY KEY, which SQLAlchemy cannot say",
    "TrueDivTest.test_truediv_divisor": "DuckDB divides decimals as doubles",
}
"""Tests of the suite that have no requirement of their own to leave them out by."""

_SUPPORTED: Final = (
    *("table_ddl_if_exists", "index_ddl_if_exists", "uuid_data_type", "unicode_ddl", "reflect_table_options"),
    *("views", "view_column_reflection", "create_or_replace_view", "implicit_default_schema"),
    *("nullsordering", "boolean_col_expressions", "standalone_binds", "intersect", "except_", "supports_distinct_on"),
    *("window_functions", "window_range_non_numeric", "aggregate_order_by", "order_by_label_with_expression"),
    *("ctes", "ctes_with_update_delete", "ctes_with_values", "table_value_constructor", "tuple_in", "tuple_in_w_empty"),
    *(
        "update_from",
        "delete_from",
        "fetch_first",
        "fetch_no_order_by",
        "fetch_expression",
        "mod_operator_as_percent_sign",
    ),
    *("datetime_timezone", "datetime_interval", "datetime_literals", "datetime_historic", "date_historic"),
    *("timestamp_microseconds", "array_type", "infinity_floats", "float_or_double_precision_behaves_generically"),
    *("precision_numerics_enotation_large", "precision_numerics_retains_significant_digits"),
    *("cast_precision_numerics_many_significant_digits", "regexp_match", "regexp_replace"),
    *("supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_xor"),
    *("server_defaults", "check_constraint_reflection", "inline_check_constraint_reflection", "comment_reflection"),
    *("supports_bitwise_shift", "indexes_check_column_order", "precision_numerics_many_significant_digits"),
)
"""Requirements that SQLAlchemy does not take for granted, and that are met."""


class Requirements(SuiteRequirements):
    """What the suite asks before each test."""

    def __getattribute__(self, name: str) -> Any:
        if name in NOT_SUPPORTED:
            return exclusions.closed(NOT_SUPPORTED[name])
        return exclusions.open() if name in _SUPPORTED else super().__getattribute__(name)

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}
