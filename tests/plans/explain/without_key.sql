-- Tables without a primary key: the hidden row id is in no text of the user, and partitioning columns prune.
CREATE TABLE spread (a INT, b VARCHAR) PARTITION BY RANDOM PARTITIONS 5;
CREATE TABLE hashed (a INT, b VARCHAR, c INT) PARTITION BY HASH (b) PARTITIONS 4, RANGE (c) SPLIT AT (10);
----
-- rows at random are all read
SELECT * FROM spread WHERE a = 1
/*
execution: distributed on 3 of 3 members
tree: spread: all
scan spread: all 5 partitions
  because the rows are spread at random: create the table with PARTITION BY HASH (columns) to prune by them
  columns: a, b
  filter: a = 1
serving: no, spread has no primary key, and its rows are spread at random
when distributed: two-stage
*/
----
-- a partitioning column leaves partitions out, and orders the rows in one
SELECT a, count(*) FROM hashed WHERE b = 'x' AND c = 3 GROUP BY a
/*
execution: local on 1 of 3 members
tree: hashed: (p1)
scan hashed: 1 of 8 partitions [p1]
  partitioning key (b, c): ('x', 3)
  primary key bounds: ('x', 3)
  columns: a, b, c
serving: yes
*/
----
-- a range of one is left out by another column
SELECT * FROM hashed WHERE c < 5
/*
execution: distributed on 3 of 3 members
tree: hashed: (p0 | p1 | p2 | p3)
scan hashed: 4 of 8 partitions [p0, p1, p2, p3]
  columns: a, b, c
  filter: c < 5
serving: no, it does not search hashed by its key: compare the first columns of (b, c) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- rows of an insert go anywhere
INSERT INTO spread VALUES (1, 'x')
/*
INSERT of 1 row into spread
execution: distributed on 3 of 3 members
tree: spread: all
because its rows are spread at random when it runs
serving: yes
backups: none
written: to one partition by its primary and its backups, to several as a load that is staged on all copies and published at once by the controller
*/
----
-- rows of an insert go where their columns say
INSERT INTO hashed VALUES (1, 'x', 3), (1, 'x', 3)
/*
INSERT of 2 rows into hashed
execution: local on 1 of 3 members
tree: hashed: (p1)
rows go to 1 of 8 partitions [p1]
serving: yes
backups: none
written: by the primary, then by its backups
*/
----
-- an update in place
UPDATE hashed SET a = a + 1 WHERE b = 'x' AND c = 3
/*
UPDATE of hashed
execution: local on 1 of 3 members
tree: hashed: (p1)
scan hashed: 1 of 8 partitions [p1]
  partitioning key (b, c): ('x', 3)
  primary key bounds: ('x', 3)
  columns: a, b, c, _secateur_row_id
serving: no, hashed has no primary key, by which one row is changed
backups: none
written: by the primary, then by its backups
*/
----
-- an update of a partitioning column moves rows
UPDATE hashed SET c = c + 10 WHERE b = 'x' AND c = 3
/*
change of hashed, computed by one member from:
execution: local on 1 of 3 members
tree: hashed: (p1)
scan hashed: 1 of 8 partitions [p1]
  partitioning key (b, c): ('x', 3)
  primary key bounds: ('x', 3)
  columns: a, b, c, _secateur_row_id
serving: no, its rows are computed by a query
written: staged on all copies, then published at once by the controller
*/
----
-- a delete
DELETE FROM spread WHERE a = 1
/*
DELETE of spread
execution: distributed on 3 of 3 members
tree: spread: all
scan spread: all 5 partitions
  because the rows are spread at random: create the table with PARTITION BY HASH (columns) to prune by them
  columns: a, _secateur_row_id
  filter: a = 1
serving: no, spread has no primary key, by which one row is changed
backups: none
written: staged on all copies, then published at once by the controller
*/
----
-- a distinct row is one of the columns that users see
SELECT DISTINCT * FROM spread
/*
execution: distributed on 3 of 3 members
tree: spread: all
scan spread: all 5 partitions
  because the rows are spread at random: create the table with PARTITION BY HASH (columns) to prune by them
  columns: a, b
serving: no, spread has no primary key, and its rows are spread at random
when distributed: two-stage
*/
----
-- a join by the partitioning columns stays where the rows are
SELECT count(*) FROM hashed AS x JOIN hashed AS y USING (b, c)
/*
execution: distributed on 3 of 3 members
tree: hashed: all; hashed: all
scan hashed AS x: all 8 partitions
  because b = y.b only joins the key: compare either side with a value; c = y.c only joins the key: compare either side with a value
  columns: b, c
scan hashed AS y: all 8 partitions
  because x.b = b only joins the key: compare either side with a value; x.c = c only joins the key: compare either side with a value
  columns: b, c
co-located: x, y
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join x: at the members over x, y, to the coordinator
  final: at the coordinator over x0
*/
