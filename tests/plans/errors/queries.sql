-- Queries that are refused, with the place of the mistake.
-- tables: shop
----
-- an unknown statement
SELEC 1
/*
SqlSyntaxError: expected SELECT, INSERT, UPDATE, DELETE, TRUNCATE, MERGE, COPY, CREATE, DROP, GRANT, REVOKE, ALTER, COMMENT, FORGET, BACKUP, RESTORE, KILL, EXPLAIN, SHOW, DESCRIBE, SUMMARIZE, SET, RESET, PREPARE, EXECUTE, DEALLOCATE, ANALYZE or VACUUM, found 'SELEC' (line 1, column 1)
  SELEC 1
  ^^^^^
*/
----
-- empty

/*
SqlSyntaxError: the statement is empty (line 1, column 1)
  
  ^
*/
----
-- only a comment
 ; -- nothing
/*
SqlSyntaxError: the statement is empty (line 1, column 1)
   ; -- nothing
  ^
*/
----
-- two statements
SELECT 1; SELECT 2
/*
SqlSyntaxError: one statement at a time: a second one begins here (line 1, column 11)
  SELECT 1; SELECT 2
            ^^^^^^
*/
----
-- two operators
SELECT * FROM orders WHERE id = = 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "=" (line 1, column 33)
  SELECT * FROM orders WHERE id = = 1
                                  ^
