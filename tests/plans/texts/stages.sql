-- The texts of stages: what the members compute of a statement, and what is left to the coordinator.
-- tables: shop
----
-- at the members and at the coordinator: rows
-- show: texts
SELECT c.name, o.amount FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.amount > 1
/*
on one member, by Arrow:
  s0 is orders(customer_id, amount)
  s1 is customers(customer_id, name)
  answers (name VARCHAR, amount DECIMAL(10,2))
  SELECT c.name, o.amount FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id WHERE o.amount > 1
on several members:
  join o: SELECT c.name, o.amount FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id WHERE o.amount > 1
  final: SELECT * FROM x0
*/
----
-- at the members and at the coordinator: groups of several members, in two
-- show: texts
SELECT o.priority, sum(o.amount), count(*) FROM orders o JOIN customers c ON o.customer_id = c.customer_id GROUP BY o.priority
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority, amount)
  s1 is customers(customer_id)
  answers (priority VARCHAR, sum(o.amount) DECIMAL(38,2), count_star() BIGINT)
  SELECT o.priority, sum(o.amount), count(*) FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id GROUP BY o.priority
on several members:
  join o: SELECT "o"."priority" AS k0, sum("o"."amount") AS a0, count(*) AS a1 FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id GROUP BY 1
  final: SELECT k0 AS c0, (CAST(SUM(a0) AS DECIMAL(38, 2))) AS c1, (CAST(COALESCE(SUM(a1), 0) AS BIGINT)) AS c2 FROM x0 GROUP BY k0
*/
----
-- at the members and at the coordinator: groups of one member
-- show: texts
SELECT o.customer_id, sum(o.amount) FROM orders o JOIN customers c ON o.customer_id = c.customer_id GROUP BY o.customer_id
/*
on one member, by Arrow:
  s0 is orders(customer_id, amount)
  s1 is customers(customer_id)
  answers (customer_id VARCHAR, sum(o.amount) DECIMAL(38,2))
  SELECT o.customer_id, sum(o.amount) FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id GROUP BY o.customer_id
on several members:
  join o: SELECT o.customer_id, SUM(o.amount) FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id GROUP BY o.customer_id
  final: SELECT * FROM x0
*/
----
-- at the members and at the coordinator: an aggregate that cannot be cut: the columns that it needs
-- show: texts
SELECT median(o.amount) FROM orders o JOIN customers c ON o.customer_id = c.customer_id
/*
on one member, by DuckDB:
  s0 is orders(customer_id, amount)
  s1 is customers(customer_id)
  answers (median(o.amount) DECIMAL(10,2))
  SELECT median(o.amount) FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id
on several members:
  join o: SELECT "o"."amount" AS v0 FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id
  final: SELECT MEDIAN(v0) FROM x0
*/
----
-- at the members and at the coordinator: the first rows of each member
-- show: texts
SELECT o.id FROM orders o JOIN customers c ON o.customer_id = c.customer_id ORDER BY o.id LIMIT 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id)
  s1 is customers(customer_id)
  answers (id BIGINT)
  SELECT o.id FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id ORDER BY o.id LIMIT 3
on several members:
  join o: SELECT "o"."id" AS c0 FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id ORDER BY c0 LIMIT 3
  final: SELECT c0 FROM x0 ORDER BY c0 LIMIT 3
*/
----
-- at the members and at the coordinator: DISTINCT, twice
-- show: texts
SELECT DISTINCT o.priority FROM orders o JOIN customers c ON o.customer_id = c.customer_id
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority)
  s1 is customers(customer_id)
  answers (priority VARCHAR)
  SELECT DISTINCT o.priority FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id
on several members:
  join o: SELECT DISTINCT "o"."priority" AS c0 FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id
  final: SELECT DISTINCT c0 FROM x0
