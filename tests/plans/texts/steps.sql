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
  SELECT DISTINCT customer_id FROM s0 AS "vip"
LIMIT 10001
on several members:
  scan:vip: SELECT DISTINCT "customer_id" AS c0 FROM s0 LIMIT 10001
  final: SELECT DISTINCT c0 FROM x0 LIMIT 10001
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
  scan vip: SELECT DISTINCT "subquery"."customer_id" AS c0 FROM (SELECT DISTINCT customer_id FROM s0 AS "vip") AS subquery LIMIT 10001
  final: SELECT DISTINCT c0 FROM x0 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 3
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT ALL customer_id FROM vip
)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
SELECT ALL customer_id FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT "subquery"."customer_id" AS c0 FROM (SELECT customer_id FROM s0 AS "vip") AS subquery LIMIT 10001
  final: SELECT DISTINCT c0 FROM x0 LIMIT 10001
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
  scan vip: SELECT "vip"."customer_id" AS c0 FROM s0 AS "vip" LIMIT 2
  subquery: SELECT c0 FROM x0 LIMIT 2
  final: SELECT DISTINCT * FROM x1 AS subquery LIMIT 10001
*/
----
-- a step is bounded where the rows are, 5
-- show: texts
SELECT * FROM orders WHERE customer_id IN (SELECT max(customer_id) FROM vip
)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id)
  answers (max(customer_id) VARCHAR)
  SELECT DISTINCT * FROM (
SELECT max(customer_id) FROM s0 AS "vip"
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT max("vip"."customer_id") AS a0 FROM s0 AS "vip"
  subquery: SELECT (CAST(MAX(a0) AS TEXT)) AS c0 FROM x0
  final: SELECT DISTINCT * FROM x1 AS subquery LIMIT 10001
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
  SELECT DISTINCT customer_id FROM s0 AS "vip"
LIMIT 10001
on several members:
  scan:vip: SELECT DISTINCT "customer_id" AS c0 FROM s0 LIMIT 10001
  final: SELECT DISTINCT c0 FROM x0 LIMIT 10001
*/
----
-- a step is bounded where the rows are, 7
-- show: texts
SELECT * FROM orders WHERE customer_id IN (FROM (SELECT customer_id FROM vip)
)
/*
steps:
on one member, by DuckDB:
  s0 is vip(customer_id)
  answers (customer_id VARCHAR)
  SELECT DISTINCT * FROM (
FROM (SELECT customer_id FROM s0 AS "vip")
) AS subquery LIMIT 10001
on several members:
  scan vip: SELECT DISTINCT "subquery"."customer_id" AS c0 FROM (SELECT * FROM (SELECT customer_id FROM s0 AS "vip")) AS subquery LIMIT 10001
  final: SELECT DISTINCT c0 FROM x0 LIMIT 10001
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
  scan vip: SELECT "vip"."customer_id" AS c0, "vip"."since" AS o0 FROM s0 AS "vip" ORDER BY o0 LIMIT 1
  final: SELECT * FROM (SELECT * FROM (SELECT c0 FROM x0 ORDER BY o0 LIMIT 1) AS q("customer_id")) AS subquery LIMIT 2
*/