*/
----
-- a parenthesis that stays open
SELECT *
FROM orders
WHERE (id = 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "1" (line 3, column 13)
  WHERE (id = 1
              ^
*/
----
-- behind a dollar sign
SELECT $1 FROM orders WHER id = 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "id" (line 1, column 28)
  SELECT $1 FROM orders WHER id = 1
                             ^^
*/
----
-- a string that stays open
SELECT 'abc
/*
SqlSyntaxError: the string is not closed (line 1, column 8)
  SELECT 'abc
         ^
*/
----
-- a name that stays open
SELECT
  "abc
/*
SqlSyntaxError: the quoted name is not closed (line 2, column 3)
    "abc
    ^
*/
----
-- a comment that stays open
SELECT /* abc
/*
SqlSyntaxError: the comment is not closed (line 1, column 8)
  SELECT /* abc
         ^
*/
----
-- an unknown table
SELECT * FROM ordrs
/*
UnknownTableError: table 'ordrs' does not exist (line 1, column 15)
  SELECT * FROM ordrs
                ^^^^^
*/
----
-- a file
SELECT * FROM '/etc/passwd'
/*
UnknownTableError: table '/etc/passwd' does not exist (line 1, column 15)
  SELECT * FROM '/etc/passwd'
                ^^^^^^^^^^^^^
*/
----
-- a schema
SELECT * FROM other.orders
/*
NotSupportedError: schema 'other' is not supported: tables and views are in the schema main, which need not be written; beside it are secateur, information_schema (line 1, column 15)
  SELECT * FROM other.orders
                ^^^^^^^^^^^^
*/
----
-- an unknown column
SELECT id, nam FROM customers
/*
UnknownColumnError: column 'id' does not exist; there is customer_id, name, score (line 1, column 8)
  SELECT id, nam FROM customers
         ^^
*/
----
-- an unknown column of a table
SELECT
  o.amout FROM orders o
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 2, column 5)
    o.amout FROM orders o
      ^^^^^
*/
----
-- a hidden table name
SELECT orders.id FROM orders o
/*
UnknownTableError: 'orders' names no table of this statement; there is o (line 1, column 8)
  SELECT orders.id FROM orders o
         ^^^^^^
*/
----
-- pivot
PIVOT orders ON priority USING sum(amount)
/*
NotSupportedError: PIVOT without the values of a column is not supported: write ON column IN (values) (line 1, column 1)
  PIVOT orders ON priority USING sum(amount)
  ^^^^^
*/
----
-- double quotes are for names
SELECT id FROM orders WHERE priority = "C2"
/*
UnknownColumnError: column 'C2' does not exist; there is customer_id, id, priority, amount, day; a text has single quotes: 'C2' (line 1, column 41)
  SELECT id FROM orders WHERE priority = "C2"
                                          ^^
*/
----
-- double quotes are for names, also in a change
DELETE FROM orders WHERE priority = "it's"
/*
UnknownColumnError: column "it's" does not exist; there is customer_id, id, priority, amount, day; a text has single quotes: 'it''s' (line 1, column 38)
  DELETE FROM orders WHERE priority = "it's"
                                       ^^^^
*/
----
-- a time zone
SET TIME ZONE 'Europe/Berlin'
/*
ProgrammingError: there is no setting 'TIME'; the time zone is UTC: write ts AT TIME ZONE 'Europe/Berlin' where another one is wanted (line 1, column 5)
  SET TIME ZONE 'Europe/Berlin'
      ^^^^
*/
----
-- a time zone as a setting
SET timezone = 'Europe/Berlin'
/*
ProgrammingError: there is no setting 'timezone'; the time zone is UTC: write ts AT TIME ZONE 'Europe/Berlin' where another one is wanted (line 1, column 5)
  SET timezone = 'Europe/Berlin'
      ^^^^^^^^
*/
----
-- a setting like no other
SET colour = red
/*
ProgrammingError: there is no setting 'colour'; SHOW ALL lists those that there are (line 1, column 5)
  SET colour = red
      ^^^^^^
*/
----
-- an unknown setting
SET prunning = on
/*
ProgrammingError: there is no setting 'prunning'; did you mean pruning? (line 1, column 5)
  SET prunning = on
      ^^^^^^^^
*/
----
-- an unknown value
SET pruning = maybe
/*
ProgrammingError: pruning is on, off or verify (line 1, column 15)
  SET pruning = maybe
                ^^^^^
*/
----
-- no value
SET pruning
/*
SqlSyntaxError: expected '=', found the end of the statement (line 1, column 12)
  SET pruning
             ^
*/
----
-- no combinations
SET combinations_per_partition = 0
/*
ProgrammingError: combinations_per_partition is a whole number from 1 to 1,000,000 (line 1, column 34)
  SET combinations_per_partition = 0
                                   ^
*/
----
-- an unknown rule
SET disabled_rules = 'in_pull'
/*
ProgrammingError: there is no rule 'in_pull'; there is materialize_subquery, join_keys_first (line 1, column 22)
  SET disabled_rules = 'in_pull'
                       ^^^^^^^^^
*/
----
-- nothing to explain
EXPLAIN
/*
SqlSyntaxError: expected a statement to explain, found the end of the statement (line 1, column 8)
  EXPLAIN
         ^
*/
----
-- another format
EXPLAIN (FORMAT XML) SELECT 1
/*
SqlSyntaxError: expected JSON or TEXT, found 'XML' (line 1, column 17)
  EXPLAIN (FORMAT XML) SELECT 1
                  ^^^
*/
----
-- an unknown function
SELECT nofunction(id) FROM orders
/*
ProgrammingError: Scalar Function with name nofunction does not exist! (line 1, column 8)
  SELECT nofunction(id) FROM orders
         ^^^^^^^^^^^^^^
Did you mean "json_contains"?
*/
----
-- a function over the wrong type
SELECT sum(priority) FROM orders
/*
ProgrammingError: No function matches the given name and argument types 'sum(VARCHAR)'. You might need to add explicit type casts. (line 1, column 8)
  SELECT sum(priority) FROM orders
         ^^^^^^^^^^^^^
Candidate functions:
	sum(arg DECIMAL) -> DECIMAL
	sum(arg BOOLEAN, /) -> HUGEINT
	sum(arg SMALLINT, /) -> HUGEINT
	sum(arg INTEGER, /) -> HUGEINT
	sum(arg BIGINT, /) -> HUGEINT
	sum(arg HUGEINT, /) -> HUGEINT
	sum(arg DOUBLE, /) -> DOUBLE
	sum(arg BIGNUM, /) -> BIGNUM
*/
----
-- a column that is not grouped
SELECT id FROM orders GROUP BY priority
/*
ProgrammingError: column "id" must appear in the GROUP BY clause or must be part of an aggregate function. (line 1, column 8)
  SELECT id FROM orders GROUP BY priority
         ^^
Either add it to the GROUP BY list, or use ANY_VALUE("id") if the exact value of "id" is not important.
*/
----
-- a join column that one side lacks
SELECT id FROM orders o JOIN customers c USING (id)
/*
ProgrammingError: Column "id" does not exist on right side of join (line 1, column 8)
  SELECT id FROM orders o JOIN customers c USING (id)
         ^^
*/
----
-- an ambiguous column
SELECT customer_id FROM orders, customers
/*
ProgrammingError: Ambiguous reference to column name "customer_id" (use: 'orders.customer_id' or 'customers.customer_id') (line 1, column 8)
  SELECT customer_id FROM orders, customers
         ^^^^^^^^^^^
*/
----
-- reading a file
SELECT * FROM read_csv('/etc/passwd')
/*
NotSupportedError: read_csv() is not supported: members read no files; the client reads one with COPY table FROM 'file' (line 1, column 15)
  SELECT * FROM read_csv('/etc/passwd')
                ^^^^^^^^
*/
----
-- pivot without values
SELECT * FROM (PIVOT orders ON priority USING sum(amount))
/*
NotSupportedError: PIVOT without the values of a column is not supported: write ON column IN (values) (line 1, column 16)
  SELECT * FROM (PIVOT orders ON priority USING sum(amount))
                 ^^^^^
*/
----
-- too many parameters
-- parameters: 1, 2
SELECT * FROM orders WHERE id = ?
/*
ParameterError: the statement has 1 parameter, 2 given
*/
----
-- positions for names
-- parameters: 1
SELECT * FROM orders WHERE id = $id
/*
ParameterError: the statement has named parameters ($id): pass a mapping of names to values
*/
----
-- a gap in the numbers
-- parameters: 1, 2
SELECT $2
/*
ParameterError: the statement has $2 but not $1: number parameters without gaps (line 1, column 8)
  SELECT $2
         ^^
*/
----
-- column
SELECT 'ü',
  nope FROM orders
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 2, column 3)
    nope FROM orders
    ^^^^
