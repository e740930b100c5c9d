"""TPC-H on a cluster: how near one DuckDB process with the same cores, and how far before Spark.

The texts in ``queries/`` are those of DuckDB's generator, with the standard's validation parameters.
"""
