-- CREATE, ALTER and DROP that are refused.
-- tables: shop
CREATE TABLE days (n INT, id INT, PRIMARY KEY (n, id)) PARTITION BY HASH (id) PARTITIONS 2, RANGE (n) (PARTITION one 1 <= VALUES < 2, PARTITION 2 <= VALUES < 3, PARTITION VALUE = 9, DEFAULT PARTITION rest);
CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((1, 1));
----
-- the name of the hidden column of a table without a primary key
CREATE TABLE t (a INT, _SECATEUR_ROW_ID INT)
/*
NotSupportedError: column '_SECATEUR_ROW_ID': tables without a primary key have a hidden column of that name: use another one (line 1, column 45)
  CREATE TABLE t (a INT, _SECATEUR_ROW_ID INT)
                                              ^
*/
----
-- rows of a table with a primary key are not spread at random
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANDOM PARTITIONS 4
/*
SchemeError: table t has a primary key, which finds the partition of a row: RANDOM is for tables without one; write HASH (columns of the key) (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANDOM PARTITIONS 4
                                     ^^^^^^^^^^^^
*/
----
-- rows at random, without a number of partitions
CREATE TABLE t (a INT) PARTITION BY RANDOM
/*
SqlSyntaxError: expected PARTITIONS, found the end of the statement (line 1, column 43)
  CREATE TABLE t (a INT) PARTITION BY RANDOM
                                            ^
*/
----
-- a column that cannot partition, in a table without a primary key
CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY HASH (a) PARTITIONS 4
/*
SchemeError: table t: hash component 1 names column a of type DOUBLE, which cannot partition: equal numbers can have different bits; use DECIMAL or an integer (line 1, column 36)
  CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY HASH (a) PARTITIONS 4
                                     ^^^^^^^^^^^^
*/
----
-- a nested column that cannot partition, in a table without a primary key
CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY HASH (b) PARTITIONS 4
/*
SchemeError: table t: hash component 1 names column b of type INTEGER[], which cannot partition: use an integer, string, boolean, date, timestamp, decimal, uuid or binary column (line 1, column 36)
  CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY HASH (b) PARTITIONS 4
                                     ^^^^^^^^^^^^
*/
----
-- an unknown column that is to partition, in a table without a primary key
CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY RANGE (c) SPLIT AT (1)
/*
SchemeError: table t: the range component names column c, which the table lacks; it has a, b (line 1, column 36)
  CREATE TABLE t (a DOUBLE, b INT[]) PARTITION BY RANGE (c) SPLIT AT (1)
                                     ^^^^^^^^^^^^
*/
----
-- key of an unknown column
CREATE TABLE t (a INT, PRIMARY KEY (b))
/*
SchemeError: the primary key names 'b', which is not a column of table t; it has a (line 1, column 24)
  CREATE TABLE t (a INT, PRIMARY KEY (b))
                         ^^^^^^^^^^^
*/
----
-- key with a column twice
CREATE TABLE t (a INT, PRIMARY KEY (a, A))
/*
SchemeError: the primary key names a column twice (line 1, column 24)
  CREATE TABLE t (a INT, PRIMARY KEY (a, A))
                         ^^^^^^^^^^^
*/
----
-- two keys
CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)
/*
SqlSyntaxError: a table has one PRIMARY KEY: name all its columns in one PRIMARY KEY (...) (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)
                                           ^^^^^^^^^^^
*/
----
-- a column twice
CREATE TABLE t (a INT, A INT, PRIMARY KEY (a))
/*
SqlSyntaxError: column 'A' is declared twice (names are compared without regard to case) (line 1, column 24)
  CREATE TABLE t (a INT, A INT, PRIMARY KEY (a))
                         ^
*/
----
-- an empty name of a table
CREATE TABLE "" (a INT PRIMARY KEY)
/*
SqlSyntaxError: expected the name of a table, not an empty one (line 1, column 14)
  CREATE TABLE "" (a INT PRIMARY KEY)
               ^^
*/
----
-- an empty name of a column
CREATE TABLE t (a INT PRIMARY KEY, "" INT)
/*
SqlSyntaxError: expected the name of a column or PRIMARY KEY (...), not an empty one (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY, "" INT)
                                     ^^
*/
----
-- an empty name of a field
CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(b STRUCT("" INT)[]))
/*
SqlSyntaxError: expected the name of a field of column 's', not an empty one (line 1, column 54)
  CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(b STRUCT("" INT)[]))
                                                       ^^
*/
----
-- unknown type
CREATE TABLE t (a INTT, PRIMARY KEY (a))
/*
NotSupportedError: column 'a': type 'INTT' is not supported; use one of BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT, FLOAT, DOUBLE, DECIMAL, VARCHAR, JSON, ENUM, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, INTERVAL, UUID, LIST, ARRAY, STRUCT, MAP (line 1, column 19)
  CREATE TABLE t (a INTT, PRIMARY KEY (a))
                    ^^^^
*/
----
-- a FLOAT does not partition
CREATE TABLE t (a FLOAT PRIMARY KEY)
/*
SchemeError: table t: hash component 1 names column a of type FLOAT, which cannot partition: equal numbers can have different bits; use DECIMAL or an integer (line 1, column 25)
  CREATE TABLE t (a FLOAT PRIMARY KEY)
                          ^^^^^^^^^^^^
*/
----
-- outside of the key
CREATE TABLE t (a INT PRIMARY KEY, b INT) PARTITION BY HASH (b) PARTITIONS 3
/*
SchemeError: table t: hash component 1 names column b, which is not in the primary key (a); add it there or partition by others (line 1, column 43)
  CREATE TABLE t (a INT PRIMARY KEY, b INT) PARTITION BY HASH (b) PARTITIONS 3
                                            ^^^^^^^^^^^^
*/
----
-- unknown partitioning column
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (x) PARTITIONS 3
/*
SchemeError: table t: hash component 1 names column x, which the table lacks; it has a (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (x) PARTITIONS 3
                                     ^^^^^^^^^^^^
*/
----
-- no partitions
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 0
/*
SchemeError: table t: hash component 1 has 0 partitions; use 1 to 1000000 (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 0
                                     ^^^^^^^^^^^^
*/
----
-- end in the middle
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a)
/*
SqlSyntaxError: expected PARTITIONS, found the end of the statement (line 1, column 57)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a)
                                                          ^
*/
----
-- no number
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS x
/*
SqlSyntaxError: expected the number of partitions, found 'x' (line 1, column 69)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS x
                                                                      ^
*/
----
-- unknown component
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY LIST (a)
/*
SqlSyntaxError: expected HASH (...), RANGE (...) or RANDOM PARTITIONS n, found 'LIST' (line 1, column 49)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY LIST (a)
                                                  ^^^^
*/
----
-- splits out of order
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (3, 1)
/*
SchemeError: table t: the range (3) <= VALUES < (1) is empty: its lower bound, which is inside, must be less than its upper bound, which is not (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (3, 1)
                                     ^^^^^^^^^^^^
*/
----
-- a NULL bound
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (NULL)
/*
SchemeError: a range bound cannot be NULL: partitioning columns are NOT NULL (line 1, column 69)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (NULL)
                                                                      ^^^^
*/
----
-- a bound of another type
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT ('x')
/*
SchemeError: table t: a bound of the range component: column a: 'x' (str) does not fit INTEGER: the text is not a whole number (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT ('x')
                                     ^^^^^^^^^^^^
*/
----
-- a bad date
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (DATE 'x')
/*
SchemeError: 'x' is not a valid DATE (line 1, column 69)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (DATE 'x')
                                                                      ^^^^^^^^
*/
----
-- exclusive lower bound
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION 1 < VALUES)
/*
SqlSyntaxError: expected <= (bounds are written lower <= VALUES < upper), found '<' (line 1, column 72)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION 1 < VALUES)
                                                                         ^
*/
----
-- inclusive upper bound
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES <= 1)
/*
SqlSyntaxError: expected < (bounds are written lower <= VALUES < upper), found '<=' (line 1, column 77)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES <= 1)
                                                                              ^^
*/
----
-- too many values
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUE = (1, 2))
/*
SqlSyntaxError: expected ')' behind 1 value, one for each range column, found ',' (line 1, column 80)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUE = (1, 2))
                                                                                 ^
*/
----
-- two range components
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (1), RANGE (a) SPLIT AT (2)
/*
SqlSyntaxError: expected HASH (a table has at most one RANGE component), found 'RANGE' (line 1, column 73)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (1), RANGE (a) SPLIT AT (2)
                                                                          ^^^^^
*/
----
-- ranges that overlap
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES < 5, PARTITION 3 <= VALUES)
/*
SchemeError: table t: the ranges VALUES < (5) and (3) <= VALUES overlap; a row belongs to one range at most (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES < 5, PARTITION 3 <= VALUES)
                                     ^^^^^^^^^^^^
*/
----
-- replicated with backups
CREATE TABLE t (a INT PRIMARY KEY) REPLICATED BACKUPS 1
/*
NotSupportedError: REPLICATED with PARTITION BY or BACKUPS is not supported: every member holds all of a replicated table; leave out one or the other (line 1, column 47)
  CREATE TABLE t (a INT PRIMARY KEY) REPLICATED BACKUPS 1
                                                ^^^^^^^
*/
----
-- backups and replicated
CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 REPLICATED
/*
NotSupportedError: REPLICATED with PARTITION BY or BACKUPS is not supported: every member holds all of a replicated table; leave out one or the other (line 1, column 46)
  CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 REPLICATED
                                               ^^^^^^^^^^
*/
----
-- too many backups
CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 99
/*
SchemeError: BACKUPS 99: at most 16 copies beside the primary (line 1, column 44)
  CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 99
                                             ^
*/
----
-- backups twice
CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 BACKUPS 2
/*
SqlSyntaxError: expected PARTITION BY, BACKUPS, REPLICATED, WITH, COMMENT or the end of the statement, found 'BACKUPS' (line 1, column 46)
  CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 BACKUPS 2
                                               ^^^^^^^
*/
----
-- something else
CREATE TABLE t (a INT PRIMARY KEY) USING x
/*
SqlSyntaxError: expected PARTITION BY, BACKUPS, REPLICATED, WITH, COMMENT or the end of the statement, found 'USING' (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) USING x
                                     ^^^^^
*/
----
-- an option that is not there
CREATE TABLE t (a INT PRIMARY KEY) WITH (x = true)
/*
SqlSyntaxError: tables have no option 'x': there is change_feed (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY) WITH (x = true)
                                           ^
*/
----
-- a change feed that is neither on nor off
CREATE TABLE t (a INT PRIMARY KEY) WITH (change_feed = 1)
/*
SqlSyntaxError: expected TRUE or FALSE, found '1' (line 1, column 56)
  CREATE TABLE t (a INT PRIMARY KEY) WITH (change_feed = 1)
                                                         ^
*/
----
-- a change feed of a replicated table
CREATE TABLE t (a INT PRIMARY KEY) REPLICATED WITH (change_feed = true)
/*
NotSupportedError: REPLICATED with a change feed is not supported: the writes of a replicated table have no order of their own: partition it (line 1, column 72)
  CREATE TABLE t (a INT PRIMARY KEY) REPLICATED WITH (change_feed = true)
                                                                         ^
*/
----
-- a default that is random
CREATE TABLE t (a INT PRIMARY KEY, b DOUBLE DEFAULT random())
/*
NotSupportedError: random() in DEFAULT is not supported: now(), current_date, localtimestamp, localtime, uuid() and uuidv7() may stand in DEFAULT alone; give any other value that is not constant with each row (line 1, column 53)
  CREATE TABLE t (a INT PRIMARY KEY, b DOUBLE DEFAULT random())
                                                      ^^^^^^^^
*/
----
-- a default of a column
CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT a + 1)
/*
NotSupportedError: the column 'a' in DEFAULT is not supported: it is computed without a row; now(), current_date, localtimestamp, localtime, uuid() and uuidv7() may stand in DEFAULT alone (line 1, column 50)
  CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT a + 1)
                                                   ^^^^^
*/
----
-- a default that does not fit
CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT 1.5 NOT NULL)
/*
DataError: column 'b': DEFAULT 1.5: the value is not exactly one of INTEGER: write one that is, or CAST it (line 1, column 50)
  CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT 1.5 NOT NULL)
                                                   ^^^
*/
----
-- a default of the clock that does not fit
CREATE TABLE t (a INT PRIMARY KEY, b DATE DEFAULT now())
/*
DataError: column 'b': now() is a value for a column of type TIMESTAMP or TIMESTAMP WITH TIME ZONE, and this one is DATE (line 1, column 51)
  CREATE TABLE t (a INT PRIMARY KEY, b DATE DEFAULT now())
                                                    ^^^^^
*/
----
-- two defaults
CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT 1 DEFAULT 2)
/*
SqlSyntaxError: column 'b' has two DEFAULTs (line 1, column 52)
  CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT 1 DEFAULT 2)
                                                     ^^^^^^^
*/
----
-- a check of the clock
CREATE TABLE t (a INT PRIMARY KEY, b DATE, CHECK (b < current_date))
/*
NotSupportedError: current_date in CHECK is not supported: a condition is the same at any time and place: compare with a column that has the value as its DEFAULT (line 1, column 50)
  CREATE TABLE t (a INT PRIMARY KEY, b DATE, CHECK (b < current_date))
                                                   ^^^^^^^^^^^^^^^^^^
*/
----
-- a check of other rows
CREATE TABLE t (a INT PRIMARY KEY, CHECK (a > (SELECT max(n) FROM days)))
/*
NotSupportedError: a subquery in CHECK is not supported: the expression reads no other rows (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY, CHECK (a > (SELECT max(n) FROM days)))
                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- a check of a column that is not there
CREATE TABLE t (a INT PRIMARY KEY, CHECK (b > 0))
/*
UnknownColumnError: table t has no column 'b'; there is a (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY, CHECK (b > 0))
                                           ^^^^^^^
*/
----
-- a check that is no condition
CREATE TABLE t (a INT PRIMARY KEY CHECK (a + 1))
/*
ProgrammingError: CHECK takes a condition, and the expression is of type INTEGER (line 1, column 41)
  CREATE TABLE t (a INT PRIMARY KEY CHECK (a + 1))
                                          ^^^^^^^
*/
----
-- a check without parentheses
CREATE TABLE t (a INT PRIMARY KEY, CONSTRAINT c CHECK a > 0)
/*
SqlSyntaxError: expected '(' and a condition, found 'a' (line 1, column 55)
  CREATE TABLE t (a INT PRIMARY KEY, CONSTRAINT c CHECK a > 0)
                                                        ^
*/
----
-- two constraints of one name
CREATE TABLE t (a INT PRIMARY KEY, CONSTRAINT c CHECK (a > 0), CONSTRAINT C CHECK (a > 1))
/*
ProgrammingError: table t has two constraints named 'C' (line 1, column 83)
  CREATE TABLE t (a INT PRIMARY KEY, CONSTRAINT c CHECK (a > 0), CONSTRAINT C CHECK (a > 1))
                                                                                    ^^^^^^^
*/
----
-- a primary key with a name
CREATE TABLE t (a INT, CONSTRAINT c PRIMARY KEY (a))
/*
NotSupportedError: CONSTRAINT is not supported: only a CHECK has a name: write PRIMARY KEY (...) and NOT NULL without one (line 1, column 24)
  CREATE TABLE t (a INT, CONSTRAINT c PRIMARY KEY (a))
                         ^^^^^^^^^^
*/
----
-- a comment that is no text
COMMENT ON TABLE days IS 5
/*
SqlSyntaxError: expected a text in single quotes, or NULL, found '5' (line 1, column 26)
  COMMENT ON TABLE days IS 5
                           ^
*/
----
-- a comment on a column that is not there
COMMENT ON COLUMN days.x IS 'y'
/*
UnknownColumnError: table days has no column 'x'; there is n, id (line 1, column 24)
  COMMENT ON COLUMN days.x IS 'y'
                         ^
*/
----
-- a comment on a view
COMMENT ON VIEW v IS 'y'
/*
NotSupportedError: COMMENT ON VIEW is not supported: tables and their columns have comments (line 1, column 12)
  COMMENT ON VIEW v IS 'y'
             ^^^^
*/
----
-- two wishes
CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT PRIMARY KEY)
/*
SqlSyntaxError: expected the name of a table: OR REPLACE and IF NOT EXISTS exclude each other, found 'IF' (line 1, column 25)
  CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT PRIMARY KEY)
                          ^^
*/
----
-- a sequence
CREATE SEQUENCE s
/*
NotSupportedError: CREATE SEQUENCE is not supported: give keys with the rows (line 1, column 8)
  CREATE SEQUENCE s
         ^^^^^^^^
*/
----
-- a macro
CREATE OR REPLACE MACRO f(a) AS a
/*
NotSupportedError: CREATE MACRO is not supported: write the expression, or a view (line 1, column 19)
  CREATE OR REPLACE MACRO f(a) AS a
                    ^^^^^
*/
----
-- a struct as a key
CREATE TABLE t (a STRUCT(x INT) PRIMARY KEY)
/*
NotSupportedError: table t: column a of type STRUCT(x INTEGER) cannot be part of a key or index; keep it as a plain column (line 1, column 33)
  CREATE TABLE t (a STRUCT(x INT) PRIMARY KEY)
                                  ^^^^^^^^^^^
*/
----
-- a map in a key
CREATE TABLE t (a INT, m MAP(INT, INT), PRIMARY KEY (a, m)) PARTITION BY HASH (a) PARTITIONS 3
/*
NotSupportedError: table t: column m of type MAP(INTEGER, INTEGER) cannot be part of a key or index; keep it as a plain column (line 1, column 41)
  CREATE TABLE t (a INT, m MAP(INT, INT), PRIMARY KEY (a, m)) PARTITION BY HASH (a) PARTITIONS 3
                                          ^^^^^^^^^^^
*/
----
-- an unknown type inside of a struct
CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT, y MAP(VARCHAR, NOPE)[]))
/*
NotSupportedError: column 's': type 'NOPE' is not supported; use one of BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT, FLOAT, DOUBLE, DECIMAL, VARCHAR, JSON, ENUM, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, INTERVAL, UUID, LIST, ARRAY, STRUCT, MAP (line 1, column 67)
  CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT, y MAP(VARCHAR, NOPE)[]))
                                                                    ^^^^
*/
----
-- a list of the length 0 inside of a struct
CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT[0]))
/*
NotSupportedError: column 's': lists of the length 0; it has to be 1 to 100000 (line 1, column 51)
  CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT[0]))
                                                    ^
*/
----
-- two fields of one name
CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT, X INT))
/*
NotSupportedError: column 's': a STRUCT with two fields named 'X' (without regard to case) (line 1, column 52)
  CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT, X INT))
                                                     ^
*/
----
-- a struct without fields
CREATE TABLE t (a INT PRIMARY KEY, s STRUCT())
/*
SqlSyntaxError: expected the name of a field of column 's', found ')' (line 1, column 45)
  CREATE TABLE t (a INT PRIMARY KEY, s STRUCT())
                                              ^
*/
----
-- a map without values
CREATE TABLE t (a INT PRIMARY KEY, m MAP(INT))
/*
SqlSyntaxError: expected ',' and the type of the values, found ')' (line 1, column 45)
  CREATE TABLE t (a INT PRIMARY KEY, m MAP(INT))
                                              ^
*/
----
-- a type that is nested too deep
CREATE TABLE t (a INT PRIMARY KEY, l INT[][][][][][][][][][][][][][][][][][][][][][][][][])
/*
NotSupportedError: column 'l': its type is nested deeper than 24 levels: use fewer (line 1, column 38)
  CREATE TABLE t (a INT PRIMARY KEY, l INT[][][][][][][][][][][][][][][][][][][][][][][][][])
                                       ^
*/
----
-- an enum
CREATE TABLE t (a INT PRIMARY KEY, s ENUM('x', 1))
/*
SqlSyntaxError: expected a value of column 's' as text, such as 'small', found '1' (line 1, column 48)
  CREATE TABLE t (a INT PRIMARY KEY, s ENUM('x', 1))
                                                 ^
*/
----
-- an enum, 2
CREATE TABLE t (a INT PRIMARY KEY, s ENUM('x', 'y', 'x'))
/*
NotSupportedError: column 's': the value 'x' is there twice: list it once (line 1, column 53)
  CREATE TABLE t (a INT PRIMARY KEY, s ENUM('x', 'y', 'x'))
                                                      ^^^
*/
----
-- an array without a length that DuckDB has
CREATE TABLE t (a INT PRIMARY KEY, s INT[100001])
/*
NotSupportedError: column 's': lists of the length 100001; it has to be 1 to 100000 (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY, s INT[100001])
                                           ^^^^^^
*/
----
-- a length that is no number
CREATE TABLE t (a INT PRIMARY KEY, s INT[x])
/*
SqlSyntaxError: expected the length of each list, or ']', found 'x' (line 1, column 42)
  CREATE TABLE t (a INT PRIMARY KEY, s INT[x])
                                           ^
*/
----
-- a key of nanoseconds
CREATE TABLE t (a TIMESTAMP_NS PRIMARY KEY)
/*
NotSupportedError: table t: column a of type TIMESTAMP_NS cannot be part of a key or index; use TIMESTAMP, or keep it as a plain column (line 1, column 32)
  CREATE TABLE t (a TIMESTAMP_NS PRIMARY KEY)
                                 ^^^^^^^^^^^
*/
----
-- a key of lists of a fixed length, whose partitions another column decides
CREATE TABLE t (a INT, v FLOAT[3], PRIMARY KEY (a, v)) PARTITION BY HASH (a) PARTITIONS 2
/*
NotSupportedError: table t: column v of type FLOAT[3] cannot be part of a key or index; keep it as a plain column (line 1, column 36)
  CREATE TABLE t (a INT, v FLOAT[3], PRIMARY KEY (a, v)) PARTITION BY HASH (a) PARTITIONS 2
                                     ^^^^^^^^^^^
*/
----
-- a type of no column
CREATE TABLE t (a INT PRIMARY KEY, s BIT)
/*
NotSupportedError: column 's': type 'BIT' is not supported; use one of BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT, FLOAT, DOUBLE, DECIMAL, VARCHAR, JSON, ENUM, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, INTERVAL, UUID, LIST, ARRAY, STRUCT, MAP (line 1, column 38)
  CREATE TABLE t (a INT PRIMARY KEY, s BIT)
                                       ^^^
*/
----
-- a schema
CREATE TABLE other.t (a INT PRIMARY KEY)
/*
NotSupportedError: a schema in front of a table name is not supported: tables and views are in the schema main, which need not be written (line 1, column 14)
  CREATE TABLE other.t (a INT PRIMARY KEY)
               ^^^^^
*/
----
-- a parameter
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS ?
/*
ParameterError: this statement takes no parameters: write the value (line 1, column 69)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS ?
                                                                      ^
*/
----
-- no columns
CREATE TABLE t
/*
SqlSyntaxError: expected (, found the end of the statement (line 1, column 15)
  CREATE TABLE t
                ^
*/
----
-- CREATE TABLE of several lines
CREATE TABLE t (
  a INT,
  PRIMARY KEY (a)
)
PARTITION BY
  HASH a
