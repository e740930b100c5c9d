WITH RECURSIVE q AS (SELECT a FROM t WHERE a=1 AND b='a' UNION ALL SELECT q.a+1 FROM q JOIN t ON t.a=q.a+1 AND t.b='a' WHERE q.a<4) SELECT * FROM q
SELECT count(*) FROM t x, LATERAL (SELECT * FROM t y WHERE y.a = x.a AND x.b = 'a' AND y.b = 'b') l WHERE x.a = 1
SELECT count(*) FROM t x LEFT JOIN LATERAL (SELECT y.v FROM t y WHERE y.a = x.a AND x.a = 1 AND y.b='a') l ON TRUE
SELECT count(*) FROM t, unnest([1,2]) AS q(z) WHERE a = z
SELECT count(*) FROM t x JOIN t y ON x.a = 1 AND y.a = 2 AND x.b = y.b
SELECT count(*) FROM t x LEFT JOIN t y ON x.a = 1 AND y.a = 2 AND x.b = y.b
SELECT count(*) FROM t x LEFT JOIN t y ON x.b = y.b WHERE y.a IS NULL
SELECT count(*) FROM t x LEFT JOIN t y ON x.b = y.b AND y.a = 99 WHERE y.a IS NULL AND x.a = 1
SELECT count(*) FROM t x LEFT JOIN t y ON x.b = y.b AND y.a=1 WHERE (y.a = 1) IS NOT TRUE
SELECT count(*) FROM t x LEFT JOIN t y ON x.b=y.b AND y.a=2 WHERE NOT (y.a = 1)
SELECT count(*) FROM t x LEFT JOIN t y ON x.b=y.b AND y.a=2 WHERE y.a = 2 OR x.a = 1
SELECT count(*) FROM t x LEFT JOIN t y ON x.b=y.b AND y.a=2 WHERE coalesce(y.a, 1) = 1
SELECT count(*) FROM t x LEFT JOIN t y ON x.b=y.b AND y.a=2 WHERE y.a IN (2, NULL)
SELECT count(*) FROM t x LEFT JOIN t y ON x.b=y.b AND y.a=2 WHERE y.a IS NOT DISTINCT FROM NULL
SELECT count(*) FROM t x FULL JOIN t y ON x.a=y.a+20 WHERE x.a = 1
SELECT count(*) FROM t x FULL JOIN t y ON x.a=y.a+20 WHERE x.a = 1 OR y.a = 2
SELECT count(*) FROM t x RIGHT JOIN t y ON x.a=y.a AND x.a=1 WHERE x.a IS NULL AND y.b='a'
SELECT count(*) FROM t x SEMI JOIN u y ON x.b=y.b AND x.a = 1
SELECT count(*) FROM t x ANTI JOIN u y ON x.b=y.b AND x.a = 1
SELECT count(*) FROM t x ANTI JOIN t y ON x.b=y.b AND y.a = 1 WHERE x.a = 2
SELECT count(*) FROM t x ASOF JOIN t y ON x.b=y.b AND x.a >= y.a WHERE y.a = 1
SELECT count(*) FROM t x ASOF LEFT JOIN t y ON x.b=y.b AND x.a > y.a WHERE x.a = 1
SELECT count(*) FROM (SELECT * FROM t ORDER BY a,b LIMIT 20) x POSITIONAL JOIN (SELECT * FROM t ORDER BY a,b LIMIT 20) y WHERE x.a=1
SELECT count(*) FROM t NATURAL JOIN u WHERE b = '1'
SELECT count(*) FROM small r, t WHERE r.a = 1 OR t.a = 2
SELECT count(*) FROM small r LEFT JOIN t ON t.a = r.a AND t.b='a' WHERE r.a = 1
SELECT count(*) FROM small r JOIN t USING (a) WHERE a = 1
SELECT count(*) FROM t x, t y WHERE x.a = y.a AND y.a = 1 AND x.b=y.b
SELECT count(*) FROM t x, t y WHERE x.b = y.b COLLATE NOCASE AND y.b = 'a'
SELECT count(*) FROM t x, u y WHERE x.a = y.a AND y.a = '01'
SELECT count(*) FROM t x, u y WHERE x.a = y.a AND x.a = 1
