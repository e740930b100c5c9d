-- The columns that scans read, and the text that runs on one member.
-- tables: shop
CREATE VIEW big AS SELECT customer_id, id, amount FROM orders WHERE amount > 100;
CREATE VIEW known (who, name) AS SELECT customer_id, name FROM customers;
CREATE VIEW both_ AS SELECT b.id, k.who AS customer FROM big b JOIN known k ON b.customer_id = k.who;
----
-- a scan reads the columns that the statement names: one
-- show: texts
SELECT amount FROM orders
/*
on one member, by Arrow:
  s0 is orders(amount)
  answers (amount DECIMAL(10,2))
  SELECT amount FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."amount" FROM "s0" AS t1
  final: SELECT t1."amount" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: quoted, another case
-- show: texts
SELECT "AMOUNT" FROM orders WHERE "Id" > 3
/*
on one member, by Arrow:
  s0 is orders(id, amount)
  answers (amount DECIMAL(10,2))
  SELECT "AMOUNT" FROM s0 AS "orders" WHERE "Id" > 3
on several members:
  scan orders: SELECT t1."amount" FROM "s0" AS t1 WHERE (t1."id" > 3)
  final: SELECT t1."amount" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: none but rows
-- show: texts
SELECT count(*) FROM orders
/*
on one member, by Arrow:
  s0 is orders(customer_id)
  answers (count_star() BIGINT)
  SELECT count(*) FROM s0 AS "orders"
on several members:
  scan orders: SELECT count(*) AS "count_star" FROM "s0" AS t1
  final: SELECT CAST(coalesce(sum(t1."count_star"), CAST(0 AS HUGEINT)) AS BIGINT) AS "c0" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: none at all
-- show: texts
SELECT 1 FROM orders
/*
on one member, by Arrow:
  s0 is orders(customer_id)
  answers (1 INTEGER)
  SELECT 1 FROM s0 AS "orders"
on several members:
  scan orders: SELECT 1 AS "c0" FROM "s0" AS t1
  final: SELECT t1."c0" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: star
-- show: texts
SELECT * FROM orders
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE)
  SELECT * FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM "s0" AS t1
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: qualified star
-- show: texts
SELECT o.* FROM orders o
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE)
  SELECT o.* FROM s0 o
on several members:
  scan o: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM "s0" AS t1
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: no select list
-- show: texts
FROM orders
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE)
  FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM "s0" AS t1
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: columns by pattern
-- show: texts
SELECT COLUMNS('a') FROM orders
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (amount DECIMAL(10,2), day DATE)
  SELECT COLUMNS('a') FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."amount", t1."day" FROM "s0" AS t1
  final: SELECT t1."amount", t1."day" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: a row as a value
-- show: texts
SELECT orders FROM orders
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (orders STRUCT(customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), "day" DATE))
  SELECT orders FROM s0 AS "orders"
on several members:
  scan orders: SELECT struct_pack("customer_id" := t1."customer_id", "id" := t1."id", "priority" := t1."priority", "amount" := t1."amount", "day" := t1."day") AS "c0" FROM "s0" AS t1
  final: SELECT t1."c0" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: renamed columns
-- show: texts
SELECT b FROM orders AS o(a, b)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (b BIGINT)
  SELECT b FROM s0 AS o(a, b)
on several members:
  scan o: SELECT t1."id" AS "b" FROM "s0" AS t1
  final: SELECT t1."b" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: renamed columns of a query in parentheses
-- show: texts
SELECT b FROM ((FROM orders)) AS o(a, b)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (b BIGINT)
  SELECT b FROM ((FROM s0 AS "orders")) AS o(a, b)
on several members:
  scan orders: SELECT t1."id" AS "b" FROM "s0" AS t1
  final: SELECT t1."b" FROM x0 AS t1
*/
----
-- a scan reads the columns that the statement names: other clauses
-- show: texts
SELECT priority FROM orders ORDER BY day, sum(amount) OVER (PARTITION BY id)
/*
on one member, by DuckDB:
  s0 is orders(id, priority, amount, day)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" ORDER BY day, sum(amount) OVER (PARTITION BY id)
on several members:
  scan orders: SELECT t1."priority", t1."day", t1."amount", t1."id" FROM "s0" AS t1
  final: SELECT t2."priority" FROM (SELECT t1."priority", t1."day", sum(t1."amount") OVER (PARTITION BY t1."id" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "c4" FROM x0 AS t1) AS t2 ORDER BY t2."day" NULLS LAST, t2."c4" NULLS LAST
*/
----
-- a scan reads the columns that the statement names: not inside strings
-- show: texts
SELECT 'amount' AS x FROM orders WHERE priority = 'day'
/*
on one member, by Arrow:
  s0 is orders(priority)
  answers (x VARCHAR)
  SELECT 'amount' AS x FROM s0 AS "orders" WHERE priority = 'day'
on several members:
  scan orders: SELECT 'amount' AS "x" FROM "s0" AS t1 WHERE (t1."priority" = 'day')
  final: SELECT t1."x" FROM x0 AS t1
*/
----
-- a star stands for the columns of its own from clause: of every table in FROM
-- show: texts
SELECT * FROM orders, metrics m
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT * FROM s0 AS "orders", s1 m
on several members:
  scan m: SELECT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1
  join orders: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t2."host", t2."metric", t2."time", t2."value" FROM "s0" AS t1 CROSS JOIN x0 AS t2
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t1."host", t1."metric", t1."time", t1."value" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: in parentheses too
-- show: texts
SELECT * FROM (orders JOIN metrics m ON host = priority)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT * FROM (s0 AS "orders" JOIN s1 m ON host = priority)
on several members:
  scan m: SELECT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1
  join orders: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t2."host", t2."metric", t2."time", t2."value" FROM "s0" AS t1 CROSS JOIN x0 AS t2 WHERE (t1."priority" = t2."host")
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t1."host", t1."metric", t1."time", t1."value" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: not inside a subquery
-- show: texts
SELECT * FROM (SELECT id FROM orders), metrics m
/*
on one member, by DuckDB:
  s0 is orders(id)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT * FROM (SELECT id FROM s0 AS "orders"), s1 m
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1
  join m: SELECT t2."id", t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1 CROSS JOIN x0 AS t2
  final: SELECT t1."id", t1."host", t1."metric", t1."time", t1."value" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: no select list is a star
-- show: texts
WITH c AS (FROM orders) SELECT id FROM c, metrics
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host)
  answers (id BIGINT)
  WITH c AS (FROM s0 AS "orders") SELECT id FROM c, s1 AS "metrics"
on several members:
  scan metrics: SELECT true AS "c0" FROM "s1" AS t1
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x0 AS t2
  final: SELECT t1."id" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: of its side of a set operation
-- show: texts
SELECT * FROM orders UNION ALL BY NAME SELECT value FROM metrics m
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, value DOUBLE)
  SELECT * FROM s0 AS "orders" UNION ALL BY NAME SELECT value FROM s1 m
on several members:
  join orders: SELECT t3.c0 AS "c0", t3.c1 AS "c1", t3.c2 AS "c2", t3.c3 AS "c3", t3.c4 AS "c4", t3.c5 AS "c5" FROM ((SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", CAST(NULL AS DOUBLE) AS "c5" FROM "s0" AS t1) UNION ALL (SELECT CAST(NULL AS VARCHAR) AS "c0", CAST(NULL AS BIGINT) AS "c1", CAST(NULL AS VARCHAR) AS "c2", CAST(NULL AS DECIMAL(10,2)) AS "c3", CAST(NULL AS DATE) AS "c4", t2."value" FROM "s1" AS t2)) AS t3(c0, c1, c2, c3, c4, c5)
  final: SELECT t1."c0", t1."c1", t1."c2", t1."c3", t1."c4", t1."c5" FROM x0 AS t1
*/
----
-- a star stands for the columns of its own from clause: of EXISTS for none
-- show: texts
SELECT id FROM orders WHERE EXISTS (SELECT * FROM metrics m WHERE host = priority)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (SELECT * FROM s1 m WHERE host = priority)
on several members:
  scan m: SELECT t1."host" AS "priority" FROM "s1" AS t1 WHERE (t1."host" IS NOT NULL)
  join orders: SELECT t1."id" FROM "s0" AS t1 SEMI JOIN (SELECT CAST(NULL AS VARCHAR) AS "c0", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS TIMESTAMP) AS "c2", CAST(NULL AS DOUBLE) AS "c3", t2."priority" FROM x0 AS t2) AS t3 ON t1."priority" IS NOT DISTINCT FROM t3."priority"
  final: SELECT t1."id" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: unless rows are told apart
