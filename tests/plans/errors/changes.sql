-- INSERT, UPDATE, DELETE, MERGE and COPY that are refused.
-- tables: shop
----
-- unknown table
INSERT INTO nowhere VALUES (1)
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 13)
  INSERT INTO nowhere VALUES (1)
              ^^^^^^^
*/
----
-- unknown column
INSERT INTO customers (nam) VALUES (1)
/*
UnknownColumnError: table customers has no column 'nam'; did you mean name? (line 1, column 24)
  INSERT INTO customers (nam) VALUES (1)
                         ^^^
*/
----
-- a column twice
INSERT INTO customers (name, NAME) VALUES (1, 2)
/*
ProgrammingError: column 'name' is named twice (line 1, column 30)
  INSERT INTO customers (name, NAME) VALUES (1, 2)
                               ^^^^
*/
----
-- too few values
INSERT INTO customers VALUES ('a', 'b', 1), ('a')
/*
ProgrammingError: row 2 has 1 value for the 3 columns customer_id, name, score (line 1, column 45)
  INSERT INTO customers VALUES ('a', 'b', 1), ('a')
                                              ^
*/
----
-- too many values
INSERT INTO customers (name) VALUES (1, 2)
/*
ProgrammingError: row 1 has 2 values for the 1 columns name (line 1, column 37)
  INSERT INTO customers (name) VALUES (1, 2)
                                      ^
*/
----
-- too few columns
INSERT INTO customers SELECT 1
/*
SqlSyntaxError: the query has 1 columns for the 3 columns customer_id, name, score (line 1, column 23)
  INSERT INTO customers SELECT 1
                        ^
*/
----
-- end in the middle
INSERT INTO customers
/*
SqlSyntaxError: expected VALUES or a query, found the end of the statement (line 1, column 22)
  INSERT INTO customers
                       ^
*/
----
-- no rows
INSERT INTO customers VALUES
/*
SqlSyntaxError: expected (, found the end of the statement (line 1, column 29)
  INSERT INTO customers VALUES
                              ^
*/
----
-- no value
INSERT INTO customers VALUES ('a', , 1)
/*
SqlSyntaxError: expected a value, found ',' (line 1, column 36)
  INSERT INTO customers VALUES ('a', , 1)
                                     ^
*/
----
-- not closed
INSERT INTO customers VALUES ('a', 'b', 1
/*
SqlSyntaxError: expected ',' or ')', found the end of the statement (line 1, column 42)
  INSERT INTO customers VALUES ('a', 'b', 1
                                           ^
*/
----
-- something behind
INSERT INTO customers VALUES ('a', 'b', 1) x
/*
SqlSyntaxError: expected the end of the statement, found 'x' (line 1, column 44)
  INSERT INTO customers VALUES ('a', 'b', 1) x
                                             ^
*/
----
-- or abort
INSERT OR ABORT INTO customers VALUES ('a', 'b', 1)
/*
SqlSyntaxError: expected IGNORE, found 'ABORT' (line 1, column 11)
  INSERT OR ABORT INTO customers VALUES ('a', 'b', 1)
            ^^^^^
*/
----
-- on another
INSERT INTO customers VALUES ('a', 'b', 1) ON CONFLICT (name) DO NOTHING
/*
ProgrammingError: the only unique key of customers is its primary key (customer_id): name those columns, or none (line 1, column 56)
  INSERT INTO customers VALUES ('a', 'b', 1) ON CONFLICT (name) DO NOTHING
                                                         ^
*/
----
-- said twice
INSERT OR REPLACE INTO customers VALUES ('a', 'b', 1) ON CONFLICT DO NOTHING
/*
ProgrammingError: INSERT OR ... already decides what happens to existing keys: leave out ON CONFLICT (line 1, column 55)
  INSERT OR REPLACE INTO customers VALUES ('a', 'b', 1) ON CONFLICT DO NOTHING
                                                        ^^^^^^^^^^^
*/
----
-- do what
INSERT INTO customers VALUES ('a', 'b', 1) ON CONFLICT DO x
/*
SqlSyntaxError: expected NOTHING or UPDATE, found 'x' (line 1, column 59)
  INSERT INTO customers VALUES ('a', 'b', 1) ON CONFLICT DO x
                                                            ^
*/
----
-- by name with values
INSERT INTO customers BY NAME VALUES (1)
/*
NotSupportedError: BY NAME with VALUES is not supported: name the columns behind the table (line 1, column 31)
  INSERT INTO customers BY NAME VALUES (1)
                                ^^^^^^
*/
----
-- a name where a text is meant
INSERT INTO customers VALUES (1, "b", 1)
/*
UnknownColumnError: column 'b' cannot be used here: VALUES reads no table; a text has single quotes: 'b' (line 1, column 34)
  INSERT INTO customers VALUES (1, "b", 1)
                                   ^^^
*/
----
-- a NULL key
INSERT INTO customers VALUES (NULL, 'b', 1)
/*
NullKeyError: table customers: column customer_id is NOT NULL, but 1 of 1 rows are NULL there, the first is row 1
*/
----
-- no key
INSERT INTO customers (name) VALUES ('b')
/*
NullKeyError: table customers: column customer_id is NOT NULL and the data lack it
*/
----
-- a text that is no number
INSERT INTO orders (customer_id, id) VALUES ('a', 'x')
/*
DataError: Could not convert string 'x' to INT64
*/
----
-- outside of the type
INSERT INTO orders (customer_id, id, amount) VALUES ('a', 1, 999999999)
/*
DataError: Could not cast value 999999999 to DECIMAL(10,2)
*/
----
-- too few parameters
-- parameters: 'a'
INSERT INTO orders (customer_id, id) VALUES (?, ?)
/*
ParameterError: the statement has 2 parameters, 1 given
*/
----
-- no parameters
INSERT INTO orders (customer_id, id) VALUES (?, ?)
/*
ParameterError: the statement has 2 parameters, 0 given
*/
----
-- unknown column, 2
INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT DO UPDATE SET nam = 1
/*
UnknownColumnError: table airlines has no column 'nam'; did you mean name? (line 1, column 66)
  INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT DO UPDATE SET nam = 1
                                                                   ^^^
*/
----
-- unknown column of the row
INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT DO UPDATE SET name = excluded.nam
/*
ProgrammingError: Could not find key "nam" in struct

Candidate Entries: "name"
*/
----
-- no SET
INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT DO UPDATE name = 1
/*
SqlSyntaxError: expected SET, found 'name' (line 1, column 62)
  INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT DO UPDATE name = 1
                                                               ^^^^
*/
----
-- unknown column of the key
INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT (nam) DO NOTHING
/*
UnknownColumnError: table airlines has no column 'nam'; did you mean name? (line 1, column 53)
  INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT (nam) DO NOTHING
                                                      ^^^
*/
----
-- a partial index
INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT (code) WHERE true DO NOTHING
/*
NotSupportedError: a condition on the conflict itself is not supported: write DO UPDATE SET ... WHERE condition (line 1, column 59)
  INSERT INTO airlines VALUES ('a', 'b') ON CONFLICT (code) WHERE true DO NOTHING
                                                            ^^^^^
*/
----
-- an aggregate
INSERT INTO airlines VALUES ('a', 'b') RETURNING sum(1)
/*
ProgrammingError: RETURNING takes values of the changed row alone: no aggregates, windows or subqueries (line 1, column 50)
  INSERT INTO airlines VALUES ('a', 'b') RETURNING sum(1)
                                                   ^
*/
----
-- no SET, 2
UPDATE orders WHERE id = 1
/*
SqlSyntaxError: expected SET, found 'WHERE' (line 1, column 15)
  UPDATE orders WHERE id = 1
                ^^^^^
*/
----
-- no assignment
UPDATE orders SET
/*
SqlSyntaxError: expected a column, found the end of the statement (line 1, column 18)
  UPDATE orders SET
                   ^
*/
----
-- no value, 2
UPDATE orders SET amount = 
/*
SqlSyntaxError: expected a value, found the end of the statement (line 1, column 27)
  UPDATE orders SET amount = 
                            ^
*/
----
-- no value before a comma
UPDATE orders SET amount = , day = NULL
/*
SqlSyntaxError: expected a value, found ',' (line 1, column 28)
  UPDATE orders SET amount = , day = NULL
                             ^
*/
----
-- no equals sign
UPDATE orders SET amount 1
/*
SqlSyntaxError: expected =, found '1' (line 1, column 26)
  UPDATE orders SET amount 1
                           ^
*/
----
-- a qualified column
UPDATE orders SET orders.amount = 1
/*
SqlSyntaxError: expected '=' (columns are assigned by their bare names), found '.' (line 1, column 25)
  UPDATE orders SET orders.amount = 1
                          ^
*/
----
-- too few values, 2
UPDATE orders SET (amount, day) = ROW(1)
/*
ProgrammingError: (amount, day) = (...) takes one value for each of the 2 columns (line 1, column 35)
  UPDATE orders SET (amount, day) = ROW(1)
                                    ^
*/
----
-- too many values, 2
UPDATE orders SET (amount, day) = (1, NULL, 2)
/*
ProgrammingError: (amount, day) = (...) takes one value for each of the 2 columns (line 1, column 35)
  UPDATE orders SET (amount, day) = (1, NULL, 2)
                                    ^
*/
----
-- a query of two columns
UPDATE orders SET (amount, day) = (SELECT 1, NULL)
/*
ProgrammingError: Subquery returns 2 columns - expected 1 (line 1, column 35)
  UPDATE orders SET (amount, day) = (SELECT 1, NULL)
                                    ^^^^^^^^^^^^^^^^
*/
----
-- twice in a list
UPDATE orders SET (amount, amount) = (1, 2)
/*
ProgrammingError: column 'amount' is assigned twice (line 1, column 28)
  UPDATE orders SET (amount, amount) = (1, 2)
                             ^^^^^^
*/
----
-- from nothing
UPDATE orders SET amount = 1 FROM
/*
SqlSyntaxError: expected a table, found the end of the statement (line 1, column 34)
  UPDATE orders SET amount = 1 FROM
                                   ^
*/
----
-- an unknown column of another
UPDATE orders SET amount = c.scor FROM customers c
/*
UnknownColumnError: column 'scor' does not exist; did you mean score? (line 1, column 30)
  UPDATE orders SET amount = c.scor FROM customers c
                               ^^^^
*/
----
-- unnest with from
UPDATE orders SET amount = unnest([1, 2]) FROM customers
/*
ProgrammingError: an assigned value is one value: unnest() is not allowed in SET (line 1, column 14)
  UPDATE orders SET amount = unnest([1, 2]) FROM customers
               ^
*/
----
-- group by with from
UPDATE orders SET amount = 1 FROM customers GROUP BY ALL
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "GROUP" (line 1, column 45)
  UPDATE orders SET amount = 1 FROM customers GROUP BY ALL
                                              ^^^^^
*/
----
-- an unknown column
UPDATE orders SET amout = 1
/*
UnknownColumnError: table orders has no column 'amout'; did you mean amount? (line 1, column 19)
  UPDATE orders SET amout = 1
                    ^^^^^
*/
----
-- an unknown column in a value
UPDATE orders SET amount = amout
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 1, column 28)
  UPDATE orders SET amount = amout
                             ^^^^^
