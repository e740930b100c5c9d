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
  scan:orders: SELECT "amount" AS c0 FROM s0
  final: SELECT c0 FROM x0
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
  scan:orders: SELECT "amount" AS c0 FROM s0 WHERE "id" > 3
  final: SELECT c0 FROM x0
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
  scan:orders: SELECT count(*) AS a0 FROM s0
  final: SELECT (CAST(coalesce(sum(a0), 0) AS BIGINT)) AS c0 FROM x0
*/
----
-- a scan reads the columns that the statement names: none at all
-- show: texts
SELECT 1 FROM orders
/*
on one member, by DuckDB:
  s0 is orders(customer_id)
  answers (1 INTEGER)
  SELECT 1 FROM s0 AS "orders"
on several members:
  scan:orders: SELECT 1 AS c0 FROM s0
  final: SELECT c0 FROM x0
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
  scan:orders: SELECT "customer_id" AS c0, "id" AS c1, "priority" AS c2, "amount" AS c3, "day" AS c4 FROM s0
  final: SELECT c0, c1, c2, c3, c4 FROM x0
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
  scan:o: SELECT "customer_id" AS c0, "id" AS c1, "priority" AS c2, "amount" AS c3, "day" AS c4 FROM s0
  final: SELECT c0, c1, c2, c3, c4 FROM x0
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
  scan:orders: SELECT "customer_id" AS c0, "id" AS c1, "priority" AS c2, "amount" AS c3, "day" AS c4 FROM s0
  final: SELECT c0, c1, c2, c3, c4 FROM x0
*/
----
-- a scan reads the columns that the statement names: columns by pattern
-- show: texts
SELECT COLUMNS('a') FROM orders
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (amount DECIMAL(10,2), day DATE)
  SELECT COLUMNS('a') FROM s0 AS "orders"
on several members:
  scan orders: SELECT COLUMNS('a') FROM s0 AS "orders"
  final: SELECT * FROM x0
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
  scan orders: SELECT orders FROM s0 AS "orders"
  final: SELECT * FROM x0
*/
----
-- a scan reads the columns that the statement names: renamed columns
-- show: texts
SELECT b FROM orders AS o(a, b)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (b BIGINT)
  SELECT b FROM s0 AS o(a, b)
on several members:
  scan o: SELECT b FROM s0 AS o(a, b)
  final: SELECT * FROM x0
*/
----
-- a scan reads the columns that the statement names: renamed columns of a query in parentheses
-- show: texts
SELECT b FROM ((FROM orders)) AS o(a, b)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  answers (b BIGINT)
  SELECT b FROM ((FROM s0 AS "orders")) AS o(a, b)
on several members:
  scan orders: SELECT b FROM ((SELECT * FROM s0 AS "orders")) AS o(a, b)
  final: SELECT * FROM x0
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
  scan orders: SELECT "orders"."priority" AS c0, "orders"."day" AS o0, SUM("orders"."amount") OVER (PARTITION BY "orders"."id") AS o1 FROM s0 AS "orders"
  final: SELECT c0 FROM x0 ORDER BY o0, o1