-- show: texts
SELECT id FROM orders WHERE EXISTS (SELECT DISTINCT * FROM metrics m OFFSET 1)
/*
on one member, by DuckDB:
  s0 is orders(id)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (SELECT DISTINCT * FROM s1 m OFFSET 1)
on several members:
  scan m: SELECT DISTINCT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1
  rows of m: SELECT (count(*) = CAST(1 AS BIGINT)) AS "c0" FROM (SELECT t2."host", t2."metric", t2."time", t2."value" FROM (SELECT DISTINCT t1."host", t1."metric", t1."time", t1."value" FROM x0 AS t1 OFFSET 1) AS t2 LIMIT 1) AS t3 HAVING (count(*) = CAST(1 AS BIGINT))
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x1 AS t2
  final: SELECT t1."id" FROM x2 AS t1
*/
----
-- a star stands for the columns of its own from clause: or grouped
-- show: texts
SELECT id FROM orders WHERE EXISTS (SELECT * FROM metrics m GROUP BY ALL HAVING count(*) > 1)
/*
on one member, by DuckDB:
  s0 is orders(id)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (SELECT * FROM s1 m GROUP BY ALL HAVING count(*) > 1)
on several members:
  scan m: SELECT CAST(NULL AS VARCHAR) AS "c0" FROM "s1" AS t1 GROUP BY t1."host", t1."metric", t1."time", t1."value" HAVING (count(*) > 1) LIMIT 1
  rows of m: SELECT (count(*) = CAST(1 AS BIGINT)) AS "c0" FROM (SELECT t1."c0", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS TIMESTAMP) AS "c2", CAST(NULL AS DOUBLE) AS "c3" FROM x0 AS t1 LIMIT 1) AS t2 HAVING (count(*) = CAST(1 AS BIGINT))
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x1 AS t2
  final: SELECT t1."id" FROM x2 AS t1
*/
----
-- a star stands for the columns of its own from clause: or put together
-- show: texts
SELECT id FROM orders WHERE EXISTS (FROM metrics m UNION FROM metrics m)
/*
on one member, by DuckDB:
  s0 is orders(id)
  s1 is metrics(host, metric, time, value)
  s2 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (FROM s1 m UNION FROM s2 m)
on several members:
  join m: SELECT DISTINCT t3.c0 AS "c0", t3.c1 AS "c1", t3.c2 AS "c2", t3.c3 AS "c3" FROM ((SELECT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1) UNION ALL (SELECT t2."host", t2."metric", t2."time", t2."value" FROM "s2" AS t2)) AS t3(c0, c1, c2, c3) LIMIT 1
  rows of m: SELECT (count(*) = CAST(1 AS BIGINT)) AS "c0" FROM (SELECT DISTINCT t1."c0", t1."c1", t1."c2", t1."c3" FROM x0 AS t1 LIMIT 1) AS t2 HAVING (count(*) = CAST(1 AS BIGINT))
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x1 AS t2
  final: SELECT t1."id" FROM x2 AS t1
*/
----
-- a star stands for the columns of its own from clause: IN counts columns
-- show: texts
SELECT id FROM orders WHERE (priority, priority) IN (SELECT * FROM airlines)
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  s1 is airlines(code, name)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE (priority, priority) IN (SELECT * FROM s1 AS "airlines")
on several members:
  join orders: SELECT t1."id" FROM "s0" AS t1 SEMI JOIN "s1" AS t2 ON t1."priority" = t2."code" AND t1."priority" = t2."name"
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- a star stands for the columns of its own from clause: NATURAL looks at all
-- show: texts
SELECT id FROM orders WHERE EXISTS (SELECT * FROM customers NATURAL JOIN orders)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is customers(customer_id, name, score)
  s2 is orders(customer_id, id, priority, amount, day)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (SELECT * FROM s1 AS "customers" NATURAL JOIN s2 AS "orders")
