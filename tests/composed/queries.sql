-- Analysts' queries that compose noisy numbers, one a paragraph. test_queries.py compares each with plain DuckDB.

-- shares and totals
SELECT state, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY state

SELECT state, sex, COUNT(*) AS n, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY state) AS share FROM people GROUP BY state, sex

SELECT state, AVG(income) AS m, AVG(income) / AVG(AVG(income)) OVER () AS relative FROM people GROUP BY state

SELECT state, n, ROUND(100.0 * n / total, 2) AS pct FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state), (SELECT COUNT(*) AS total FROM people)

WITH by_state AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT state, n, n * 1.0 / (SELECT SUM(n) FROM by_state) AS share FROM by_state

SELECT (SELECT COUNT(*) FROM people WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM people) AS share

SELECT state, COUNT(*) FILTER (WHERE smoker) * 100.0 / COUNT(*) - (SELECT COUNT(*) FILTER (WHERE smoker) * 100.0 / COUNT(*) FROM people) AS above FROM people GROUP BY state

SELECT state, SUM(income) AS total, SUM(SUM(income)) OVER () AS everything FROM people GROUP BY state

-- running totals, moving averages, changes
SELECT year(joined) AS y, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY year(joined)) AS running FROM people GROUP BY y

SELECT date_trunc('month', joined) AS m, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY date_trunc('month', joined)) AS diff FROM people GROUP BY m

SELECT date_trunc('month', joined) AS m, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY date_trunc('month', joined) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM people GROUP BY m

WITH monthly AS (SELECT date_trunc('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY m) SELECT m, n, 100.0 * (n - LAG(n) OVER (ORDER BY m)) / LAG(n) OVER (ORDER BY m) AS growth FROM monthly

WITH monthly AS (SELECT year(joined) AS y, month(joined) AS m, COUNT(*) AS n FROM people GROUP BY y, m) SELECT a.y, a.m, a.n, a.n - b.n AS on_last_year FROM monthly a JOIN monthly b ON a.m = b.m AND a.y = b.y + 1

WITH monthly AS (SELECT year(joined) AS y, month(joined) AS m, COUNT(*) AS n FROM people GROUP BY ALL) SELECT y, m, n, LAG(n, 12) OVER (ORDER BY y, m) AS before FROM monthly

SELECT year(joined) AS y, quarter(joined) AS q, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY year(joined) ORDER BY quarter(joined)) AS year_to_date FROM people GROUP BY year(joined), quarter(joined)

SELECT year(joined) AS y, COUNT(*) AS n, FIRST_VALUE(COUNT(*)) OVER (ORDER BY year(joined)) AS first FROM people GROUP BY y

SELECT year(joined) AS y, COUNT(*) AS n, COUNT(*) - FIRST_VALUE(COUNT(*)) OVER w AS since FROM people GROUP BY y WINDOW w AS (ORDER BY year(joined))

-- ranks and tops
SELECT state, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY state

SELECT state, AVG(income) AS m FROM people GROUP BY state QUALIFY ROW_NUMBER() OVER (ORDER BY AVG(income) DESC) <= 2

SELECT * FROM (SELECT state, sex, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY state, sex) WHERE place = 1

SELECT state, n, NTILE(2) OVER (ORDER BY n) AS half FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT state, n, PERCENT_RANK() OVER (ORDER BY n) AS p FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT DISTINCT ON (sex) sex, state, n FROM (SELECT sex, state, COUNT(*) AS n FROM people GROUP BY ALL) ORDER BY sex, n DESC

SELECT arg_max(state, n) AS best, MAX(n) AS most FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

-- aggregates of aggregates
SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT MEDIAN(n) AS m, STDDEV_POP(n) AS s FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT sex, SUM(n) AS n FROM (SELECT state, sex, COUNT(*) AS n FROM people GROUP BY state, sex) GROUP BY sex

SELECT COUNT(*) AS states FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > 4000)

SELECT region, SUM(n) AS n, SUM(n) / SUM(population) AS per_head FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) JOIN states USING (state) GROUP BY region

SELECT list(state ORDER BY n DESC) AS states FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT string_agg(state, ', ' ORDER BY state) AS large FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING n > 4000)

SELECT histogram(n > 4000) AS h FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

-- joins of releases
WITH a AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state), b AS (SELECT state, AVG(income) AS m FROM people GROUP BY state) SELECT a.state, n, m FROM a JOIN b ON a.state = b.state

WITH a AS (SELECT state, COUNT(*) AS smokers FROM people WHERE smoker GROUP BY state), b AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT state, smokers, n, 1.0 * smokers / n AS share FROM a JOIN b USING (state)

WITH a AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state), b AS (SELECT state, COUNT(*) AS visits FROM visits JOIN people USING (id) GROUP BY state) SELECT * FROM a NATURAL JOIN b