*/
----
-- twice
UPDATE orders SET amount = 1, AMOUNT = 2
/*
ProgrammingError: column 'amount' is assigned twice (line 1, column 31)
  UPDATE orders SET amount = 1, AMOUNT = 2
                                ^^^^^^
*/
----
-- limit
UPDATE orders SET amount = 1 LIMIT 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "LIMIT" (line 1, column 30)
  UPDATE orders SET amount = 1 LIMIT 1
                               ^^^^^
*/
----
-- limit behind the condition
UPDATE orders SET amount = 1 WHERE id = 1 LIMIT 1
/*
SqlSyntaxError: UPDATE takes one table and a WHERE clause, and nothing behind it (line 1, column 14)
  UPDATE orders SET amount = 1 WHERE id = 1 LIMIT 1
               ^
*/
----
-- a bracket too many
UPDATE orders SET amount = 1) AS x, (2
/*
SqlSyntaxError: ')' closes nothing (line 1, column 29)
  UPDATE orders SET amount = 1) AS x, (2
                              ^
*/
----
-- a window
UPDATE orders SET amount = row_number() OVER ()
/*
ProgrammingError: an assigned value is computed from its own row: window functions are not allowed in SET (line 1, column 14)
  UPDATE orders SET amount = row_number() OVER ()
               ^
*/
----
-- unnest
UPDATE orders SET amount = unnest([1, 2])
/*
ProgrammingError: an assigned value is one value: unnest() is not allowed in SET (line 1, column 14)
  UPDATE orders SET amount = unnest([1, 2])
               ^
*/
----
-- columns
UPDATE orders SET amount = COLUMNS(*)
/*
ProgrammingError: every assignment takes one value: COLUMNS(...) is not allowed in SET (line 1, column 14)
  UPDATE orders SET amount = COLUMNS(*)
               ^
*/
----
-- an aggregate, 2
UPDATE orders SET amount = sum(id)
/*
ProgrammingError: an assigned value is computed from its own row: sum() is not allowed in SET (line 1, column 14)
  UPDATE orders SET amount = sum(id)
               ^
*/
----
-- no FROM
DELETE orders
/*
SqlSyntaxError: expected FROM, found 'orders' (line 1, column 8)
  DELETE orders
         ^^^^^^
*/
----
-- no table
DELETE FROM
/*
SqlSyntaxError: expected the name of a table, found the end of the statement (line 1, column 12)
  DELETE FROM
             ^
*/
----
-- an unknown table
DELETE FROM ordrs
/*
UnknownTableError: table 'ordrs' does not exist (line 1, column 13)
  DELETE FROM ordrs
              ^^^^^
*/
----
-- a schema
DELETE FROM other.orders
/*
NotSupportedError: a schema in front of a table name is not supported: tables and views are in the schema main, which need not be written (line 1, column 13)
  DELETE FROM other.orders
              ^^^^^
*/
----
-- an unknown column, 2
DELETE FROM orders WHERE amout = 1
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 1, column 26)
  DELETE FROM orders WHERE amout = 1
                           ^^^^^