/*
SqlSyntaxError: expected (, found 'a' (line 6, column 8)
    HASH a
         ^
*/
----
-- DROP of something else
DROP SEQUENCE i
/*
NotSupportedError: DROP SEQUENCE is not supported: there are tables, views and indexes (line 1, column 6)
  DROP SEQUENCE i
       ^^^^^^^^
*/
----
-- ranges on demand, 1
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY
/*
SqlSyntaxError: expected a number, or INTERVAL 1 DAY, found the end of the statement (line 1, column 64)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY
                                                                 ^
*/
----
-- ranges on demand, 2
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1
/*
SqlSyntaxError: expected YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, found the end of the statement (line 1, column 75)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1
                                                                            ^
*/
----
-- ranges on demand, 3
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1 FORTNIGHT
/*
SqlSyntaxError: expected YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, found 'FORTNIGHT' (line 1, column 76)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1 FORTNIGHT
                                                                             ^^^^^^^^^
*/
----
-- ranges on demand, 4
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL '1 day 2 hours'
/*
SqlSyntaxError: expected an interval of one unit, such as '1 day' (line 1, column 74)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL '1 day 2 hours'
                                                                           ^^^^^^^^^^^^^^^
*/
----
-- ranges on demand, 5
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL -1 DAY
/*
SqlSyntaxError: expected how many units, found '-' (line 1, column 74)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL -1 DAY
                                                                           ^
*/
----
-- ranges on demand, 6
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 STARTING
/*
SqlSyntaxError: expected a value, found the end of the statement (line 1, column 76)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 STARTING
                                                                             ^
*/
----
-- ranges on demand, 7
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1 DAY
/*
SchemeError: table t: EVERY does not fit column a of type INTEGER: write a number, as in EVERY 1000 (line 1, column 36)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1 DAY
                                     ^^^^^^^^^^^^
*/
----
-- ranges on demand, 8
CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 SPLIT AT (5)
/*
SqlSyntaxError: expected PARTITION BY, BACKUPS, REPLICATED, WITH, COMMENT or the end of the statement, found 'SPLIT' (line 1, column 68)
  CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 SPLIT AT (5)
                                                                     ^^^^^
*/
----
-- unknown table
ALTER TABLE nope DROP PARTITION p
/*
UnknownTableError: table 'nope' does not exist (line 1, column 13)
  ALTER TABLE nope DROP PARTITION p
              ^^^^
*/
----
-- no ranges
ALTER TABLE orders DROP PARTITION p
/*
SchemeError: table orders has no RANGE component, so it has no ranges to add or drop; create it with PARTITION BY ... RANGE (column) ... (line 1, column 13)
  ALTER TABLE orders DROP PARTITION p
              ^^^^^^
*/
----
-- unknown name
ALTER TABLE days DROP PARTITION p
/*
SchemeError: table days: no range named p; it has one: (1) <= VALUES < (2), (2) <= VALUES < (3), (9) <= VALUES < (10), DEFAULT PARTITION rest (line 1, column 18)
  ALTER TABLE days DROP PARTITION p
                   ^^^^^^^^^^^^^^^^
*/
----
-- other upper
ALTER TABLE days DROP PARTITION 1 <= VALUES < 3
/*
SchemeError: table days: no range with exactly the bounds (1) <= VALUES < (3); it has one: (1) <= VALUES < (2), (2) <= VALUES < (3), (9) <= VALUES < (10), DEFAULT PARTITION rest (line 1, column 18)
  ALTER TABLE days DROP PARTITION 1 <= VALUES < 3
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- name with other bounds
ALTER TABLE days DROP PARTITION one VALUES
/*
SchemeError: table days: no range with exactly the bounds VALUES; it has one: (1) <= VALUES < (2), (2) <= VALUES < (3), (9) <= VALUES < (10), DEFAULT PARTITION rest (line 1, column 18)
  ALTER TABLE days DROP PARTITION one VALUES
                   ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- KUDU-1750
ALTER TABLE days DROP PARTITION one 2 <= VALUES < 3
/*
SchemeError: table days: the range (2) <= VALUES < (3) is named nothing, not one; nothing was dropped (line 1, column 18)
  ALTER TABLE days DROP PARTITION one 2 <= VALUES < 3
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- the second of two
ALTER TABLE days
 ADD PARTITION 5 <= VALUES < 6,
 ADD PARTITION 0 <= VALUES < 5
/*
SchemeError: table days: the ranges (0) <= VALUES < (5) and (1) <= VALUES < (2) overlap; a row belongs to one range at most (line 3, column 2)
   ADD PARTITION 0 <= VALUES < 5
   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- twice
ALTER TABLE days DROP PARTITION one, DROP PARTITION one
/*
SchemeError: table days: no range named one; it has (2) <= VALUES < (3), (9) <= VALUES < (10), DEFAULT PARTITION rest (line 1, column 38)
  ALTER TABLE days DROP PARTITION one, DROP PARTITION one
                                       ^^^^^^^^^^^^^^^^^^
*/
----
-- second catch-all
ALTER TABLE days ADD DEFAULT PARTITION
/*
SchemeError: table days: it has a DEFAULT PARTITION already (line 1, column 18)
  ALTER TABLE days ADD DEFAULT PARTITION
                   ^^^^^^^^^^^^^^^^^^^^^
*/
----
-- no catch-all
ALTER TABLE pairs DROP DEFAULT PARTITION
/*
SchemeError: table pairs: no DEFAULT PARTITION; it has VALUES < (1, 1), (1, 1) <= VALUES (line 1, column 19)
  ALTER TABLE pairs DROP DEFAULT PARTITION
                    ^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- one value for two columns
ALTER TABLE pairs ADD PARTITION 1 <= VALUES
/*
SqlSyntaxError: expected (value, value), one value for each range column, found '1' (line 1, column 33)
  ALTER TABLE pairs ADD PARTITION 1 <= VALUES
                                  ^
*/
----
-- type
ALTER TABLE days ADD PARTITION 'x' <= VALUES
/*
SchemeError: table days: a bound of the range component: column n: 'x' (str) does not fit INTEGER: the text is not a whole number (line 1, column 18)
  ALTER TABLE days ADD PARTITION 'x' <= VALUES
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- column
ALTER TABLE days ADD COLUMN c INT
/*
DDL runs at the controller and reads no partition
*/
----
-- drop column
ALTER TABLE days DROP c
/*
UnknownColumnError: table days has no column 'c'; it has n, id (line 1, column 18)
  ALTER TABLE days DROP c
                   ^^^^^^
*/
----
-- rename
ALTER TABLE days RENAME TO nights
/*
DDL runs at the controller and reads no partition
*/
----
-- view
ALTER VIEW v
/*
NotSupportedError: ALTER VIEW is not supported: tables can be altered; views can be replaced (line 1, column 7)
  ALTER VIEW v
        ^^^^
*/
----
-- schema
ALTER TABLE other.days DROP PARTITION one
/*
NotSupportedError: a schema in front of a table name is not supported: tables and views are in the schema main, which need not be written (line 1, column 13)
  ALTER TABLE other.days DROP PARTITION one
              ^^^^^
*/
----
-- too much
ALTER TABLE days DROP PARTITION one two
/*
SqlSyntaxError: expected a value (a number, a string, TRUE, FALSE, X'..', DATE '..', TIMESTAMP '..' or UUID '..'), found 'two' (line 1, column 37)
  ALTER TABLE days DROP PARTITION one two
                                      ^^^
*/
----
-- too little
ALTER TABLE days DROP PARTITION
/*
SqlSyntaxError: expected the name of the partition, or its bounds, found the end of the statement (line 1, column 32)
  ALTER TABLE days DROP PARTITION
                                 ^
*/
----
-- parameter
ALTER TABLE days ADD PARTITION ? <= VALUES
/*
ParameterError: this statement takes no parameters: write the value (line 1, column 32)
  ALTER TABLE days ADD PARTITION ? <= VALUES
                                 ^
*/
----
-- unknown table, 2
CREATE INDEX i ON nowhere (a)
/*
UnknownTableError: table 'nowhere' does not exist (line 1, column 19)
  CREATE INDEX i ON nowhere (a)
                    ^^^^^^^
*/
----
-- unknown column
CREATE INDEX i ON orders (amout)
/*
UnknownColumnError: table orders has no column 'amout'; did you mean amount? (line 1, column 27)
  CREATE INDEX i ON orders (amout)
                            ^^^^^
*/
----
-- a column twice, 2
CREATE INDEX i ON orders (amount, AMOUNT)
/*
SchemeError: column 'amount' is named twice (line 1, column 35)
  CREATE INDEX i ON orders (amount, AMOUNT)
                                    ^^^^^^
*/
----
-- an expression
CREATE INDEX i ON orders (lower(priority))
/*
NotSupportedError: an index of an expression is not supported: name columns of the table (line 1, column 27)
  CREATE INDEX i ON orders (lower(priority))
                            ^^^^^
*/
----
-- unique
CREATE UNIQUE INDEX i ON orders (id)
/*
NotSupportedError: a UNIQUE index is not supported: only the primary key is unique (line 1, column 8)
  CREATE UNIQUE INDEX i ON orders (id)
         ^^^^^^
*/
----
-- no name
CREATE INDEX ON orders (id)
/*
SqlSyntaxError: expected ON, found 'orders' (line 1, column 17)
  CREATE INDEX ON orders (id)
                  ^^^^^^
*/
----
-- no columns, 2
CREATE INDEX i ON orders
/*
SqlSyntaxError: expected (, found the end of the statement (line 1, column 25)
  CREATE INDEX i ON orders
                          ^
*/
----
-- a part of the rows
CREATE INDEX i ON orders (id) WHERE id > 1
/*
SqlSyntaxError: expected the end of the statement, found 'WHERE' (line 1, column 31)
  CREATE INDEX i ON orders (id) WHERE id > 1
                                ^^^^^
*/
----
-- drop nothing
DROP INDEX
/*
SqlSyntaxError: expected the name of an index, found the end of the statement (line 1, column 11)
  DROP INDEX
            ^
*/
----
-- no such key
CREATE TABLE x PRIMARY KEY (b) AS SELECT 1 AS a
/*
SchemeError: the primary key names 'b', which is not a column of the query; it has a (line 1, column 16)
  CREATE TABLE x PRIMARY KEY (b) AS SELECT 1 AS a
                 ^^^^^^^^^^^
*/
----
-- a name twice
CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, 2 AS A
/*
SchemeError: the query has two columns of one name (without regard to case): give each its own with AS (line 1, column 35)
  CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, 2 AS A
                                    ^
*/
----
-- a type of no column, 2
CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, {'b': '1'::BIT} AS s
/*
NotSupportedError: column 's': type 'STRUCT(b BIT)' is not supported, because of 'BIT'; use one of BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT, FLOAT, DOUBLE, DECIMAL, VARCHAR, JSON, ENUM, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS, INTERVAL, UUID, LIST, ARRAY, STRUCT, MAP: CAST it in the query (line 1, column 35)
  CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, {'b': '1'::BIT} AS s
                                    ^
*/
----
-- no query
CREATE TABLE x PRIMARY KEY (a) AS
/*
SqlSyntaxError: expected a query, found the end of the statement (line 1, column 34)
  CREATE TABLE x PRIMARY KEY (a) AS
                                   ^
*/
----
-- unknown column, 2
CREATE TABLE x PRIMARY KEY (a) AS SELECT amout AS a FROM orders
/*
UnknownColumnError: column 'amout' does not exist; did you mean amount? (line 1, column 42)
  CREATE TABLE x PRIMARY KEY (a) AS SELECT amout AS a FROM orders
                                           ^^^^^
*/
----
-- no scheme
CREATE TABLE x PRIMARY KEY (a) PARTITION BY HASH (b) PARTITIONS 2 AS SELECT 1 AS a, 2 AS b
/*
SchemeError: table x: hash component 1 names column b, which is not in the primary key (a); add it there or partition by others (line 1, column 32)
  CREATE TABLE x PRIMARY KEY (a) PARTITION BY HASH (b) PARTITIONS 2 AS SELECT 1 AS a, 2 AS b
                                 ^^^^^^^^^^^^
*/
----
-- no clause
CREATE TABLE x PRIMARY KEY (a) SOMEHOW AS SELECT 1 AS a
/*
SqlSyntaxError: expected PARTITION BY, BACKUPS, REPLICATED, WITH, COMMENT or AS, found 'SOMEHOW' (line 1, column 32)
  CREATE TABLE x PRIMARY KEY (a) SOMEHOW AS SELECT 1 AS a
                                 ^^^^^^^
*/
----
-- no value for a parameter
CREATE TABLE x PRIMARY KEY (a) AS SELECT ? AS a
/*
ParameterError: the statement has 1 parameter, 0 given
*/
----
-- two wishes, 2
CREATE OR REPLACE TABLE IF NOT EXISTS x PRIMARY KEY (a) AS SELECT 1 AS a
/*
SqlSyntaxError: expected the name of a table: OR REPLACE and IF NOT EXISTS exclude each other, found 'IF' (line 1, column 25)
  CREATE OR REPLACE TABLE IF NOT EXISTS x PRIMARY KEY (a) AS SELECT 1 AS a
                          ^^
*/
----
-- CREATE VIEW, 1
CREATE VIEW v
/*
SqlSyntaxError: expected AS, found the end of the statement (line 1, column 14)
  CREATE VIEW v
               ^
*/
----
-- CREATE VIEW, 2
CREATE VIEW v AS
/*
SqlSyntaxError: expected a query, found the end of the statement (line 1, column 17)
  CREATE VIEW v AS
                  ^
*/
----
-- CREATE VIEW, 3
CREATE VIEW v AS DELETE FROM orders
/*
SqlSyntaxError: expected a query (line 1, column 18)
  CREATE VIEW v AS DELETE FROM orders
                   ^
*/
----
-- CREATE VIEW, 4
CREATE VIEW v AS SELECT ?
/*
ParameterError: this statement takes no parameters: write the value (line 1, column 25)
  CREATE VIEW v AS SELECT ?
                          ^
*/
----
-- CREATE VIEW, 5
CREATE VIEW a.v AS SELECT 1
/*
NotSupportedError: a schema in front of a table name is not supported: tables and views are in the schema main, which need not be written (line 1, column 13)
  CREATE VIEW a.v AS SELECT 1
              ^
*/
----
-- CREATE VIEW, 6
CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1
/*
SqlSyntaxError: expected OR REPLACE or IF NOT EXISTS, not both, found 'v' (line 1, column 38)
  CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1
                                       ^
*/
----
-- CREATE VIEW, 7
CREATE VIEW v (a, b) AS SELECT 1
/*
SqlSyntaxError: view 'v' names 2 columns, and its query has 1 (line 1, column 13)
  CREATE VIEW v (a, b) AS SELECT 1
              ^
*/
----
-- CREATE VIEW, 8
CREATE VIEW v AS SELECT nope FROM orders
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 25)
  CREATE VIEW v AS SELECT nope FROM orders
                          ^^^^
*/
----
-- CREATE VIEW, 9
CREATE VIEW v AS SELECT 1 FROM nope
/*
UnknownTableError: table 'nope' does not exist (line 1, column 32)
  CREATE VIEW v AS SELECT 1 FROM nope
                                 ^^^^
*/
----
-- CREATE VIEW, 10
DROP VIEW a, b
/*
NotSupportedError: DROP of several views is not supported: drop one at a time (line 1, column 12)
  DROP VIEW a, b
             ^
*/
----
-- CREATE VIEW, 11
DROP VIEW a b
/*
SqlSyntaxError: expected the end of the statement, found 'b' (line 1, column 13)
  DROP VIEW a b
              ^
*/
