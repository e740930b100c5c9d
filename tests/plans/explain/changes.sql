-- EXPLAIN of INSERT, UPDATE and DELETE: where rows go, who is written to and how.
-- tables: shop
CREATE TABLE daily (day DATE PRIMARY KEY) PARTITION BY RANGE (day) EVERY INTERVAL 1 DAY;
----
-- an insert says where its rows go
INSERT INTO orders (customer_id, id) VALUES ('C2', 1)
/*
INSERT of 1 row into orders
execution: local on 1 of 3 members
tree: orders: (p128)
rows go to 1 of 271 partitions [p128]
serving: yes
backups: none
written: by the primary, then by its backups
*/
----
-- an insert of many rows or into a replicated table is published, 1
INSERT INTO orders (customer_id, id) VALUES ('C1', 1), ('C2', 1), ('C3', 1)
/*
INSERT of 3 rows into orders
execution: distributed on 2 of 3 members
tree: orders: (p22 | p128 | p262)
rows go to 3 of 271 partitions [p22, p128, p262]
serving: yes
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- an insert of many rows or into a replicated table is published, 2
INSERT INTO airlines VALUES ('AA', 'American')
/*
INSERT of 1 row into airlines
execution: distributed on 3 of 3 members
tree: airlines: any
rows go to 1 of 1 partitions [p0]
serving: no, rows of a replicated table, and more than 32, are staged and then published
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- an insert for which ranges are made says so
INSERT INTO daily VALUES (DATE '2024-01-01')
/*
INSERT of 1 row into daily
execution: distributed on 3 of 3 members
tree: daily: all
because the INSERT creates ranges for some of its rows: run it to learn their partitions
serving: yes
backups: none
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- a change explains its query and who keeps copies
-- parameters: 'C2'
UPDATE orders SET priority = 'high' WHERE customer_id = ?
/*
UPDATE of orders
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: by the primary, then by its backups
*/
----
-- what changes concern: unpruned
DELETE FROM orders WHERE amount > 1
/*
DELETE of orders
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, amount
  filter: amount > 1
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- what changes concern: contradiction
DELETE FROM orders WHERE customer_id = 'a' AND customer_id = 'b'
/*
DELETE of orders
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
*/
----
-- what changes concern: replicated
UPDATE airlines SET name = 'x' WHERE code = 'AA'
/*
UPDATE of airlines
execution: distributed on 3 of 3 members
tree: airlines: any
scan airlines: replicated, every member has it
  primary key bounds: ('AA')
  columns: code, name
serving: no, it changes more than the row with one key: compare all columns of (code) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- what changes concern: truncate
TRUNCATE orders
/*
DELETE of orders
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because every row is deleted: add WHERE to delete some of them
  columns: customer_id, id
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- a change with open parameters
DELETE FROM orders WHERE customer_id IN (?, ?)
/*
DELETE of orders
execution: distributed on at most 3 of 3 members
tree: orders: ($1 | $2)
scan orders: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1 | $2)
  columns: customer_id, id
  filter: customer_id IN ($1, $2)
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- an insert from a query explains the query
INSERT INTO customers SELECT customer_id, priority, 1 FROM orders WHERE customer_id = 'C2'
/*
INSERT into customers from:
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority
serving: no, its rows are computed by a query
*/
----
-- where it runs: a row
-- parameters: 'C1', 1
INSERT INTO orders VALUES (?, ?, NULL, 1, NULL) ON CONFLICT DO UPDATE SET amount = excluded.amount
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 1)
  columns: customer_id, id, priority, amount, day
serving: yes
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- where it runs: rows of one partition
INSERT INTO orders VALUES ('C1', 1, NULL, 1, NULL), ('C1', 2, NULL, 1, NULL) ON CONFLICT DO UPDATE SET amount = excluded.amount
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: (p262)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 1) <= key <= ('C1', 2), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C1' AND id = 1 OR customer_id = 'C1' AND id = 2)
serving: no, its rows are computed by a query
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- where it runs: a computed key is computed once
-- parameters: 'C1'
INSERT INTO orders VALUES (lower(?), 1, NULL, 1, NULL) ON CONFLICT DO UPDATE SET amount = excluded.amount
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: (lower($1))
scan orders: 1 of 271 partitions [p135]
  partitioning key (customer_id): ('c1')
  primary key bounds: ('c1', 1)
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
written: staged on all copies, then published at once by the controller
*/
----
-- where it runs: rows to return
-- parameters: 'C1'
INSERT INTO orders VALUES (?, 1, NULL, 1, NULL) ON CONFLICT DO UPDATE SET amount = excluded.amount RETURNING id
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 1)
  columns: customer_id, id, priority, amount, day
