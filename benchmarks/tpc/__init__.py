"""The common parts of the TPC-H and TPC-DS suites: the data, and loading them into a cluster and into DuckDB."""
