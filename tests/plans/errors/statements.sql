-- Statements of the dialect that secateur does not have.
-- tables: shop
CREATE TABLE t (k INTEGER, a INTEGER, s VARCHAR, PRIMARY KEY (k));
CREATE TABLE e (eid INTEGER, b INTEGER, PRIMARY KEY (eid));
CREATE VIEW v AS SELECT k FROM t;
----
-- statements of the dialect say what to do instead, 1
PRAGMA something
/*
NotSupportedError: PRAGMA is not supported: use DESCRIBE, SHOW, SET or the tables of information_schema (line 1, column 1)
  PRAGMA something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 2
USE something
/*
NotSupportedError: USE is not supported: there is one schema of tables, main, which need not be written (line 1, column 1)
  USE something
  ^^^
*/
----
-- statements of the dialect say what to do instead, 3
BEGIN something
/*
NotSupportedError: BEGIN is not supported: each statement is a transaction of its own (line 1, column 1)
  BEGIN something
  ^^^^^
*/
----
-- statements of the dialect say what to do instead, 4
START something
/*
NotSupportedError: START is not supported: each statement is a transaction of its own (line 1, column 1)
  START something
  ^^^^^
*/
----
-- statements of the dialect say what to do instead, 5
COMMIT something
/*
NotSupportedError: COMMIT is not supported: each statement is a transaction of its own (line 1, column 1)
  COMMIT something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 6
ROLLBACK something
/*
NotSupportedError: ROLLBACK is not supported: each statement is a transaction of its own (line 1, column 1)
  ROLLBACK something
  ^^^^^^^^
*/
----
-- the other name of COMMIT says what to do instead
END
/*
NotSupportedError: END is not supported: each statement is a transaction of its own (line 1, column 1)
  END
  ^^^
*/
----
-- statements of the dialect say what to do instead, 7
ABORT something
/*
NotSupportedError: ABORT is not supported: each statement is a transaction of its own (line 1, column 1)
  ABORT something
  ^^^^^
*/
----
-- statements of the dialect say what to do instead, 8
ATTACH something
/*
NotSupportedError: ATTACH is not supported: members see no other databases (line 1, column 1)
  ATTACH something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 9
DETACH something
/*
NotSupportedError: DETACH is not supported: members see no other databases (line 1, column 1)
  DETACH something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 10
INSTALL something
/*
NotSupportedError: INSTALL is not supported: members load no extensions (line 1, column 1)
  INSTALL something
  ^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 11
FORCE something
/*
NotSupportedError: FORCE is not supported: members load no extensions (line 1, column 1)
  FORCE something
  ^^^^^
*/
----
-- statements of the dialect say what to do instead, 12
LOAD something
/*
NotSupportedError: LOAD is not supported: members load no extensions; rows are loaded with conn.table(name).load (line 1, column 1)
  LOAD something
  ^^^^
*/
----
-- statements of the dialect say what to do instead, 13
EXPORT something
/*
NotSupportedError: EXPORT is not supported: read the tables and write files on the client (line 1, column 1)
  EXPORT something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 14
IMPORT something
/*
NotSupportedError: IMPORT is not supported: load the rows with conn.table(name).load (line 1, column 1)
  IMPORT something
  ^^^^^^
*/
----
-- statements of the dialect say what to do instead, 15
CALL something
/*
NotSupportedError: CALL is not supported: write SELECT * FROM the function (line 1, column 1)
  CALL something
  ^^^^
*/
----
-- statements of the dialect say what to do instead, 16
PREPARE something
/*
NotSupportedError: PREPARE is not supported: it is a whole text of execute(): PREPARE name AS SELECT ..., without types of parameters; EXECUTE name(1) (line 1, column 1)
  PREPARE something
  ^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 17
EXECUTE something
/*
NotSupportedError: EXECUTE is not supported: it is a whole text of execute(): PREPARE name AS SELECT ..., without types of parameters; EXECUTE name(1) (line 1, column 1)
  EXECUTE something
  ^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 18
DEALLOCATE something
/*
NotSupportedError: DEALLOCATE is not supported: it is a whole text of execute(): PREPARE name AS SELECT ..., without types of parameters; EXECUTE name(1) (line 1, column 1)
  DEALLOCATE something
  ^^^^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 19
CHECKPOINT something
/*
NotSupportedError: CHECKPOINT is not supported: tables are in memory (line 1, column 1)
  CHECKPOINT something
  ^^^^^^^^^^
*/
----
-- a table that VACUUM names has to be there
VACUUM something
/*
UnknownTableError: table 'something' does not exist (line 1, column 8)
  VACUUM something
         ^^^^^^^^^
*/
----
-- a table that ANALYZE names has to be there
ANALYZE something
/*
UnknownTableError: table 'something' does not exist (line 1, column 9)
  ANALYZE something
          ^^^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 22
COMMENT something
/*
SqlSyntaxError: expected ON, found 'something' (line 1, column 9)
  COMMENT something
          ^^^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 23
GRANT something
/*
SqlSyntaxError: expected SELECT, INSERT, UPDATE, DELETE or ALL, found 'something' (line 1, column 7)
  GRANT something
        ^^^^^^^^^
*/
----
-- statements of the dialect say what to do instead, 24
REVOKE something
/*
SqlSyntaxError: expected SELECT, INSERT, UPDATE, DELETE or ALL, found 'something' (line 1, column 8)
  REVOKE something
         ^^^^^^^^^
*/
----
-- a setting that RESET names has to be there
RESET something
/*
ProgrammingError: there is no setting 'something'; SHOW ALL lists those that there are (line 1, column 7)
  RESET something
        ^^^^^^^^^
*/
----
-- the place of the word is shown, 1
TRUNCATE t CASCADE
/*
NotSupportedError: TRUNCATE ... CASCADE is not supported: there are no foreign keys and no identity columns; leave it out (line 1, column 12)
  TRUNCATE t CASCADE
             ^^^^^^^
*/
----
-- the place of the word is shown, 2
TRUNCATE TABLE t RESTRICT
/*
NotSupportedError: TRUNCATE ... RESTRICT is not supported: there are no foreign keys and no identity columns; leave it out (line 1, column 18)
  TRUNCATE TABLE t RESTRICT
                   ^^^^^^^^
*/
----
-- the place of the word is shown, 3
TRUNCATE TABLE main.t CASCADE
/*
NotSupportedError: TRUNCATE ... CASCADE is not supported: there are no foreign keys and no identity columns; leave it out (line 1, column 23)
  TRUNCATE TABLE main.t CASCADE
                        ^^^^^^^
*/
----
-- the place of the word is shown, 4
TRUNCATE t RESTART IDENTITY
/*
NotSupportedError: TRUNCATE ... RESTART is not supported: there are no foreign keys and no identity columns; leave it out (line 1, column 12)
  TRUNCATE t RESTART IDENTITY
             ^^^^^^^
*/
----
-- the place of the word is shown, 5
UPDATE t ONLY SET a = 1
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "ONLY" (line 1, column 10)
  UPDATE t ONLY SET a = 1
           ^^^^
