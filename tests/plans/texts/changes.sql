-- The queries that UPDATE, DELETE, MERGE and INSERT become.
-- tables: shop
----
-- an update is a query for rows: one column
-- show: texts
UPDATE customers SET score = score + 1 WHERE customer_id = 'C1'
/*
ChangeStatement UPDATE:
on one member, by Arrow:
  s0 is customers(customer_id, name, score), found by its key alone
  answers (score DOUBLE, customer_id VARCHAR, name VARCHAR)
  FROM s0 AS "customers" SELECT CAST((score + 1) AS DOUBLE) AS "score", "customers"."customer_id", "customers"."name" WHERE customer_id = 'C1'
on several members:
  scan customers: SELECT "customer_id", "name", "score" FROM s0 WHERE ("customer_id" = 'C1')
  final: FROM s0 AS "customers" SELECT CAST((score + 1) AS DOUBLE) AS "score", "customers"."customer_id", "customers"."name" WHERE customer_id = 'C1'
*/
----
-- an update is a query for rows: parameters and an alias
-- parameters: 'Ada', 2, 'C1'
-- show: texts
UPDATE customers AS c SET name = ?, score=c.score*? WHERE c.customer_id = ?
/*
ChangeStatement UPDATE:
on one member, by Arrow:
  s0 is customers(customer_id, name, score), found by its key alone
  answers (name VARCHAR, score DOUBLE, customer_id VARCHAR)
  FROM s0 AS "c" SELECT CAST(($1) AS VARCHAR) AS "name", CAST((c.score*$2) AS DOUBLE) AS "score", "c"."customer_id" WHERE c.customer_id = $3
on several members:
  scan c: SELECT "customer_id", "name", "score" FROM s0 WHERE ("customer_id" = $3)
  final: FROM s0 AS "c" SELECT CAST(($1) AS VARCHAR) AS "name", CAST((c.score*$2) AS DOUBLE) AS "score", "c"."customer_id" WHERE c.customer_id = $3
*/
----
-- an update is a query for rows: default
-- show: texts
UPDATE airlines SET NAME = DEFAULT
/*
ChangeStatement UPDATE:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (name VARCHAR, code VARCHAR)
  FROM s0 AS "airlines" SELECT CAST((NULL) AS VARCHAR) AS "name", "airlines"."code"
*/
----
-- an update is a query for rows: a call
-- show: texts
UPDATE airlines SET name = concat(name, ',', code) WHERE name IS DISTINCT FROM code
/*
ChangeStatement UPDATE:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (name VARCHAR, code VARCHAR)
  FROM s0 AS "airlines" SELECT CAST((concat(name, ',', code)) AS VARCHAR) AS "name", "airlines"."code" WHERE name IS DISTINCT FROM code
*/
----
-- an update is a query for rows: from inside a value
-- show: texts
UPDATE airlines SET name = code IS DISTINCT FROM 'x' /* , */
/*
ChangeStatement UPDATE:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (name VARCHAR, code VARCHAR)
  FROM s0 AS "airlines" SELECT CAST((code IS DISTINCT FROM 'x') AS VARCHAR) AS "name", "airlines"."code"
*/
----
-- an update is a query for rows: a subquery over a replicated table
-- show: texts
UPDATE airlines SET name=(SELECT max(name) FROM airlines b WHERE b.code > airlines.code)
/*
ChangeStatement UPDATE:
on one member, by DuckDB:
  s0 is airlines(code, name)
  s1 is airlines(code, name)
  answers (name VARCHAR, code VARCHAR)
  FROM s0 AS "airlines" SELECT CAST(((SELECT max(name) FROM s1 b WHERE b.code > airlines.code)) AS VARCHAR) AS "name", "airlines"."code"
*/
----
-- an update that looks beyond its partition is a query for effects: from
-- show: texts
UPDATE airlines AS a SET name = c.name FROM customers c WHERE c.customer_id = a.code
/*
CoordinatedChange FIRST:
on one member, by Arrow:
  s0 is customers(customer_id, name)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  SELECT CAST('UPDATE' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST((c.name) AS VARCHAR) AS "name" FROM s0 c, s1 AS "a" WHERE c.customer_id = a.code
on several members:
  join c: SELECT CAST('UPDATE' AS VARCHAR) AS "action", t2."code", t2."code" AS "c2", t1."name" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."code")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- an update that looks beyond its partition is a query for effects: a key column
-- show: texts
UPDATE airlines SET (code, name) = (lower(code), DEFAULT)
/*
CoordinatedChange FIRST:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  SELECT CAST('UPDATE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST((lower(code)) AS VARCHAR) AS "code", CAST((NULL) AS VARCHAR) AS "name" FROM s0 AS "airlines"
*/
----
-- a deletion is a query for keys: everything
-- show: texts
DELETE FROM airlines
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code)
  answers (code VARCHAR)
  FROM s0 AS "airlines" SELECT "airlines"."code"
