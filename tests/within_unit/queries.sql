-- Analysts' queries over one person's rows at a time, one a paragraph. test_window_queries.py compares each with plain DuckDB.

-- first and latest
SELECT COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) WHERE k = 1

SELECT kind, COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment DESC) AS k FROM visits) WHERE k = 1 GROUP BY kind

SELECT kind, COUNT(*) AS n FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) = 1) GROUP BY kind

WITH latest AS (SELECT DISTINCT ON (user_id) * FROM visits ORDER BY user_id, moment DESC) SELECT kind, COUNT(*) AS n, AVG(cost) AS m FROM latest GROUP BY kind

SELECT AVG(cost) AS m FROM (SELECT cost, RANK() OVER (PARTITION BY user_id ORDER BY moment) AS r FROM visits) WHERE r = 1

SELECT u.state, COUNT(*) AS n FROM users u JOIN (SELECT user_id, kind, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) v ON v.user_id = u.id WHERE v.k = 1 AND v.kind = 'a' GROUP BY u.state

SELECT k, COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) WHERE k <= 5 GROUP BY k

SELECT k, AVG(cost) AS m FROM (SELECT cost, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) WHERE k BETWEEN 1 AND 3 GROUP BY k

SELECT COUNT(*) AS n FROM (SELECT user_id FROM visits QUALIFY DENSE_RANK() OVER (PARTITION BY user_id ORDER BY kind) = 2)