*/
----
-- a scan reads the columns that the statement names: not inside strings
-- show: texts
SELECT 'amount' AS x FROM orders WHERE priority = 'day'
/*
on one member, by DuckDB:
  s0 is orders(priority)
  answers (x VARCHAR)
  SELECT 'amount' AS x FROM s0 AS "orders" WHERE priority = 'day'
on several members:
  scan:orders: SELECT 'amount' AS c0 FROM s0 WHERE "priority" = 'day'
  final: SELECT c0 FROM x0
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
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT * FROM s0 AS "orders", x0 AS m
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: in parentheses too
-- show: texts
SELECT * FROM (orders JOIN metrics m ON host = priority)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT * FROM (s0 AS "orders" JOIN s1 m ON host = priority)
on several members:
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT * FROM (s0 AS "orders" JOIN x0 AS m ON host = priority)
  final: SELECT * FROM x1
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
  scan orders: SELECT id FROM s0 AS "orders"
  join x0: SELECT * FROM x0, s1 AS m
  final: SELECT * FROM x1
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
  scan metrics: SELECT "host" FROM s1
  join metrics: SELECT id FROM (SELECT * FROM s0 AS "orders") AS c, x0 AS "metrics"
  final: SELECT * FROM x1
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
  set operation: SELECT * FROM s0 AS "orders" UNION ALL BY NAME SELECT value FROM s1 AS m
  final: SELECT * FROM x0
*/
----
-- a star stands for the columns of its own from clause: of EXISTS for none
-- show: texts
SELECT id FROM orders WHERE EXISTS (SELECT * FROM metrics m WHERE host = priority)
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  s1 is metrics(host)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE EXISTS (SELECT * FROM s1 m WHERE host = priority)
on several members:
  scan m: SELECT DISTINCT "m"."host" AS c0 FROM s1 AS m
  keys: SELECT DISTINCT c0 FROM x0
  join orders: SELECT id FROM s0 AS "orders" WHERE EXISTS(SELECT 1 FROM x1 WHERE k0 = priority)
  final: SELECT * FROM x2
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
  scan m: SELECT DISTINCT "m"."host" AS c0, "m"."metric" AS c1, "m"."time" AS c2, "m"."value" AS c3 FROM s1 AS m
  subquery: SELECT DISTINCT c0, c1, c2, c3 FROM x0 OFFSET 1
  join orders: SELECT id FROM s0 AS "orders" WHERE EXISTS(SELECT * FROM x1)
  final: SELECT * FROM x2
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
  scan m: SELECT "m"."host" AS k0, "m"."metric" AS k1, "m"."time" AS k2, "m"."value" AS k3, count(*) AS a0 FROM s1 AS m GROUP BY 1, 2, 3, 4
  subquery: SELECT k0 AS c0, k1 AS c1, k2 AS c2, k3 AS c3 FROM x0 GROUP BY k0, k1, k2, k3 HAVING (CAST(COALESCE(SUM(a0), 0) AS BIGINT)) > 1
  join orders: SELECT id FROM s0 AS "orders" WHERE EXISTS(SELECT * FROM x1)
  final: SELECT * FROM x2
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
  set operation: SELECT * FROM s1 AS m UNION SELECT * FROM s2 AS m
  join orders: SELECT id FROM s0 AS "orders" WHERE EXISTS(SELECT * FROM x0)
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: IN counts columns
-- show: texts
SELECT id FROM orders WHERE (priority, priority) IN (SELECT * FROM airlines)
/*
on one member, by DuckDB:
  s0 is orders(id, priority)
  s1 is airlines(code, name)
  answers (id BIGINT)
  SELECT id FROM s0 AS "orders" WHERE (priority, priority) IN (SELECT * FROM s1 AS "airlines")
on several members:
  join orders: SELECT id FROM s0 AS "orders" WHERE (priority, priority) IN (SELECT * FROM s1 AS "airlines")
  final: SELECT * FROM x0
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
  join customers: SELECT * FROM s1 AS "customers" NATURAL JOIN s2 AS "orders"
  join orders: SELECT id FROM s0 AS "orders" WHERE EXISTS(SELECT * FROM x0)
  final: SELECT * FROM x1
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
  scan:orders: SELECT "customer_id", "id", "priority", "amount", "day" FROM s0
  scan:m: SELECT "host", "metric", "time", "value" FROM s1
  final: SELECT hash(*COLUMNS(*)) FROM s0 AS "orders", s1 m
*/
----
-- a star stands for the columns of its own from clause: as many as an alias of a join renames
-- show: texts
SELECT b FROM (orders JOIN metrics m ON host = priority) AS x(a, b)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (b BIGINT)
  SELECT b FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x(a, b)
on several members:
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT b FROM (s0 AS "orders" JOIN x0 AS m ON host = priority) AS x(a, b)
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: and one of a join inside of another
-- show: texts
SELECT q FROM ((orders JOIN metrics m ON host = priority) AS x(a, b) JOIN airlines ON code = a) AS y(p, q)
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  s2 is airlines(code, name)
  answers (q BIGINT)
  SELECT q FROM ((s0 AS "orders" JOIN s1 m ON host = priority) AS x(a, b) JOIN s2 AS "airlines" ON code = a) AS y(p, q)
