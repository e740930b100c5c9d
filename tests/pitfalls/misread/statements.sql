-- Statements that try to be misread, one a line, over the tables of test_names_and_hidden_aggregates.py.
SELECT * FROM (SELECT a FROM t UNION ALL SELECT k FROM n) q WHERE typeof(a) = 'BIGINT'
SELECT * FROM (SELECT a FROM t UNION ALL SELECT k FROM n) q WHERE bit_count(a) = 64
SELECT * FROM (SELECT s FROM n UNION ALL SELECT k FROM n) q WHERE s * 100 > 200
SELECT * FROM t FULL JOIN n ON FALSE
SELECT a FROM t JOIN (SELECT k AS a FROM n) x USING (a) WHERE typeof(a) = 'INTEGER'
SELECT a FROM (SELECT k AS a FROM n) x RIGHT JOIN t USING (a) WHERE typeof(a) = 'INTEGER'
SELECT x, y, z FROM (SELECT COLUMNS('[ab]')::VARCHAR, a FROM t) q(x, y, z) WHERE y = 'a'
SELECT * FROM (SELECT COLUMNS('[av]') + 0, a FROM t) q(x, y, z) WHERE y = 1
SELECT * FROM (SELECT CAST(COLUMNS('[av]') AS BIGINT), a FROM t UNION ALL SELECT a, v, a FROM u) q(x, y, z) WHERE y = 1
SELECT * FROM (SELECT unnest({'p': v, 'q': v}), a FROM t) q(x, y, z) WHERE y = 1
SELECT * FROM (SELECT coalesce(*COLUMNS('[av]')), a, v FROM t) q(x, y, z) WHERE y = 1
SELECT * FROM (SELECT *, a FROM n, t) q(x, y, z) WHERE y = 1
WITH w(x, v, a) AS (SELECT b, a, v FROM t) SELECT * FROM w AS z(y) WHERE a = 1
WITH w(x, v, a) AS (SELECT b, a, v FROM t) SELECT * FROM w AS z(y) WHERE v = 1
WITH w(x, v, a) AS (SELECT b, a, v FROM t) SELECT * FROM w WHERE a = 1
SELECT * FROM t AS x(v) WHERE v = 1
SELECT * FROM t AS x(v) WHERE x.v = 1
SELECT * FROM (SELECT a, v, a AS k FROM t) q(z, z) WHERE z = 1
SELECT * FROM (SELECT * FROM t x JOIN u y USING (a), t z) q(c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11) WHERE c8 = 1
SELECT count(*) FROM t WHERE EXISTS (SELECT * EXCLUDE (b) REPLACE (count(*) AS a) FROM small u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT DISTINCT ON (count(*)) 1 FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT row_number() OVER w FROM u WHERE u.a = t.a AND u.a = 1 WINDOW w AS (ORDER BY count(*)))
SELECT count(*) FROM t WHERE EXISTS (SELECT (SELECT max(u.v)) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT (SELECT max(u.v)) FROM u
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 ORDER BY (SELECT max(u.v)))
SELECT count(*) FROM t JOIN (SELECT a FROM t WHERE a=1 UNION SELECT a FROM t WHERE a = 2 INTERSECT SELECT a FROM t WHERE a = 2) q ON t.a = q.a
SELECT count(*) FROM t JOIN (SELECT a FROM t WHERE a=1 EXCEPT SELECT a FROM t WHERE a = 2 UNION SELECT a FROM t WHERE a = 2) q ON t.a = q.a
SELECT count(*) FROM t JOIN (SELECT a FROM t WHERE a=1 INTERSECT SELECT a FROM t WHERE a = 1 UNION SELECT a FROM t WHERE a = 2) q ON t.a = q.a
SELECT count(*) FROM t JOIN (SELECT a FROM t WHERE a=1 UNION ALL SELECT a FROM t WHERE a = 2 EXCEPT SELECT a FROM t WHERE a = 1) q ON t.a = q.a
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE len([x for x in [1,2,3] if x > 1]) = 2
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE len(list_filter([1,2,3], lambda x: x > 1)) = 2
SELECT v AS a, a AS q FROM t WHERE q = 1
SELECT * FROM (SELECT v AS a, a AS q FROM t) WHERE q = 1
SELECT x: a, y: b FROM t WHERE x = 1
SELECT * FROM x: t WHERE x.a = 1
SELECT * FROM t, u y LEFT JOIN n ON t.a = n.k WHERE n.k = 1
SELECT y.* FROM t x JOIN u y USING (a) WHERE y.a = 1
SELECT * FROM (SELECT y.* FROM t x FULL JOIN u y USING (a)) q(p,q,r,s) WHERE p = 1
SELECT * FROM (SELECT x.*, y.* FROM t x FULL JOIN u y USING (a)) q(p,q,r,s,t,u,v,w) WHERE t = 1
SELECT * FROM (SELECT * FROM t x RIGHT JOIN u y USING (a,b)) q(p,q,r,s,t,u) WHERE p = 1 AND q = 'a'
SELECT * FROM (SELECT * FROM t x FULL JOIN u y USING (b,a)) q(p,q,r,s,t,u) WHERE p = 1 AND q = 'a'
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE COLUMNS('x') > 1 OR x = -1
SELECT x.a, x.v, y.v FROM t x JOIN u y ON x.b = y.b WHERE COLUMNS('v') > 1 OR x.a = 1
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE struct_pack(x := 1) = {'x': 1} AND x = 1
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE struct_pack(x := 1).x = 1
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE struct_pack(x := x).x = 1
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE {'x': x}.x = 1
SELECT * FROM (SELECT a AS x, v FROM t) q WHERE q.x = 1 AND typeof(q) LIKE '%x%'
SELECT * FROM (SELECT DISTINCT ON (2) COLUMNS('[bc]'), a FROM t ORDER BY b, c, a) q(p, q, r) WHERE r = 1
SELECT a FROM t x JOIN u y USING (a), t z WHERE a = 1
SELECT * FROM (SELECT DISTINCT ON (a, row_number() OVER (PARTITION BY b ORDER BY a)) a, b, c FROM t ORDER BY a, b, c) WHERE a = 2
SELECT count(*) FROM t WHERE a IN (SELECT DISTINCT ON (a, lower(b)) a FROM u)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t, u y LEFT JOIN n ON t.a = n.k WHERE n.k = 1)
SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM (SELECT 3 AS a) u, t y LEFT JOIN n ON u.a = n.k WHERE n.k = 3)
SELECT count(*) FROM t WHERE t.a = 2 AND EXISTS (SELECT 1 FROM (SELECT 3 AS a) t, u y LEFT JOIN n ON t.a = n.k WHERE n.k IS NOT NULL)
SELECT DISTINCT ON (a, row_number() OVER (PARTITION BY b ORDER BY a)) a, b FROM t ORDER BY a, b
SELECT * FROM (SELECT DISTINCT ON (a, row_number() OVER (PARTITION BY b ORDER BY a)) a, b FROM t ORDER BY a, b) WHERE a = 1
SELECT * FROM (SELECT s FROM n UNION ALL SELECT k FROM n) q WHERE s // 2 = 1
SELECT * FROM (SELECT s FROM n UNION ALL SELECT k FROM n) q WHERE s + 0 = 1
SELECT * FROM (SELECT s FROM n UNION ALL SELECT k FROM n) q WHERE s + 300 = 301
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k + 300 = 301
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k * 300 = 300
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k - 300 = -299
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k * 1000000 = 1000000
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k + 0.5 = 1.5
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k / 2 = 0.5
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k % 200 = 1
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k & 255 = 1
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE ~m.k = -2
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE abs(m.k) = 1
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k IN (1, 300)
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k = '1'
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k::VARCHAR = '1'
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k::VARCHAR LIKE '1%'
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k::FLOAT = 1
SELECT n.* FROM n JOIN n m ON n.s = m.k WHERE m.k BETWEEN -1000 AND '1'
SELECT (SELECT max(u.v) FROM u WHERE u.a = t.a), count(*) OVER () FROM t QUALIFY t.a = 1
SELECT t.a FROM t LEFT JOIN u ON u.a = t.a WHERE (SELECT count(*) FROM n WHERE n.k = u.a) = 0
SELECT t.a FROM t LEFT JOIN u ON u.a = t.a WHERE NOT EXISTS (SELECT 1 FROM n WHERE n.k = u.a AND n.k = 1)
SELECT t.a FROM t LEFT JOIN u ON u.a = t.a AND u.a = 1 WHERE NOT EXISTS (SELECT 1 FROM n WHERE n.k IS NOT DISTINCT FROM u.a)
SELECT t.a FROM t LEFT JOIN u ON u.a = t.a AND u.a = 1 WHERE EXISTS (SELECT 1 FROM n RIGHT JOIN t x ON n.k = x.a WHERE n.k IS NOT DISTINCT FROM u.a)
SELECT t.a FROM t LEFT JOIN u ON u.a = t.a AND u.a = 1 WHERE EXISTS (SELECT 1 FROM n RIGHT JOIN t x ON n.k = x.a WHERE n.k IS NOT DISTINCT FROM u.a AND u.a IS NULL)
SELECT count(*) FROM t x JOIN u y ON x.a IS NOT DISTINCT FROM y.v WHERE y.v IS NULL
SELECT count(*) FROM t x FULL JOIN u y ON x.a IS NOT DISTINCT FROM y.v WHERE y.v IS NULL AND y.a = 0
SELECT count(*) FROM t x LEFT JOIN (SELECT y.a, y.v, z.a AS za FROM u y LEFT JOIN t z ON y.v = z.a) q ON x.v IS NOT DISTINCT FROM q.za WHERE x.v IS NULL
SELECT count(*) FROM t x JOIN (SELECT y.a, y.v, z.a AS za FROM u y LEFT JOIN t z ON y.v = z.a) q ON x.v IS NOT DISTINCT FROM q.za WHERE x.v IS NULL AND x.a = 2
SELECT count(*) FROM t x, LATERAL (SELECT * FROM u y LEFT JOIN n ON n.k = y.a WHERE n.k IS NOT DISTINCT FROM x.v) q WHERE x.v IS NULL
SELECT count(*) FROM t WHERE a IN (SELECT a FROM u WHERE u.a IN (SELECT k FROM n WHERE n.k = t.a AND n.s = 1))
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t LIMIT 0) OR a = 1
SELECT count(*) FROM t x WHERE x.a = 1 AND x.v = ALL (SELECT y.v FROM u y WHERE y.a = x.a)
SELECT count(*) FROM t x WHERE x.a >= ALL (SELECT y.a FROM u y WHERE y.b = x.b)
SELECT count(*) FROM t x WHERE x.a <> ALL (SELECT y.a FROM u y WHERE y.a = 3)
SELECT count(*) FROM t x WHERE NOT (x.a = ANY (SELECT y.a FROM u y WHERE y.a = 3))
SELECT count(*) FROM t x WHERE x.a < ANY (SELECT y.a FROM u y WHERE y.a = 3)
SELECT count(*) FROM t x WHERE (x.a IN (SELECT y.a FROM u y WHERE y.a = 3)) IS NOT TRUE
SELECT count(*) FROM t x WHERE (x.a IN (SELECT y.a FROM u y WHERE y.a = 3)) = FALSE
SELECT count(*) FROM t x WHERE (x.a, x.b) NOT IN (SELECT y.a, y.b FROM u y WHERE y.a = 3)
SELECT count(*) FROM t x WHERE (x.a, x.v) NOT IN (SELECT y.a, y.v FROM u y) AND x.a = 3
SELECT count(*) FROM t x WHERE (x.a, x.b) NOT IN (SELECT y.a, y.b FROM u y) AND x.a = 3
SELECT count(*) FROM t x WHERE (x.v, x.b) IN (SELECT y.a, y.b FROM u y WHERE y.a = 3)
SELECT q FROM (SELECT t AS q FROM t) WHERE q.a = 1
SELECT q.a FROM (SELECT t AS q FROM t) z WHERE q.a = 1
SELECT * FROM (SELECT q.a AS k FROM (SELECT {'a': v, 'b': a} AS q, 1 AS z FROM t) q) WHERE k = 1
SELECT * FROM (SELECT x.a AS k FROM (SELECT {'a': v} AS x, a FROM t) y) WHERE k = 1
SELECT * FROM t x WHERE EXISTS (SELECT 1 FROM (SELECT {'a': v} AS x, b FROM u) y WHERE x.a = 1)
SELECT * FROM t x WHERE EXISTS (SELECT 1 FROM (SELECT unnest([{'x': 1, 'y': 2}]) AS x, b FROM u) y WHERE x.x = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT sum(u.v) + (SELECT 1) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT u.v.max() FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT CASE WHEN count(*) = 0 THEN 1 END FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT [count(*) FOR i IN [1]] FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) BETWEEN 1 AND 2 FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*)::VARCHAR || 'x' FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) IN (1, 2) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT EXISTS (SELECT max(u.v) FROM n) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FILTER (WHERE u.v > 0) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT mode() WITHIN GROUP (ORDER BY u.v) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT t.a FROM u WHERE u.a = t.a AND u.a = 1 ORDER BY max(u.b))
SELECT count(*) FROM t WHERE EXISTS (FROM u SELECT max(u.b) WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT max(COLUMNS('v')) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 QUALIFY max(count(*)) OVER () IS NOT NULL)
SELECT count(*) FROM t WHERE EXISTS (SELECT grouping(u.a) FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY CUBE (u.a))
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY GROUPING SETS ((u.a), ()))
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY ROLLUP (u.a))
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY u.a, ROLLUP (u.b))
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY ALL)
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY ())
SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = 1 GROUP BY 'x')
SELECT count(*) FROM t WHERE a IN (SELECT coalesce(max(u.a), 5) FROM u WHERE u.a = t.a AND u.a = 1)
SELECT count(*) FROM t WHERE a IN (SELECT u.a FROM u WHERE u.a = t.a UNION ALL SELECT 3)
SELECT count(*) FROM t WHERE a IN (SELECT u.a FROM u UNION ALL VALUES (3))
SELECT count(*) FROM t WHERE a IN (VALUES (3), (4))
SELECT count(*) FROM t JOIN (VALUES (1, 'a'), (2, 'b')) q(a, b) USING (a, b)
SELECT count(*) FROM t RIGHT JOIN (VALUES (1, 'a'), (2, 'zz')) q(a, b) USING (a, b)
SELECT count(*) FROM t x POSITIONAL JOIN t y WHERE x.a = 1
SELECT count(*) FROM t x ASOF JOIN u y ON x.a = y.a AND x.c >= y.c WHERE y.c = DATE '2024-01-01'
SELECT count(*) FROM t x ASOF JOIN u y ON x.b = y.b AND x.a >= y.a WHERE y.a = 2
SELECT count(*) FROM t x ASOF LEFT JOIN u y ON x.b = y.b AND x.a >= y.a WHERE y.a = 2
SELECT count(*) FROM t x ASOF LEFT JOIN (SELECT * FROM u WHERE a <> 3) y ON x.b = y.b AND x.a >= y.a WHERE y.a = 2
SELECT count(*) FROM t x ASOF JOIN u y USING (b, a) WHERE a = 2
SELECT * FROM (SELECT a, b FROM t) PIVOT (count(*) FOR b IN ('a', 'b') GROUP BY a) WHERE a = 1
FROM (UNPIVOT (SELECT a, v FROM t) ON a, v INTO NAME n VALUE k) WHERE k = 1
FROM (SELECT a, v FROM t) UNPIVOT (a FOR n IN (v)) WHERE a = 1
FROM (SELECT a, v, b FROM t) UNPIVOT (k FOR n IN (v, a)) WHERE b = 'a'
WITH RECURSIVE r(a, d) AS (SELECT a, 0 FROM t WHERE a = 1 UNION ALL SELECT r.a + 1, d + 1 FROM r JOIN u ON u.a = r.a WHERE d < 2) SELECT * FROM r WHERE a = 2
WITH RECURSIVE r(a, d) AS (SELECT a, 0 FROM t WHERE a = 1 UNION SELECT u.a, d + 1 FROM r JOIN u ON u.a = r.a + 1 WHERE d < 3) SELECT count(*), max(a) FROM r
WITH RECURSIVE r(a) USING KEY (a) AS (SELECT a FROM t UNION SELECT r.a + 1 FROM r WHERE r.a < 3) SELECT * FROM r WHERE a = 2
SELECT t.a FROM t, (SELECT * FROM u WHERE u.a = t.a) WHERE t.a = 1
SELECT x.a, x.b FROM t x, t y, t z WHERE x.a = y.a AND y.a = z.a AND z.a = 1 AND x.b = y.b AND y.b = z.b
SELECT x.a FROM t x LEFT JOIN (u y RIGHT JOIN t z ON y.a = z.a) ON x.a = y.a WHERE z.a = 1
SELECT x.a FROM t x LEFT JOIN (u y RIGHT JOIN t z ON y.a = z.a) ON x.a = y.a WHERE z.a IS NULL AND x.a = 1
SELECT x.a FROM t x LEFT JOIN (u y RIGHT JOIN t z ON y.a = z.a) ON x.a IS NOT DISTINCT FROM y.a WHERE x.a = 1
SELECT count(*) FROM t x FULL JOIN (u y RIGHT JOIN t z ON y.a = z.a AND y.a = 1) ON x.a = y.a WHERE y.a IS NULL
SELECT count(*) FROM t x FULL JOIN u y ON x.a = y.a AND x.a = 1 FULL JOIN t z ON y.a = z.a WHERE z.a = 1 OR x.a = 3
SELECT count(*) FROM t x FULL JOIN u y ON x.a = y.a WHERE coalesce(x.a, y.a) = 1
SELECT count(*) FROM t x FULL JOIN u y USING (a) WHERE coalesce(x.a, y.a) = 1 AND a = 1
SELECT count(*) FROM t x FULL JOIN u y USING (a) WHERE x.a = 1 OR y.a = 2 AND a > 0
SELECT count(*) FROM t x FULL JOIN u y USING (a) WHERE a IS NULL
SELECT count(*) FROM t x FULL JOIN u y USING (a, v) WHERE v IS NULL
SELECT count(*) FROM t x FULL JOIN u y USING (a, v) WHERE v IS NULL AND a = 3
SELECT count(*) FROM t x FULL JOIN (SELECT v AS a, b FROM u) y USING (a) WHERE a IS NULL
SELECT count(*) FROM t x FULL JOIN (SELECT v AS a, b FROM u) y USING (a) WHERE a IS DISTINCT FROM 1
SELECT count(*) FROM t x RIGHT JOIN (SELECT v AS a, b FROM u) y USING (a) WHERE a IS NULL
SELECT count(*) FROM t x LEFT JOIN (SELECT v AS a, b FROM u) y USING (a) WHERE y.a IS NULL AND x.a = 0
SELECT a FROM (SELECT v AS a FROM u) x FULL JOIN t USING (a) FULL JOIN n ON n.k = t.a WHERE a = 1 AND n.k IS NULL
SELECT x.a FROM t x WHERE (SELECT max(y.a) FROM u y WHERE y.a <= x.a AND y.b = x.b) = 1
SELECT x.a, (SELECT y.v FROM u y WHERE y.a = x.a AND y.b = 'a' LIMIT 1) k FROM t x WHERE k = 1
SELECT x.a, (SELECT y.a FROM u y WHERE y.a = x.a AND y.b = 'a' LIMIT 1) k FROM t x WHERE k = 1 AND x.b = 'a'
SELECT x.a, (SELECT any_value(y.a) FROM u y WHERE y.a = x.a) k FROM t x GROUP BY x.a HAVING k = 1
SELECT a, count(*) FROM t GROUP BY a HAVING (SELECT count(*) FROM u WHERE u.a = t.a) > 0 AND a = 1
SELECT v AS a, count(*) FROM t GROUP BY v HAVING a = 1
SELECT v AS a, count(*) FROM t GROUP BY t.v HAVING t.v = 1
SELECT v AS a, count(*) FROM t GROUP BY 1 HAVING a = 1
SELECT v AS a, count(*) FROM t GROUP BY ALL HAVING a = 1
SELECT v AS a, count(*) c FROM t GROUP BY ALL HAVING c = 5
SELECT v AS a, row_number() OVER (PARTITION BY v ORDER BY t.a, b, c) AS r FROM t QUALIFY a = 1
SELECT v AS a, row_number() OVER (PARTITION BY a ORDER BY t.a, b, c) AS r FROM t QUALIFY t.a = 1
SELECT v AS a, row_number() OVER (PARTITION BY a ORDER BY t.a, b, c) AS r FROM t QUALIFY r = 1 AND t.a = 1
SELECT a, b, sum(v) OVER w FROM t WINDOW w AS (PARTITION BY a), w2 AS (ORDER BY b) QUALIFY a = 1
SELECT a, b, sum(v) OVER (w ORDER BY b, c) FROM t WINDOW w AS (PARTITION BY a) QUALIFY a = 1
SELECT a, sum(sum(v)) OVER (PARTITION BY a) FROM t GROUP BY a, b QUALIFY a = 1
SELECT a, sum(sum(v)) OVER (PARTITION BY b) FROM t GROUP BY a, b QUALIFY a = 1
SELECT * FROM (SELECT a, b, lag(v) OVER (PARTITION BY a, b ORDER BY c) l FROM t) WHERE a = 1 AND b = 'a'
SELECT * FROM (SELECT a AS k, a + 0 AS a, b, lag(v) OVER (PARTITION BY a ORDER BY b, c) l FROM t) WHERE k = 1
SELECT a FROM t GROUP BY a ORDER BY (SELECT count(*) FROM u WHERE u.a = t.a), a LIMIT 3
SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 10) WHERE a = 2
SELECT * FROM (SELECT a FROM t ORDER BY a FETCH FIRST 10 ROWS ONLY) WHERE a = 2
SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 20%) WHERE a = 0
SELECT * FROM (SELECT a, b FROM t USING SAMPLE 100%) WHERE a = 2
SELECT * FROM t TABLESAMPLE 100% WHERE a = 2
WITH w AS (SELECT a FROM u t WHERE a = 1) SELECT * FROM (WITH u AS (SELECT 1 AS a) SELECT * FROM u, w) q
WITH u AS (SELECT a, b FROM u) SELECT * FROM u WHERE a = 1
WITH u AS (SELECT a, b FROM u), t AS (SELECT * FROM u WHERE a = 2) SELECT * FROM t JOIN u USING (a, b)
SELECT * FROM (SELECT a AS "ß", v AS ss, b FROM t) q WHERE ss = 1
SELECT * FROM (SELECT a AS "É", v AS "é", b FROM t) q WHERE "é" = 1
SELECT * FROM (SELECT a AS "É", v AS "é", b FROM t) q WHERE q."é" = 1
SELECT * FROM (SELECT a AS "ſ", v AS s, b FROM t) q WHERE s = 1
SELECT * FROM t AS "ß", u AS ss WHERE ss.a = 1
SELECT * FROM t AS "É", u AS "é" WHERE "é".a = 1
SELECT * FROM (SELECT a AS z, b FROM t) q WHERE q.z IN (SELECT u.v AS z FROM u WHERE z = 1)
SELECT * FROM (SELECT a AS z, b FROM t) q WHERE q.z IN (SELECT u.v AS z FROM u WHERE z = 1 GROUP BY ALL)
SELECT z, b FROM (SELECT v AS z, a, b FROM t) q WHERE q.a IN (SELECT u.a AS z FROM u WHERE z = 1)
SELECT z, b FROM (SELECT v AS z, a, b FROM t) q WHERE q.a IN (SELECT u.a AS z FROM u GROUP BY z HAVING z = 1)
SELECT * FROM t WHERE a IN (SELECT u.a FROM u WHERE v = (SELECT max(k) FROM n WHERE v = 1))
WITH "ß" AS (SELECT a, b FROM t WHERE a = 1), ss AS (SELECT a, b FROM t WHERE a = 2) SELECT * FROM ss
WITH "É" AS (SELECT a, b FROM t WHERE a = 1), "é" AS (SELECT a, b FROM t WHERE a = 2) SELECT * FROM "é"
WITH "É" AS (SELECT a, b FROM t WHERE a = 1), "é" AS (SELECT a, b FROM t WHERE a = 2) SELECT * FROM "É"
SELECT * FROM (SELECT a AS "İ", v AS "i̇", b FROM t) q WHERE "i̇" = 1
SELECT a AS "É", count(*), v AS "é" FROM t GROUP BY "é", "É" HAVING "é" = 1
SELECT row_number() OVER "É", a FROM t WINDOW "É" AS (PARTITION BY a ORDER BY b, c), "é" AS (PARTITION BY b ORDER BY a, c) QUALIFY a = 1
SELECT row_number() OVER "é", a FROM t WINDOW "É" AS (PARTITION BY a ORDER BY b, c), "é" AS (PARTITION BY b ORDER BY a, c) QUALIFY a = 1
SELECT * FROM (SELECT row_number() OVER "é" AS r, a FROM t WINDOW "é" AS (PARTITION BY b ORDER BY a, c), "É" AS (PARTITION BY a ORDER BY b, c)) WHERE a = 1
SELECT x.a, x.b FROM (SELECT a, v AS "É", b FROM t) x JOIN (SELECT a, v AS "é" FROM u) y USING (a) WHERE "é" = 1
SELECT * FROM (SELECT v AS "É", b, a FROM t) x NATURAL JOIN (SELECT a AS "é", v, b FROM u) y WHERE "é" = 1
SELECT count(*) FROM t x WHERE x.a IN (SELECT y.a FROM u y WHERE y.b = 'a' AND x.v IS NULL)
SELECT x.a FROM t x WHERE x.v IN (SELECT y.v FROM u y WHERE y.a = x.a GROUP BY y.v HAVING count(*) > 1)
SELECT x.a FROM t x WHERE x.a = (SELECT y.a FROM u y WHERE y.a = x.v LIMIT 1)
SELECT x.a FROM t x WHERE x.a = (SELECT max(y.a) FROM u y WHERE y.a = x.a HAVING max(y.a) > 1)
SELECT x.a FROM t x WHERE coalesce((SELECT max(y.a) FROM u y WHERE y.a = x.a AND y.a = 1), 3) = 3
SELECT * FROM t x WHERE (x.a = 1) = (x.v IS NULL)
SELECT * FROM t x WHERE (x.a = 1) IS DISTINCT FROM (x.v IS NULL)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1) IS NOT TRUE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a IN (1, 2)) IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NOT coalesce(y.a = 1, FALSE)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NULLIF(y.a, 1) IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a IS NULL OR y.a = 1
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE concat(y.b, '') = ''
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.b || '' = '' OR y.b IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a = ANY ([1, NULL])
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a IN (1, NULL) IS NOT FALSE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a NOT IN (SELECT k FROM n WHERE k > 100)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a <> ALL (SELECT k FROM n WHERE k > 100)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a = (SELECT max(k) FROM n WHERE k > 100) OR y.b = 'a'
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NOT EXISTS (SELECT 1 FROM n WHERE n.k = y.a) AND x.a = 1
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE EXISTS (SELECT 1 FROM n WHERE n.k = y.a AND n.k = 1)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE EXISTS (SELECT 1 FROM n WHERE n.k IS NOT DISTINCT FROM y.a AND y.a IS NULL)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a, y.b) IN ((1, 'a'), (2, 'A'))
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a, y.b) IS NOT DISTINCT FROM (NULL, NULL)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a, y.b) > (1, NULL)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE ROW(y.a, y.b) = ROW(NULL, NULL)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.b SIMILAR TO 'a' IS NOT TRUE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE TRY(y.a / 0 = 1) IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE CASE WHEN y.a = 1 THEN FALSE ELSE TRUE END
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE IF(y.a = 1, FALSE, TRUE)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1) IN (TRUE, NULL) IS NOT TRUE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a + NULL IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1 AND x.v > 0) = FALSE OR x.a = 2
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1) = (y.b = 'a') OR (y.a = 2) IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE [y.a] = [NULL]
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE [y.a, 1] <= [1, 2]
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE {'q': y.a} = {'q': NULL}
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE list_contains([1, NULL], y.a) IS NOT TRUE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE list_contains([1, 2], y.a) IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NOT list_contains([1, 2], y.a)
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a ^ 0 = 1 OR -y.a IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE [y.a] + NULL IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE CAST(y.a AS BOOLEAN) IS NOT TRUE
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.b NOT LIKE 'a%' OR y.b LIKE NULL IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.b GLOB '*' IS NULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NOT (y.a = 1 AND y.b = 'a')
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE NOT (y.a <> 1 OR y.b <> 'a')
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a ISNULL
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a NOTNULL AND y.b = 'a'
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE y.a IS UNKNOWN
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1) IS UNKNOWN
SELECT * FROM t x LEFT JOIN u y ON x.a = y.a AND x.b = y.b WHERE (y.a = 1) IS NOT UNKNOWN
SELECT * FROM (SELECT a, b FROM t UNION ALL BY NAME SELECT b, v AS a FROM u) WHERE a = 1
SELECT * FROM (SELECT a, b FROM t UNION ALL BY NAME SELECT b, a, v FROM u) WHERE v = 4
SELECT * FROM (SELECT a, b FROM t UNION BY NAME SELECT b, a FROM u UNION ALL SELECT v, b FROM t) WHERE a = 4
SELECT * FROM (SELECT a, b FROM t UNION ALL SELECT a, b FROM u UNION ALL BY NAME SELECT b, v AS a FROM u) WHERE a = 4
SELECT * FROM (SELECT a, b AS "A" FROM t) q WHERE a = 1
SELECT * FROM (SELECT v, a AS "V", b FROM t) q(p, r) WHERE r = 4
SELECT * FROM t x JOIN LATERAL (SELECT x.a AS k, y.v FROM u y WHERE y.a = x.a) z ON z.k = 4 LEFT JOIN n ON n.k = z.k WHERE n.k IS NULL
SELECT * FROM t x LEFT JOIN LATERAL (SELECT x.a AS k, y.v FROM u y WHERE y.a = x.a) z ON z.k = 4 WHERE z.k IS NULL
SELECT * FROM t x LEFT JOIN LATERAL (SELECT x.a AS k FROM u y WHERE y.a = x.a GROUP BY x.a) z ON TRUE WHERE z.k IS NOT DISTINCT FROM 4
SELECT x.a, q.m FROM t x, (SELECT max(y.v) AS m, x.a AS k FROM u y WHERE y.a = x.a) q WHERE q.k = 4
SELECT x.a, q.m FROM t x, (SELECT x.v AS k, max(y.v) m FROM u y WHERE y.a < x.a GROUP BY ALL) q WHERE q.k = 4
SELECT * FROM t WHERE a IN (SELECT a FROM (SELECT a, row_number() OVER (ORDER BY a, b) r FROM u) WHERE r < 4)
SELECT * FROM t WHERE a = 5 AND a IN (SELECT a FROM (SELECT a, row_number() OVER (ORDER BY a DESC, b) r FROM u) WHERE r < 8)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a QUALIFY row_number() OVER (ORDER BY u.b) = 2)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT u.a FROM u QUALIFY row_number() OVER (ORDER BY u.a DESC, u.b) = 2 AND u.a = t.a)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT u.a, count(*) FROM u GROUP BY u.a HAVING u.a = t.a)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT u.b, max(u.a) m FROM u GROUP BY u.b HAVING m = t.a)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT max(u.a) AS a FROM u GROUP BY u.b HAVING a = t.a)
SELECT * FROM t WHERE a = 5 AND EXISTS (SELECT max(u.a) AS v FROM u GROUP BY u.b HAVING v = t.a)
SELECT * FROM t WHERE a = 4 AND EXISTS (SELECT max(u.a) AS v FROM u GROUP BY u.b, v HAVING v = t.a)
SELECT a, (SELECT sum(v) FROM (SELECT v FROM u WHERE u.a <= t.a ORDER BY a DESC, b LIMIT 2)) s FROM t WHERE a = 4
SELECT a, (SELECT sum(v) FROM (SELECT v, a FROM u ORDER BY a DESC, b LIMIT 7) q WHERE q.a = t.a) s FROM t WHERE a = 5
SELECT a, (SELECT DISTINCT ON (b) v FROM (SELECT * FROM u ORDER BY ALL) q WHERE q.a = t.a LIMIT 1) IS NULL FROM t WHERE a = 5
SELECT t.a, count(u.a) FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.a HAVING count(u.a) = 0 AND t.a < 2
SELECT u.a, count(*) FROM t LEFT JOIN u ON t.a = u.a GROUP BY u.a HAVING u.a IS NULL
SELECT u.a, count(*) FROM t LEFT JOIN u ON t.a = u.a GROUP BY u.a HAVING u.a = 3
SELECT u.a, t.b, count(*) FROM t FULL JOIN u ON t.a = u.a GROUP BY u.a, ROLLUP (t.b) HAVING u.a = 3 OR u.a IS NULL
SELECT u.a, t.a, count(*) FROM t FULL JOIN u ON t.a = u.a GROUP BY GROUPING SETS ((u.a), (t.a)) HAVING u.a IS NULL AND t.a = 3
SELECT u.a, t.a, count(*) FROM t JOIN u ON t.a = u.a GROUP BY GROUPING SETS ((u.a), (t.a)) HAVING u.a = 3
SELECT * FROM (SELECT u.a, t.a AS k, count(*) FROM t JOIN u ON t.a = u.a GROUP BY CUBE (u.a, t.a)) WHERE k = 3 AND a IS NULL
SELECT * FROM (SELECT a, b, count(*) FROM t GROUP BY a, ROLLUP (a, b)) WHERE a = 3
SELECT * FROM (SELECT a, b, count(*) FROM t GROUP BY a, ROLLUP (a, b)) WHERE b IS NULL AND a = 3
SELECT * FROM (SELECT a, a AS k, count(*) FROM t GROUP BY ROLLUP (a), k) WHERE k = 3
SELECT * FROM (SELECT a, a AS k, count(*) FROM t GROUP BY GROUPING SETS ((a), (a, k), ())) WHERE k = 3
SELECT * FROM (SELECT a, a AS k, count(*) FROM t GROUP BY 1, CUBE (2)) WHERE a = 3
SELECT * FROM (SELECT a % 3 AS m, a AS k, count(*) FROM t GROUP BY 1, 2) WHERE k = 3
SELECT * FROM (SELECT a, first_value(a) OVER (PARTITION BY b ORDER BY a, c) f FROM t) WHERE f = -2
SELECT * FROM (SELECT a, b, c, v, nth_value(a, 2) OVER (PARTITION BY a ORDER BY b, c) f FROM t) WHERE f = 3
SELECT * FROM (SELECT * FROM t WHERE a = 4 LIMIT 100) x JOIN (SELECT * FROM u ORDER BY a, b LIMIT 16) y USING (a)
SELECT * FROM (SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY a DESC) = 1) x JOIN u USING (a) WHERE u.a = 5
SELECT * FROM (SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY a DESC) = 1) x JOIN u USING (a, b) WHERE u.b = 'a'
SELECT * EXCLUDE (v) FROM (SELECT * REPLACE (v AS a) FROM t) q WHERE a = 4
SELECT * FROM (SELECT * RENAME (v AS a, a AS v) FROM t) q WHERE a = 4
SELECT * FROM (SELECT t.* EXCLUDE (a), a FROM t) q(p, r, s, w) WHERE w = 4
SELECT * FROM (FROM t SELECT v AS a, a AS v) q WHERE q.a = 4
SELECT * FROM (SELECT a.a FROM t AS a) q WHERE a = 4
SELECT * FROM (SELECT b.a FROM t AS a, u AS b) q WHERE a = 4
SELECT * FROM (SELECT a.v FROM t AS a, u AS b, n AS v WHERE v.k = 1) q WHERE v = 4
SELECT * FROM t AS a(v, a) WHERE a.v = 4 AND v = 4
SELECT * FROM t JOIN u AS t2(b, a) ON t.a = t2.b WHERE t2.a = 'a' AND t2.b = 3
SELECT * FROM t x WHERE (SELECT x.a = 4)
SELECT * FROM t x WHERE x.a = (SELECT 4) AND x.b IN (SELECT 'a' UNION SELECT 'b')
SELECT * FROM t x WHERE x.a IN (SELECT unnest([1, 4, NULL]))
SELECT * FROM t x WHERE x.a NOT IN (SELECT unnest([1, 4, NULL]))
SELECT * FROM t x WHERE x.a IN (SELECT y.a FROM u y WHERE y.a = 4 EXCEPT SELECT 4)
SELECT * FROM t x WHERE x.v IN (SELECT y.v FROM u y WHERE y.a = 4 INTERSECT SELECT k FROM n)
SELECT * FROM t x WHERE x.a IN (SELECT y.a FROM u y WHERE y.v = 4 INTERSECT SELECT s FROM n WHERE s <> 0)
SELECT (SELECT count(*) FROM u WHERE u.a = x.a), x.a FROM t x ORDER BY (SELECT max(u.b) FROM u WHERE u.a = x.a), 2 LIMIT 4
SELECT count(*) FROM t x JOIN u y ON (SELECT count(*) FROM n WHERE n.k = y.a AND n.k = x.a) = 1
SELECT count(*) FROM t x JOIN u y ON x.a = y.a AND x.a IN (SELECT n.k FROM n WHERE n.s = 1)
SELECT count(*) FROM t x LEFT JOIN u y ON x.a = y.a AND x.a IN (SELECT n.k FROM n WHERE n.s = 1)
SELECT count(*) FROM t WHERE EXISTS (SELECT (SELECT sum(u.a) OVER ()) FROM u WHERE u.a = t.a AND u.a = 4)
SELECT count(*) FROM t WHERE EXISTS (SELECT [(SELECT max(u.a))] FROM u WHERE u.a = t.a AND u.a = 4)
SELECT count(*) FROM t WHERE EXISTS (SELECT (SELECT max(u.a) FROM n LIMIT 1) FROM u WHERE u.a = t.a AND u.a = 4)
SELECT count(*) FROM t WHERE EXISTS (SELECT (SELECT (SELECT max(u.a))) FROM u WHERE u.a = t.a AND u.a = 4)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 IN (SELECT max(u.a)) FROM u WHERE u.a = t.a AND u.a = 4)
SELECT count(*) FROM t WHERE a = 4 AND b IN (SELECT (SELECT min(u.b)) FROM u WHERE u.a = 4)
SELECT count(*) FROM t HAVING max(a) = (SELECT max(u.a) FROM u WHERE u.a = 4)
SELECT * FROM (SELECT count(*) AS k FROM t WHERE a = 4) q WHERE k = 0
SELECT * FROM u LEFT JOIN (SELECT (SELECT max(t.a)) AS m FROM t WHERE t.a = 4) q ON u.a = q.m
SELECT * FROM u JOIN (SELECT (SELECT max(t.a)) AS m, 1 AS k FROM t WHERE t.a = 44) q ON q.k = u.a
SELECT x.a FROM t x JOIN u y USING (a) JOIN n ON n.k = a WHERE a = 4
SELECT * FROM (SELECT * FROM t x JOIN u y USING (a) RIGHT JOIN (SELECT k AS a, s FROM n) z USING (a)) q(p, q, r, s, t, u, v, w) WHERE p = 4
SELECT * FROM (SELECT * FROM t x LEFT JOIN u y USING (a) FULL JOIN (SELECT a, b AS bb FROM small) z USING (a)) q(p, q, r, s, t, u, v, w) WHERE p = 3
SELECT * FROM (SELECT * FROM (t x JOIN u y USING (a)) JOIN (t z JOIN u w USING (b)) ON x.a = z.a) q(p, q, r, s, t, u, v, w, aa, bb, cc, dd, ee, ff) WHERE w = 4
SELECT * FROM (SELECT * FROM (t x JOIN u y USING (a)) JOIN (t z JOIN u w USING (b)) ON x.a = z.a) q(p, q, r, s, t, u, v, w, aa, bb, cc, dd, ee, ff) WHERE cc = 4
SELECT * FROM (SELECT * FROM (t x JOIN u y USING (a)) JOIN (t z RIGHT JOIN u w USING (b)) ON x.a = w.a) q(p, q, r, s, t, u, v, w, aa, bb, cc, dd, ee, ff) WHERE w = 4 OR aa = 'a' AND cc = 4
SELECT * FROM (SELECT y.*, x.* FROM t x LEFT JOIN u y USING (a)) q(p, q, r, s, t, u, v, w) WHERE p IS NULL
SELECT * FROM (SELECT y.*, x.* FROM t x LEFT JOIN u y USING (a)) q(p, q, r, s, t, u, v, w) WHERE p = 4
SELECT * FROM (SELECT y.*, x.* FROM t x RIGHT JOIN u y USING (a)) q(p, q, r, s, t, u, v, w) WHERE t IS NULL
SELECT * FROM (SELECT x.*, 1 FROM t x RIGHT JOIN u y USING (a)) q(p, q, r, s, t) WHERE p = 4
SELECT * FROM (SELECT * FROM t x SEMI JOIN u y USING (a)) q(p, q, r, s) WHERE p = 4
SELECT * FROM (SELECT * FROM t x SEMI JOIN u y USING (a) JOIN u z USING (a, b)) q(p, q, r, s, t, u) WHERE p = 4 AND q = 'a'
SELECT a FROM t x JOIN u y USING (a), (SELECT a AS z FROM small) z WHERE a = z AND z = 3
SELECT * FROM t NATURAL JOIN u NATURAL JOIN small WHERE a = 3
SELECT * FROM (SELECT * FROM t NATURAL LEFT JOIN (SELECT a, b, v AS w FROM u)) q(p, q, r, s, t) WHERE p = 4 AND t IS NULL
SELECT * FROM (SELECT * FROM t NATURAL RIGHT JOIN (SELECT w: v, a, b FROM u)) q(p, q, r, s, t) WHERE p = 4
SELECT * FROM (SELECT * FROM t NATURAL FULL JOIN (SELECT w: v, b, a FROM u)) q(p, q, r, s, t) WHERE p = 4
SELECT * FROM (SELECT * FROM t NATURAL SEMI JOIN (SELECT a FROM u WHERE a = 4)) q