*/
----
-- column of a table
SELECT 1, c.nam FROM orders o, customers c
/*
UnknownColumnError: column 'nam' does not exist; did you mean name? (line 1, column 13)
  SELECT 1, c.nam FROM orders o, customers c
              ^^^
*/
----
-- column of a CTE
WITH a AS (SELECT id FROM orders) SELECT idd FROM a
/*
UnknownColumnError: column 'idd' does not exist; did you mean id? (line 1, column 42)
  WITH a AS (SELECT id FROM orders) SELECT idd FROM a
                                           ^^^
*/
----
-- column of a subquery
SELECT x FROM (SELECT id FROM orders)
/*
UnknownColumnError: column 'x' does not exist; there is id (line 1, column 8)
  SELECT x FROM (SELECT id FROM orders)
         ^
*/
----
-- left out of a star
SELECT * EXCLUDE (nope) FROM customers
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, name, score (line 1, column 19)
  SELECT * EXCLUDE (nope) FROM customers
                    ^^^^
*/
----
-- behind a parameter
-- parameters: 'a', 'b'
SELECT id FROM orders WHERE priority = ? AND q = ?
/*
UnknownColumnError: column 'q' does not exist; there is customer_id, id, priority, amount, day (line 1, column 46)
  SELECT id FROM orders WHERE priority = ? AND q = ?
                                               ^
*/
----
-- table
SELECT x.id FROM orders o
/*
UnknownTableError: 'x' names no table of this statement; there is o (line 1, column 8)
  SELECT x.id FROM orders o
         ^
*/
----
-- star
SELECT x.* FROM orders, customers AS c
/*
UnknownTableError: 'x' names no table of this statement; there is orders, c (line 1, column 8)
  SELECT x.* FROM orders, customers AS c
         ^
*/
----
-- ambiguous
SELECT customer_id FROM orders o, customers c
/*
ProgrammingError: Ambiguous reference to column name "customer_id" (use: 'o.customer_id' or 'c.customer_id') (line 1, column 8)
  SELECT customer_id FROM orders o, customers c
         ^^^^^^^^^^^
*/
----
-- one alias for two
SELECT * FROM orders a, customers a
/*
ProgrammingError: Ambiguous reference to table "a" (duplicate alias "a", explicitly alias one of the tables using "AS my_alias") (line 1, column 35)
  SELECT * FROM orders a, customers a
                                    ^
*/
----
-- USING
SELECT 1 FROM orders JOIN customers USING (zz)
/*
ProgrammingError: Column "zz" does not exist on left side of join (line 1, column 44)
  SELECT 1 FROM orders JOIN customers USING (zz)
                                             ^^
*/
----
-- not grouped
SELECT id, sum(amount) FROM orders
/*
ProgrammingError: column "id" must appear in the GROUP BY clause or must be part of an aggregate function. (line 1, column 8)
  SELECT id, sum(amount) FROM orders
         ^^
Either add it to the GROUP BY list, or use ANY_VALUE("id") if the exact value of "id" is not important.
*/
----
-- aggregate in WHERE
SELECT id FROM orders WHERE sum(id) > 1
/*
ProgrammingError: WHERE clause cannot contain aggregates (line 1, column 29)
  SELECT id FROM orders WHERE sum(id) > 1
                              ^^^^^^^
*/
----
-- order by a number
SELECT id FROM orders ORDER BY 3
/*
ProgrammingError: ORDER term out of range - should be between 1 and 1 (line 1, column 32)
  SELECT id FROM orders ORDER BY 3
                                 ^
*/
----
-- group by a number
SELECT id FROM orders GROUP BY 5
/*
ProgrammingError: GROUP BY term out of range - should be between 1 and 1 (line 1, column 23)
  SELECT id FROM orders GROUP BY 5
                        ^^^^^
*/
----
-- qualify
SELECT id FROM orders QUALIFY id > 1
/*
ProgrammingError: at least one window function must appear in the SELECT column or QUALIFY clause (line 1, column 23)
  SELECT id FROM orders QUALIFY id > 1
                        ^^^^^^^
*/
----
-- set operation
SELECT id FROM orders UNION SELECT 1, 2
/*
ProgrammingError: Set operations can only apply to expressions with the same number of result columns (line 1, column 23)
  SELECT id FROM orders UNION SELECT 1, 2
                        ^^^^^
*/
----
-- function
SELECT nofunction(id) FROM orders
/*
ProgrammingError: Scalar Function with name nofunction does not exist! (line 1, column 8)
  SELECT nofunction(id) FROM orders
         ^^^^^^^^^^^^^^
Did you mean "json_contains"?
*/
----
-- type
SELECT CAST(id AS nope) FROM orders
/*
ProgrammingError: Type with name nope does not exist! (line 1, column 19)
  SELECT CAST(id AS nope) FROM orders
                    ^^^^
Did you mean "type"?
*/
----
-- subquery
SELECT id FROM orders WHERE (SELECT 1, 2) = 1
/*
ProgrammingError: Subquery returns 2 columns - expected 1 (line 1, column 29)
  SELECT id FROM orders WHERE (SELECT 1, 2) = 1
                              ^^^^^^^^^^^^^
*/
----
-- lateral
SELECT o.id FROM orders o, LATERAL (SELECT zz FROM customers) l
/*
UnknownColumnError: column 'zz' does not exist; there is amount (line 1, column 44)
  SELECT o.id FROM orders o, LATERAL (SELECT zz FROM customers) l
                                             ^^
*/
----
-- CTE twice
WITH a AS (SELECT 1), a AS (SELECT 2) FROM a
/*
SqlSyntaxError: the statement does not parse: Duplicate CTE name "a" (line 1, column 23)
  WITH a AS (SELECT 1), a AS (SELECT 2) FROM a
                        ^
*/
----
-- a limit below zero
SELECT id FROM orders LIMIT -1
/*
ProgrammingError: LIMIT/OFFSET cannot be negative (line 1, column 29)
  SELECT id FROM orders LIMIT -1
                              ^^
*/
----
-- update
UPDATE orders SET priority = nope
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 30)
  UPDATE orders SET priority = nope
                               ^^^^