*/
----
-- renamed columns
DELETE FROM orders AS o(a) WHERE a = 1
/*
NotSupportedError: a list of columns behind the table is not supported: use the columns' own names (line 1, column 24)
  DELETE FROM orders AS o(a) WHERE a = 1
                         ^
*/
----
-- two tables
DELETE FROM orders, customers
/*
SqlSyntaxError: expected USING, WHERE or the end of the statement, found ',' (line 1, column 19)
  DELETE FROM orders, customers
                    ^
*/
----
-- order by
DELETE FROM orders WHERE id = 1 ORDER BY id
/*
SqlSyntaxError: DELETE takes one table and a WHERE clause, and nothing behind it (line 1, column 19)
  DELETE FROM orders WHERE id = 1 ORDER BY id
                    ^
*/
----
-- limit, 2
DELETE FROM orders WHERE id = 1 LIMIT 1
/*
SqlSyntaxError: DELETE takes one table and a WHERE clause, and nothing behind it (line 1, column 19)
  DELETE FROM orders WHERE id = 1 LIMIT 1
                    ^
*/
----
-- group by
DELETE FROM orders WHERE id = 1 GROUP BY ALL
/*
SqlSyntaxError: DELETE takes one table and a WHERE clause, and nothing behind it (line 1, column 19)
  DELETE FROM orders WHERE id = 1 GROUP BY ALL
                    ^
*/
----
-- a set operation
DELETE FROM orders WHERE true UNION SELECT 'a', 1
/*
SqlSyntaxError: DELETE takes one table and a WHERE clause, and nothing behind it (line 1, column 19)
  DELETE FROM orders WHERE true UNION SELECT 'a', 1
                    ^
*/
----
-- no condition
DELETE FROM orders WHERE
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "WHERE" (line 1, column 20)
  DELETE FROM orders WHERE
                     ^^^^^