serving: yes
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- where it runs: another key
-- parameters: 'C1'
INSERT INTO orders VALUES (?, 1, NULL, 1, NULL) ON CONFLICT DO UPDATE SET id = 2
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 1)
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
written: staged on all copies, then published at once by the controller
*/
----
-- where it runs: a query
INSERT INTO orders SELECT 'C1', 1, NULL, 1, NULL ON CONFLICT DO UPDATE SET amount = excluded.amount
/*
change of orders, computed by one member from:
execution: local on 1 of 3 members
tree: orders: (p262)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 1)
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
written: staged on all copies, then published at once by the controller
*/
----
-- one member works out, 1
UPDATE orders SET amount = 1 RETURNING id
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: two-stage
written: staged on all copies, then published at once by the controller
*/
----
-- one member works out, 2
UPDATE orders SET id = 1
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: two-stage
written: staged on all copies, then published at once by the controller
*/
----
-- one member works out, 3
UPDATE orders SET amount = (SELECT 1 FROM customers)
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: in 4 stages
  x0 scan customers: at the members over customers, to the coordinator
  x1 rows of customers: at the coordinator over x0, to every member
  x2 join orders: at the members over orders, x1, to the coordinator
  final: at the coordinator over x2
  gathered: customers: an aggregate has no partial aggregation: GROUP BY the partitioning key
written: staged on all copies, then published at once by the controller
*/
----
-- one member works out, 4
WITH x AS (SELECT 1 AS one) UPDATE orders SET amount = (SELECT one FROM x)
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: in 3 stages
  x0 rows of constants: at the coordinator, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
written: staged on all copies, then published at once by the controller
*/
----
-- one member works out, 5
UPDATE orders SET amount = 1 FROM airlines
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: airlines: any; orders: all
scan airlines: replicated, every member has it
  columns: code
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: in 2 stages
  x0 join airlines: at the members over airlines, orders, to the coordinator
  final: at the coordinator over x0
