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
  join o: SELECT t2."name", t1."amount" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."amount" > 1) AND (t1."customer_id" = t2."customer_id")
  final: SELECT t1."name", t1."amount" FROM x0 AS t1
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
  join o: SELECT t1."priority", sum(t1."amount") AS "sum", count(*) AS "count_star" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id") GROUP BY t1."priority"
  final: SELECT t1."priority", CAST(sum(t1."sum") AS DECIMAL(38,2)) AS "c1", CAST(coalesce(sum(t1."count_star"), CAST(0 AS HUGEINT)) AS BIGINT) AS "c2" FROM x0 AS t1 GROUP BY t1."priority"
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
  join o: SELECT t1."customer_id", sum(t1."amount") AS "sum" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id") GROUP BY t1."customer_id"
  final: SELECT t1."customer_id", t1."sum" FROM x0 AS t1
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
  join o: SELECT t1."amount" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id")
  final: SELECT median(t1."amount") AS "median" FROM x0 AS t1
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
  join o: SELECT t1."id" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id") ORDER BY t1."id" NULLS LAST LIMIT 3
  final: SELECT t1."id" FROM x0 AS t1 ORDER BY t1."id" NULLS LAST LIMIT 3
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
  join o: SELECT DISTINCT t1."priority" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id")
  final: SELECT DISTINCT t1."priority" FROM x0 AS t1
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
  join o: SELECT t1."day" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id")
  final: SELECT rank() OVER (ORDER BY t1."day" NULLS LAST ) AS "c3" FROM x0 AS t1
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
  join o: SELECT rank() OVER (PARTITION BY t2."customer_id" ORDER BY t1."day" NULLS LAST ) AS "c3" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."customer_id" = t2."customer_id")
  final: SELECT t1."c3" FROM x0 AS t1
*/
----
-- a mention that renames columns moves with all that stand before them
-- show: texts
SELECT o.id FROM orders o LEFT JOIN customers AS c(a, b) ON o.priority = c.b
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  s1 is customers(customer_id, name, score)
  answers (id BIGINT)
  SELECT o.id FROM s0 o LEFT JOIN s1 AS c(a, b) ON o.priority = c.b
on several members:
  scan c: SELECT t1."name" FROM "s1" AS t1
  join o: SELECT t1."id" FROM "s0" AS t1 LEFT JOIN x0 AS t2 ON t1."priority" = t2."name"
  final: SELECT t1."id" FROM x1 AS t1
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
  scan orders: SELECT t1."priority", max(t1."amount") AS "max" FROM "s1" AS t1 GROUP BY t1."priority"
  scan y: SELECT t1."priority", t1."id" FROM "s2" AS t1
  join orders: SELECT t3."m", t3."priority", t2."id" FROM (SELECT CAST(max(t1."max") AS DECIMAL(10,2)) AS "m", t1."priority" FROM x0 AS t1 GROUP BY t1."priority") AS t3 LEFT JOIN x1 AS t2 ON t3."priority" = t2."priority"
  join c: SELECT t1."name", t3."m", t3."id" FROM "s0" AS t1 CROSS JOIN (SELECT t2."m", t2."priority", CAST(NULL AS VARCHAR) AS "c2", t2."id" FROM x2 AS t2) AS t3 WHERE (t1."name" = t3."priority")
  final: SELECT t1."name", t1."m", t1."id" FROM x3 AS t1
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
  scan orders: SELECT t1."priority", max(t1."amount") AS "max" FROM "s2" AS t1 GROUP BY t1."priority"
  scan y: SELECT t1."priority", t1."id" FROM "s1" AS t1
  join y: SELECT t1."id", t3."m", t3."priority" AS "c3" FROM x1 AS t1 RIGHT JOIN (SELECT CAST(max(t2."max") AS DECIMAL(10,2)) AS "m", t2."priority" FROM x0 AS t2 GROUP BY t2."priority") AS t3 ON t1."priority" = t3."priority"
  join c: SELECT t1."name", t3."m", t3."id" FROM "s0" AS t1 CROSS JOIN (SELECT CAST(NULL AS VARCHAR) AS "c0", t2."id", t2."m", t2."c3" FROM x2 AS t2) AS t3 WHERE (t1."name" = t3."c3")
  final: SELECT t1."name", t1."m", t1."id" FROM x3 AS t1
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
  SELECT priority, random() FROM s0 o JOIN s1 c USING (customer_id) WHERE id > 3 AND day < CAST($1 AS TIMESTAMPTZ) AND amount > random() GROUP BY 1
on several members:
  join o: SELECT t1."priority" FROM "s0" AS t1 CROSS JOIN "s1" AS t2 WHERE (t1."id" > 3) AND (t1."day" < CAST($1 AS TIMESTAMP WITH TIME ZONE)) AND (t1."customer_id" = t2."customer_id") AND (t1."amount" > random()) GROUP BY t1."priority"
  final: SELECT t1."priority", random() AS "c1" FROM x0 AS t1 GROUP BY t1."priority"
*/