*/
----
-- an unknown column to return
DELETE FROM orders RETURNING amout
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 1, column 30)
  DELETE FROM orders RETURNING amout
                               ^^^^^
*/
----
-- an aggregate to return
DELETE FROM orders RETURNING count(*)
/*
ProgrammingError: RETURNING takes values of the changed row alone: no aggregates, windows or subqueries (line 1, column 30)
  DELETE FROM orders RETURNING count(*)
                               ^
*/
----
-- a subquery to return
DELETE FROM orders RETURNING (SELECT 1)
/*
ProgrammingError: RETURNING takes values of the changed row alone: no aggregates, windows or subqueries (line 1, column 30)
  DELETE FROM orders RETURNING (SELECT 1)
                               ^
*/
----
-- nothing to return
DELETE FROM orders RETURNING
/*
SqlSyntaxError: expected a value, found the end of the statement (line 1, column 29)
  DELETE FROM orders RETURNING
                              ^
*/
----
-- no table to use
DELETE FROM orders USING WHERE true
/*
SqlSyntaxError: expected a table, found 'WHERE' (line 1, column 26)
  DELETE FROM orders USING WHERE true
                           ^^^^^
*/
----
-- an unknown table to use
DELETE FROM orders USING nowhere WHERE true
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 26)
  DELETE FROM orders USING nowhere WHERE true
                           ^^^^^^^
