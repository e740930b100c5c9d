-- The stages of statements over several tables, and why some are gathered.
-- tables: shop
CREATE VIEW pairs AS SELECT o.id FROM orders o POSITIONAL JOIN metrics m;
----
-- lookups: a value
SELECT c.name FROM customers c WHERE score > (SELECT sum(amount) FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name, score
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan o: at the members over o, to the coordinator
  x1 rows of o: at the coordinator over x0, to every member
  x2 join c: at the members over c, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- lookups: a count, which is 0 of no rows
SELECT c.name FROM customers c WHERE score > (SELECT count(*) FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name, score
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan c: at the members over c, to the coordinator
  x1 scan o: at the members over o, to the coordinator
  x2 join c: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- lookups: EXISTS
SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority
  filter: priority IS NOT NULL
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan o: at the members over o, to every member
  x1 join c: at the members over c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- lookups: EXISTS of one row
SELECT c.name FROM customers c WHERE EXISTS (SELECT max(id) FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan c: at the members over c, to the coordinator
  x1 scan o: at the members over o, to the coordinator
  x2 join c: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- lookups: EXISTS of one row, in parentheses
SELECT c.name FROM customers c WHERE EXISTS ((SELECT max(id) FROM orders o WHERE o.priority = c.name))
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan c: at the members over c, to the coordinator
  x1 scan o: at the members over o, to the coordinator
  x2 join c: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- lookups: NOT IN
SELECT c.name FROM customers c WHERE name NOT IN (SELECT max(priority) FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan c: at the members over c, to the coordinator
  x1 scan o: at the members over o, to the coordinator
  x2 join c: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- lookups: ALL
SELECT c.name FROM customers c WHERE name <> ALL (SELECT max(priority) FROM orders o WHERE o.priority = c.name)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority
  filter: priority IS NOT NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan c: at the members over c, to the coordinator
  x1 scan o: at the members over o, to the coordinator
  x2 join c: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- names of common table expressions: a letter and a number
WITH t1 AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM t1 x JOIN customers c ON c.customer_id = x.customer_id
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
  filter: amount > 1
scan customers AS c: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: orders, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- names of common table expressions: the name of a table
WITH orders AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM orders x JOIN customers c ON c.customer_id = x.customer_id
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
  filter: amount > 1
scan customers AS c: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: orders, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- names of common table expressions: the name of a scan
WITH s1 AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM s1 x JOIN customers c ON c.customer_id = x.customer_id
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
  filter: amount > 1
scan customers AS c: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: orders, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- names of common table expressions: the name of a stage
WITH x0 AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM x0 x JOIN customers c ON c.customer_id = x.customer_id
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
  filter: amount > 1
scan customers AS c: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: orders, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: ASOF by the partitioning key
SELECT o.id, p.id FROM orders o ASOF JOIN orders p ON o.customer_id = p.customer_id AND o.day >= p.day
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders AS o: all 271 partitions
  because customer_id = p.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, day
scan orders AS p: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, id, day
co-located: o, p
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, p, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: ASOF by other columns
SELECT o.id, p.id FROM orders o ASOF LEFT JOIN orders p ON o.priority = p.priority AND o.day >= p.day
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, day
scan orders AS p: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, day
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan p: at the members over p, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- stages: ASOF by nothing
SELECT sum(o.amount) FROM orders o ASOF JOIN metrics m ON o.day >= m.time
/*
execution: distributed on 3 of 3 members
tree: orders: all; metrics: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: amount, day
scan metrics AS m: all 8 partitions
  because the filter o.day >= time cannot be pushed below an ASOF JOIN that does not compare time: join on time, or filter inside the subquery
  columns: time
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan m: at the members over m, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- stages: ASOF of copies, whose choice among equals is made once
SELECT a.code, b.name, o.id FROM airlines a ASOF JOIN airlines b ON a.name >= b.name JOIN orders o ON o.priority = a.code
/*
execution: distributed on 3 of 3 members
tree: airlines: any; airlines: any; orders: all
scan airlines AS a: replicated, every member has it
  columns: code, name
scan airlines AS b: replicated, every member has it
  columns: code, name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 join a: at the coordinator over a, b, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- stages: a recursion, and what is joined with it
WITH RECURSIVE r AS (SELECT customer_id, name FROM customers WHERE score = 0 UNION SELECT c.customer_id, c.name FROM customers c JOIN r ON c.name = r.customer_id) SELECT o.customer_id, sum(o.amount) FROM r JOIN orders o ON o.customer_id = r.customer_id GROUP BY ALL
/*
execution: distributed on 3 of 3 members
tree: customers: all; customers: all; orders: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
  filter: score = 0
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
scan orders AS o: all 271 partitions
  because ... = customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan customers: at the members over customers, to the coordinator
  x1 scan c: at the members over c, to the coordinator
  x2 join customers: at the coordinator over x0, x1, to every member
  x3 join o: at the members over o, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- stages: a recursion over copies
WITH RECURSIVE r AS (SELECT code, name FROM airlines UNION SELECT a.code, a.name FROM airlines a JOIN r ON a.code = r.name) SELECT r.code, count(*) FROM r JOIN orders o ON o.priority = r.code GROUP BY ALL
/*
execution: distributed on 3 of 3 members
tree: airlines: any; airlines: any; orders: all
scan airlines: replicated, every member has it
  columns: code, name
scan airlines AS a: replicated, every member has it
  columns: code, name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 join airlines: at the coordinator over airlines, a, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- stages: a table function
SELECT n, o.id FROM range(3) AS r(n) JOIN orders o ON o.id = n
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- stages: string_agg(DISTINCT), NULLS LAST
SELECT string_agg(DISTINCT o.priority, ',' ORDER BY o.priority) AS p FROM orders o JOIN customers c USING (customer_id) GROUP BY o.customer_id ORDER BY p DESC NULLS LAST
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, priority
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: a subquery about rows of the SELECT around it
SELECT o.priority, (SELECT min(a.name) FROM airlines a WHERE a.code = o.priority) AS n, sum(o.amount) FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY 1
/*
execution: distributed on 3 of 3 members
tree: airlines: any; orders: all; customers: all
scan airlines AS a: replicated, every member has it
  columns: code, name
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, priority, amount
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over a, x0
*/
----
-- stages: a named window
SELECT id, rank() OVER w FROM orders o JOIN customers USING (customer_id) WINDOW w AS (PARTITION BY o.customer_id ORDER BY id) ORDER BY 2 LIMIT 3
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = customers.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan customers: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, customers
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, customers, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: the first rows of each
SELECT c.name, q.id FROM customers c, LATERAL (SELECT o.id FROM orders o WHERE o.customer_id = c.customer_id ORDER BY o.amount LIMIT 2) q
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because customer_id = o.customer_id only joins the key: compare either side with a value
  columns: customer_id, name
scan orders AS o: all 271 partitions
  because c.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, id, amount
co-located: c, o
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join c: at the members over c, o, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: a join in parentheses
SELECT score, n FROM customers c LEFT JOIN ((SELECT customer_id, count(*) AS n FROM orders GROUP BY 1) q JOIN airlines ON code = q.customer_id) ON c.customer_id = q.customer_id
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all; airlines: any
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, score
scan orders: all 271 partitions
  because customer_id = airlines.code only joins the key: compare either side with a value; c.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
scan airlines: replicated, every member has it
  columns: code
co-located: c, orders
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join c: at the members over c, orders, airlines, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: an outer join that keeps the rows of both sides
SELECT o.id, m.value FROM orders o FULL JOIN metrics m ON o.customer_id = m.host
/*
execution: distributed on 3 of 3 members
tree: orders: all; metrics: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
scan metrics AS m: all 8 partitions
  because no predicate on the partition key (host, metric, time): compare its columns with values
  columns: host, value
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to the coordinator
  x1 scan m: at the members over m, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- a join in parentheses is no query: a query first
SELECT c.name, x.m, y.id FROM customers c JOIN ((SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x FULL JOIN orders y ON x.priority = y.priority) ON c.name = x.priority
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
scan orders AS y: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan orders: at the members over orders, to the coordinator
  x1 scan y: at the members over y, to the coordinator
  x2 join orders: at the coordinator over x0, x1, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- a join in parentheses is no query: a query second
SELECT c.name, x.m, y.id FROM customers c JOIN (orders y FULL JOIN (SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x ON x.priority = y.priority) ON c.name = x.priority
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders AS y: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 5 stages
  x0 scan orders: at the members over orders, to the coordinator
  x1 scan y: at the members over y, to the coordinator
  x2 join y: at the coordinator over x1, x0, to every member
  x3 join c: at the members over c, x2, to the coordinator
  final: at the coordinator over x3
*/
----
-- what is gathered is told with its place: a join by positions
SELECT *
FROM (SELECT o.id FROM orders o
  POSITIONAL JOIN metrics m)
/*
execution: distributed on 3 of 3 members
tree: orders: all; metrics: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan metrics AS m: all 8 partitions
  because no predicate on the partition key (host, metric, time): compare its columns with values
  columns: host, metric, time, value
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to the coordinator
  x1 scan m: at the members over m, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- what is gathered is told with its place: an aggregate
SELECT priority, median(amount) FROM orders o JOIN customers c USING (customer_id) GROUP BY 1
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, priority, amount
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
  gathered: o, c: an aggregate has no partial aggregation: GROUP BY the partitioning key
*/
----
-- what is gathered is told with its place: a window
SELECT id, sum(amount) OVER (ORDER BY id) FROM orders
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, amount
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is gathered is told with its place: a recursion
WITH RECURSIVE r AS (SELECT 'a' AS k UNION SELECT c.name FROM customers c JOIN r ON c.customer_id = r.k) SELECT * FROM r
/*
execution: distributed on 3 of 3 members
tree: customers: all
scan customers AS c: all 271 partitions
  because customer_id = ... only joins the key: compare either side with a value
  columns: customer_id, name
serving: no, it does not search customers by its key: compare the first columns of (customer_id) with values
when distributed: two-stage
*/
----
-- what is gathered is told with its place: nothing
SELECT o.id FROM orders o JOIN customers c USING (customer_id) ORDER BY id LIMIT 3
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- places in a view are where it is mentioned
SELECT id FROM pairs
/*
execution: distributed on 3 of 3 members
tree: orders: all; metrics: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan metrics AS m: all 8 partitions
  because no predicate on the partition key (host, metric, time): compare its columns with values
  columns: host, metric, time, value
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to the coordinator
  x1 scan m: at the members over m, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- stages: co-located tables
SELECT o.id FROM orders o JOIN customers c USING (customer_id)
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: one table moves
SELECT o.id FROM orders o JOIN customers c ON o.priority = c.name
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- stages: a union
SELECT id FROM orders UNION ALL SELECT id + 1 FROM orders
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join orders: at the members over orders, orders, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: equal rows of a UNION are together where it has the keys
WITH RECURSIVE r AS (SELECT customer_id, priority FROM orders UNION SELECT customer_id, name FROM customers) SELECT * FROM r
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, priority
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join orders: at the members over orders, customers, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: what is mentioned twice is computed once
WITH q AS (SELECT priority, sum(amount) AS a FROM orders GROUP BY 1) SELECT x.a, o.id FROM q x JOIN q y ON x.a < y.a JOIN orders o ON o.priority = x.priority
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan orders: at the members over orders, to the coordinator
  x1 rows of orders: at the coordinator over x0, to every member
  x2 join o: at the members over o, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- stages: a query in FROM whose groups are of several members
SELECT c.name FROM customers c JOIN (SELECT priority, max(amount) AS m FROM orders GROUP BY priority) q ON q.priority = c.name
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan orders: at the members over orders, to the coordinator
  x1 rows of orders: at the coordinator over x0, to every member
  x2 join c: at the members over c, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- stages: a query in FROM whose groups are of one member
SELECT c.name FROM customers c JOIN (SELECT customer_id, max(amount) AS m FROM orders GROUP BY customer_id) q USING (customer_id)
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers AS c: all 271 partitions
  because customer_id = orders.customer_id only joins the key: compare either side with a value
  columns: customer_id, name
scan orders: all 271 partitions
  because c.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, amount
co-located: c, orders
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join c: at the members over c, orders, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: EXISTS
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.customer_id = o.customer_id)
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- stages: a replicated table is everywhere
SELECT a.name, o.id FROM airlines a JOIN orders o ON o.priority = a.code
/*
execution: distributed on 3 of 3 members
tree: airlines: any; orders: all
scan airlines AS a: replicated, every member has it
  columns: code, name
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join a: at the members over a, o, to the coordinator
  final: at the coordinator over x0
*/
----
-- what is gathered says why: a collation
SELECT o.id FROM orders o JOIN customers c ON o.priority = c.name COLLATE NOCASE
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, priority
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: gather (a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE)
*/
----
-- a constant in a row of which each is counted once, which GROUP BY would read as a position
SELECT count(DISTINCT (-1, o.priority)) AS n FROM orders o JOIN customers c USING (customer_id)
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, priority
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- constants in rows within rows
SELECT c.name, count(DISTINCT ((o.priority, 2), 'a')) AS n FROM orders o JOIN customers c USING (customer_id) GROUP BY c.name
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, priority
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- shared: a subquery that occurs twice
SELECT name FROM customers WHERE score IN (SELECT amount FROM orders WHERE priority = 'a') AND score + 1 IN (SELECT amount FROM orders WHERE priority = 'a')
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all; orders: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name, score
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
  filter: priority = 'a'
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
  filter: priority = 'a'
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan orders: at the members over orders, to every member
  x1 join customers: at the members over customers, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- shared: other values each time are not
SELECT name FROM customers WHERE score IN (SELECT amount + random() FROM orders WHERE priority = 'a') AND score + 1 IN (SELECT amount + random() FROM orders WHERE priority = 'a')
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all; orders: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name, score
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
  filter: priority = 'a'
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount
  filter: priority = 'a'
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan orders: at the members over orders, to every member
  x1 scan orders: at the members over orders, to every member
  x2 join customers: at the members over customers, x0, x1, to the coordinator
  final: at the coordinator over x2
*/
