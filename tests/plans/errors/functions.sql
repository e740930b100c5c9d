-- Functions that are refused, and what to write instead.
-- tables: shop
----
-- it says what to do instead, 1
SELECT current_setting('threads')
/*
NotSupportedError: current_setting() is not supported: it describes the DuckDB instance of one process; SHOW pruning and the like read the session (line 1, column 8)
  SELECT current_setting('threads')
         ^^^^^^^^^^^^^^^
*/
----
-- it says what to do instead, 2
SELECT 'threads'.current_setting()
/*
NotSupportedError: current_setting() is not supported: it describes the DuckDB instance of one process; SHOW pruning and the like read the session (line 1, column 18)
  SELECT 'threads'.current_setting()
                   ^^^^^^^^^^^^^^^
*/
----
-- it says what to do instead, 3
SELECT list_transform([1], lambda x: sleep_ms(x))
/*
NotSupportedError: sleep_ms() is not supported: members do not wait on behalf of a statement (line 1, column 38)
  SELECT list_transform([1], lambda x: sleep_ms(x))
                                       ^^^^^^^^
*/
----
-- it says what to do instead, 4
SELECT * FROM read_csv('x.csv')
/*
NotSupportedError: read_csv() is not supported: members read no files; the client reads one with COPY table FROM 'file' (line 1, column 15)
  SELECT * FROM read_csv('x.csv')
                ^^^^^^^^
*/
----
-- it says what to do instead, 5
SELECT * FROM histogram(orders, amount)
/*
NotSupportedError: histogram() is not supported: in FROM it reads a table of one process; write the aggregate histogram(column), or GROUP BY (line 1, column 15)
  SELECT * FROM histogram(orders, amount)
                ^^^^^^^^^
*/
----
-- it says what to do instead, 6
SELECT sum(amount) EXPORT_STATE FROM orders
/*
NotSupportedError: EXPORT_STATE is not supported: states of aggregates cannot leave a statement; write the aggregate without it (line 1, column 20)
  SELECT sum(amount) EXPORT_STATE FROM orders
                     ^^^^^^^^^^^^
*/
----
-- it says what to do instead, 7
SELECT finalize(x) FROM orders
/*
NotSupportedError: finalize() is not supported: states of aggregates cannot leave a statement; write the aggregate (line 1, column 8)
  SELECT finalize(x) FROM orders
         ^^^^^^^^
*/
----
-- it says what to do instead, 8
SELECT id, version() FROM orders
/*
NotSupportedError: version() is not supported: it tells the version of DuckDB; secateur.__version__ is that of secateur (line 1, column 12)
  SELECT id, version() FROM orders
             ^^^^^^^
*/
----
-- it says what to do instead, 9
SELECT Bitstring_Agg(id) FILTER (id > 1) FROM orders
/*
NotSupportedError: Bitstring_Agg(x) without bounds is not supported: write Bitstring_Agg(x, min, max) (line 1, column 8)
  SELECT Bitstring_Agg(id) FILTER (id > 1) FROM orders
         ^^^^^^^^^^^^^
*/
----
-- it says what to do instead, 10
SELECT rowid FROM orders
/*
NotSupportedError: rowid is not supported: rows have no numbers; name the primary key (line 1, column 8)
  SELECT rowid FROM orders
         ^^^^^
*/
----
-- it says what to do instead, 11
SELECT o.rowid FROM orders AS o
/*
NotSupportedError: rowid is not supported: rows have no numbers; name the primary key (line 1, column 10)
  SELECT o.rowid FROM orders AS o
           ^^^^^
*/
----
-- an unknown function is none of ours
SELECT nosuchfunction(1)
/*
ProgrammingError: Scalar Function with name nosuchfunction does not exist! (line 1, column 8)
  SELECT nosuchfunction(1)
         ^^^^^^^^^^^^^^^^^
Did you mean "countif"?
*/
