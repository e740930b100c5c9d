"""Storage: what a search, a small write, a bulk load and a row at rest cost on one member, without network, SQL or Ray.

Questions
    Is a lookup by primary key a search? (bar: under 10 us by a key of one or two columns among 4,000 rows)
    Does a small write cost the rows written rather than the rows there?
    How fast are rows sorted, checked and published? What does a table take at rest? (bar: at most 1.3 times its raw
    Arrow size)
Data
    ``readings``: 3 columns, key ``(device BIGINT, channel VARCHAR)``. ``trips``: 19 columns (text, timestamps,
    integers, doubles with NULLs), key ``(tail VARCHAR, at TIMESTAMP, n INTEGER)``, hashed on ``tail``.
Metric
    Microseconds per call: the median of nine rounds and their range, after one that is not counted. Candidates and
    controls take turns within a round.
Control
    Search: ``Table.filter`` over the same 4,000 rows. Write: a merge of the whole partition. Load: ``Table.sort_by`` of
    the same million rows.

Answers are compared with DuckDB before any time is taken. ``python -m benchmarks.storage`` prints the tables and writes
``build/bench/storage.json``.
"""