SELECT s.state, s.region, COALESCE(p.n, 0) AS n FROM states s LEFT JOIN (SELECT state, COUNT(*) AS n FROM people GROUP BY state) p ON p.state = s.state

SELECT s.region, p.n FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) p RIGHT JOIN states s ON p.state = s.state

SELECT COALESCE(a.state, b.state) AS state, a.n AS old, b.n AS young FROM (SELECT state, COUNT(*) AS n FROM people WHERE age >= 65 GROUP BY state) a FULL JOIN (SELECT state, COUNT(*) AS n FROM people WHERE age < 18 GROUP BY state) b ON a.state = b.state

SELECT a.state AS one, b.state AS other, a.n - b.n AS difference FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) a CROSS JOIN (SELECT state, COUNT(*) AS n FROM people GROUP BY state) b WHERE a.state < b.state

WITH c AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT x.state, x.n, (SELECT COUNT(*) FROM c y WHERE y.n > x.n) AS above FROM c x

SELECT kind, COUNT(*) AS n, ROUND(1.0 * COUNT(*) / (SELECT COUNT(*) FROM people), 3) AS per_person FROM visits GROUP BY kind

-- unions and differences
SELECT state, COUNT(*) AS n FROM people GROUP BY state UNION ALL SELECT 'all', COUNT(*) FROM people

SELECT 'people' AS what, COUNT(*) AS n FROM people UNION ALL SELECT 'visits', COUNT(*) FROM visits

SELECT state FROM states EXCEPT SELECT state FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) WHERE n > 4000

SELECT state FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) WHERE n > 4000 INTERSECT SELECT state FROM states

(SELECT 'old' AS what, COUNT(*) AS n FROM people WHERE age > 64) UNION (SELECT 'young', COUNT(*) FROM people WHERE age < 18) ORDER BY what

-- pivots
SELECT * FROM (SELECT state, sex, COUNT(*) AS n FROM people GROUP BY ALL) PIVOT (SUM(n) FOR sex IN ('f', 'm'))

SELECT * FROM (SELECT COUNT(*) FILTER (WHERE smoker) AS smokers, COUNT(*) FILTER (WHERE NOT smoker) AS others FROM people) UNPIVOT (n FOR what IN (smokers, others))

-- conditions on noisy numbers
SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > (SELECT COUNT(*) / 4 FROM people)

SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > (SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM people GROUP BY state))

SELECT state, CASE WHEN COUNT(*) > 4000 THEN 'large' ELSE 'small' END AS size FROM people GROUP BY state

SELECT state, n FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) WHERE n BETWEEN 3000 AND 7000

WITH c AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT region FROM states WHERE state IN (SELECT state FROM c WHERE n > 4000)

WITH c AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT region FROM states s WHERE EXISTS (SELECT 1 FROM c WHERE c.state = s.state AND n > 4000)

SELECT state, n, n > ALL (SELECT 3000 UNION ALL SELECT 4000) AS large FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

-- expressions
SELECT state, printf('%s: %d', state, COUNT(*)) AS text FROM people GROUP BY state

SELECT state, greatest(COUNT(*) FILTER (WHERE smoker), COUNT(*) FILTER (WHERE NOT smoker)) AS most FROM people GROUP BY state

SELECT state, ln(COUNT(*)) AS l, sqrt(COUNT(*)) AS s, COUNT(*) ** 2 AS squared FROM people GROUP BY state

SELECT state, [MIN(n), MAX(n)] AS ends FROM (SELECT state, sex, COUNT(*) AS n FROM people GROUP BY ALL) GROUP BY state

SELECT {'state': state, 'n': n} AS row FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

SELECT upper(state) AS s, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM people GROUP BY upper(state)

SELECT age // 10 * 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age // 10 * 10) AS up_to FROM people WHERE age < 100 GROUP BY age // 10 * 10

-- two stages
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)

SELECT state, COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) GROUP BY state

SELECT COUNT(*) AS n FROM people WHERE income > 2 * (SELECT AVG(income) FROM people WHERE state = 'CA')

SELECT COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM people GROUP BY state ORDER BY COUNT(*) DESC LIMIT 2)

SELECT AVG(income) AS m FROM people WHERE state NOT IN (SELECT state FROM people GROUP BY state HAVING COUNT(*) > 4000)

SELECT COUNT(*) AS n FROM people JOIN (SELECT state, AVG(income) AS m FROM people GROUP BY state) a USING (state) WHERE income > a.m

WITH a AS (SELECT state, AVG(income) AS m FROM people GROUP BY state) SELECT p.state, COUNT(*) AS n FROM people p JOIN a ON a.state = p.state WHERE p.income > a.m GROUP BY p.state