SELECT first_kind, last_kind, COUNT(*) AS n FROM (SELECT DISTINCT user_id, FIRST_VALUE(kind) OVER w AS first_kind, LAST_VALUE(kind) OVER w AS last_kind FROM visits WINDOW w AS (PARTITION BY user_id ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) WHERE first_kind IN ('a', 'b') AND last_kind IN ('a', 'b') GROUP BY first_kind, last_kind

SELECT COUNT(*) AS n FROM (SELECT NTH_VALUE(kind, 2) OVER (PARTITION BY user_id ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) WHERE k = 1 AND second = 'b'

-- gaps
SELECT COUNT(*) AS n FROM (SELECT day - LAG(day) OVER (PARTITION BY user_id ORDER BY moment) AS gap FROM visits) WHERE gap >= 30

SELECT AVG(gap) AS m FROM (SELECT date_diff('day', LAG(day) OVER (PARTITION BY user_id ORDER BY moment), day) AS gap FROM visits) WHERE gap BETWEEN 0 AND 366

SELECT COUNT(*) AS n FROM (SELECT LEAD(day) OVER (PARTITION BY user_id ORDER BY moment) - day AS gap FROM visits) WHERE gap < 7

SELECT COUNT(*) AS n FROM (SELECT LEAD(moment) OVER (PARTITION BY user_id ORDER BY moment) AS after FROM visits) WHERE after IS NULL

SELECT gap // 30 AS months, COUNT(*) AS n FROM (SELECT day - LAG(day) OVER (PARTITION BY user_id ORDER BY moment) AS gap FROM visits) WHERE gap BETWEEN 0 AND 149 GROUP BY months

SELECT SUM(cost - before) AS s FROM (SELECT cost, LAG(cost, 1, 0) OVER (PARTITION BY user_id ORDER BY moment) AS before FROM visits)

SELECT COUNT(*) AS n FROM (SELECT kind, LAG(kind) OVER w AS before FROM visits WINDOW w AS (PARTITION BY user_id ORDER BY moment)) WHERE kind <> before

SELECT before, kind, COUNT(*) AS n FROM (SELECT kind, LAG(kind) OVER w AS before FROM visits WINDOW w AS (PARTITION BY user_id ORDER BY moment)) WHERE before IS NOT NULL GROUP BY before, kind

SELECT COUNT(*) AS n FROM (SELECT LAG(score IGNORE NULLS) OVER (PARTITION BY user_id ORDER BY moment) AS p, score FROM visits) WHERE score > p

-- sessions
SELECT COUNT(*) AS sessions FROM (SELECT CASE WHEN day - LAG(day) OVER (PARTITION BY user_id ORDER BY moment) <= 20 THEN 0 ELSE 1 END AS begins FROM visits) WHERE begins = 1

WITH marked AS (SELECT user_id, moment, CASE WHEN day - LAG(day) OVER (PARTITION BY user_id ORDER BY moment) <= 20 THEN 0 ELSE 1 END AS begins FROM visits), numbered AS (SELECT user_id, SUM(begins) OVER (PARTITION BY user_id ORDER BY moment) AS session FROM marked), sessions AS (SELECT user_id, session, COUNT(*) AS visits FROM numbered GROUP BY user_id, session) SELECT COUNT(*) AS n, AVG(visits) AS m FROM sessions

SELECT COUNT(*) AS n FROM (SELECT COUNT(*) OVER (PARTITION BY user_id ORDER BY day RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS recent FROM visits) WHERE recent >= 3

SELECT COUNT(*) AS n FROM (SELECT COUNT(*) OVER (PARTITION BY user_id ORDER BY moment RANGE BETWEEN INTERVAL 240 HOURS PRECEDING AND CURRENT ROW) AS recent FROM visits) WHERE recent = 1

SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id, date_trunc('month', day) ORDER BY moment) AS k FROM visits) WHERE k = 1

-- running totals and comparisons within a person
SELECT COUNT(*) AS n FROM (SELECT SUM(cost) OVER (PARTITION BY user_id ORDER BY moment) AS spent FROM visits) WHERE spent > 100

SELECT COUNT(*) AS n FROM (SELECT user_id, moment, SUM(cost) OVER (PARTITION BY user_id ORDER BY moment) AS spent FROM visits QUALIFY spent > 50 AND spent - cost <= 50)

SELECT COUNT(*) AS n FROM (SELECT cost, AVG(cost) OVER (PARTITION BY user_id) AS usual FROM visits) WHERE cost > 2 * usual

SELECT kind, COUNT(*) AS n FROM (SELECT kind, cost, MAX(cost) OVER (PARTITION BY user_id) AS most FROM visits) WHERE cost = most GROUP BY kind

SELECT COUNT(*) AS n FROM (SELECT AVG(price) OVER (PARTITION BY user_id ORDER BY moment ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m FROM visits) WHERE m > 5

SELECT kind, SUM(share) AS s FROM (SELECT kind, cost / SUM(cost) OVER (PARTITION BY user_id) AS share FROM visits WHERE cost > 0) WHERE share BETWEEN 0 AND 1 GROUP BY kind

SELECT COUNT(*) AS n FROM (SELECT COUNT(*) OVER (PARTITION BY user_id) AS c, COUNT(DISTINCT kind) OVER (PARTITION BY user_id) AS kinds FROM visits) WHERE c > 3 AND kinds = 1

SELECT third, COUNT(*) AS n, AVG(cost) AS m FROM (SELECT cost, NTILE(3) OVER (PARTITION BY user_id ORDER BY moment) AS third FROM visits) GROUP BY third

SELECT COUNT(*) AS n FROM (SELECT PERCENT_RANK() OVER (PARTITION BY user_id ORDER BY moment) AS p FROM visits) WHERE p >= 0.5

SELECT COUNT(*) AS n FROM (SELECT BOOL_OR(cost > 45) OVER (PARTITION BY user_id ORDER BY moment) AS ever FROM visits) WHERE ever

SELECT COUNT(*) AS n FROM (SELECT cost, SUM(cost) FILTER (WHERE kind = 'a') OVER (PARTITION BY user_id ORDER BY moment) AS a FROM visits) WHERE a > cost

-- over groups of one person
SELECT kind, COUNT(*) AS n FROM (SELECT user_id, kind, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY COUNT(*) DESC, kind) AS k FROM visits GROUP BY user_id, kind) WHERE k = 1 GROUP BY kind

SELECT COUNT(*) AS n FROM (SELECT user_id, month(day) AS m, SUM(cost) AS s, LAG(SUM(cost)) OVER (PARTITION BY user_id ORDER BY month(day)) AS before FROM visits GROUP BY user_id, month(day)) WHERE s > before

SELECT kind, COUNT(*) AS n FROM (SELECT user_id, kind, SUM(cost) AS s FROM visits GROUP BY user_id, kind QUALIFY RANK() OVER (PARTITION BY user_id ORDER BY SUM(cost) DESC) = 1) GROUP BY kind

-- rows that are in one and not in the other
SELECT COUNT(*) AS n FROM (SELECT user_id FROM visits WHERE kind = 'a' EXCEPT SELECT user_id FROM visits WHERE kind = 'b')

SELECT COUNT(*) AS n FROM (SELECT user_id FROM visits WHERE kind = 'a' INTERSECT SELECT user_id FROM visits WHERE kind = 'b')

SELECT COUNT(*) AS n FROM (SELECT id FROM users EXCEPT SELECT user_id FROM visits)

SELECT kind, COUNT(*) AS n FROM (SELECT user_id, kind FROM visits EXCEPT ALL SELECT user_id, kind FROM visits WHERE cost < 25) GROUP BY kind

SELECT kind, COUNT(*) AS n FROM (SELECT user_id, kind FROM visits WHERE cost > 10 INTERSECT ALL SELECT user_id, kind FROM visits WHERE cost < 25) GROUP BY kind

SELECT state, COUNT(*) AS n FROM users WHERE id IN (SELECT user_id FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) = 4) GROUP BY state

-- below other releases, and in two stages
SELECT kind, n, 100.0 * n / SUM(n) OVER () AS pct FROM (SELECT kind, COUNT(*) AS n FROM (SELECT DISTINCT ON (user_id) user_id, kind FROM visits ORDER BY moment) GROUP BY kind)

SELECT COUNT(*) AS n FROM (SELECT cost, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY moment) AS k FROM visits) WHERE k = 1 AND cost >= 25
