"""The DuckDB kernel: fragments answered by DuckDB over Arrow tables; also binding and errors."""