*/
----
-- an unknown column there
DELETE FROM orders USING customers c WHERE c.nam = 'x'
/*
UnknownColumnError: column 'nam' does not exist; did you mean name? (line 1, column 46)
  DELETE FROM orders USING customers c WHERE c.nam = 'x'
                                               ^^^
*/
----
-- limit behind the tables
DELETE FROM orders USING customers LIMIT 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "LIMIT" (line 1, column 36)
  DELETE FROM orders USING customers LIMIT 1
                                     ^^^^^
*/
----
-- an aggregate, 3
DELETE FROM orders WHERE sum(id) > 1
/*
ProgrammingError: WHERE clause cannot contain aggregates (line 1, column 26)
  DELETE FROM orders WHERE sum(id) > 1
                           ^^^^^^^
*/
----
-- truncate with a condition
TRUNCATE orders WHERE id = 1
/*
SqlSyntaxError: expected the end of the statement, found 'WHERE' (line 1, column 17)
  TRUNCATE orders WHERE id = 1
                  ^^^^^
*/
----
-- target
MERGE INTO nowhere USING customers ON true WHEN MATCHED THEN DELETE
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 12)
  MERGE INTO nowhere USING customers ON true WHEN MATCHED THEN DELETE
             ^^^^^^^
*/
----
-- source
MERGE INTO airlines USING nowhere ON true WHEN MATCHED THEN DELETE
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 27)
  MERGE INTO airlines USING nowhere ON true WHEN MATCHED THEN DELETE
                            ^^^^^^^
*/
----
-- no alias
MERGE INTO airlines USING (SELECT 1) ON true WHEN MATCHED THEN DELETE
/*
SqlSyntaxError: expected AS and a name for the query, found 'ON' (line 1, column 38)
  MERGE INTO airlines USING (SELECT 1) ON true WHEN MATCHED THEN DELETE
                                       ^^
*/
----
-- no condition, 2
MERGE INTO airlines USING customers WHEN MATCHED THEN DELETE
/*
SqlSyntaxError: expected ON or USING (columns), found 'MATCHED' (line 1, column 42)
  MERGE INTO airlines USING customers WHEN MATCHED THEN DELETE
                                           ^^^^^^^
*/
----
-- no clause
MERGE INTO airlines USING customers ON true
/*
SqlSyntaxError: expected WHEN, found the end of the statement (line 1, column 44)
  MERGE INTO airlines USING customers ON true
                                             ^
*/
----
-- insert where it matches
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN INSERT *
/*
SqlSyntaxError: expected UPDATE, DELETE, DO NOTHING or ERROR, found 'INSERT' (line 1, column 88)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN INSERT *
                                                                                         ^^^^^^
*/
----
-- delete what is not there
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN DELETE
/*
SqlSyntaxError: expected INSERT, DO NOTHING or ERROR, found 'DELETE' (line 1, column 92)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN DELETE
                                                                                             ^^^^^^
*/
----
-- update by no source
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED BY SOURCE THEN UPDATE
/*
SqlSyntaxError: expected SET and an assignment, found the end of the statement (line 1, column 108)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED BY SOURCE THEN UPDATE
                                                                                                             ^
*/
----
-- unknown column, 3
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN UPDATE SET nam = 1
/*
UnknownColumnError: table airlines has no column 'nam'; did you mean name? (line 1, column 99)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN UPDATE SET nam = 1
                                                                                                    ^^^
*/
----
-- unknown column of the source
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN UPDATE SET name = c.nam
/*
UnknownColumnError: column 'nam' does not exist; did you mean name? (line 1, column 108)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN UPDATE SET name = c.nam
                                                                                                             ^^^
*/
----
-- named twice, of a row that is new
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT (code, code) VALUES (1, 2)
/*
ProgrammingError: column 'code' is named twice (line 1, column 106)
   a.code = c.customer_id WHEN NOT MATCHED THEN INSERT (code, code) VALUES (1, 2)
                                                              ^^^^
*/
----
-- too many values, 3
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT (code) VALUES (1, 2)
/*
ProgrammingError: 2 values for the 1 columns code (line 1, column 106)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT (code) VALUES (1, 2)
                                                                                                           ^
*/
----
-- other columns
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT *
/*
ProgrammingError: the source has 3 columns for the 2 of airlines: name the values, or say BY NAME (line 1, column 29)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT *
                              ^^^^^^^^^^^^^^
*/
----
-- other names
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN NOT MATCHED THEN INSERT BY NAME
/*
UnknownColumnError: table airlines has no column 'customer_id'; it has code, name
*/
----
-- never reached
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN DELETE WHEN MATCHED AND true THEN DO NOTHING
/*
SqlSyntaxError: this clause is never reached: a WHEN MATCHED without a condition stands before it (line 1, column 95)
  ers AS c ON a.code = c.customer_id WHEN MATCHED THEN DELETE WHEN MATCHED AND true THEN DO NOTHING
                                                              ^^^^
*/
----
-- no condition behind AND
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED AND THEN DELETE
/*
SqlSyntaxError: expected a condition, found 'THEN' (line 1, column 87)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED AND THEN DELETE
                                                                                        ^^^^
*/
----
-- something behind, 2
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN DELETE LIMIT 1
/*
SqlSyntaxError: expected the end of the statement, found 'LIMIT' (line 1, column 95)
  MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN DELETE LIMIT 1
                                                                                                ^^^^^
*/
----
-- unknown table, 2
COPY nowhere FROM 'a'
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 6)
  COPY nowhere FROM 'a'
       ^^^^^^^
