SELECT count(*) FROM t b WHERE b = 'a'
SELECT count(*) FROM t a WHERE a = 1
SELECT count(*) FROM t b WHERE b.b = 'a'
SELECT count(*) FROM t AS "x.y" WHERE "x.y".a = 1
SELECT a+1 AS a, b FROM t WHERE a = 1
SELECT 1 AS a, b FROM t WHERE a = 2
SELECT v AS q FROM t WHERE q = 10
SELECT b AS a FROM t WHERE a = 1
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a = '1')
SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u WHERE x.a = 1)
SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u WHERE c = DATE '2024-01-01' AND v = 10)
SELECT count(*) FROM t t WHERE EXISTS (SELECT 1 FROM u t WHERE t.a = '1')
SELECT count(*) FROM t WHERE a IN (SELECT a FROM t WHERE a = 1)
SELECT count(*) FROM t WHERE a IN (SELECT t.a FROM u WHERE t.a = 1)
SELECT count(*) FROM t WHERE (SELECT count(*) FROM u WHERE t.a = 1) > 0
SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.a = t.a AND y.b = 'a' AND y.a = 1)
WITH t AS (SELECT * FROM t WHERE a = 1) SELECT count(*) FROM t
WITH t AS (SELECT * FROM t WHERE a = 1) SELECT count(*) FROM t WHERE a = 2
WITH x AS (SELECT * FROM t), t AS (SELECT * FROM u) SELECT count(*) FROM t, x WHERE t.a = '1' AND x.a=1
WITH T AS (SELECT 1 AS a) SELECT count(*) FROM t WHERE a = 2
WITH "T" AS (SELECT 1 AS a) SELECT count(*) FROM t WHERE a = 1
SELECT (WITH t AS (SELECT 5 AS a) SELECT a FROM t), count(*) FROM t WHERE a = 1
SELECT count(*) FROM t, (SELECT a AS z FROM t WHERE a = 1) q WHERE a = z
SELECT count(*) FROM t WHERE b IN (SELECT b FROM small r) AND a = 1
SELECT DISTINCT ON (b) b, a FROM t WHERE b = 'a' ORDER BY b, a
FROM t WHERE a = 1
FROM t SELECT a WHERE a = 1
SELECT x.* FROM t x WHERE x.a = 1
SELECT t FROM t WHERE a = 1 AND b='a'
SELECT COLUMNS('a|b') FROM t WHERE a = 1
SELECT count(*) FROM t WHERE COLUMNS('a|v') = 1
SELECT * EXCLUDE (c) FROM t WHERE a = 1
SELECT * REPLACE (a+1 AS a) FROM t WHERE a = 1
SELECT * RENAME (a AS z) FROM t WHERE a = 1
SELECT * FROM t x(p, q) WHERE p = 1
SELECT * FROM t x(b, a) WHERE a = 'a'
SELECT * FROM t x(b, a) WHERE x.b = 1
SELECT * FROM ((SELECT * FROM t)) WHERE a = 1
SELECT count(*) FILTER (WHERE a = 1) FROM t
SELECT sum(v) FROM t WHERE a = 1 AND (SELECT max(a) FROM t) = 7
SELECT max(a) FROM t WHERE a = (SELECT max(a) FROM t)
SELECT max(a) FROM t WHERE a = (SELECT 1)
SELECT count(*) FROM t WHERE (a, b) = (1, 'a')
SELECT count(*) FROM t WHERE (a, b) IN ((1, 'a'), (2, 'b'))
SELECT count(*) FROM t WHERE (a, b) > (1, 'a')
SELECT count(*) FROM t WHERE ROW(a, b) = ROW(1, 'a')
SELECT count(*) FROM t WHERE struct_pack(x := a).x = 1
SELECT count(*) FROM t WHERE {'a': 5}.a = 5 AND a = 1
SELECT count(*) FROM t WHERE len(list_filter([1,2], lambda a : a = 1)) = 1
SELECT list_transform([1], lambda a: a = 1) FROM t WHERE a = 2 AND b = 'a'
SELECT [a for a in [1,2] if a = 1], b FROM t WHERE a = 3 AND b='a'
SELECT * FROM t PIVOT (sum(v) FOR b IN ('a') GROUP BY a) WHERE a = 1
SELECT * FROM t TABLESAMPLE 100% WHERE a = 1
SELECT count(*) FROM t WHERE a = 1 /* AND */ OR a = 2
select count(*) from T where T.A = 1 and "B" = 'a'
SELECT count(*) FROM t WHERE t."a" = 1
SELECT 1 WHERE FALSE
SELECT count(*) FROM t WHERE FALSE
SELECT count(*), max(a) FROM t WHERE a = NULL
SELECT a, count(*) FROM t WHERE a = NULL GROUP BY a
SELECT count(*) FROM t WHERE a IS NULL
SELECT count(*) FROM t WHERE a IS NOT NULL AND b='a'
SELECT count(*) FROM t WHERE a IS NULL OR b = 'a'