SELECT SUM(CASE WHEN age > (SELECT AVG(age) FROM people) THEN 1 ELSE 0 END) AS older FROM people

SELECT (SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)) * 100.0 / COUNT(*) AS pct FROM people

WITH big AS (SELECT state FROM people GROUP BY state HAVING COUNT(*) > 4000) SELECT sex, COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM big) GROUP BY sex

SELECT AVG(income) AS m FROM (SELECT * FROM people WHERE age > (SELECT AVG(age) FROM people)) WHERE smoker

SELECT AVG(age) AS a FROM people WHERE age > (SELECT AVG(age) FROM people)

SELECT SUM(income) AS s FROM people WHERE income < (SELECT AVG(income) FROM people)

SELECT COUNT(*) AS n FROM people JOIN (SELECT AVG(age) AS m FROM people) ON age > m

WITH a AS (SELECT AVG(age) AS m FROM people) SELECT COUNT(*) AS n FROM people WHERE age > (SELECT m FROM a)

WITH people AS (SELECT * FROM people WHERE smoker) SELECT state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY state

WITH a AS (SELECT p.id, p.age FROM people p JOIN (SELECT state FROM states) s USING (state)), states AS (SELECT 'ZZ' AS state) SELECT COUNT(*) AS n FROM a WHERE age > (SELECT AVG(age) FROM a)

-- names
SELECT sex AS state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY state, sex

SELECT state AS sex, sex AS x, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY state, people.sex

SELECT -COUNT(*) AS state, state AS s, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY people.state

SELECT sex AS k, -COUNT(*) AS sex, RANK() OVER (ORDER BY sex) AS w FROM people GROUP BY sex ORDER BY sex LIMIT 1

SELECT state AS sex, sex AS state, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY people.state, people.sex ORDER BY sex, state LIMIT 3

SELECT p.state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM people p GROUP BY state

SELECT * FROM states JOIN (SELECT state, COUNT(*) AS n FROM people GROUP BY state) g USING (state)

SELECT [state] AS l, SUM(n) OVER () AS m FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)

-- subqueries inside expressions
SELECT COUNT(*) AS n FROM people p WHERE p.id NOT IN (SELECT v.id FROM visits v WHERE v.cost > 30)

SELECT COUNT(*) AS n FROM people p WHERE 30 IN (SELECT v.cost FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE p.age IN (SELECT v.cost FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE p.age NOT IN (SELECT v.cost FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE NOT (p.age IN (SELECT v.cost FROM visits v WHERE v.id = p.id))

SELECT COUNT(*) AS n FROM people p WHERE p.age NOT IN (SELECT nullif(v.cost, 7) FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE nullif(p.age, 7) NOT IN (SELECT v.cost FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id)) AS n FROM people p

SELECT COUNT(*) AS n FROM people p WHERE smoker OR EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.cost > 40)

SELECT COUNT(*) AS n FROM people p WHERE smoker OR p.age IN (SELECT v.cost FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE p.age = (SELECT COUNT(*) FROM visits v WHERE v.id = p.id)

SELECT COUNT(*) AS n FROM people p WHERE (SELECT SUM(cost) FROM visits v WHERE v.id = p.id) IS NULL

SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) + MAX(cost) FROM visits v WHERE v.id = p.id) > 40

SELECT COUNT(*) AS n FROM people p WHERE (SELECT COALESCE(SUM(cost), 0) - p.age FROM visits v WHERE v.id = p.id AND v.kind = 'a') > 0

SELECT state, AVG((SELECT COUNT(*) FROM visits v WHERE v.id = p.id)) AS m FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) <= 10 GROUP BY state

SELECT COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM states WHERE region = 'west') OR age > 80

SELECT COUNT(*) AS n FROM people p WHERE income > (SELECT AVG(population) FROM states)

SELECT COUNT(*) AS n FROM people p WHERE income > (SELECT MAX(population) FROM states s WHERE s.region = 'west') * 20

SELECT COUNT(*) AS n FROM visits v WHERE (SELECT age FROM people p WHERE p.id = v.id) > 50

SELECT COUNT(*) AS n FROM visits v WHERE v.cost > (SELECT AVG(w.cost) FROM visits w WHERE w.id = v.id AND w.kind = v.kind)

SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.kind = 'a') THEN 1 ELSE 0 END) AS n FROM people p

SELECT AVG(n) AS m FROM (SELECT p.id, (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) AS n FROM people p) WHERE n <= 12

SELECT COUNT(*) AS n FROM (SELECT *, (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) AS k FROM people p) WHERE k > 3 AND age > 20

WITH x AS (SELECT p.*, (SELECT MAX(cost) FROM visits v WHERE v.id = p.id) AS top FROM people p) SELECT state, COUNT(*) AS n FROM x WHERE top > 40 GROUP BY state