*/
----
-- a deletion is a query for keys: case
-- show: texts
delete from Airlines where name = 'x'
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code, name)
  answers (code VARCHAR)
  FROM s0 AS "Airlines" SELECT "Airlines"."code" where name = 'x'
*/
----
-- a deletion is a query for keys: an alias
-- parameters: 'x'
-- show: texts
DELETE FROM airlines a WHERE a.name = ?
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code, name)
  answers (code VARCHAR)
  FROM s0 AS "a" SELECT "a"."code" WHERE a.name = $1
*/
----
-- a deletion is a query for keys: a quoted alias
-- show: texts
DELETE FROM airlines AS "where" WHERE true
/*
ChangeStatement DELETE:
on one member, by DuckDB:
  s0 is airlines(code)
  answers (code VARCHAR)
  FROM s0 AS "where" SELECT "where"."code" WHERE true
*/
----
-- a deletion is a query for keys: a comment
-- show: texts
DELETE FROM airlines -- all
;
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code)
  answers (code VARCHAR)
  FROM s0 AS "airlines" SELECT "airlines"."code"
*/
----
-- a deletion is a query for keys: truncate
-- show: texts
TRUNCATE airlines
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code)
  answers (code VARCHAR)
  FROM s0 AS "airlines" SELECT "airlines"."code"