*/
----
-- at the members and at the coordinator: a window over rows of all
-- show: texts
SELECT rank() OVER (ORDER BY o.day) FROM orders o JOIN customers c ON o.customer_id = c.customer_id
/*
on one member, by DuckDB:
  s0 is orders(customer_id, day)
  s1 is customers(customer_id)
  answers (rank() OVER (ORDER BY o."day") BIGINT)
  SELECT rank() OVER (ORDER BY o.day) FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id
on several members:
  join o: SELECT "o"."day" AS v0 FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id
  final: SELECT RANK() OVER (ORDER BY v0) FROM x0
*/
----
-- at the members and at the coordinator: a window over rows of one member
-- show: texts
SELECT rank() OVER (PARTITION BY c.customer_id ORDER BY o.day) FROM orders o JOIN customers c ON o.customer_id = c.customer_id
/*
on one member, by DuckDB:
  s0 is orders(customer_id, day)
  s1 is customers(customer_id)
  answers (rank() OVER (PARTITION BY c.customer_id ORDER BY o."day") BIGINT)
  SELECT rank() OVER (PARTITION BY c.customer_id ORDER BY o.day) FROM s0 o JOIN s1 c ON o.customer_id = c.customer_id
on several members:
  join o: SELECT RANK() OVER (PARTITION BY c.customer_id ORDER BY o.day) FROM s0 AS o JOIN s1 AS c ON o.customer_id = c.customer_id
  final: SELECT * FROM x0
*/
----
-- a mention that renames columns moves with all that stand before them
-- show: texts
SELECT o.id FROM orders o LEFT JOIN customers AS c(a, b) ON o.priority = c.b
/*
on one member, by DuckDB:
  s0 is orders(id, priority)
  s1 is customers(customer_id, name, score)
  answers (id BIGINT)
  SELECT o.id FROM s0 o LEFT JOIN s1 AS c(a, b) ON o.priority = c.b
on several members:
  scan c: SELECT "customer_id", "name", "score" FROM s1
  join o: SELECT o.id FROM s0 AS o LEFT JOIN x0 AS c(a, b) ON o.priority = c.b
  final: SELECT * FROM x1
*/
----
-- a join in parentheses is no query: a query first
-- show: texts
SELECT c.name, x.m, y.id FROM customers c JOIN ((SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x FULL JOIN orders y ON x.priority = y.priority) ON c.name = x.priority
/*
on one member, by DuckDB:
  s0 is customers(name)
  s1 is orders(id, priority, amount)
  s2 is orders(id, priority, amount)
  answers (name VARCHAR, m DECIMAL(10,2), id BIGINT)
  SELECT c.name, x.m, y.id FROM s0 c JOIN ((SELECT max(amount) AS m, priority FROM s1 AS "orders" GROUP BY 2) x FULL JOIN s2 y ON x.priority = y.priority) ON c.name = x.priority
on several members:
  scan orders: SELECT "orders"."priority" AS k0, max("orders"."amount") AS a0 FROM s1 AS "orders" GROUP BY 1
  x: SELECT (CAST(MAX(a0) AS DECIMAL(10, 2))) AS c0, k0 AS c1 FROM x0 GROUP BY k0
  scan y: SELECT "id", "priority" FROM s2
  join c: SELECT c.name, x.m, y.id FROM s0 AS c JOIN (x1 AS x FULL JOIN x2 AS y ON x.priority = y.priority) ON c.name = x.priority
  final: SELECT * FROM x3
*/
----
-- a join in parentheses is no query: a query second
-- show: texts
SELECT c.name, x.m, y.id FROM customers c JOIN (orders y FULL JOIN (SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x ON x.priority = y.priority) ON c.name = x.priority
/*
on one member, by DuckDB:
  s0 is customers(name)
  s1 is orders(id, priority, amount)
  s2 is orders(id, priority, amount)
  answers (name VARCHAR, m DECIMAL(10,2), id BIGINT)
  SELECT c.name, x.m, y.id FROM s0 c JOIN (s1 y FULL JOIN (SELECT max(amount) AS m, priority FROM s2 AS "orders" GROUP BY 2) x ON x.priority = y.priority) ON c.name = x.priority
on several members:
  scan orders: SELECT "orders"."priority" AS k0, max("orders"."amount") AS a0 FROM s2 AS "orders" GROUP BY 1
  x: SELECT (CAST(MAX(a0) AS DECIMAL(10, 2))) AS c0, k0 AS c1 FROM x0 GROUP BY k0
  scan y: SELECT "id", "priority" FROM s1
  join c: SELECT c.name, x.m, y.id FROM s0 AS c JOIN (x2 AS y FULL JOIN x1 AS x ON x.priority = y.priority) ON c.name = x.priority
  final: SELECT * FROM x3
*/
----
-- gathered rows are filtered by what is stable
-- show: texts
SELECT priority, random() FROM orders o JOIN customers c USING (customer_id) WHERE id > 3 AND day < now() AND amount > random() GROUP BY 1
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount, day)
  s1 is customers(customer_id)
  answers (priority VARCHAR, random() DOUBLE)
  SELECT priority, RANDOM() FROM s0 AS o JOIN s1 AS c USING (customer_id) WHERE id > 3 AND day < CAST($1 AS TIMESTAMPTZ) AND amount > RANDOM() GROUP BY 1
on several members:
  scan:o: SELECT "customer_id", "id", "priority", "amount", "day" FROM s0 WHERE ("id" > 3) AND ("day" < CAST($1 AS TIMESTAMPTZ))
  scan:c: SELECT "customer_id" FROM s1
  final: SELECT priority, RANDOM() FROM s0 AS o JOIN s1 AS c USING (customer_id) WHERE id > 3 AND day < CAST($1 AS TIMESTAMPTZ) AND amount > RANDOM() GROUP BY 1
*/