SELECT s.state, (SELECT COUNT(*) FROM people p WHERE p.state = s.state) AS n, (SELECT AVG(age) FROM people p WHERE p.state = s.state) AS m FROM states s

SELECT COUNT(*) AS n FROM people p WHERE p.age > (SELECT AVG(q.age) FROM people q WHERE q.state = p.state)

SELECT state, COUNT(*) AS n FROM people p WHERE p.income > 1.5 * (SELECT AVG(q.income) FROM people q WHERE q.state = p.state AND q.sex = p.sex) GROUP BY state

SELECT state, COUNT(*) AS n, (SELECT region FROM states s WHERE s.state = p.state) AS region FROM people p GROUP BY state

SELECT state, COUNT(*) AS n FROM people p GROUP BY state HAVING COUNT(*) > 5 * (SELECT population FROM states s WHERE s.state = p.state)

SELECT p.state, COUNT(*) AS n, (SELECT COUNT(*) FROM visits v JOIN people q ON q.id = v.id WHERE q.state = p.state) AS visits FROM people p GROUP BY p.state

WITH a AS (SELECT state, AVG(income) AS m FROM people GROUP BY state) SELECT COUNT(*) AS n FROM people p WHERE income > (SELECT m FROM a WHERE a.state = p.state)

SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.id = p.id HAVING COUNT(*) > 1) < 5

SELECT state FROM states s WHERE population > (SELECT AVG(population) FROM states t WHERE t.region = s.region)

SELECT s.state FROM states s WHERE s.population * 10 < (SELECT COUNT(*) FROM people p WHERE p.state = s.state)

SELECT s.region, SUM((SELECT COUNT(*) FROM people p WHERE p.state = s.state)) AS n FROM states s GROUP BY s.region

SELECT COUNT(DISTINCT p.state) AS n FROM people p WHERE (SELECT COUNT(DISTINCT kind) FROM visits v WHERE v.id = p.id) = 2

SELECT MEDIAN((SELECT COUNT(*) FROM visits v WHERE v.id = p.id)) AS m FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) BETWEEN 0 AND 20

SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.cost > (SELECT AVG(cost) FROM visits w WHERE w.id = v.id))

SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON v.id = p.id WHERE v.cost > (SELECT MIN(w.cost) FROM visits w WHERE w.id = p.id)

SELECT COUNT(*) AS n FROM people p, visits v WHERE v.id = p.id AND v.cost > (SELECT MIN(w.cost) FROM visits w WHERE w.id = p.id)

SELECT CASE WHEN (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) > 3 THEN 'many' ELSE 'few' END AS k, COUNT(*) AS n FROM people p GROUP BY k

SELECT COUNT(*) AS n FROM people p WHERE id IN (SELECT id FROM visits WHERE cost > 40) OR smoker

SELECT COUNT(*) FILTER (WHERE id NOT IN (SELECT id FROM visits)) AS n FROM people

SELECT s.region, COUNT(*) AS n FROM people p JOIN states s USING (state) WHERE (SELECT MAX(cost) FROM visits v WHERE v.id = p.id AND v.kind = 'b') > 30 GROUP BY s.region

SELECT COUNT(*) AS n FROM people p WHERE age > (SELECT AVG(v.cost) * 2 FROM visits v WHERE v.id = p.id) AND smoker

SELECT AVG((SELECT MEDIAN(cost) FROM visits v WHERE v.id = p.id)) AS m FROM people p

SELECT COUNT(*) AS n FROM people p WHERE (SELECT bool_and(cost > 5) FROM visits v WHERE v.id = p.id)

SELECT p.state, COUNT(*) AS n FROM people p WHERE p.age > (SELECT AVG(age) FROM people q WHERE q.state = p.state) GROUP BY p.state HAVING COUNT(*) > 10

SELECT s.state, l.n FROM states s, LATERAL (SELECT COUNT(*) AS n FROM (SELECT state, COUNT(*) AS k FROM people GROUP BY state) r WHERE r.state = s.state) l

WITH a AS (SELECT state, AVG(income) AS m FROM people GROUP BY state) SELECT COUNT(*) AS n FROM people p WHERE income > (SELECT MAX(m) FROM a WHERE a.state <= 'NY' AND a.state = p.state)

SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.cost IN (SELECT population FROM states))

SELECT state, SUM(CASE WHEN (SELECT COUNT(*) FROM visits v WHERE v.id = p.id) = 0 THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct FROM people p GROUP BY state

SELECT COUNT(*) AS n FROM (SELECT id, age - (SELECT AVG(age) FROM people) AS above FROM people) WHERE above > 10

SELECT age > (SELECT AVG(age) FROM people) AS old, COUNT(*) AS n FROM people GROUP BY 1
