-- Queries above releases whose results have ends. r0: state, region, n, m, t; r1: state, k; p0: state, weight (public).

SELECT MAX(n) AS a, MIN(n) AS b, SUM(n) AS c, AVG(n) AS d, COUNT(*) AS e FROM r0

SELECT MAX(m) AS a, MIN(m) AS b, SUM(m) AS c, AVG(m) AS d, COUNT(m) AS e, MEDIAN(m) AS f FROM r0

SELECT region, MAX(n) AS a, COUNT(*) AS c FROM r0 GROUP BY region

SELECT COUNT(*) AS c, SUM(n) AS s, AVG(n) AS a, MAX(n) AS x, MIN(n) AS y FROM r0 WHERE n > 5

SELECT region, COUNT(*) AS c, SUM(m) AS s, MEDIAN(m) AS a FROM r0 WHERE m > 2 GROUP BY region

SELECT region, COUNT(*) FILTER (WHERE n > 5) AS c, SUM(n) FILTER (WHERE n > 5) AS s, COUNT(CASE WHEN n > 5 THEN 1 END) AS d FROM r0 GROUP BY region HAVING SUM(n) > 10

SELECT state, RANK() OVER (ORDER BY n DESC) AS r, ROW_NUMBER() OVER (ORDER BY n DESC, state) AS o, DENSE_RANK() OVER (ORDER BY n) AS d FROM r0

SELECT state, RANK() OVER (PARTITION BY region ORDER BY m) AS r FROM r0

SELECT state, RANK() OVER (PARTITION BY region ORDER BY m DESC NULLS FIRST, n) AS r FROM r0

SELECT state, n FROM r0 ORDER BY n DESC, state LIMIT 2

SELECT state, n FROM r0 ORDER BY m DESC NULLS FIRST, state LIMIT 2 OFFSET 1

SELECT state, n FROM r0 QUALIFY RANK() OVER (PARTITION BY region ORDER BY n DESC) <= 1

SELECT state, n, r FROM (SELECT state, n, RANK() OVER (ORDER BY n) AS r FROM r0) WHERE r <= 2

SELECT state, CASE WHEN n > 5 THEN 'big' WHEN n > 2 THEN 'mid' ELSE 'small' END AS s, n > 5 AS big, n BETWEEN 2 AND 6 AS mid, n IN (1, 5) AS some FROM r0

SELECT state, CASE WHEN m > 5 THEN n WHEN m IS NULL THEN -1 END AS s, m IS NULL AS gone, NOT m > 3 AS low, (m > 3) IS TRUE AS sure FROM r0

SELECT state, GREATEST(n, m, 4) AS a, LEAST(n, m) AS b, COALESCE(m, n) AS c, NULLIF(n, 5) AS d, ABS(n) AS e, -n AS f FROM r0

SELECT state, n * m AS a, n / m AS b, n - m AS c, 2 * n + 1 AS d, n / 4 AS e, n * n - n AS f, 100.0 * n / (n + 200) AS g FROM r0

SELECT state, ROUND(m, 1) AS a, FLOOR(m) AS b, CEIL(m / 3) AS c, SIGN(n) AS d, LN(n) AS e, SQRT(m) AS f, LOG2(n) AS g, CAST(m AS BIGINT) AS h, EXP(m) AS i, LN(n) * 2 - LN(m) AS j FROM r0

SELECT state, SUM(n) OVER (ORDER BY state) AS a, AVG(m) OVER (PARTITION BY region) AS b, MAX(n) OVER (ORDER BY state ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS c, n - LAG(n) OVER (ORDER BY state) AS d, LEAD(m, 1, 0) OVER (ORDER BY state) AS e FROM r0

SELECT state, SUM(n) OVER (ORDER BY state) AS a, COUNT(*) OVER () AS b, MAX(m) OVER (PARTITION BY region) AS c FROM r0 WHERE n > 2

SELECT state, n FROM r0 WHERE n > (SELECT AVG(n) FROM r0)

SELECT state, n - (SELECT MAX(n) FROM r0) AS d FROM r0

SELECT (SELECT n FROM r0 ORDER BY n DESC LIMIT 1) AS top, (SELECT COUNT(*) FROM r0 WHERE n > 5) AS c

SELECT region, COUNT(*) AS c FROM r0 WHERE state IN (SELECT state FROM r1 WHERE k > 5) GROUP BY region

SELECT region, COUNT(*) AS c FROM r0 WHERE state NOT IN (SELECT state FROM r1 ORDER BY k DESC LIMIT 2) GROUP BY region

SELECT state, n FROM r0 WHERE EXISTS (SELECT 1 FROM r1 WHERE k > 20) OR NOT EXISTS (SELECT 1 FROM r1 WHERE k > 2)

SELECT a.state, a.n, b.k, a.n - b.k AS d, GREATEST(a.n, b.k) AS g FROM r0 a LEFT JOIN r1 b ON a.state = b.state

SELECT state, n, k FROM r0 FULL JOIN r1 USING (state) WHERE n > k OR k IS NULL

SELECT a.state, b.state AS other FROM r0 a JOIN r0 b ON a.n > b.n WHERE a.region = b.region

SELECT a.state, COUNT(*) AS c FROM r0 a, r0 b WHERE a.n <= b.n AND a.state <> b.state GROUP BY a.state

SELECT state, n * weight AS w, n > weight AS g FROM r0 JOIN p0 USING (state)

SELECT SUM(weight) AS w, COUNT(DISTINCT region) AS r FROM r0 LEFT JOIN p0 USING (state) WHERE n > 5

WITH big AS (SELECT * FROM r0 WHERE n > 5), ranked AS (SELECT state, region, n, RANK() OVER (ORDER BY n DESC) AS r FROM big) SELECT region, MIN(r) AS first, COUNT(*) AS many FROM ranked GROUP BY 1

SELECT state, n FROM r0 UNION ALL SELECT state, k FROM r1 WHERE k > 5

SELECT MAX(x) AS top FROM (SELECT state, n AS x FROM r0 UNION ALL SELECT state, m FROM r0)

SELECT state FROM r0 WHERE n > 5 UNION SELECT state FROM r1

SELECT DISTINCT region FROM r0 WHERE n > 5

SELECT region, COUNT(*) AS c FROM r0 GROUP BY ALL HAVING MAX(n) > 20

SELECT region AS g, SUM(n) AS s, RANK() OVER (ORDER BY SUM(n) DESC) AS r FROM r0 GROUP BY g

SELECT state, n + 1 AS x, x * 2 AS y, t, t + n AS z FROM r0 WHERE x > 3

SELECT state, 100 * n / SUM(n) OVER () AS pct, CASE WHEN 100 * n / SUM(n) OVER () > 20 THEN 1 ELSE 0 END AS top FROM r0 WHERE n >= 1

SELECT COUNT_IF(n > 5) AS a, BOOL_OR(n > 20) AS b, BOOL_AND(m > 0) AS c, QUANTILE_CONT(n, 0.25) AS q FROM r0

SELECT region, FIRST_VALUE(n) OVER w AS f, RANK() OVER w AS r, n FROM r0 WINDOW w AS (ORDER BY state)

SELECT state, RANK() OVER (ORDER BY state) AS r, CASE state WHEN 'CA' THEN n ELSE m END AS x, IF(n > m, n, m) AS y, SUM(CASE WHEN n > 5 THEN 1 ELSE 0 END) OVER () AS c FROM r0

SELECT * FROM (SELECT * FROM r0 ORDER BY n LIMIT 3) ORDER BY 3 DESC LIMIT 1