on several members:
  join customers: SELECT CAST(NULL AS VARCHAR) AS "c0" FROM "s1" AS t1 CROSS JOIN "s2" AS t2 WHERE (t1."customer_id" = t2."customer_id") LIMIT 1
  rows of customers: SELECT (count(*) = CAST(1 AS BIGINT)) AS "c0" FROM (SELECT t1."c0", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS DOUBLE) AS "c2", CAST(NULL AS BIGINT) AS "c3", CAST(NULL AS VARCHAR) AS "c4", CAST(NULL AS DECIMAL(10,2)) AS "c5", CAST(NULL AS DATE) AS "c6" FROM x0 AS t1 LIMIT 1) AS t2 HAVING (count(*) = CAST(1 AS BIGINT))
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x1 AS t2
  final: SELECT t1."id" FROM x2 AS t1
*/
----
-- a star stands for the columns of its own from clause: in an expression
-- show: texts
SELECT hash(*COLUMNS(*)) FROM orders, metrics m
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (hash(orders.customer_id, orders.id, orders.priority, orders.amount, orders."day", m.host, m.metric, m."time", m."value") UBIGINT)
  SELECT hash(*COLUMNS(*)) FROM s0 AS "orders", s1 m
on several members:
  scan m: SELECT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1
  join orders: SELECT hash(t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t2."host", t2."metric", t2."time", t2."value") AS "c0" FROM "s0" AS t1 CROSS JOIN x0 AS t2
  final: SELECT t1."c0" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: as many as an alias of a join renames
