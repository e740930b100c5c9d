-- Equal integers of several widths: a condition holds for each of them, and TRY_CAST makes NULL of some values of the wide ones alone.
CREATE TABLE wide_keys (k BIGINT PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 16;
CREATE TABLE other_keys (k UINTEGER PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 16;
CREATE TABLE small_keys (k SMALLINT PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 16;
INSERT INTO wide_keys VALUES (5, 1), (-5, 2), (3000000000, 3);
INSERT INTO other_keys VALUES (5, 4), (3000000000, 5);
INSERT INTO small_keys VALUES (5, 6), (-5, 7)
----
-- TRY_CAST above a union is no column
SELECT v FROM (SELECT * FROM wide_keys UNION ALL SELECT * FROM other_keys) WHERE TRY_CAST(k AS INTEGER) IS NULL
/*
tree: wide_keys: all; other_keys: all
scan wide_keys: all 16 partitions
  because k is cast in TRY_CAST(k AS INTEGER) IS NULL: compare the bare column with a BIGINT
  columns: k, v; about 0 rows
  filter: TRY_CAST(k AS INTEGER) IS NULL
scan other_keys: all 16 partitions
  because k is cast in TRY_CAST(k AS INTEGER) IS NULL: compare the bare column with a UINTEGER
  columns: k, v; about 0 rows
  filter: TRY_CAST(k AS INTEGER) IS NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join wide_keys: at the members over wide_keys, other_keys, to the coordinator
  final: at the coordinator over x0
*/
----
-- TRY_CAST of an equal column is not the column
SELECT w.v FROM wide_keys w JOIN other_keys o ON w.k = o.k WHERE TRY_CAST(w.k AS INTEGER) IS NULL
/*
tree: wide_keys: all; other_keys: all
scan wide_keys AS w: all 16 partitions
  because k = o.k only joins the key: compare either side with a value; k is cast in TRY_CAST(k AS INTEGER) IS NULL: compare the bare column with a BIGINT
  columns: k, v; about 0 rows
  filter: TRY_CAST(k AS INTEGER) IS NULL
scan other_keys AS o: all 16 partitions
  because w.k = k only joins the key: compare either side with a value; k is cast in TRY_CAST(k AS INTEGER) IS NULL: compare the bare column with a UINTEGER
  columns: k, v; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan w: at the members over w, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- arithmetic above a union
SELECT v FROM (SELECT * FROM wide_keys UNION ALL SELECT * FROM small_keys) WHERE k * 100000 = 500000
/*
tree: wide_keys: (p5); small_keys: (p5)
scan wide_keys: 1 of 16 partitions [p5]
  partitioning key (k): (5)
  primary key bounds: (5)
  columns: k, v; about 0 rows
  filter: k * 100000 = 500000
scan small_keys: 1 of 16 partitions [p5]
  partitioning key (k): (5)
  primary key bounds: (5)
  columns: k, v; about 0 rows
  filter: k * 100000 = 500000
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a fraction beside a narrower column
SELECT w.v FROM wide_keys w JOIN small_keys s ON w.k = s.k WHERE s.k < 4.5
/*
tree: wide_keys: all; small_keys: all
scan wide_keys AS w: all 16 partitions
  because k = s.k only joins the key: compare either side with a value
  primary key bounds: key <= (4)
  columns: k, v; about 3 rows
scan small_keys AS s: all 16 partitions
  because w.k = k only joins the key: compare either side with a value
  primary key bounds: key <= (4)
  columns: k, v; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan s: at the members over s, to every member
  x1 join w: at the members over w, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- absolute values across a join, to a wider column
SELECT w.v FROM wide_keys w JOIN small_keys s ON w.k = s.k WHERE abs(s.k) = 5
/*
tree: wide_keys: (p5 | p12); small_keys: (p5 | p12)
scan wide_keys AS w: 2 of 16 partitions [p5, p12]
  partitioning key (k): (-5), (5)
  primary key bounds: (-5) <= key <= (5), in 2 ranges
  columns: k, v; about 3 rows
scan small_keys AS s: 2 of 16 partitions [p5, p12]
  partitioning key (k): (-5), (5)
  primary key bounds: (-5) <= key <= (5), in 2 ranges
  columns: k, v; about 0 rows
  filter: abs(k) = 5
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan s: at the members over s, to every member
  x1 join w: at the members over w, x0, to the coordinator
  final: at the coordinator over x1
*/
