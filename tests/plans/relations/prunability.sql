-- The relations of the Hazelcast seed ("RelNode Prunability Rules") and more, over two tables of one affinity group and one of another.
CREATE TABLE rel_orders (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), PRIMARY KEY (customer_id, id)) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE rel_customers (customer_id VARCHAR PRIMARY KEY, name VARCHAR, boss VARCHAR) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE rel_events (device INTEGER, day DATE, customer VARCHAR, PRIMARY KEY (device, day)) PARTITION BY HASH (device) PARTITIONS 8;
CREATE TABLE rel_priorities (priority VARCHAR PRIMARY KEY, label VARCHAR) REPLICATED;
INSERT INTO rel_orders VALUES ('C1', 1, 'a', 1.5), ('C1', 2, 'b', 2.5), ('C2', 1, 'a', -3), ('C2', 7, NULL, 4.25), ('C3', 1, 'c', 0), ('C4', 9, 'b', 100);
INSERT INTO rel_customers VALUES ('C1', 'Ada', 'C2'), ('C2', 'Grace', NULL), ('C4', NULL, 'C1'), ('C5', 'Edsger', 'C5');
INSERT INTO rel_events VALUES (1, DATE '2024-01-01', 'C1'), (1, DATE '2024-01-02', 'C2'), (2, DATE '2024-01-01', 'C2'), (3, DATE '2024-01-03', NULL);
INSERT INTO rel_priorities VALUES ('a', 'low'), ('b', 'high')
----
-- project and alias
-- partitions=1 members=1 execution=local
SELECT k, n FROM (SELECT customer_id AS k, id + 1 AS n FROM rel_orders) WHERE k = 'C2' ORDER BY n
/*
tree: rel_orders: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a computed column is no column
-- partitions=16
SELECT count(*) FROM (SELECT upper(customer_id) AS k FROM rel_orders) WHERE k = 'C2'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because customer_id is wrapped in upper(): compare the bare column
  columns: customer_id; about 1 row
  filter: upper(customer_id) = 'C2'
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- sort below the filter
-- partitions=1
SELECT id FROM (SELECT * FROM rel_orders ORDER BY amount) WHERE customer_id = 'C1' ORDER BY id
/*
tree: rel_orders: (p10)
scan rel_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- limit below the filter
-- partitions=16
SELECT count(*) FROM (SELECT * FROM rel_orders ORDER BY amount DESC, id LIMIT 2) WHERE customer_id = 'C4'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because the filter customer_id = 'C4' cannot be pushed below LIMIT: filter inside it if you mean its input
  columns: customer_id, id, priority, amount; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- limit above the filter
-- partitions=1
SELECT id FROM rel_orders WHERE customer_id = 'C1' ORDER BY id LIMIT 1
/*
tree: rel_orders: (p10)
scan rel_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 2 rows
serving: yes
*/
----
-- aggregate by the key
-- partitions=1
SELECT * FROM (SELECT customer_id, sum(amount) AS s FROM rel_orders GROUP BY customer_id) WHERE customer_id = 'C2'
/*
tree: rel_orders: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, amount; about 6 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- having on the key
-- partitions=1
SELECT customer_id, count(*) FROM rel_orders GROUP BY customer_id HAVING customer_id = 'C2' AND count(*) > 1
/*
tree: rel_orders: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id; about 6 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- having on something else
-- partitions=16
SELECT priority, max(customer_id) AS m FROM rel_orders GROUP BY priority HAVING max(customer_id) = 'C2'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, priority; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- grouping sets group by no key for all
-- partitions=16
SELECT * FROM (SELECT customer_id, count(*) AS n FROM rel_orders GROUP BY ROLLUP (customer_id)) WHERE customer_id = 'C2'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because the filter customer_id = 'C2' cannot be pushed below GROUP BY, which does not name customer_id: group by customer_id, or filter inside the subquery
  columns: customer_id; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- distinct
-- partitions=1
SELECT * FROM (SELECT DISTINCT customer_id, priority FROM rel_orders) WHERE customer_id = 'C2' ORDER BY priority
/*
tree: rel_orders: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- distinct on another column
-- partitions=16
SELECT * FROM (SELECT DISTINCT ON (priority) customer_id, priority FROM rel_orders ORDER BY priority, customer_id) WHERE customer_id = 'C2'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because the filter customer_id = 'C2' cannot be pushed below DISTINCT ON, which does not name customer_id: add customer_id to it, or filter inside the subquery
  columns: customer_id, priority; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- window by the key
-- partitions=1
SELECT * FROM (SELECT customer_id, id, sum(amount) OVER (PARTITION BY customer_id ORDER BY id) AS s FROM rel_orders) WHERE customer_id = 'C2' ORDER BY id
/*
tree: rel_orders: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, amount; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- window by another column
-- partitions=16
SELECT * FROM (SELECT customer_id, id, rank() OVER (PARTITION BY priority ORDER BY amount) AS r FROM rel_orders) WHERE customer_id = 'C2' ORDER BY id
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because the filter customer_id = 'C2' cannot be pushed below a window that is not partitioned by customer_id: partition it by customer_id, or filter inside the subquery
  columns: customer_id, id, priority, amount; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- qualify on the key of a named window
-- partitions=1
SELECT customer_id, id FROM rel_orders WINDOW w AS (PARTITION BY customer_id ORDER BY id) QUALIFY row_number() OVER w = 1 AND customer_id = 'C1'
/*
tree: rel_orders: (p10)
scan rel_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- union all
-- partitions=2
SELECT * FROM (SELECT customer_id, id FROM rel_orders UNION ALL SELECT customer_id, 0 FROM rel_customers) WHERE customer_id = 'C2' ORDER BY id
/*
tree: rel_orders: (p7); rel_customers: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 2 rows
scan rel_customers: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id; about 1 row
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- union of other types
-- partitions=2
SELECT count(*) FROM (SELECT customer_id AS k FROM rel_orders UNION SELECT device FROM rel_events) WHERE k = '1'
/*
tree: rel_orders: (p0); rel_events: (p2)
scan rel_orders: 1 of 16 partitions [p0]
  partitioning key (customer_id): ('1')
  primary key bounds: ('1')
  columns: customer_id; about 2 rows
scan rel_events: 1 of 8 partitions [p2]
  partitioning key (device): (1)
  primary key bounds: (1)
  columns: device; about 1 row
  filter: CAST(device AS VARCHAR) = '1'
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join rel_orders: at the members over rel_orders, rel_events, to the coordinator
  final: at the coordinator over x0
*/
----
-- intersect
-- partitions=2
SELECT * FROM (SELECT customer_id FROM rel_orders INTERSECT SELECT customer_id FROM rel_customers) WHERE customer_id = 'C4'
/*
tree: rel_orders: (p8); rel_customers: (p8)
scan rel_orders: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C4')
  primary key bounds: ('C4')
  columns: customer_id; about 2 rows
scan rel_customers: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C4')
  primary key bounds: ('C4')
  columns: customer_id; about 1 row
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- except passes to both sides
-- partitions=2
SELECT * FROM (SELECT customer_id FROM rel_orders EXCEPT SELECT customer_id FROM rel_customers) WHERE customer_id = 'C3'
/*
tree: rel_orders: (p8); rel_customers: (p8)
scan rel_orders: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id; about 2 rows
scan rel_customers: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id; about 1 row
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a common table expression that is mentioned once
-- partitions=1
WITH mine AS (SELECT * FROM rel_orders) SELECT id FROM mine WHERE customer_id = 'C1' ORDER BY id
/*
tree: rel_orders: (p10)
scan rel_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount; about 2 rows
serving: yes
*/
----
-- a common table expression needs what some mention needs
-- partitions=2
WITH mine AS (SELECT * FROM rel_orders WHERE amount <> 7) SELECT (SELECT count(*) FROM mine WHERE customer_id = 'C1') AS one, (SELECT count(*) FROM mine WHERE customer_id = 'C4') AS other
/*
tree: rel_orders: (p8 | p10)
scan rel_orders: 2 of 16 partitions [p8, p10]
  partitioning key (customer_id): ('C1'), ('C4')
  primary key bounds: ('C1') <= key <= ('C4'), in 2 ranges
  columns: customer_id, id, priority, amount; about 2 rows
  filter: amount <> 7 AND (customer_id = 'C1' OR customer_id = 'C4')
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan rel_orders: at the members over rel_orders, to the coordinator
  x1 scan rel_orders: at the members over rel_orders, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- a mention that needs all
-- partitions=16
WITH mine AS (SELECT * FROM rel_orders) SELECT (SELECT count(*) FROM mine WHERE customer_id = 'C1') AS one, (SELECT count(*) FROM mine) AS every
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: in 3 stages
  x0 scan rel_orders: at the members over rel_orders, to the coordinator
  x1 scan rel_orders: at the members over rel_orders, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- a recursive one is not taken apart
WITH RECURSIVE up AS (SELECT customer_id, boss FROM rel_customers WHERE customer_id = 'C4' UNION SELECT c.customer_id, c.boss FROM rel_customers c JOIN up ON c.customer_id = up.boss) SELECT customer_id FROM up ORDER BY customer_id
/*
tree: rel_customers: (p8); rel_customers: all
scan rel_customers: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C4')
  primary key bounds: ('C4')
  columns: customer_id, boss; about 1 row
scan rel_customers AS c: all 16 partitions
  because customer_id = ... only joins the key: compare either side with a value
  columns: customer_id, boss; about 4 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan rel_customers: at the members over rel_customers, to the coordinator
  x1 scan c: at the members over c, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- inner join carries over the key
-- partitions=2 members=1 execution=local
SELECT o.id, c.name FROM rel_orders o JOIN rel_customers c ON o.customer_id = c.customer_id WHERE c.customer_id = 'C2' ORDER BY o.id
/*
tree: rel_orders: (p7); rel_customers: (p7)
scan rel_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 6 rows
scan rel_customers AS c: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name; about 1 row
co-located: o, c
serving: yes
*/
----
-- three tables
-- partitions=3
SELECT o.id, c.name, d.name FROM rel_orders o JOIN rel_customers c ON o.customer_id = c.customer_id JOIN rel_customers d ON d.customer_id = c.customer_id WHERE d.customer_id = 'C1' ORDER BY o.id
/*
tree: rel_orders: (p10); rel_customers: (p10); rel_customers: (p10)
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 6 rows
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name; about 4 rows
scan rel_customers AS d: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name; about 1 row
co-located: o, c, d
serving: yes
*/
----
-- a comma binds looser than a join
SELECT count(*) FROM rel_orders o, rel_orders p FULL JOIN rel_customers c ON p.customer_id = c.customer_id WHERE o.customer_id = 'C1'
/*
tree: rel_orders: (p10); rel_orders: all; rel_customers: all
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id; about 2 rows
scan rel_orders AS p: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id; about 6 rows
scan rel_customers AS c: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id; about 4 rows
co-located: p, c
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to every member
  x1 join p: at the members over p, c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- left join carries from the preserved side
-- partitions=2
SELECT o.id, c.name FROM rel_orders o LEFT JOIN rel_customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C3'
/*
tree: rel_orders: (p8); rel_customers: (p8)
scan rel_orders AS o: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, id; about 2 rows
scan rel_customers AS c: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, name; about 4 rows
co-located: o, c
serving: yes
*/
----
-- left join never carries back
SELECT c.name, count(o.id) FROM rel_customers c LEFT JOIN rel_orders o ON o.customer_id = c.customer_id AND o.customer_id = 'C2' GROUP BY c.name ORDER BY c.name
/*
tree: rel_customers: all; rel_orders: (p7)
scan rel_customers AS c: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name; about 4 rows
scan rel_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 2 rows
co-located: c, o
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, o, to the coordinator
  final: at the coordinator over x0
*/
----
-- a filter that refuses NULLs makes a left join an inner one
-- partitions=2
SELECT c.name, o.id FROM rel_customers c LEFT JOIN rel_orders o ON o.customer_id = c.customer_id WHERE o.customer_id = 'C2' ORDER BY o.id
/*
tree: rel_customers: (p7); rel_orders: (p7)
scan rel_customers AS c: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name; about 4 rows
scan rel_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 2 rows
co-located: c, o
serving: yes
*/
----
-- a filter that asks for NULLs does not
-- partitions=32
SELECT c.name FROM rel_customers c LEFT JOIN rel_orders o ON o.customer_id = c.customer_id WHERE o.customer_id IS NULL
/*
tree: rel_customers: all; rel_orders: all
scan rel_customers AS c: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name; about 4 rows
scan rel_orders AS o: all 16 partitions
  because customer_id IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; c.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id; about 6 rows
co-located: c, o
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, o, to the coordinator
  final: at the coordinator over x0
*/
----
-- right join
-- partitions=2
SELECT o.id, c.name FROM rel_orders o RIGHT JOIN rel_customers c ON o.customer_id = c.customer_id WHERE c.customer_id = 'C5'
/*
tree: rel_orders: (p13); rel_customers: (p13)
scan rel_orders AS o: 1 of 16 partitions [p13]
  partitioning key (customer_id): ('C5')
  primary key bounds: ('C5')
  columns: customer_id, id; about 6 rows
scan rel_customers AS c: 1 of 16 partitions [p13]
  partitioning key (customer_id): ('C5')
  primary key bounds: ('C5')
  columns: customer_id, name; about 1 row
co-located: o, c
serving: yes
*/
----
-- full join on the merged column
-- partitions=2
SELECT customer_id, o.id, c.name FROM rel_orders o FULL JOIN rel_customers c USING (customer_id) WHERE customer_id = 'C3'
/*
tree: rel_orders: (p8); rel_customers: (p8)
scan rel_orders AS o: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, id; about 2 rows
scan rel_customers AS c: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, name; about 1 row
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- full join filtered on one side
-- partitions=2
SELECT o.id, c.name FROM rel_orders o FULL JOIN rel_customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C3'
/*
tree: rel_orders: (p8); rel_customers: (p8)
scan rel_orders AS o: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, id; about 2 rows
scan rel_customers AS c: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, name; about 4 rows
co-located: o, c
serving: yes
*/
----
-- semi join
-- partitions=2
SELECT c.name FROM rel_customers c SEMI JOIN rel_orders o ON o.customer_id = c.customer_id AND o.customer_id = 'C1'
/*
tree: rel_customers: (p10); rel_orders: (p10)
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name; about 4 rows
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id; about 2 rows
co-located: c, o
serving: yes
*/
----
-- anti join
-- partitions=2
SELECT c.name FROM rel_customers c ANTI JOIN rel_orders o ON o.customer_id = c.customer_id WHERE c.customer_id = 'C5'
/*
tree: rel_customers: (p13); rel_orders: (p13)
scan rel_customers AS c: 1 of 16 partitions [p13]
  partitioning key (customer_id): ('C5')
  primary key bounds: ('C5')
  columns: customer_id, name; about 1 row
scan rel_orders AS o: 1 of 16 partitions [p13]
  partitioning key (customer_id): ('C5')
  primary key bounds: ('C5')
  columns: customer_id; about 6 rows
co-located: c, o
serving: yes
*/
----
-- a cross join keeps the sets apart
-- partitions=17
SELECT count(*) FROM rel_orders o CROSS JOIN rel_customers c WHERE o.customer_id = 'C2'
/*
tree: rel_orders: (p7); rel_customers: all
scan rel_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id; about 2 rows
scan rel_customers AS c: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id; about 4 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to every member
  x1 join c: at the members over c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a theta join carries nothing
-- partitions=17
SELECT count(*) FROM rel_orders o JOIN rel_customers c ON o.customer_id < c.customer_id WHERE o.customer_id = 'C2'
/*
tree: rel_orders: (p7); rel_customers: all
scan rel_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id; about 2 rows
scan rel_customers AS c: all 16 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN; customer_id is compared with o.customer_id, which is neither a constant nor a parameter: pass its value as a parameter
  primary key bounds: ('C2') < key
  columns: customer_id; about 4 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to every member
  x1 join c: at the members over c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- replicated tables are with everything
-- partitions=2 members=1
SELECT o.id, p.label FROM rel_orders o JOIN rel_priorities p ON o.priority = p.priority WHERE o.customer_id = 'C1' ORDER BY o.id
/*
tree: rel_orders: (p10); rel_priorities: any
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority; about 2 rows
scan rel_priorities AS p: replicated, every member has it
  columns: priority, label; about 2 rows
serving: yes
*/
----
-- lateral
-- partitions=2
SELECT c.name, l.id FROM rel_customers c, LATERAL (SELECT id FROM rel_orders o WHERE o.customer_id = c.customer_id ORDER BY id LIMIT 1) l WHERE c.customer_id = 'C1'
/*
tree: rel_customers: (p10); rel_orders: (p10)
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name; about 1 row
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 6 rows
co-located: c, o
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a scan that cannot be pruned keeps its owners while the other reads one partition
-- partitions=17 members=3 execution=distributed
SELECT count(*) FROM rel_orders o JOIN rel_customers c ON o.priority = c.name OR c.name = 'Ada' WHERE o.customer_id = 'C1'
/*
tree: rel_orders: (p10); rel_customers: all
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, priority; about 2 rows
scan rel_customers AS c: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name; about 4 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to every member
  x1 join c: at the members over c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a join on other columns than the key is not co-located
SELECT e.device, c.name FROM rel_events e JOIN rel_customers c ON e.customer = c.customer_id WHERE e.device = 2
/*
tree: rel_events: (p5); rel_customers: all
scan rel_events AS e: 1 of 8 partitions [p5]
  partitioning key (device): (2)
  primary key bounds: (2)
  columns: device, customer; about 1 row
scan rel_customers AS c: all 16 partitions
  because e.customer = customer_id only joins the key: compare either side with a value
  columns: customer_id, name; about 4 rows
serving: yes
when distributed: in 3 stages
  x0 scan e: at the members over e, to every member
  x1 join c: at the members over c, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a sample is taken before the filter
SELECT count(*) >= 0 FROM rel_orders TABLESAMPLE 100% WHERE customer_id = 'C1'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because the filter customer_id = 'C1' cannot be pushed below a sample: filter inside it if you mean its input
  columns: customer_id; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: gather (the result of SAMPLE depends on when and where it is evaluated: filter by the partitioning key to gather less)
*/
----
-- an aggregate of the group key is no filter of rows
-- partitions=16
SELECT customer_id, count(DISTINCT id) FROM rel_orders GROUP BY customer_id HAVING mode(customer_id) = 'C2'
/*
tree: rel_orders: all
scan rel_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id; about 6 rows
serving: no, it does not search rel_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a filter that a subquery guards is evaluated behind it
-- partitions=17
SELECT count(*) FROM (SELECT * FROM rel_orders WHERE priority IS NULL) o JOIN rel_customers c ON c.name = 'Ada' AND c.boss = 'C2' WHERE CAST(coalesce(o.priority, '1') AS INTEGER) = 1 AND c.customer_id = 'C1' AND o.customer_id >= 'A'
/*
tree: rel_orders: all; rel_customers: (p10)
scan rel_orders: all 16 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN
  primary key bounds: ('A') <= key
  columns: customer_id, id, priority, amount; about 0 rows
  filter: priority IS NULL AND CAST(coalesce(priority, '1') AS INTEGER) = 1
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name, boss; about 0 rows
  filter: name = 'Ada' AND boss = 'C2'
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join rel_orders: at the members over rel_orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a column that is renamed in FROM
-- partitions=1
SELECT p FROM rel_orders AS o(k, n, p, m) WHERE k = 'C1' ORDER BY p
/*
tree: rel_orders: (p10)
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount; about 2 rows
serving: yes
*/
----
-- parentheses around joins
-- partitions=2
SELECT count(*) FROM rel_orders o JOIN (rel_customers c LEFT JOIN rel_customers d ON c.customer_id = d.customer_id) ON o.customer_id = c.customer_id WHERE o.customer_id = 'C1'
/*
tree: rel_orders: (p10); rel_customers: (p10); rel_customers: none
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id; about 2 rows
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id; about 4 rows
scan rel_customers AS d: 0 of 16 partitions
co-located: o, c, d
serving: yes
*/
----
-- a natural join
-- partitions=2
SELECT id, name FROM rel_orders NATURAL JOIN rel_customers WHERE customer_id = 'C2' ORDER BY id
/*
tree: rel_orders: (p7); rel_customers: (p7)
scan rel_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount; about 2 rows
scan rel_customers: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name, boss; about 4 rows
co-located: rel_orders, rel_customers
serving: yes
*/
----
-- an alias in WHERE
-- partitions=1
SELECT customer_id AS k, id FROM rel_orders WHERE k = 'C1' ORDER BY id
/*
tree: rel_orders: (p10)
scan rel_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 2 rows
serving: yes
*/
----
-- IS NOT DISTINCT FROM joins as well
-- partitions=2
SELECT o.id, c.name FROM rel_orders o JOIN rel_customers c ON o.customer_id IS NOT DISTINCT FROM c.customer_id WHERE c.customer_id = 'C1' ORDER BY o.id
/*
tree: rel_orders: (p10); rel_customers: (p10)
scan rel_orders AS o: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 6 rows
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name; about 1 row
co-located: o, c
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- the window function of an aggregate
-- partitions=17
SELECT * FROM (SELECT sum(count(*)) OVER () AS n FROM rel_orders) x, rel_customers c WHERE c.customer_id = 'C1'
/*
tree: rel_orders: all; rel_customers: (p10)
scan rel_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id; about 6 rows
scan rel_customers AS c: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, name, boss; about 1 row
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan rel_orders: at the members over rel_orders, to the coordinator
  x1 rows of rel_orders: at the coordinator over x0, to every member
  x2 join c: at the members over c, x1, to the coordinator
  final: at the coordinator over x2
*/