written: staged on all copies, then published at once by the controller
*/
----
-- its condition prunes as that of a query
-- parameters: 1, 'C1', 7
UPDATE orders SET amount = amount + ? WHERE customer_id = ? AND id = ?
/*
UPDATE of orders
execution: local on 1 of 3 members
tree: orders: ($2)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 7)
  columns: customer_id, id, priority, amount, day
serving: yes
backups: none
written: by the primary, then by its backups
*/
----
-- a deletion that looks beyond its partition is a query for effects: using
DELETE FROM airlines USING customers AS c WHERE c.name = airlines.code
/*
change of airlines, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all; airlines: any
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: name
scan airlines: replicated, every member has it
  columns: code, name
serving: no, its rows are computed by a query
when distributed: in 2 stages
  x0 join c: at the members over c, airlines, to the coordinator
  final: at the coordinator over x0
written: staged on all copies, then published at once by the controller
*/
----
-- a deletion that looks beyond its partition is a query for effects: a common table expression, and rows to return
WITH x AS (SELECT 'a' AS k) DELETE FROM airlines WHERE code IN (SELECT k FROM x) RETURNING name
/*
change of airlines, computed by one member from:
execution: local on 1 of 3 members
tree: airlines: any
scan airlines: replicated, every member has it
  primary key bounds: ('a')
  columns: code, name
serving: no, its rows are computed by a query
written: staged on all copies, then published at once by the controller
*/
----
-- a subquery over partitions is for one member
DELETE FROM orders WHERE id IN (SELECT id FROM orders)
/*
change of orders, computed by one member from:
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, its rows are computed by a query
when distributed: in 3 stages
  x0 scan orders: at the members over orders, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
written: staged on all copies, then published at once by the controller
*/
----
-- its condition prunes as that of a query, 1
-- parameters: 'C1'
DELETE FROM orders WHERE customer_id = $1
/*
DELETE of orders
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: by the primary, then by its backups
*/
----
-- its condition prunes as that of a query, 2
-- parameters: 'C1'
SELECT customer_id, id FROM orders WHERE customer_id = $1
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id
serving: yes
*/
----
-- its condition prunes as that of a query, 3
-- parameters: 'C1', 2
DELETE FROM orders WHERE customer_id = $1 AND id = $2 AND amount > 1
/*
DELETE of orders
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 2)
  columns: customer_id, id, amount
  filter: amount > 1
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: by the primary, then by its backups
*/
----
-- its condition prunes as that of a query, 4
-- parameters: 'C1', 2
SELECT customer_id, id FROM orders WHERE customer_id = $1 AND id = $2 AND amount > 1
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1', 2)
  columns: customer_id, id, amount
  filter: amount > 1
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- its condition prunes as that of a query, 5
-- parameters: 'C1'
DELETE FROM orders WHERE NOT customer_id = $1
/*
DELETE of orders
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id = $1 excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id
  filter: NOT customer_id = $1
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- its condition prunes as that of a query, 6
-- parameters: 'C1'
SELECT customer_id, id FROM orders WHERE NOT customer_id = $1
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id = $1 excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id
  filter: NOT customer_id = $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- its condition prunes as that of a query, 7
-- parameters: 'C1'
DELETE FROM orders WHERE amount = 1 OR customer_id = $1
/*
DELETE of orders
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the OR branch amount = 1 does not restrict the key: compare customer_id with values in every branch
  columns: customer_id, id, amount
  filter: (amount = 1 OR customer_id = $1)
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- its condition prunes as that of a query, 8
-- parameters: 'C1'
SELECT customer_id, id FROM orders WHERE amount = 1 OR customer_id = $1
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the OR branch amount = 1 does not restrict the key: compare customer_id with values in every branch
  columns: customer_id, id, amount
  filter: (amount = 1 OR customer_id = $1)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a subquery may read a replicated table
DELETE FROM orders WHERE priority IN (SELECT code FROM airlines)
/*
DELETE of orders
execution: distributed on 3 of 3 members
tree: orders: all; airlines: any
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority
scan airlines: replicated, every member has it
  columns: code
serving: no, it changes more than the row with one key: compare all columns of (customer_id, id) with values
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- a query that reads the table it fills is worked out by a member, 1
INSERT OR REPLACE INTO customers SELECT customer_id, name, score + 1 FROM customers
/*
change of customers, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all; customers: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
scan customers: all 271 partitions
  because customers.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name, score
serving: no, its rows are computed by a query
when distributed: in 3 stages
  x0 scan customers: at the members over customers, to the coordinator
  x1 scan customers: at the members over customers, to the coordinator
  final: at the coordinator over x0, x1
  gathered: customers: a window is not partitioned by the partitioning key: add it to PARTITION BY
written: staged on all copies, then published at once by the controller
*/
----
-- a query that reads the table it fills is worked out by a member, 2
INSERT OR IGNORE INTO customers SELECT concat(customer_id, 'x'), name, 1 FROM customers
/*
change of customers, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all; customers: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
scan customers: all 271 partitions
  because customer_id IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; customer_id is compared with concat(customers.customer_id, 'x'), which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, name, score
serving: no, its rows are computed by a query
when distributed: in 3 stages
  x0 scan customers: at the members over customers, to the coordinator
  x1 scan customers: at the members over customers, to the coordinator
  final: at the coordinator over x0, x1
  gathered: customers: a window is not partitioned by the partitioning key: add it to PARTITION BY
written: staged on all copies, then published at once by the controller
*/
----
-- a query that reads the table it fills is worked out by a member, 3
INSERT INTO customers SELECT concat(o.customer_id, 'x'), 'a', 1 FROM orders o WHERE o.customer_id NOT IN (SELECT customer_id FROM customers)
/*
change of customers, computed by one member from:
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
scan customers: all 271 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name, score
co-located: o, customers
serving: no, its rows are computed by a query
when distributed: in 2 stages
  x0 join o: at the members over o, customers, to the coordinator
  final: at the coordinator over x0
written: staged on all copies, then published at once by the controller
*/
----
-- a query that reads the table it fills is worked out by a member, 4
INSERT INTO customers VALUES ('a', 'b', (SELECT max(score) FROM customers))
/*
change of customers, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
serving: no, its rows are computed by a query
when distributed: gather (VALUES with a subquery has no text of its own: filter by the partitioning key to gather less)
written: staged on all copies, then published at once by the controller
*/
----
-- a query that reads the table it fills is worked out by a member, 5
WITH x AS (FROM customers) INSERT OR REPLACE INTO customers SELECT * FROM x
/*
change of customers, computed by one member from:
execution: distributed on 3 of 3 members
tree: customers: all; customers: all
scan customers: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
scan customers: all 271 partitions
  because customers.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name, score
serving: no, its rows are computed by a query
when distributed: gather (its tables are small, about 1.0 MB for 2 table references in 6 queries: one member reads them sooner than all members exchange rows)
written: staged on all copies, then published at once by the controller
*/
----
-- a query is pruned below its casts
-- parameters: 'C1'
INSERT INTO customers SELECT customer_id, priority, amount FROM orders WHERE customer_id = ?
/*
INSERT into customers from:
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, priority, amount
serving: no, its rows are computed by a query
*/