*/
----
-- unknown column, 4
COPY airlines (nam) FROM 'a'
/*
UnknownColumnError: table airlines has no column 'nam'; did you mean name? (line 1, column 16)
  COPY airlines (nam) FROM 'a'
                 ^^^
*/
----
-- no direction
COPY airlines 'a'
/*
SqlSyntaxError: expected FROM or TO, found "'a'" (line 1, column 15)
  COPY airlines 'a'
                ^^^
*/
----
-- no path
COPY airlines FROM a
/*
SqlSyntaxError: expected the path of a file, as 'text', found 'a' (line 1, column 20)
  COPY airlines FROM a
                     ^
*/
----
-- unknown format
COPY airlines FROM 'a' (FORMAT xml)
/*
ProgrammingError: 'xml' is not a format of COPY: use csv, parquet or json (line 1, column 32)
  COPY airlines FROM 'a' (FORMAT xml)
                                 ^^^
*/
----
-- unknown option
COPY airlines FROM 'a' (SPEED 9)
/*
ProgrammingError: COPY FROM a csv file has no option SPEED: it has FORMAT, ALLOW_QUOTED_NULLS, AUTO_DETECT, BUFFER_SIZE, COMMENT, COMPRESSION, DATEFORMAT, DECIMAL_SEPARATOR, DELIMITER, ENCODING, ESCAPE, FORCE_NOT_NULL, HEADER, IGNORE_ERRORS, MAX_LINE_SIZE, NEW_LINE, NULL, NULL_PADDING, PARALLEL, QUOTE, SAMPLE_SIZE, SKIP, STRICT_MODE, THOUSANDS, TIMESTAMPFORMAT (line 1, column 25)
  COPY airlines FROM 'a' (SPEED 9)
                          ^^^^^
*/
----
-- no boolean
COPY airlines FROM 'a' (HEADER maybe)
/*
ProgrammingError: 'maybe' is neither true nor false (line 1, column 32)
  COPY airlines FROM 'a' (HEADER maybe)
                                 ^^^^^
*/
----
-- no text
COPY airlines FROM 'a' (DELIMITER)
/*
SqlSyntaxError: expected a text, found the end of the statement (line 1, column 35)
  COPY airlines FROM 'a' (DELIMITER)
                                    ^
*/
----
-- no number
COPY airlines FROM 'a' (SKIP x)
/*
SqlSyntaxError: expected a number, found 'x' (line 1, column 30)
  COPY airlines FROM 'a' (SKIP x)
                               ^
*/
----
-- an option twice
COPY airlines FROM 'a' (HEADER, HEADER)
/*
ProgrammingError: COPY has the option HEADER twice (line 1, column 33)
  COPY airlines FROM 'a' (HEADER, HEADER)
                                  ^^^^^^
*/
----
-- two values
COPY airlines FROM 'a' (QUOTE 'x' 'y')
/*
SqlSyntaxError: expected a text for QUOTE, found "'y'" (line 1, column 35)
  COPY airlines FROM 'a' (QUOTE 'x' 'y')
                                    ^^^
*/
----
-- an option of writing
COPY airlines FROM 'a' (FORCE_QUOTE (a))
/*
ProgrammingError: COPY FROM a csv file has no option FORCE_QUOTE: it has FORMAT, ALLOW_QUOTED_NULLS, AUTO_DETECT, BUFFER_SIZE, COMMENT, COMPRESSION, DATEFORMAT, DECIMAL_SEPARATOR, DELIMITER, ENCODING, ESCAPE, FORCE_NOT_NULL, HEADER, IGNORE_ERRORS, MAX_LINE_SIZE, NEW_LINE, NULL, NULL_PADDING, PARALLEL, QUOTE, SAMPLE_SIZE, SKIP, STRICT_MODE, THOUSANDS, TIMESTAMPFORMAT (line 1, column 25)
  COPY airlines FROM 'a' (FORCE_QUOTE (a))
                          ^^^^^^^^^^^
*/
----
-- an option of reading
COPY airlines TO 'a' (SKIP 1)
/*
ProgrammingError: COPY TO a csv file has no option SKIP: it has FORMAT, COMPRESSION, DATEFORMAT, DELIMITER, ESCAPE, FORCE_QUOTE, HEADER, NULL, PREFIX, QUOTE, SUFFIX, TIMESTAMPFORMAT (line 1, column 23)
  COPY airlines TO 'a' (SKIP 1)
                        ^^^^
*/
----
-- an option of another format
COPY airlines TO 'a' (HEADER, FORMAT parquet)
/*
ProgrammingError: COPY TO a parquet file has no option HEADER: it has FORMAT, COMPRESSION, COMPRESSION_LEVEL, PARQUET_VERSION, ROW_GROUP_SIZE (line 1, column 23)
  COPY airlines TO 'a' (HEADER, FORMAT parquet)
                        ^^^^^^
*/
----
-- several files
COPY airlines TO 'a' (PARTITION_BY (code))
/*
ProgrammingError: COPY TO a csv file has no option PARTITION_BY: it has FORMAT, COMPRESSION, DATEFORMAT, DELIMITER, ESCAPE, FORCE_QUOTE, HEADER, NULL, PREFIX, QUOTE, SUFFIX, TIMESTAMPFORMAT (line 1, column 23)
  COPY airlines TO 'a' (PARTITION_BY (code))
                        ^^^^^^^^^^^^
*/
----
-- tables that nobody sees
COPY airlines FROM 'a' (STORE_REJECTS)
/*
ProgrammingError: COPY FROM a csv file has no option STORE_REJECTS: it has FORMAT, ALLOW_QUOTED_NULLS, AUTO_DETECT, BUFFER_SIZE, COMMENT, COMPRESSION, DATEFORMAT, DECIMAL_SEPARATOR, DELIMITER, ENCODING, ESCAPE, FORCE_NOT_NULL, HEADER, IGNORE_ERRORS, MAX_LINE_SIZE, NEW_LINE, NULL, NULL_PADDING, PARALLEL, QUOTE, SAMPLE_SIZE, SKIP, STRICT_MODE, THOUSANDS, TIMESTAMPFORMAT (line 1, column 25)
  COPY airlines FROM 'a' (STORE_REJECTS)
                          ^^^^^^^^^^^^^
*/
----
-- something behind, 3
COPY airlines FROM 'a' 'b'
/*
SqlSyntaxError: expected the end of the statement, found "'b'" (line 1, column 24)
  COPY airlines FROM 'a' 'b'
                         ^^^
*/
----
-- unknown column in the query
COPY (SELECT amout FROM orders) TO 'a'
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 1, column 14)
  COPY (SELECT amout FROM orders) TO 'a'
               ^^^^^
*/
----
-- into a query
COPY (SELECT 1) FROM 'a'
/*
SqlSyntaxError: expected TO, found 'FROM' (line 1, column 17)
  COPY (SELECT 1) FROM 'a'
                  ^^^^
*/