-- show: texts
SELECT b FROM (orders JOIN metrics m ON host = priority) AS x(a, b)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (b BIGINT)
  SELECT b FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x(a, b)
on several members:
  scan m: SELECT t1."host" FROM "s1" AS t1
  join orders: SELECT t1."id" AS "b" FROM "s0" AS t1 CROSS JOIN (SELECT t2."host", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS TIMESTAMP) AS "c2", CAST(NULL AS DOUBLE) AS "c3" FROM x0 AS t2) AS t3 WHERE (t1."priority" = t3."host")
  final: SELECT t1."b" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: and one of a join inside of another
-- show: texts
SELECT q FROM ((orders JOIN metrics m ON host = priority) AS x(a, b) JOIN airlines ON code = a) AS y(p, q)
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  s2 is airlines(code, name)
  answers (q BIGINT)
  SELECT q FROM ((s0 AS "orders" JOIN s1 m ON host = priority) AS x(a, b) JOIN s2 AS "airlines" ON code = a) AS y(p, q)
on several members:
  scan m: SELECT t1."host" FROM "s1" AS t1
  join orders: SELECT t1."id" AS "q" FROM "s0" AS t1 CROSS JOIN "s2" AS t2 CROSS JOIN (SELECT t3."host", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS TIMESTAMP) AS "c2", CAST(NULL AS DOUBLE) AS "c3" FROM x0 AS t3) AS t4 WHERE (t1."priority" = t4."host") AND (t1."customer_id" = t2."code")
  final: SELECT t1."q" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: a join with a query in front