*/
----
-- the place of the word is shown, 6
EXPLAIN DELETE FROM t ALL
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "ALL" (line 1, column 23)
  EXPLAIN DELETE FROM t ALL
                        ^^^
*/
----
-- the place of the word is shown, 7
INSERT INTO t (k) VALUES (1), (2) ON CONFLICT DO UPDATE SET a = 1 WHERE 1 = 1 , RETURNING k
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "," (line 1, column 79)
  INSERT INTO t (k) VALUES (1), (2) ON CONFLICT DO UPDATE SET a = 1 WHERE 1 = 1 , RETURNING k
                                                                                ^
*/
----
-- the place of the word is shown, 8
UPDATE t SET s = 'é', a = 1 WHERE k = 1 , RETURNING k
/*
SqlSyntaxError: the statement does not parse: syntax error at or near "," (line 1, column 41)
  UPDATE t SET s = 'é', a = 1 WHERE k = 1 , RETURNING k
                                          ^
*/
----
-- what stands in front of a name, 1
SELECT 1 FROM other.main.orders
/*
NotSupportedError: catalog 'other' does not exist: there is one, secateur, which need not be written (line 1, column 15)
  SELECT 1 FROM other.main.orders
                ^^^^^^^^^^^^^^^^^
*/
----
-- what stands in front of a name, 2
SELECT 1 FROM other.orders
/*
NotSupportedError: schema 'other' is not supported: tables and views are in the schema main, which need not be written; beside it are secateur, information_schema (line 1, column 15)
  SELECT 1 FROM other.orders
                ^^^^^^^^^^^^
*/
----
-- what stands in front of a name, 3
SELECT 1 FROM secateur.orders
/*
UnknownTableError: table 'orders' does not exist in schema secateur; there is members, types, tables, columns, checks, indexes, partitions, latencies, history, hot_keys, resource_groups, tenants, tokens, roles, grants, policies, settings, jobs, loads, events, statements, newest_statements, running_statements, statement_summaries (line 1, column 15)
  SELECT 1 FROM secateur.orders
                ^^^^^^^^^^^^^^^
*/
----
-- what stands in front of a name, 4
SELECT 1 FROM information_schema.table
/*
UnknownTableError: table 'table' does not exist in schema information_schema; did you mean tables? (line 1, column 15)
  SELECT 1 FROM information_schema.table
                ^^^^^^^^^^^^^^^^^^^^^^^^
*/
----
-- mistakes are shown where they stand, 1
DESCRIBE ordrs
/*
UnknownTableError: table 'ordrs' does not exist (line 1, column 10)
  DESCRIBE ordrs
           ^^^^^
*/
----
-- mistakes are shown where they stand, 2
SHOW main.ordrs
/*
UnknownTableError: table 'ordrs' does not exist (line 1, column 11)
  SHOW main.ordrs
            ^^^^^
*/
----
-- mistakes are shown where they stand, 3
SUMMARIZE ordrs
/*
UnknownTableError: table 'ordrs' does not exist (line 1, column 11)
  SUMMARIZE ordrs
            ^^^^^
*/
----
-- mistakes are shown where they stand, 4
DESCRIBE SELECT nope FROM orders
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 17)
  DESCRIBE SELECT nope FROM orders
                  ^^^^
