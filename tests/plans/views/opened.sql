-- What reads a view is planned as if its query stood there.
-- tables: shop
CREATE VIEW big AS SELECT customer_id, id, amount FROM orders WHERE amount > 100;
CREATE VIEW known (who, name) AS SELECT customer_id, name FROM customers;
CREATE VIEW both_ AS SELECT b.id, k.who AS customer FROM big b JOIN known k ON b.customer_id = k.who;
----
-- a filter on a view prunes, 1
SELECT * FROM big WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, amount
  filter: amount > 100
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a filter on a view prunes, 2
SELECT * FROM known WHERE who = 'C2'
/*
execution: local on 1 of 3 members
tree: customers: (p128)
scan customers: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name
serving: yes
*/
----
-- a filter on a view prunes, 3
SELECT id FROM both_ WHERE customer = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, amount
  filter: amount > 100
scan customers: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name
co-located: orders, customers
serving: no, it does not find the rows that it joins by their keys
*/
----
-- each mention is pruned for itself
SELECT id FROM big WHERE customer_id = 'C1' UNION ALL SELECT id FROM big WHERE customer_id = 'C2'
/*
execution: distributed on 2 of 3 members
tree: orders: (p262); orders: (p128)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, amount
  filter: amount > 100
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, amount
  filter: amount > 100
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join orders: at the members over orders, orders, to the coordinator
  final: at the coordinator over x0
*/
----
-- errors in a statement over views have the users positions
SELECT 1 FROM big b WHERE b.id = 3 AND
  nope = 4
/*
ProgrammingError: view 'big' cannot be read: table 'orders' has other columns than when it was made; CREATE OR REPLACE it (line 1, column 15)
  SELECT 1 FROM big b WHERE b.id = 3 AND
                ^^^
*/
