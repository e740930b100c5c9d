"""``information_schema``: the standard's views of a database's tables, with the columns that DuckDB gives them.

Types are written as DuckDB writes them. There is one catalog, called ``secateur``, and one schema of user tables,
``main``.
"""

from __future__ import annotations

from typing import Final

from secateur.planner.views import ViewDef

SCHEMA: Final = "information_schema"

_PLACE: Final = "'secateur' AS table_catalog, 'main' AS table_schema, table_name"
_CONSTRAINT: Final = (
    "'secateur' AS constraint_catalog, 'main' AS constraint_schema, table_name || '_' || array_to_string(primary_key,"
    " '_') || '_pkey' AS constraint_name"
)

_CHECK: Final = "'secateur' AS constraint_catalog, 'main' AS constraint_schema, check_name AS constraint_name"


def _null(kind: str, *names: str) -> str:
    return ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name in names)


_QUERIES: Final = {
    "schemata": (
        f"""
SELECT 'secateur' AS catalog_name, schema_name, 'secateur' AS schema_owner,
  {_null("VARCHAR", "default_character_set_catalog", "default_character_set_schema", "default_character_set_name")},
  {_null("VARCHAR", "sql_path")}
FROM (VALUES ('main'), ('secateur'), ('information_schema')) AS schemas(schema_name)"""
    ),
    "tables": (
        f"""
SELECT {_PLACE}, table_type,
  {_null("VARCHAR", "self_referencing_column_name", "reference_generation")},
  {_null("VARCHAR", "user_defined_type_catalog", "user_defined_type_schema", "user_defined_type_name")},
  CASE table_type WHEN 'BASE TABLE' THEN 'YES' ELSE 'NO' END AS is_insertable_into, 'NO' AS is_typed,
  {_null("VARCHAR", "commit_action")}, comment AS "TABLE_COMMENT"
FROM secateur.tables"""
    ),
    "views": (
        f"""
SELECT {_PLACE}, sql AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into,
  'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into
FROM secateur.tables WHERE table_type = 'VIEW'"""
    ),
    "columns": (
        f"""
SELECT {_PLACE}, column_name, position AS ordinal_position, column_default,
  CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS is_nullable, data_type,
  {_null("INTEGER", "character_maximum_length", "character_octet_length")},
  CASE data_type WHEN 'TINYINT' THEN 8 WHEN 'SMALLINT' THEN 16 WHEN 'INTEGER' THEN 32 WHEN 'BIGINT' THEN 64
    WHEN 'HUGEINT' THEN 128 WHEN 'FLOAT' THEN 24 WHEN 'DOUBLE' THEN 53
    ELSE TRY_CAST(regexp_extract(data_type, '^DECIMAL\\((\\d+),\\d+\\)$', 1) AS INTEGER) END AS numeric_precision,
  CASE WHEN data_type LIKE 'DECIMAL(%)' THEN 10
    WHEN data_type IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'FLOAT', 'DOUBLE') THEN 2
    END AS numeric_precision_radix,
  CASE WHEN data_type IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'FLOAT', 'DOUBLE') THEN 0
    ELSE TRY_CAST(regexp_extract(data_type, '^DECIMAL\\(\\d+,(\\d+)\\)$', 1) AS INTEGER) END AS numeric_scale,
  {_null("INTEGER", "datetime_precision")}, {_null("VARCHAR", "interval_type")},
  {_null("INTEGER", "interval_precision")},
  {_null("VARCHAR", "character_set_catalog", "character_set_schema", "character_set_name")},
  {_null("VARCHAR", "collation_catalog", "collation_schema", "collation_name")},
  {_null("VARCHAR", "domain_catalog", "domain_schema", "domain_name", "udt_catalog", "udt_schema", "udt_name")},
  {_null("VARCHAR", "scope_catalog", "scope_schema", "scope_name")}, {_null("BIGINT", "maximum_cardinality")},
  {_null("VARCHAR", "dtd_identifier")},
  {_null("BOOLEAN", "is_self_referencing", "is_identity")},
  {_null("VARCHAR", "identity_generation", "identity_start", "identity_increment")},
  {_null("VARCHAR", "identity_maximum", "identity_minimum")},
  {_null("BOOLEAN", "identity_cycle")}, 'NEVER' AS is_generated, {_null("VARCHAR", "generation_expression")},
  {_null("BOOLEAN", "is_updatable")},
  comment AS "COLUMN_COMMENT"
FROM secateur.columns"""
    ),
    "table_constraints": (
        f"""
SELECT {_CONSTRAINT}, {_PLACE}, 'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
  'YES' AS enforced, 'YES' AS nulls_distinct
FROM secateur.tables WHERE table_type = 'BASE TABLE' AND len(primary_key) > 0
UNION ALL
SELECT {_CHECK}, {_PLACE}, 'CHECK' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
  'YES' AS enforced, 'YES' AS nulls_distinct
FROM secateur.checks"""
    ),
    "key_column_usage": (
        f"""
SELECT {_CONSTRAINT}, {_PLACE}, column_name, CAST(key_position AS BIGINT) AS ordinal_position,
  {_null("BIGINT", "position_in_unique_constraint")}
FROM secateur.columns JOIN secateur.tables USING (table_name) WHERE key_position IS NOT NULL"""
    ),
    "constraint_column_usage": (
        f"""
SELECT {_PLACE}, column_name, {_CONSTRAINT}, 'PRIMARY KEY' AS constraint_type,
  'PRIMARY KEY(' || array_to_string(primary_key, ', ') || ')' AS constraint_text
FROM secateur.columns JOIN secateur.tables USING (table_name) WHERE key_position IS NOT NULL
UNION ALL
SELECT {_PLACE}, column_name, {_CHECK}, 'CHECK' AS constraint_type, 'CHECK((' || condition || '))' AS constraint_text
FROM (SELECT table_name, check_name, condition, unnest(columns) AS column_name FROM secateur.checks)"""
    ),
    "referential_constraints": (
        f"""
SELECT {_null("VARCHAR", "constraint_catalog", "constraint_schema", "constraint_name")},
  {_null("VARCHAR", "unique_constraint_catalog", "unique_constraint_schema")},
  {_null("VARCHAR", "unique_constraint_name", "match_option", "update_rule", "delete_rule")}
WHERE false"""
    ),
}

INFORMATION_SCHEMA: Final = {name: ViewDef(name, 0, query.strip(), (), (), ()) for name, query in _QUERIES.items()}
"""The views of the information schema by name, in lower case."""
