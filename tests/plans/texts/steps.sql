-- The texts of subqueries that run first: bounded where the rows are.
-- tables: shop
CREATE TABLE vip (customer_id VARCHAR PRIMARY KEY, region VARCHAR, since DATE, best BIGINT, score DOUBLE) PARTITION BY HASH (customer_id) PARTITIONS 7;
CREATE TABLE days (day DATE, n INTEGER, best UINTEGER, PRIMARY KEY (day, n)) PARTITION BY RANGE (day) SPLIT AT (DATE '2024-01-01', DATE '2024-02-01', DATE '2024-03-01');
CREATE TABLE numbers (a BIGINT, b INTEGER, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 7, HASH (b) PARTITIONS 3;
----
-- a step is bounded where the rows are, 1
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip
)
/*
steps:
on one member, by Arrow:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT customer_id FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT t1."customer_id" FROM "s0" AS t1 LIMIT 10001
  final: SELECT DISTINCT t1."customer_id" FROM x0 AS t1 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 2
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT DISTINCT customer_id FROM vip
)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT DISTINCT customer_id FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT t2."customer_id" FROM (SELECT DISTINCT t1."customer_id" FROM "s0" AS t1) AS t2 LIMIT 10001
  final: SELECT DISTINCT t1."customer_id" FROM x0 AS t1 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 3
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT ALL customer_id FROM vip
)
/*
steps:
on one member, by Arrow:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT ALL customer_id FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT t1."customer_id" FROM "s0" AS t1 LIMIT 10001
  final: SELECT DISTINCT t1."customer_id" FROM x0 AS t1 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 4
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip LIMIT 2
)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT customer_id FROM s0 AS "vip" LIMIT 2
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT t1."customer_id" FROM "s0" AS t1 LIMIT 2
  final: SELECT DISTINCT t2."customer_id" FROM (SELECT t1."customer_id" FROM x0 AS t1 LIMIT 2) AS t2 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 5
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT max(customer_id) FROM vip
)
/*
steps:
on one member, by Arrow:
  s0 is vip(customer_id)
  answers (max(customer_id) VARCHAR)
  SELECT DISTINCT * FROM (
SELECT max(customer_id) FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT max(t1."customer_id") AS "max" FROM "s0" AS t1
  final: SELECT DISTINCT CAST(max(t1."max") AS VARCHAR) AS "c0" FROM x0 AS t1 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 6
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip -- all
)
/*
steps:
on one member, by Arrow:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT customer_id FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT t1."customer_id" FROM "s0" AS t1 LIMIT 10001
  final: SELECT DISTINCT t1."customer_id" FROM x0 AS t1 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 7
-- show: texts
SELECT * FROM orders WHERE customer_id IN (FROM (SELECT customer_id FROM vip)
)
/*
steps:
on one member, by Arrow:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
FROM (SELECT customer_id FROM s0 AS "vip")
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT t1."customer_id" FROM "s0" AS t1 LIMIT 10001
  final: SELECT DISTINCT t1."customer_id" FROM x0 AS t1 LIMIT 10001
*/
----
-- a scalar step is bounded to two rows
-- show: texts
SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip ORDER BY since LIMIT 1)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id, since)
  answers (customer_id VARCHAR)
  SELECT * FROM (
SELECT customer_id FROM s0 AS "vip" ORDER BY since LIMIT 1
) AS subquery LIMIT 2
on several members:
  scan vip: SELECT t1."customer_id", t1."since" FROM "s0" AS t1 ORDER BY t1."since" NULLS LAST LIMIT 1
  final: SELECT t2."customer_id" FROM (SELECT t1."customer_id" FROM x0 AS t1 ORDER BY t1."since" NULLS LAST LIMIT 1) AS t2 LIMIT 2
*/
