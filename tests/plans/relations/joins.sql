-- What a filter on one side of a join says about the other.
-- tables: shop
----
-- each side is pruned by what is certainly applied to it: a filter on one side
SELECT count(*) FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: USING merges both sides
SELECT count(*) FROM orders o JOIN customers c USING (customer_id) WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: comma
SELECT count(*) FROM orders o, customers c WHERE o.customer_id = 'C2' AND c.customer_id = 'C3'
/*
execution: distributed on 2 of 3 members
tree: orders: (p128); customers: (p22)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p22]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: a filter in ON of an inner join
SELECT count(*) FROM orders o JOIN customers c ON o.id = 1 AND o.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: (p128); customers: all
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 1)
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: a filter in ON of an outer join
SELECT count(*) FROM orders o LEFT JOIN customers c ON o.customer_id = 'C2' AND c.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: (p128)
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: the preserved side
SELECT count(*) FROM orders o LEFT JOIN customers c USING (customer_id) WHERE o.customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: none
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 0 of 271 partitions
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: the NULL-producing side, NULLs refused
SELECT count(*) FROM orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: (p128)
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: the NULL-producing side, NULLs asked for
SELECT count(*) FROM orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id IS NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because customer_id IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy
  columns: customer_id, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: NULLs let through by OR
SELECT count(*) FROM orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id = 'C2' OR c.name IS NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because customer_id = 'C2' OR name IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy
  columns: customer_id, name, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: a merged column is that of the preserved side
SELECT count(*) FROM orders o LEFT JOIN customers c USING (customer_id) WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: none
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 0 of 271 partitions
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: full
SELECT count(*) FROM orders o FULL JOIN customers c ON o.id = c.score WHERE o.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: (p128); customers: all
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: semi
SELECT count(*) FROM orders o SEMI JOIN customers c USING (customer_id) WHERE o.customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: anti
SELECT count(*) FROM orders o ANTI JOIN customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128); customers: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
scan customers AS c: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
co-located: o, c
serving: yes
*/
----
-- each side is pruned by what is certainly applied to it: asof
SELECT count(*) FROM orders o ASOF JOIN customers c ON o.id >= c.score WHERE c.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below an ASOF JOIN that does not compare customer_id: join on customer_id, or filter inside the subquery
  columns: customer_id, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- each side is pruned by what is certainly applied to it: positional
SELECT count(*) FROM orders o POSITIONAL JOIN customers c WHERE o.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan o: at the members over o, to the coordinator
  x1 scan c: at the members over c, to the coordinator
  final: at the coordinator over x0, x1
*/
----
-- two scans of one table keep separate sets
SELECT id FROM orders WHERE customer_id = 'C1' UNION ALL SELECT id FROM orders WHERE customer_id = 'C2'
/*
execution: distributed on 2 of 3 members
tree: orders: (p262); orders: (p128)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join orders: at the members over orders, orders, to the coordinator
  final: at the coordinator over x0
*/
----
-- an unpruned scan keeps all while the other is pruned
SELECT count(*) FROM orders WHERE customer_id = 'C1' AND id IN (SELECT id FROM orders)
/*
execution: distributed on 3 of 3 members
tree: orders: (p262); orders: all
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan orders: at the members over orders, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a replicated table is anywhere
SELECT * FROM airlines WHERE code = 'AA' OR name = 'x'
/*
execution: local on 1 of 3 members
tree: airlines: any
scan airlines: replicated, every member has it
  columns: code, name
  filter: (code = 'AA' OR name = 'x')
serving: no, it does not search airlines by its key: compare the first columns of (code) with values
*/
----
-- an outer name is not the scans
SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE o.customer_id = 'C2' AND c.name = 'x')
/*
execution: distributed on 3 of 3 members
tree: orders: (p128); customers: all
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, name
  filter: name = 'x'
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
