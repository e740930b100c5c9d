"""TPC-DS on a cluster: 99 queries over a snowflake with skew and NULLs."""
