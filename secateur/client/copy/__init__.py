"""COPY: files that are read and written in the process of the client, by DuckDB."""