*/
----
-- mistakes are shown where they stand, 5
SUMMARIZE SELECT nope FROM orders
/*
UnknownColumnError: column 'nope' does not exist; there is customer_id, id, priority, amount, day (line 1, column 18)
  SUMMARIZE SELECT nope FROM orders
                   ^^^^
*/
----
-- mistakes are shown where they stand, 6
SUMMARIZE
/*
SqlSyntaxError: expected a table or a query, found the end of the statement (line 1, column 10)
  SUMMARIZE
           ^
*/
----
-- mistakes are shown where they stand, 7
SHOW TABLES LIKE 'a'
/*
SqlSyntaxError: expected the end of the statement, found 'LIKE' (line 1, column 13)
  SHOW TABLES LIKE 'a'
              ^^^^
*/
----
-- mistakes are shown where they stand, 8
DESCRIBE other.orders
/*
NotSupportedError: schema 'other' is not supported: tables and views are in the schema main, which need not be written; beside it are secateur, information_schema (line 1, column 10)
  DESCRIBE other.orders
           ^^^^^^^^^^^^
*/
----
-- mistakes are shown where they stand, 9
SELECT * FROM (DESCRIBE /* the */ orders)
/*
execution: none on 0 of 3 members
serving: no, it reads no table
*/
----
-- mistakes are shown where they stand, 10
SELECT * FROM (SHOW TABLES)
/*
NotSupportedError: SHOW inside of a query is not supported: read secateur.tables (line 1, column 16)
  SELECT * FROM (SHOW TABLES)
                 ^^^^
*/
