-- Views are opened before anything is pruned, and every mention for itself.
CREATE TABLE plan_view_orders (customer_id VARCHAR, id BIGINT, amount DECIMAL(10,2), PRIMARY KEY (customer_id, id)) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE plan_view_customers (customer_id VARCHAR PRIMARY KEY, name VARCHAR) PARTITION BY HASH (customer_id) PARTITIONS 16;
INSERT INTO plan_view_orders VALUES ('C1', 1, 1.5), ('C1', 2, 2.5), ('C2', 1, -3), ('C2', 7, NULL), ('C3', 1, 0);
INSERT INTO plan_view_customers VALUES ('C1', 'Ada'), ('C2', 'Grace'), ('C4', NULL);
CREATE VIEW plan_view_big AS SELECT customer_id, id, amount FROM plan_view_orders WHERE amount > 1;
CREATE VIEW plan_view_spent (who, total) AS SELECT customer_id, sum(amount) FROM plan_view_orders GROUP BY customer_id;
CREATE VIEW plan_view_both AS SELECT c.name, s.* FROM plan_view_customers c LEFT JOIN plan_view_spent s ON s.who = c.customer_id;
CREATE VIEW plan_view_last AS SELECT customer_id, id FROM plan_view_orders ORDER BY id DESC LIMIT 2
----
-- a filter on a view
-- partitions=1 members=1 execution=local
SELECT id FROM plan_view_big WHERE customer_id = 'C1' ORDER BY id
/*
tree: plan_view_orders: (p10)
scan plan_view_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, amount; about 0 rows
  filter: amount > 1
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- below the groups of a view
-- partitions=1
SELECT total FROM plan_view_spent WHERE who = 'C2'
/*
tree: plan_view_orders: (p7)
scan plan_view_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, amount; about 5 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- from the filled side of an outer join in a view, through a view in it
SELECT name, total FROM plan_view_both WHERE who = 'C2'
/*
tree: plan_view_customers: (p7); plan_view_orders: (p7)
scan plan_view_customers AS c: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name; about 3 rows
scan plan_view_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, amount; about 5 rows
co-located: c, plan_view_orders
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- each mention has its own partitions
-- partitions=2
SELECT id FROM plan_view_big WHERE customer_id = 'C1' UNION ALL SELECT id FROM plan_view_big WHERE customer_id = 'C2'
/*
tree: plan_view_orders: (p10); plan_view_orders: (p7)
scan plan_view_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, amount; about 0 rows
  filter: amount > 1
scan plan_view_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, amount; about 0 rows
  filter: amount > 1
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- not below a LIMIT in a view
-- partitions=16
SELECT id FROM plan_view_last WHERE customer_id = 'C2'
/*
tree: plan_view_orders: all
scan plan_view_orders: all 16 partitions
  because the filter customer_id = 'C2' cannot be pushed below LIMIT: filter inside it if you mean its input
  columns: customer_id, id; about 5 rows
serving: no, it does not search plan_view_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a view in a subquery
SELECT id FROM plan_view_orders WHERE customer_id IN (SELECT who FROM plan_view_spent WHERE who = 'C1') ORDER BY id
/*
tree: plan_view_orders: (p10); plan_view_orders: (p10)
scan plan_view_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 5 rows
scan plan_view_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, amount; about 5 rows
co-located: plan_view_orders, plan_view_orders
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