*/
----
-- a deletion is a query for keys: truncate table
-- show: texts
TRUNCATE TABLE airlines;
/*
ChangeStatement DELETE:
on one member, by Arrow:
  s0 is airlines(code)
  answers (code VARCHAR)
  FROM s0 AS "airlines" SELECT "airlines"."code"
*/
----
-- a deletion that looks beyond its partition is a query for effects: using
-- show: texts
DELETE FROM airlines USING customers AS c WHERE c.name = airlines.code
/*
CoordinatedChange FIRST:
on one member, by DuckDB:
  s0 is customers(name)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST((NULL) AS VARCHAR) AS "code", CAST((NULL) AS VARCHAR) AS "name" FROM s0 AS c, s1 AS "airlines" WHERE c.name = airlines.code
on several members:
  join c: SELECT CAST('DELETE' AS VARCHAR) AS "action", t2."code", CAST(NULL AS VARCHAR) AS "c2", CAST(NULL AS VARCHAR) AS "name" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."name" = t2."code")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- a deletion that looks beyond its partition is a query for effects: a common table expression, and rows to return
-- show: texts
WITH x AS (SELECT 'a' AS k) DELETE FROM airlines WHERE code IN (SELECT k FROM x) RETURNING name
/*
CoordinatedChange FIRST:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH x AS (SELECT 'a' AS k) SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s0 AS "airlines" WHERE code IN (SELECT k FROM x)
returning:
on one member, by Arrow:
  s0 is airlines(name)
  answers (name VARCHAR)
  SELECT name FROM s0 AS "airlines"
*/
----
-- what is returned is a query over the table
-- parameters: 1, 2
-- show: texts
DELETE FROM orders o WHERE id = ? RETURNING o.id + ? AS more
/*
CoordinatedChange FIRST:
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (action VARCHAR, old 0 VARCHAR, old 1 BIGINT, customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE)
  SELECT CAST('DELETE' AS VARCHAR) AS "action", "o"."customer_id" AS "old 0", "o"."id" AS "old 1", CAST(("o"."customer_id") AS VARCHAR) AS "customer_id", CAST(("o"."id") AS BIGINT) AS "id", CAST(("o"."priority") AS VARCHAR) AS "priority", CAST(("o"."amount") AS DECIMAL(10,2)) AS "amount", CAST(("o"."day") AS DATE) AS "day" FROM s0 AS "o" WHERE id = $1
on several members:
  scan o: SELECT CAST('DELETE' AS VARCHAR) AS "action", t1."customer_id", t1."id", t1."customer_id" AS "c3", t1."id" AS "c4", t1."priority", t1."amount", t1."day" FROM "s0" AS t1 WHERE (t1."id" = $1)
  final: SELECT t1."action", t1."customer_id", t1."id", t1."c3", t1."c4", t1."priority", t1."amount", t1."day" FROM x0 AS t1
returning:
on one member, by DuckDB:
  s0 is orders(id)
  answers (more BIGINT)
  SELECT o.id + $2 AS more FROM s0 AS "o"
on several members:
  scan o: SELECT (t1."id" + $2) AS "more" FROM "s0" AS t1
  final: SELECT t1."more" FROM x0 AS t1
*/
----
-- a merge has a part for each kind of rows
-- show: texts
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED THEN UPDATE SET name = c.name WHEN NOT MATCHED THEN INSERT (code) VALUES (c.customer_id) WHEN NOT MATCHED BY SOURCE THEN DELETE
/*
CoordinatedChange REFUSED:
on one member, by DuckDB:
  s0 is customers(customer_id, name, score)
  s1 is airlines(code, name)
  s2 is airlines(code, name)
  s3 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 AS c) SELECT CAST('UPDATE' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST((CAST((c.name) AS VARCHAR)) AS VARCHAR) AS "name" FROM s1 AS "a" JOIN "source rows" AS "c" ON (a.code = c.customer_id) UNION ALL SELECT CAST('INSERT' AS VARCHAR) AS "action", CAST(NULL AS VARCHAR) AS "old 0", CAST((CAST((c.customer_id) AS VARCHAR)) AS VARCHAR) AS "code", CAST((NULL) AS VARCHAR) AS "name" FROM "source rows" AS "c" ANTI JOIN s2 AS "a" ON (a.code = c.customer_id) UNION ALL SELECT CAST('DELETE' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST(("a"."name") AS VARCHAR) AS "name" FROM s3 AS "a" ANTI JOIN "source rows" AS "c" ON (a.code = c.customer_id)
on several members:
  scan c: SELECT "customer_id", "name", "score" FROM s0
  final: WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 AS c) SELECT CAST('UPDATE' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST((CAST((c.name) AS VARCHAR)) AS VARCHAR) AS "name" FROM s1 AS "a" JOIN "source rows" AS "c" ON (a.code = c.customer_id) UNION ALL SELECT CAST('INSERT' AS VARCHAR) AS "action", CAST(NULL AS VARCHAR) AS "old 0", CAST((CAST((c.customer_id) AS VARCHAR)) AS VARCHAR) AS "code", CAST((NULL) AS VARCHAR) AS "name" FROM "source rows" AS "c" ANTI JOIN s2 AS "a" ON (a.code = c.customer_id) UNION ALL SELECT CAST('DELETE' AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST(("a"."name") AS VARCHAR) AS "name" FROM s3 AS "a" ANTI JOIN "source rows" AS "c" ON (a.code = c.customer_id)
*/
----
-- of the clauses of one kind the first decides
-- parameters: 5, 2
-- show: texts
MERGE INTO airlines a USING customers AS c ON a.code = c.customer_id WHEN MATCHED AND score > ? THEN DELETE WHEN MATCHED AND score > ? THEN DO NOTHING WHEN MATCHED THEN UPDATE SET name = 'x'
/*
CoordinatedChange REFUSED:
on one member, by DuckDB:
  s0 is customers(customer_id, name, score)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 AS c) SELECT CAST(CASE WHEN (score > $1) THEN 'DELETE' WHEN (score > $2) THEN NULL ELSE 'UPDATE' END AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST(("a"."code") AS VARCHAR) AS "code", CAST((CASE WHEN (score > $1) THEN "a"."name" WHEN (score > $2) THEN "a"."name" ELSE CAST(('x') AS VARCHAR) END) AS VARCHAR) AS "name" FROM s1 AS "a" JOIN "source rows" AS "c" ON (a.code = c.customer_id)
on several members:
  join a: SELECT CAST(CASE WHEN (t2."score" > $1) THEN 'DELETE' WHEN (t2."score" > $2) THEN NULL ELSE 'UPDATE' END AS VARCHAR) AS "action", t1."code", t1."code" AS "c2", CAST(CASE WHEN (t2."score" > $1) THEN t1."name" WHEN (t2."score" > $2) THEN t1."name" ELSE CAST('x' AS VARCHAR) END AS VARCHAR) AS "name" FROM "s1" AS t1 CROSS JOIN "s0" AS t2 WHERE (t1."code" = t2."customer_id")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- sources, 1
-- show: texts
MERGE INTO airlines USING customers ON code = customer_id WHEN MATCHED THEN DELETE
/*
CoordinatedChange REFUSED:
on one member, by Arrow:
  s0 is customers(customer_id, name, score)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 AS "customers" ) SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s1 AS "airlines" JOIN "source rows" AS "customers" ON (code = customer_id)
on several members:
  join airlines: SELECT CAST('DELETE' AS VARCHAR) AS "action", t1."code", t1."code" AS "c2", t1."name" FROM "s1" AS t1 CROSS JOIN "s0" AS t2 WHERE (t1."code" = t2."customer_id")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- sources, 2
-- show: texts
MERGE INTO airlines USING customers x ON code = customer_id WHEN MATCHED THEN DELETE
/*
CoordinatedChange REFUSED:
on one member, by Arrow:
  s0 is customers(customer_id, name, score)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM s0 x) SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s1 AS "airlines" JOIN "source rows" AS "x" ON (code = customer_id)
on several members:
  join airlines: SELECT CAST('DELETE' AS VARCHAR) AS "action", t1."code", t1."code" AS "c2", t1."name" FROM "s1" AS t1 CROSS JOIN "s0" AS t2 WHERE (t1."code" = t2."customer_id")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- sources, 3
-- show: texts
MERGE INTO airlines USING (SELECT * FROM customers) x ON code = customer_id WHEN MATCHED THEN DELETE
/*
CoordinatedChange REFUSED:
on one member, by Arrow:
  s0 is customers(customer_id, name, score)
  s1 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM (SELECT * FROM s0 AS "customers") x) SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s1 AS "airlines" JOIN "source rows" AS "x" ON (code = customer_id)
on several members:
  join airlines: SELECT CAST('DELETE' AS VARCHAR) AS "action", t1."code", t1."code" AS "c2", t1."name" FROM "s1" AS t1 CROSS JOIN "s0" AS t2 WHERE (t1."code" = t2."customer_id")
  final: SELECT t1."action", t1."code", t1."c2", t1."name" FROM x0 AS t1
*/
----
-- sources, 4
-- show: texts
MERGE INTO airlines USING (VALUES ('a', 'b')) AS x(customer_id, name) ON code = customer_id WHEN MATCHED THEN DELETE
/*
CoordinatedChange REFUSED:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  WITH "source rows" AS MATERIALIZED (SELECT * FROM (VALUES ('a', 'b')) AS x(customer_id, name)) SELECT CAST('DELETE' AS VARCHAR) AS "action", "airlines"."code" AS "old 0", CAST(("airlines"."code") AS VARCHAR) AS "code", CAST(("airlines"."name") AS VARCHAR) AS "name" FROM s0 AS "airlines" JOIN "source rows" AS "x" ON (code = customer_id)
*/
----
-- the row that is there is looked for by its key
-- parameters: 'AA', 'y'
-- show: texts
INSERT INTO airlines AS a VALUES (?, 'x') ON CONFLICT DO UPDATE SET name = a.name || excluded.name WHERE name <> ?
/*
CoordinatedChange FIRST:
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  SELECT CAST(CASE WHEN "a"."code" IS NULL THEN 'INSERT' ELSE 'UPDATE' END AS VARCHAR) AS "action", "a"."code" AS "old 0", CAST((CASE WHEN "a"."code" IS NULL THEN excluded."code" ELSE "a"."code" END) AS VARCHAR) AS "code", CAST((CASE WHEN "a"."code" IS NULL THEN excluded."name" ELSE CAST((a.name || excluded.name) AS VARCHAR) END) AS VARCHAR) AS "name" FROM (SELECT {'code': "code", 'name': "name"} AS excluded FROM (VALUES (CAST($1 AS VARCHAR), CAST('x' AS VARCHAR))) AS v("code", "name")) AS "source row" LEFT JOIN (SELECT * FROM s0 AS "airlines" WHERE ("code" = CAST($1 AS VARCHAR))) AS "a" ON "a"."code" = excluded."code" WHERE "a"."code" IS NULL OR (name <> $2)
*/
----
-- rows to return of a plain insertion need no look at the table
-- show: texts
INSERT INTO airlines (code) VALUES ('AA') RETURNING code
/*
CoordinatedChange REFUSED:
on one member, by DuckDB:
  answers (action VARCHAR, old 0 VARCHAR, code VARCHAR, name VARCHAR)
  SELECT CAST('INSERT' AS VARCHAR) AS "action", CAST(NULL AS VARCHAR) AS "old 0", CAST(("code") AS VARCHAR) AS "code", CAST(("name") AS VARCHAR) AS "name" FROM (VALUES (CAST('AA' AS VARCHAR), CAST(NULL AS VARCHAR))) AS v("code", "name")
returning:
on one member, by Arrow:
  s0 is airlines(code)
  answers (code VARCHAR)
  SELECT code FROM s0 AS "airlines"
*/
