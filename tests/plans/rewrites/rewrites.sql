-- Rewrites of subqueries (IEP-24, "Query Rewrite"): the seed's tables emp and dept, with dept partitioned by its id and emp by its department.
CREATE TABLE rew_dept (id INTEGER PRIMARY KEY, name VARCHAR, state VARCHAR) PARTITION BY HASH (id) PARTITIONS 8;
CREATE TABLE rew_emp (dept_id INTEGER, id INTEGER, name VARCHAR, salary INTEGER, PRIMARY KEY (dept_id, id)) PARTITION BY HASH (dept_id) PARTITIONS 8;
INSERT INTO rew_dept VALUES (1, 'db', 'CA'), (2, 'net', 'NY'), (3, 'os', 'CA'), (4, 'empty', NULL);
INSERT INTO rew_emp VALUES (1, 1, 'Ada', 2000), (1, 2, 'Grace', 900), (2, 3, 'Edsger', 1500), (3, 4, 'Barbara', 3000), (3, 5, NULL, NULL), (9, 6, 'Kurt', 1200)
----
-- example 1 of the seed keeps rows without a match
-- partitions=16
SELECT emp.name, (SELECT dept.name FROM rew_dept dept WHERE emp.dept_id = dept.id) AS dept FROM rew_emp emp WHERE emp.salary > 1000 ORDER BY emp.name
/*
tree: rew_dept: all; rew_emp: all
scan rew_dept AS dept: all 8 partitions
  because emp.dept_id = id only joins the key: compare either side with a value
  columns: id, name; about 4 rows
scan rew_emp AS emp: all 8 partitions
  because no predicate on the partition key dept_id: compare it with values
  columns: dept_id, id, name, salary; about 6 rows
  filter: salary > 1000
co-located: dept, emp
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join emp: at the members over emp, dept, to the coordinator
  final: at the coordinator over x0
*/
----
-- scalar subquery to left join
-- partitions=2
SELECT emp.name, (SELECT dept.name FROM rew_dept dept WHERE emp.dept_id = dept.id) AS dept FROM rew_emp emp WHERE emp.dept_id = 9
/*
tree: rew_dept: (p4); rew_emp: (p4)
scan rew_dept AS dept: 1 of 8 partitions [p4]
  partitioning key (id): (9)
  primary key bounds: (9)
  columns: id, name; about 4 rows
scan rew_emp AS emp: 1 of 8 partitions [p4]
  partitioning key (dept_id): (9)
  primary key bounds: (9)
  columns: dept_id, id, name; about 2 rows
co-located: dept, emp
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- scalar aggregate
-- partitions=2
SELECT d.name, (SELECT count(*) FROM rew_emp e WHERE e.dept_id = d.id) AS n FROM rew_dept d WHERE d.id = 3
/*
tree: rew_emp: (p3); rew_dept: (p3)
scan rew_emp AS e: 1 of 8 partitions [p3]
  partitioning key (dept_id): (3)
  primary key bounds: (3)
  columns: dept_id, id, name; about 6 rows
scan rew_dept AS d: 1 of 8 partitions [p3]
  partitioning key (id): (3)
  primary key bounds: (3)
  columns: id, name; about 1 row
co-located: e, d
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- example 2 of the seed: derived table to join
-- partitions=2
SELECT emp.name, d.name FROM rew_emp emp, (SELECT * FROM rew_dept WHERE id = 1) d WHERE emp.dept_id = d.id ORDER BY emp.name
/*
tree: rew_emp: (p2); rew_dept: (p2)
scan rew_emp AS emp: 1 of 8 partitions [p2]
  partitioning key (dept_id): (1)
  primary key bounds: (1)
  columns: dept_id, id, name; about 6 rows
scan rew_dept: 1 of 8 partitions [p2]
  partitioning key (id): (1)
  primary key bounds: (1)
  columns: id, name, state; about 1 row
co-located: emp, rew_dept
serving: yes
*/
----
-- example 3 of the seed: table pullout
-- partitions=2
SELECT emp.name FROM rew_emp emp WHERE emp.dept_id IN (SELECT id FROM rew_dept WHERE state = 'CA' AND id < 2 AND id > 0) ORDER BY emp.name
/*
tree: rew_emp: (p2); rew_dept: (p2)
scan rew_emp AS emp: 1 of 8 partitions [p2]
  primary key bounds: (0) < key < (2)
  columns: dept_id, id, name; about 6 rows
scan rew_dept: 1 of 8 partitions [p2]
  primary key bounds: (0) < key < (2)
  columns: id, name, state; about 1 row
  filter: state = 'CA'
co-located: emp, rew_dept
serving: no, it does not find the rows that it joins by their keys
*/
----
-- IN from outside in
-- partitions=2
SELECT emp.name FROM rew_emp emp WHERE dept_id = 3 AND emp.dept_id IN (SELECT id FROM rew_dept) ORDER BY emp.name
/*
tree: rew_emp: (p3); rew_dept: (p3)
scan rew_emp AS emp: 1 of 8 partitions [p3]
  partitioning key (dept_id): (3)
  primary key bounds: (3)
  columns: dept_id, id, name; about 2 rows
scan rew_dept: 1 of 8 partitions [p3]
  partitioning key (id): (3)
  primary key bounds: (3)
  columns: id, name; about 4 rows
co-located: emp, rew_dept
serving: yes
*/
----
-- example 4 of the seed: IN over GROUP BY
-- partitions=2
SELECT dept.name FROM rew_dept dept WHERE dept.id IN (SELECT emp.dept_id FROM rew_emp emp GROUP BY emp.dept_id HAVING count(*) > 1 AND emp.dept_id = 3)
/*
tree: rew_dept: (p3); rew_emp: (p3)
scan rew_dept AS dept: 1 of 8 partitions [p3]
  partitioning key (id): (3)
  primary key bounds: (3)
  columns: id, name; about 4 rows
scan rew_emp AS emp: 1 of 8 partitions [p3]
  partitioning key (dept_id): (3)
  primary key bounds: (3)
  columns: dept_id, id, name; about 6 rows
co-located: dept, emp
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- IN to EXISTS
-- partitions=2
SELECT emp.name FROM rew_emp emp WHERE dept_id = 3 AND dept_id IN (SELECT id FROM rew_dept d WHERE d.name <> emp.name)
/*
tree: rew_emp: (p3); rew_dept: (p3)
scan rew_emp AS emp: 1 of 8 partitions [p3]
  partitioning key (dept_id): (3)
  primary key bounds: (3)
  columns: dept_id, id, name; about 2 rows
scan rew_dept AS d: 1 of 8 partitions [p3]
  partitioning key (id): (3)
  primary key bounds: (3)
  columns: id, name; about 4 rows
co-located: emp, d
serving: yes
*/
----
-- NOT IN of keys
-- partitions=2
SELECT emp.name FROM rew_emp emp WHERE dept_id = 9 AND dept_id NOT IN (SELECT id FROM rew_dept)
/*
tree: rew_emp: (p4); rew_dept: (p4)
scan rew_emp AS emp: 1 of 8 partitions [p4]
  partitioning key (dept_id): (9)
  primary key bounds: (9)
  columns: dept_id, id, name; about 2 rows
scan rew_dept: 1 of 8 partitions [p4]
  partitioning key (id): (9)
  primary key bounds: (9)
  columns: id, name; about 4 rows
co-located: emp, rew_dept
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- NOT IN of what may be NULL needs every row
-- partitions=9
SELECT d.name FROM rew_dept d WHERE id = 4 AND d.id NOT IN (SELECT salary FROM rew_emp)
/*
tree: rew_dept: (p3); rew_emp: all
scan rew_dept AS d: 1 of 8 partitions [p3]
  partitioning key (id): (4)
  primary key bounds: (4)
  columns: id, name; about 1 row
scan rew_emp: all 8 partitions
  because no predicate on the partition key dept_id: compare it with values
  columns: id, name, salary; about 6 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan rew_emp: at the members over rew_emp, to every member
  x1 join d: at the members over d, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- EXISTS to semi-join
-- partitions=2
SELECT d.name FROM rew_dept d WHERE EXISTS (SELECT 1 FROM rew_emp e WHERE e.dept_id = d.id AND e.dept_id = 1)
/*
tree: rew_dept: (p2); rew_emp: (p2)
scan rew_dept AS d: 1 of 8 partitions [p2]
  partitioning key (id): (1)
  primary key bounds: (1)
  columns: id, name; about 4 rows
scan rew_emp AS e: 1 of 8 partitions [p2]
  partitioning key (dept_id): (1)
  primary key bounds: (1)
  columns: dept_id, id, name; about 2 rows
co-located: d, e
serving: yes
*/
----
-- NOT EXISTS to anti-join
-- partitions=2
SELECT d.name FROM rew_dept d WHERE d.id = 4 AND NOT EXISTS (SELECT 1 FROM rew_emp e WHERE e.dept_id = d.id)
/*
tree: rew_dept: (p3); rew_emp: (p3)
scan rew_dept AS d: 1 of 8 partitions [p3]
  partitioning key (id): (4)
  primary key bounds: (4)
  columns: id, name; about 1 row
scan rew_emp AS e: 1 of 8 partitions [p3]
  partitioning key (dept_id): (4)
  primary key bounds: (4)
  columns: dept_id, id, name; about 6 rows
co-located: d, e
serving: yes
*/
----
-- NOT EXISTS says nothing about the outer side
-- partitions=9
SELECT d.name FROM rew_dept d WHERE NOT EXISTS (SELECT 1 FROM rew_emp e WHERE e.dept_id = d.id AND e.dept_id = 1) ORDER BY d.name
/*
tree: rew_dept: all; rew_emp: (p2)
scan rew_dept AS d: all 8 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, name; about 4 rows
scan rew_emp AS e: 1 of 8 partitions [p2]
  partitioning key (dept_id): (1)
  primary key bounds: (1)
  columns: dept_id, id, name; about 2 rows
co-located: d, e
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join d: at the members over d, e, to the coordinator
  final: at the coordinator over x0
*/
----
-- EXISTS over an aggregate is always true
-- partitions=8
SELECT d.name FROM rew_dept d WHERE EXISTS (SELECT count(*) FROM rew_emp e WHERE e.dept_id = d.id AND e.dept_id = 1) ORDER BY d.name
/*
tree: rew_dept: all; rew_emp: none
scan rew_dept AS d: all 8 partitions
  because id = d.id only joins the key: compare either side with a value
  columns: id, name; about 4 rows
scan rew_emp AS e: 0 of 8 partitions
co-located: d, e
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join d: at the members over d, e, to the coordinator
  final: at the coordinator over x0
*/
----
-- constant propagation
-- partitions=1
SELECT name FROM rew_emp WHERE dept_id = id AND id = 1
/*
tree: rew_emp: (p2)
scan rew_emp: 1 of 8 partitions [p2]
  partitioning key (dept_id): (1)
  primary key bounds: (1, 1)
  columns: dept_id, id, name; about 0 rows
  filter: dept_id = id
serving: yes
*/