-- show: texts
SELECT c FROM ((SELECT code FROM airlines) AS y JOIN metrics m ON host = code) AS x(a, b, c)
/*
on one member, by Arrow:
  s0 is airlines(code)
  s1 is metrics(host, metric, time, value)
  answers (c VARCHAR)
  SELECT c FROM ((SELECT code FROM s0 AS "airlines") AS y JOIN s1 m ON host = code) AS x(a, b, c)
on several members:
  join airlines: SELECT t2."metric" AS "c" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."code" = t2."host")
  final: SELECT t1."c" FROM x0 AS t1
*/
----
-- a star stands for the columns of its own from clause: or with VALUES
-- show: texts
SELECT b FROM ((VALUES ('x')) AS v(y) JOIN airlines ON code = y) AS x(a, b)
/*
on one member, by DuckDB:
  s0 is airlines(code, name)
  answers (b VARCHAR)
  SELECT b FROM ((VALUES ('x')) AS v(y) JOIN s0 AS "airlines" ON code = y) AS x(a, b)
*/
----
-- a star stands for the columns of its own from clause: of an alias of a join in parentheses
-- show: texts
SELECT x.* FROM (orders JOIN metrics m ON host = priority) AS x
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT x.* FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x
on several members:
  scan m: SELECT t1."host", t1."metric", t1."time", t1."value" FROM "s1" AS t1
  join orders: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t2."host", t2."metric", t2."time", t2."value" FROM "s0" AS t1 CROSS JOIN x0 AS t2 WHERE (t1."priority" = t2."host")
  final: SELECT t1."customer_id", t1."id", t1."priority", t1."amount", t1."day", t1."host", t1."metric", t1."time", t1."value" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: which is a query of all columns anyway
-- show: texts
SELECT id FROM (orders JOIN metrics m ON host = priority) AS x
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x
on several members:
  scan m: SELECT t1."host" FROM "s1" AS t1
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN (SELECT t2."host", CAST(NULL AS VARCHAR) AS "c1", CAST(NULL AS TIMESTAMP) AS "c2", CAST(NULL AS DOUBLE) AS "c3" FROM x0 AS t2) AS t3 WHERE (t1."priority" = t3."host")
  final: SELECT t1."id" FROM x1 AS t1
*/
----
-- a star stands for the columns of its own from clause: parentheses alone are none
-- show: texts
SELECT id FROM (orders JOIN metrics m ON host = priority)
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  s1 is metrics(host)
  answers (id BIGINT)
  SELECT id FROM (s0 AS "orders" JOIN s1 m ON host = priority)
on several members:
  scan m: SELECT t1."host" FROM "s1" AS t1
  join orders: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN x0 AS t2 WHERE (t1."priority" = t2."host")
  final: SELECT t1."id" FROM x1 AS t1