*/
----
-- delete
DELETE FROM orders WHERE nope = 1
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 26)
  DELETE FROM orders WHERE nope = 1
                           ^^^^
*/
----
-- explain
EXPLAIN SELECT nope FROM orders
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 16)
  EXPLAIN SELECT nope FROM orders
                 ^^^^
*/
----
-- a with behind a with is refused where it stands
WITH w AS (SELECT id FROM orders) (WITH u AS (SELECT 2) SELECT * FROM u, w)
/*
NotSupportedError: 'u' cannot be seen from its query: WITH in parentheses directly behind another WITH is not supported; write one WITH (line 1, column 71)
  WITH w AS (SELECT id FROM orders) (WITH u AS (SELECT 2) SELECT * FROM u, w)
                                                                        ^
*/
----
-- advice follows the place
SELECT abs(day) FROM orders
/*
ProgrammingError: No function matches the given name and argument types 'abs(DATE)'. You might need to add explicit type casts. (line 1, column 8)
  SELECT abs(day) FROM orders
         ^^^^^^^^
Candidate functions:
	abs(x TINYINT) -> TINYINT
	abs(x SMALLINT) -> SMALLINT
	abs(x INTEGER) -> INTEGER
	abs(x BIGINT) -> BIGINT
	abs(x HUGEINT) -> HUGEINT
	abs(x FLOAT) -> FLOAT
	abs(x DOUBLE) -> DOUBLE
	abs(x DECIMAL) -> DECIMAL
	abs(x UTINYINT) -> UTINYINT
	abs(x USMALLINT) -> USMALLINT
	abs(x UINTEGER) -> UINTEGER
	abs(x UBIGINT) -> UBIGINT
	abs(x UHUGEINT) -> UHUGEINT
*/
----
-- relations go by their own names
SELECT * FROM orders NATURAL JOIN (SELECT 1 AS y) q
/*
ProgrammingError: No columns found to join on in NATURAL JOIN. (line 1, column 22)
  SELECT * FROM orders NATURAL JOIN (SELECT 1 AS y) q
                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
Use CROSS JOIN if you intended for this to be a cross-product.
   Left candidates: orders.customer_id, orders.id, orders.priority, orders.amount, orders.day
   Right candidates: q.y
*/
----
-- parts of a query are refused where they stand, 1
SELECT * FROM orders, duckdb_tables()
/*
NotSupportedError: duckdb_tables() is not supported: it does not know the tables of a cluster; read secateur.tables (line 1, column 23)
  SELECT * FROM orders, duckdb_tables()
                        ^^^^^^^^^^^^^
*/
----
-- parts of a query are refused where they stand, 2
SELECT * FROM pragma_table_info('orders')
/*
NotSupportedError: pragma_table_info() is not supported: it does not know the tables of a cluster; read secateur.columns (line 1, column 15)
  SELECT * FROM pragma_table_info('orders')
                ^^^^^^^^^^^^^^^^^
*/
----
-- parts of a query are refused where they stand, 3
WITH a AS (SELECT 1), b AS (DELETE FROM orders RETURNING *) SELECT 1
/*
NotSupportedError: DELETE in a common table expression is not supported: send it as a statement of its own, with RETURNING (line 1, column 23)
  WITH a AS (SELECT 1), b AS (DELETE FROM orders RETURNING *) SELECT 1
                        ^
*/
----
-- no values
PIVOT orders ON id
/*
NotSupportedError: PIVOT without the values of a column is not supported: write ON column IN (values) (line 1, column 1)
  PIVOT orders ON id
  ^^^^^
*/
----
-- an expression
PIVOT orders ON id % 2 IN (0)
/*
NotSupportedError: PIVOT without the values of a column is not supported: write ON column IN (values) (line 1, column 1)
  PIVOT orders ON id % 2 IN (0)
  ^^^^^
*/
----
-- no column
PIVOT orders
/*
SqlSyntaxError: the statement does not parse: PIVOT requires an ON, USING or GROUP BY clause (line 1, column 7)
  PIVOT orders
        ^^^^^^
*/
----
-- no aggregate
PIVOT orders ON id IN (1) USING
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "USING" (line 1, column 27)
  PIVOT orders ON id IN (1) USING
                            ^^^^^
*/
----
-- no such column
PIVOT orders ON nothing IN (1)
/*
UnknownColumnError: column 'nothing' does not exist; there is customer_id, id, priority, amount, day (line 1, column 17)
  PIVOT orders ON nothing IN (1)
                  ^^^^^^^
*/
----
-- no name
UNPIVOT orders ON id INTO amount
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "amount" (line 1, column 27)
  UNPIVOT orders ON id INTO amount
                            ^^^^^^
*/
----
-- a table as a query has no condition
SELECT count(*) FROM (TABLE orders WHERE id = 1) AS o
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "WHERE" (line 1, column 36)
  SELECT count(*) FROM (TABLE orders WHERE id = 1) AS o
                                     ^^^^^
*/
----
-- a table as the whole statement has no columns
TABLE orders (id)
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "(" (line 1, column 14)
  TABLE orders (id)
               ^
*/