on several members:
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT q FROM ((s0 AS "orders" JOIN x0 AS m ON host = priority) AS x(a, b) JOIN s2 AS "airlines" ON code = a) AS y(p, q)
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: a join with a query in front
-- show: texts
SELECT c FROM ((SELECT code FROM airlines) AS y JOIN metrics m ON host = code) AS x(a, b, c)
/*
on one member, by DuckDB:
  s0 is airlines(code)
  s1 is metrics(host, metric, time, value)
  answers (c VARCHAR)
  SELECT c FROM ((SELECT code FROM s0 AS "airlines") AS y JOIN s1 m ON host = code) AS x(a, b, c)
on several members:
  y: SELECT code FROM s0 AS "airlines"
  join y: SELECT c FROM (x0 AS y JOIN s1 AS m ON host = code) AS x(a, b, c)
  final: SELECT * FROM x1
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
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE)
  SELECT x.* FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x
on several members:
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT x.* FROM (s0 AS "orders" JOIN x0 AS m ON host = priority) AS x
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: which is a query of all columns anyway
-- show: texts
SELECT id FROM (orders JOIN metrics m ON host = priority) AS x
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is metrics(host, metric, time, value)
  answers (id BIGINT)
  SELECT id FROM (s0 AS "orders" JOIN s1 m ON host = priority) AS x
on several members:
  scan m: SELECT "host", "metric", "time", "value" FROM s1
  join orders: SELECT id FROM (s0 AS "orders" JOIN x0 AS m ON host = priority) AS x
  final: SELECT * FROM x1
*/
----
-- a star stands for the columns of its own from clause: parentheses alone are none
-- show: texts
SELECT id FROM (orders JOIN metrics m ON host = priority)
/*
on one member, by DuckDB:
  s0 is orders(id, priority)
  s1 is metrics(host)
  answers (id BIGINT)
  SELECT id FROM (s0 AS "orders" JOIN s1 m ON host = priority)
on several members:
  scan m: SELECT "host" FROM s1
  join orders: SELECT id FROM (s0 AS "orders" JOIN x0 AS m ON host = priority)
  final: SELECT * FROM x1
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
  scan:orders: SELECT "id" AS c0 FROM s0
  final: SELECT c0 FROM x0
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
  scan:O: SELECT "id" AS c0 FROM s0
  final: SELECT c0 FROM x0
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
  scan:orders: SELECT "id" AS c0 FROM s0 WHERE "id" = $1 AND "amount" < $2
  final: SELECT c0 FROM x0
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
  scan:orders: SELECT "id" AS c0 FROM s0 WHERE "priority" = 'from orders ?'
  final: SELECT c0 FROM x0
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
  scan b: SELECT "customer_id" FROM s1
  join orders: SELECT 1 FROM s0 AS "orders", x0 AS b
  final: SELECT * FROM x1
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
on one member, by DuckDB:
  s0 is orders(id)
  answers (id BIGINT)
  WITH orders AS (SELECT id FROM s0 AS "orders") SELECT id FROM orders
on several members:
  scan orders: SELECT id FROM (SELECT id FROM s0 AS "orders") AS orders
  final: SELECT * FROM x0
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
  scan:customers: SELECT "score" FROM s0
  scan:orders: SELECT "id" FROM s1
  scan:metrics: SELECT "host" FROM s3
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
  scan orders: SELECT 1 FROM s0 AS "orders" WHERE id = 1
  final: SELECT EXISTS(SELECT * FROM x0)
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
  scan c: SELECT max("c"."score") AS a0 FROM s0 AS c
  subquery: SELECT (CAST(MAX(a0) AS DOUBLE)) AS c0 FROM x0
  final: SELECT (SELECT * FROM x1), 1 AS s0
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
  scan:orders: SELECT count(*) AS a0, sum("amount") AS a1 FROM s0
  final: SELECT (CAST(coalesce(sum(a0), 0) AS BIGINT)) AS c0, (CAST(sum(a1) AS DECIMAL(38,2))) + 1 AS c1 FROM x0
*/
----
-- the text that runs: by its name
-- show: texts
SELECT id FROM big
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, amount)
  answers (id BIGINT)
  SELECT id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) AS "big"
on several members:
  scan orders: SELECT id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) AS "big"
  final: SELECT * FROM x0
*/
----
-- the text that runs: by an alias
-- show: texts
SELECT x.id FROM big x
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, amount)
  answers (id BIGINT)
  SELECT x.id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) x
on several members:
  scan orders: SELECT x.id FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) AS x
  final: SELECT * FROM x0
*/
----
-- the text that runs: columns of its own
-- show: texts
SELECT who FROM known
/*
on one member, by DuckDB:
  s0 is customers(customer_id, name)
  answers (who VARCHAR)
  SELECT who FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")
on several members:
  scan customers: SELECT who FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")
  final: SELECT * FROM x0
*/
----
-- the text that runs: columns named twice
-- show: texts
SELECT a FROM main.known AS x(a)
/*
on one member, by DuckDB:
  s0 is customers(customer_id, name)
  answers (a VARCHAR)
  SELECT a FROM (SELECT * FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")) AS x(a)
on several members:
  scan customers: SELECT a FROM (SELECT * FROM (SELECT customer_id, name FROM s0 AS "customers") AS "known"("who", "name")) AS x(a)
  final: SELECT * FROM x0
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
  scan:orders: SELECT "id" FROM s0
  final: WITH s0 AS (SELECT 1 AS id) SELECT s0.id FROM temp.s0 AS "orders", s0
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
  scan:orders: SELECT "id" AS c0 FROM s0
  final: SELECT c0 FROM x0
*/
----
-- a scan reads the columns that the view names
-- show: texts
SELECT * FROM both_
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, amount)
  s1 is customers(customer_id, name)
  answers (id BIGINT, customer VARCHAR)
  SELECT * FROM (SELECT b.id, k.who AS customer FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) b JOIN (SELECT * FROM (SELECT customer_id, name FROM s1 AS "customers") AS "known"("who", "name")) k ON b.customer_id = k.who) AS "both_"
on several members:
  join orders: SELECT * FROM (SELECT b.id, k.who AS customer FROM (SELECT customer_id, id, amount FROM s0 AS "orders" WHERE amount > 100) AS b JOIN (SELECT * FROM (SELECT customer_id, name FROM s1 AS "customers") AS "known"("who", "name")) AS k ON b.customer_id = k.who) AS "both_"
  final: SELECT * FROM x0
*/