*/
----
-- the text that runs is the users with other table names: an alias keeps the name
-- show: texts
SELECT id FROM orders
/*
on one member, by Arrow:
  s0 is orders(id)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs is the users with other table names: an alias of the user's
-- show: texts
select O.Id from Orders as O -- done
/*
on one member, by Arrow:
  s0 is orders(id)
  answers (id BIGINT)
  select O.Id from s0 as O
on several members:
  scan o: SELECT t1."id" FROM "s0" AS t1
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs is the users with other table names: parameters
-- parameters: 'x', 'x'
-- show: texts
SELECT id FROM "orders" WHERE id = ? AND amount < ?
/*
on one member, by Arrow:
  s0 is orders(id, amount)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE id = $1 AND amount < $2
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1 WHERE (t1."id" = $1) AND (t1."amount" < $2)
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs is the users with other table names: strings stay
-- show: texts
SELECT id FROM orders
  WHERE priority = 'from orders ?'
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders"
  WHERE priority = 'from orders ?'
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1 WHERE (t1."priority" = 'from orders ?')
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs is the users with other table names: two mentions
-- show: texts
SELECT 1 FROM orders, orders b
/*
on one member, by DuckDB:
  s0 is orders(customer_id)
  s1 is orders(customer_id)
  answers (1 INTEGER)
  SELECT 1 FROM s0 AS "orders", s1 b
on several members:
  scan b: SELECT true AS "c0" FROM "s1" AS t1
  join orders: SELECT 1 AS "c0" FROM "s0" AS t1 CROSS JOIN x0 AS t2
  final: SELECT t1."c0" FROM x1 AS t1
*/
----
-- the text that runs is the users with other table names: a common table expression hides a table
-- show: texts
WITH orders AS (SELECT 1 AS id) SELECT id FROM orders
/*
on one member, by DuckDB:
  answers (id INTEGER)
  WITH orders AS (SELECT 1 AS id) SELECT id FROM orders
*/
----
-- the text that runs is the users with other table names: but not from itself
-- show: texts
WITH orders AS (SELECT id FROM orders) SELECT id FROM orders
/*
on one member, by Arrow:
  s0 is orders(id)
  answers (id BIGINT)
  WITH orders AS (SELECT id FROM s0 AS "orders") SELECT id FROM orders
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- scans are in the order of the text
-- show: texts
SELECT (SELECT max(score) FROM customers), id FROM orders WHERE id IN (SELECT 1 FROM airlines) UNION ALL SELECT 1, 2 FROM metrics
/*
on one member, by DuckDB:
  s0 is customers(score)
  s1 is orders(id)
  s2 is airlines(code)
  s3 is metrics(host)
  answers ((SELECT max(score) FROM customers) DOUBLE, id BIGINT)
  SELECT (SELECT max(score) FROM s0 AS "customers"), id FROM s1 AS "orders" WHERE id IN (SELECT 1 FROM s2 AS "airlines") UNION ALL SELECT 1, 2 FROM s3 AS "metrics"
on several members:
  scan customers: SELECT "score" FROM s0
  scan orders: SELECT "id" FROM s1 WHERE ("id" = CAST(1 AS BIGINT))
  scan metrics: SELECT "host" FROM s3
  final: SELECT (SELECT max(score) FROM s0 AS "customers"), id FROM s1 AS "orders" WHERE id IN (SELECT 1 FROM s2 AS "airlines") UNION ALL SELECT 1, 2 FROM s3 AS "metrics"
*/
----
-- columns without a name are called as in duckdb, 1
-- show: texts
SELECT EXISTS (SELECT 1 FROM orders WHERE id = 1)
/*
on one member, by DuckDB:
  s0 is orders(id)
  answers (EXISTS(SELECT 1 FROM orders WHERE (id = 1)) BOOLEAN)
  SELECT EXISTS (SELECT 1 FROM s0 AS "orders" WHERE id = 1)
on several members:
  scan orders: SELECT CAST(NULL AS INTEGER) AS "c0" FROM "s0" AS t1 WHERE (t1."id" = 1) LIMIT 1
  final: SELECT (count(*) = CAST(1 AS BIGINT)) AS "SUBQUERY" FROM (SELECT t1."c0" FROM x0 AS t1 LIMIT 1) AS t2
*/
----
-- columns without a name are called as in duckdb, 2
-- show: texts
SELECT (SELECT max(score) FROM customers c), 1 AS s0
/*
on one member, by DuckDB:
  s0 is customers(score)
  answers ((SELECT max(score) FROM customers AS c) DOUBLE, s0 INTEGER)
  SELECT (SELECT max(score) FROM s0 c), 1 AS s0
on several members:
  scan c: SELECT max(t1."score") AS "max" FROM "s0" AS t1
  final: SELECT CAST(max(t1."max") AS DOUBLE) AS "SUBQUERY", 1 AS "s0" FROM x0 AS t1
*/
----
-- columns without a name are called as in duckdb, 3
-- parameters: {'who': 1, 'what': 2}
-- show: texts
SELECT $who, $what
/*
on one member, by DuckDB:
  answers ($who INTEGER, $what INTEGER)
  SELECT $1, $2
*/
----
-- columns without a name are called as in duckdb, 4
-- show: texts
SELECT count(*), sum(amount) + 1 FROM orders
/*
on one member, by DuckDB:
  s0 is orders(amount)
  answers (count_star() BIGINT, (sum(amount) + 1) DECIMAL(38,2))
  SELECT count(*), sum(amount) + 1 FROM s0 AS "orders"
on several members:
  scan orders: SELECT count(*) AS "count_star", sum(t1."amount") AS "sum" FROM "s0" AS t1
  final: SELECT CAST(coalesce(sum(t1."count_star"), CAST(0 AS HUGEINT)) AS BIGINT) AS "c0", (CAST(sum(t1."sum") AS DECIMAL(38,2)) + 1) AS "c1" FROM x0 AS t1
*/
----
-- the text that runs: by its name
-- show: texts
SELECT id FROM big
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, amount)
  answers (id BIGINT)
  SELECT id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) AS "big"
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1 WHERE (t1."amount" > 100)
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs: by an alias
-- show: texts
SELECT x.id FROM big x
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, amount)
  answers (id BIGINT)
  SELECT x.id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) x
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1 WHERE (t1."amount" > 100)
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs: columns of its own
-- show: texts
SELECT who FROM known
/*
on one member, by Arrow:
  s0 is customers(customer_id, name)
  answers (who VARCHAR)
  SELECT who FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")
on several members:
  scan customers: SELECT t1."customer_id" AS "who" FROM "s0" AS t1
  final: SELECT t1."who" FROM x0 AS t1
*/
----
-- the text that runs: columns named twice
-- show: texts
SELECT a FROM main.known AS x(a)
/*
on one member, by Arrow:
  s0 is customers(customer_id, name)
  answers (a VARCHAR)
  SELECT a FROM (SELECT * FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")) AS x(a)
on several members:
  scan customers: SELECT t1."customer_id" AS "a" FROM "s0" AS t1
  final: SELECT t1."a" FROM x0 AS t1
*/
----
-- the text that runs: hidden
-- show: texts
WITH big AS (SELECT 1 AS id) SELECT id FROM big
/*
on one member, by DuckDB:
  answers (id INTEGER)
  WITH big AS (SELECT 1 AS id) SELECT id FROM big
*/
----
-- the text that runs: a relation is not what a common table expression is called
-- show: texts
WITH s0 AS (SELECT 1 AS id) SELECT s0.id FROM orders, s0
/*
on one member, by DuckDB:
  s0 is orders(id)
  answers (id INTEGER)
  WITH s0 AS (SELECT 1 AS id) SELECT s0.id FROM temp.s0 AS "orders", s0
on several members:
  scan orders: SELECT t2."id" FROM "s0" AS t1 CROSS JOIN (SELECT 1 AS "id") AS t2
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- the text that runs: a schema
-- show: texts
SELECT main.orders.id FROM main.orders
/*
on one member, by Arrow:
  s0 is orders(id)
  answers (id BIGINT)
  SELECT orders.id FROM s0 AS "orders"
on several members:
  scan orders: SELECT t1."id" FROM "s0" AS t1
  final: SELECT t1."id" FROM x0 AS t1
*/
----
-- a scan reads the columns that the view names
-- show: texts
SELECT * FROM both_
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, amount)
  s1 is customers(customer_id, name)
  answers (id BIGINT, customer VARCHAR)
  SELECT * FROM (SELECT b.id, k.who AS customer FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) b JOIN (SELECT * FROM (SELECT customer_id, name FROM s1 AS "customers") AS "known"("who", "name")) k ON b.customer_id = k.who) AS "both_"
on several members:
  join orders: SELECT t1."id", t2."customer_id" AS "customer" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."amount" > 100) AND (t1."customer_id" = t2."customer_id")
  final: SELECT t1."id", t1."customer" FROM x0 AS t1
*/
