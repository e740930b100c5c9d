-- Where random numbers and clocks are evaluated in statements over several members.
-- tables: shop
----
-- random numbers: in the SELECT list
SELECT id, random() FROM orders o JOIN customers c USING (customer_id)
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- random numbers: in WHERE
SELECT count(*) FROM orders o JOIN customers c USING (customer_id) WHERE random() < 0.5
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id
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
-- random numbers: in ORDER BY
SELECT id FROM orders o JOIN customers c USING (customer_id) ORDER BY random() LIMIT 3
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- random numbers: in a subquery
SELECT o.id, r FROM (SELECT code, random() AS r FROM airlines) a JOIN orders o JOIN customers c USING (customer_id) ON true
/*
execution: distributed on 3 of 3 members
tree: airlines: any; orders: all; customers: all
scan airlines: replicated, every member has it
  columns: code
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan airlines: at the coordinator over airlines, to every member
  x1 join o: at the members over o, c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- random numbers: for groups
SELECT priority, random() FROM orders o JOIN customers c USING (customer_id) GROUP BY 1
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
-- random numbers: in a window
SELECT id, sum(random()) OVER (ORDER BY id) FROM orders o JOIN customers c USING (customer_id)
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
  gathered: o, c: a window is not partitioned by the partitioning key: add it to PARTITION BY (line 1, column 16)
*/
----
-- random numbers: a sample
SELECT id FROM orders o JOIN customers c USING (customer_id) USING SAMPLE 3
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: gather (the result of SAMPLE depends on when and where it is evaluated: filter by the partitioning key to gather less)
*/
----
-- random numbers: a clock without a date
SELECT id, current_time FROM orders o JOIN customers c USING (customer_id)
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- a clock: one table
SELECT count(*) FROM orders WHERE day < now()
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: day
  filter: day < now()
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a clock: in the SELECT list
SELECT id, current_timestamp FROM orders o JOIN customers c USING (customer_id)
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
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- a clock: a date
SELECT id FROM orders o JOIN customers c USING (customer_id) WHERE day = CURRENT_DATE
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, day
  filter: day = CAST(now() AS DATE)
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
-- a clock: aggregated
SELECT max(localtimestamp) FROM orders o JOIN customers c USING (customer_id)
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because customer_id = c.customer_id only joins the key: compare either side with a value
  columns: customer_id
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
-- a clock: in a subquery
SELECT id FROM orders WHERE id IN (SELECT id FROM orders p WHERE p.day > today())
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, day
scan orders AS p: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id, day
  filter: day > CAST(now() AS DATE)
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan p: at the members over p, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
