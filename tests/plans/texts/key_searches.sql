-- When a search by key leaves nothing for WHERE to do.
-- tables: shop
CREATE TABLE sparse (a INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a) PARTITIONS 4;
----
-- decided by the key, 1
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1
on several members:
  scan orders: SELECT "customer_id", "priority" FROM s0 WHERE ("customer_id" = $1)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1
*/
----
-- decided by the key, 2
-- parameters: 'C2', 7
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
*/
----
-- decided by the key, 3
-- show: texts
SELECT priority FROM orders WHERE id = 7 AND 'C2' = customer_id
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE id = 7 AND 'C2' = customer_id
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("id" = 7) AND ('C2' = "customer_id")
  final: SELECT priority FROM s0 AS "orders" WHERE id = 7 AND 'C2' = customer_id
*/
----
-- decided by the key, 4
-- parameters: 'C2', 7
-- show: texts
SELECT priority FROM orders WHERE (customer_id = $1) AND id = $2
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE (customer_id = $1) AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE (customer_id = $1) AND id = $2
*/
----
-- decided by the key, 5
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > 3
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" > 3)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > 3
*/
----
-- decided by the key, 6
-- parameters: 'C2', 3, 5
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id BETWEEN ? AND ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id BETWEEN $2 AND $3
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" >= $2) AND ("id" <= $3)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id BETWEEN $2 AND $3
*/
----
-- decided by the key, 7
-- parameters: 'C2', 3
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id >= ? AND 5 > id
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id >= $2 AND 5 > id
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" >= $2) AND (5 > "id")
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id >= $2 AND 5 > id
*/
----
-- decided by the key, 8
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id > ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id > $1
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" > $1)
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- decided by the key, 9
-- show: texts
SELECT priority FROM orders WHERE customer_id >= 'C2' AND customer_id < 'C3'
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority), found by its key alone
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id >= 'C2' AND customer_id < 'C3'
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" >= 'C2') AND (t1."customer_id" < 'C3')
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 1
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND priority = 'high'
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND priority = 'high'
on several members:
  scan orders: SELECT "customer_id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("priority" = 'high')
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND priority = 'high'
*/
----
-- left to WHERE, 2
-- parameters: 'C2', 'C3'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND customer_id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND customer_id = $2
on several members:
  scan orders: SELECT "customer_id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("customer_id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND customer_id = $2
*/
----
-- left to WHERE, 3
-- parameters: 'C2', 3
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id > ? AND id > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > $2 AND id > 3
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" > $2) AND ("id" > 3)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > $2 AND id > 3
*/
----
-- left to WHERE, 4
-- parameters: 'C2', 3
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id > ? AND id BETWEEN 1 AND 9
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > $2 AND id BETWEEN 1 AND 9
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" > $2) AND ("id" >= 1) AND ("id" <= 9)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > $2 AND id BETWEEN 1 AND 9
*/
----
-- left to WHERE, 5
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND NOT id > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND NOT id > 3
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND (NOT ("id" > 3))
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND NOT id > 3
*/
----
-- left to WHERE, 6
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id > 3 AND amount > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority, amount)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > 3 AND amount > 3
on several members:
  scan orders: SELECT "customer_id", "id", "priority", "amount" FROM s0 WHERE ("customer_id" = $1) AND ("id" > 3) AND ("amount" > 3)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > 3 AND amount > 3
*/
----
-- left to WHERE, 7
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id > amount
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority, amount)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > amount
on several members:
  scan orders: SELECT "customer_id", "id", "priority", "amount" FROM s0 WHERE ("customer_id" = $1) AND ("id" > "amount")
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id > amount
*/
----
-- left to WHERE, 8
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id > ? AND id > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id > $1 AND id > 3
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" > $1) AND (t1."id" > 3)
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 9
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id IN (?, 'C1')
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id IN ($1, 'C1')
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" IN ($1, 'C1'))
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 10
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id + 1 > 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id + 1 > 3
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND (("id" + 1) > 3)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id + 1 > 3
*/
----
-- left to WHERE, 11
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? OR id = 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 OR id = 3
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE ((t1."customer_id" = $1) OR (t1."id" = 3)) AND ((t1."customer_id" = $1) OR (t1."id" = 3))
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 12
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE NOT customer_id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE NOT customer_id = $1
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (NOT (t1."customer_id" = $1))
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 13
-- show: texts
SELECT priority FROM orders WHERE id = 3
/*
on one member, by Arrow:
  s0 is orders(id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE id = 3
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."id" = 3)
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 14
-- parameters: 'C2'
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND true
/*
on one member, by DuckDB:
  s0 is orders(customer_id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND true
on several members:
  scan orders: SELECT "customer_id", "priority" FROM s0 WHERE ("customer_id" = $1)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND true
*/
----
-- left to WHERE, 15
-- show: texts
SELECT priority FROM orders WHERE customer_id = priority AND id = 3
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = priority AND id = 3
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" = t1."priority") AND (t1."id" = 3)
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, 16
-- show: texts
SELECT priority FROM orders WHERE true
/*
on one member, by DuckDB:
  s0 is orders(priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE true
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE true
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, for the value is no key as it stands, 1
-- parameters: 'C2', 7.0
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
*/
----
-- left to WHERE, for the value is no key as it stands, 2
-- parameters: 'C2', None
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
*/
----
-- left to WHERE, for the value is no key as it stands, 3
-- parameters: b'C2', 7
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by DuckDB:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT t1."priority" FROM "s0" AS t1 WHERE (t1."customer_id" = $1) AND (t1."id" = $2)
  final: SELECT t1."priority" FROM x0 AS t1
*/
----
-- left to WHERE, for the value is no key as it stands, 4
-- parameters: 'C2', 1180591620717411303424
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
*/
----
-- left to WHERE, for the value is no key as it stands, 5
-- parameters: 'C2', True
-- show: texts
SELECT priority FROM orders WHERE customer_id = ? AND id = ?
/*
on one member, by Arrow:
  s0 is orders(customer_id, id, priority)
  answers (priority VARCHAR)
  SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
on several members:
  scan orders: SELECT "customer_id", "id", "priority" FROM s0 WHERE ("customer_id" = $1) AND ("id" = $2)
  final: SELECT priority FROM s0 AS "orders" WHERE customer_id = $1 AND id = $2
*/
----
-- a column behind a gap in the key is not left out
-- parameters: 1, 2
-- show: texts
SELECT b FROM sparse WHERE c = ? AND a = ?
/*
on one member, by Arrow:
  s0 is sparse(a, b, c)
  answers (b INTEGER)
  SELECT b FROM s0 AS "sparse" WHERE c = $1 AND a = $2
on several members:
  scan sparse: SELECT "a", "b", "c" FROM s0 WHERE ("c" = $1) AND ("a" = $2)
  final: SELECT b FROM s0 AS "sparse" WHERE c = $1 AND a = $2
*/
