"""SQL text goes in; other texts come out: some mean the same, some nearly. Which of them do is for meaning/ to say.

A change is a function of the parsed query that changes it in one place, and says whether there was one to change.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import sqlglot
from sqlglot import exp

Change = Callable[[exp.Expr, Random], bool]
_TURNED = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_OPPOSITE = {
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
}
_NEAR = {exp.LT: exp.LTE, exp.LTE: exp.LT, exp.GT: exp.GTE, exp.GTE: exp.GT, exp.EQ: exp.GTE, exp.NEQ: exp.LT}
COMPARISONS = tuple(_TURNED)


def variant(sql: str, rng: Random, most: int = 3) -> str:
    """The query with one to `most` changes."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    for _ in range(rng.randint(1, most)):
        for change in rng.sample(CHANGES, len(CHANGES)):
            if change(tree, rng):
                break
    return tree.sql(dialect="duckdb")


def _one(
    tree: exp.Expr, rng: Random, *kinds: type[exp.Expr], where: Callable[[Any], bool] = lambda node: True
) -> Any:
    found = [node for node in tree.find_all(*kinds) if where(node)]
    return rng.choice(found) if found else None


def _paren(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def _conditions(tree: exp.Expr) -> list[exp.Expr]:
    """What stands under WHERE, FILTER and WHEN."""
    found = [node.this for node in tree.find_all(exp.Where)]
    return [node for node in found if node.find(exp.Query) is None]


# -- the same ------------------------------------------------------------------------------------------------
def turn(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, *COMPARISONS)
    if node is None:
        return False
    node.replace(_TURNED[type(node)](this=node.expression.copy(), expression=node.this.copy()))
    return True


def deny(tree: exp.Expr, rng: Random) -> bool:
    """a < b as NOT (a >= b)."""
    node = _one(tree, rng, *COMPARISONS)
    if node is None:
        return False
    opposite = _OPPOSITE[type(node)](this=node.this.copy(), expression=node.expression.copy())
    node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=opposite))))
    return True


def swap(tree: exp.Expr, rng: Random) -> bool:
    """The sides of AND, OR, + and *; of - and / as well, which is not the same."""
    node = _one(tree, rng, exp.And, exp.Or, exp.Add, exp.Mul, exp.And, exp.Or, exp.Sub, exp.Mod)
    if node is None:
        return False
    left, right = _paren(node.this), _paren(node.expression)
    node.set("this", right)
    node.set("expression", left)
    return True


def regroup(tree: exp.Expr, rng: Random) -> bool:
    """(a + b) + c as a + (b + c)."""
    node = _one(tree, rng, exp.Add, exp.Mul, where=lambda n: type(n.this.unnest()) is type(n))
    if node is None:
        return False
    inner = node.this.unnest()
    right = type(node)(this=_paren(inner.expression), expression=_paren(node.expression))
    node.replace(exp.Paren(this=type(node)(this=_paren(inner.this), expression=exp.Paren(this=right))))
    return True


def de_morgan(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, exp.And, exp.Or, where=lambda n: n.find(exp.Query) is None)
    if node is None:
        return False
    dual = exp.Or if isinstance(node, exp.And) else exp.And
    denied = [exp.Not(this=_paren(each)) for each in (node.this, node.expression)]
    node.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=dual(this=denied[0], expression=denied[1])))))
    return True


def spell_out(tree: exp.Expr, rng: Random) -> bool:
    """IN as OR, BETWEEN as two comparisons."""
    node = _one(tree, rng, exp.In, exp.Between, where=lambda n: not n.args.get("query"))
    if node is None:
        return False
    value = node.this
    if isinstance(node, exp.Between):
        low, high = node.args["low"], node.args["high"]
        parts = [
            exp.GTE(this=_paren(value), expression=_paren(low)),
            exp.LTE(this=_paren(value), expression=_paren(high)),
        ]
        node.replace(exp.Paren(this=exp.And(this=parts[0], expression=parts[1])))
        return True
    tests = [exp.EQ(this=_paren(value), expression=_paren(each)) for each in node.expressions]
    rng.shuffle(tests)
    joined: exp.Expr = tests[0]
    for each in [*tests[1:], *rng.sample(tests, 1)]:
        joined = exp.Or(this=joined, expression=each.copy())
    node.replace(exp.Paren(this=joined))
    return True


def idle(tree: exp.Expr, rng: Random) -> bool:
    """A condition with something beside it that changes nothing."""
    found = _conditions(tree)
    if not found:
        return False
    node = rng.choice(found)
    inner = _paren(node)
    truth, untruth = exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1)), exp.false()
    node.replace(rng.choice([
        exp.And(this=inner, expression=exp.Paren(this=truth)), exp.Or(this=inner, expression=untruth),
        exp.Not(this=exp.Paren(this=exp.Not(this=inner))), exp.Is(this=inner, expression=exp.true()),
        exp.And(this=inner, expression=inner.copy()), exp.Coalesce(this=inner, expressions=[exp.false()]),
        exp.EQ(this=inner, expression=exp.true()),
    ]))  # fmt: skip
    return True


def fold(tree: exp.Expr, rng: Random) -> bool:
    """5 as (3 + 2)."""
    node = _one(
        tree,
        rng,
        exp.Literal,
        where=lambda n: isinstance(n.parent, COMPARISONS) and n.this.isdigit() and not n.is_string,
    )
    if node is None:
        return False
    number, part = int(node.this), rng.randint(0, 5)
    node.replace(sqlglot.parse_one(f"({number - part} + {part})", read="duckdb"))
    return True


def count_otherwise(tree: exp.Expr, rng: Random) -> bool:
    """Ways to count the rows that meet a condition."""
    node = _one(tree, rng, exp.Filter, where=lambda n: n.this.sql() == "COUNT(*)")
    if node is None:
        node = _one(tree, rng, exp.CountIf, where=lambda n: not isinstance(n.parent, exp.Filter))
    if node is None:
        return False
    test = node.this if isinstance(node, exp.CountIf) else node.expression.this
    text = f"({test.sql(dialect='duckdb')})"
    node.replace(sqlglot.parse_one(rng.choice([
        f"COUNT_IF({text})", f"SUM(CASE WHEN {text} THEN 1 ELSE 0 END)", f"COUNT(CASE WHEN {text} THEN 1 END)", f"SUM({text})",
        f"COUNT(*) FILTER (WHERE {text})", f"SUM(1) FILTER (WHERE {text})", f"SUM(CASE WHEN {text} THEN 1 END)",
        f"COUNT(CASE WHEN {text} THEN 1 ELSE 0 END)",
    ]), read="duckdb"))  # fmt: skip
    return True


def count_there(tree: exp.Expr, rng: Random) -> bool:
    """COUNT(x) as a count of the rows where x is not NULL."""
    node = _one(tree, rng, exp.Count, where=lambda n: not isinstance(n.this, (exp.Star, exp.Distinct)) and n.this is not None
                and not isinstance(n.parent, exp.Filter))  # fmt: skip
    if node is None:
        return False
    text = node.this.sql(dialect="duckdb")
    node.replace(sqlglot.parse_one(f"COUNT(*) FILTER (WHERE ({text}) IS NOT NULL)", read="duckdb"))
    return True


def sum_where(tree: exp.Expr, rng: Random) -> bool:
    """SUM(x) FILTER (WHERE p) as SUM(CASE WHEN p THEN x END)."""
    node = _one(tree, rng, exp.Filter, where=lambda n: isinstance(n.this, (exp.Sum, exp.Avg)))
    if node is None:
        return False
    test, value = node.expression.this.sql(dialect="duckdb"), node.this.this.sql(dialect="duckdb")
    otherwise = rng.choice(["", "", " ELSE 0", " ELSE NULL"])
    node.replace(
        sqlglot.parse_one(
            f"{node.this.key.upper()}(CASE WHEN {test} THEN {value}{otherwise} END)", read="duckdb"
        )
    )
    return True


def shuffle(tree: exp.Expr, rng: Random) -> bool:
    """The SELECT list of the whole query, or the keys."""
    if not isinstance(tree, exp.Select):
        return False
    group = tree.args.get("group")
    plain = group is None or not any(isinstance(each, exp.Literal) for each in group.expressions)
    by_place = tree.args.get("order") is not None
    if plain and not by_place and len(tree.expressions) > 1 and rng.random() < 0.5:
        tree.set("expressions", rng.sample(tree.expressions, len(tree.expressions)))
        return True
    if group is not None and len(group.expressions) > 1:
        group.set("expressions", rng.sample(group.expressions, len(group.expressions)))
        return True
    return False


def wrap(tree: exp.Expr, rng: Random) -> bool:
    """FROM x as FROM (SELECT * FROM x)."""
    node = _one(tree, rng, exp.Select, where=lambda n: n.args.get("from_") is not None)
    if node is None:
        return False
    inner = node.args["from_"].this
    if not isinstance(inner, (exp.Table, exp.Subquery)) or inner.args.get("pivots"):
        return False
    alias = inner.alias_or_name
    if not alias:
        return False
    star = exp.Select(expressions=[exp.Star()]).from_(inner.copy())
    inner.replace(exp.Subquery(this=star, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
    return True


def push_down(tree: exp.Expr, rng: Random) -> bool:
    """FROM x WHERE p as FROM (SELECT * FROM x WHERE p)."""
    node = _one(
        tree, rng, exp.Select, where=lambda n: n.args.get("where") is not None and not n.args.get("joins")
    )
    if node is None:
        return False
    inner, where = node.args["from_"].this, node.args["where"]
    if (
        not isinstance(inner, (exp.Table, exp.Subquery))
        or inner.args.get("pivots")
        or not inner.alias_or_name
    ):
        return False
    below = exp.Select(expressions=[exp.Star()]).from_(inner.copy())
    below.set("where", where.copy())
    inner.replace(
        exp.Subquery(
            this=below, alias=exp.TableAlias(this=exp.to_identifier(inner.alias_or_name, quoted=True))
        )
    )
    node.set("where", None)
    return True


def filter_instead(tree: exp.Expr, rng: Random) -> bool:
    """WHERE as FILTER behind every aggregate: the same where rows of units are not bounded."""
    if not isinstance(tree, exp.Select) or tree.args.get("where") is None or tree.find(exp.Filter):
        return False
    condition = tree.args["where"].this
    if condition.find(exp.Query) is not None:
        return False
    changed = False
    for node in [*tree.find_all(exp.Count, exp.Sum, exp.Avg)]:
        if node.parent_select is tree:
            node.replace(exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy())))
            changed = True
    if changed:
        tree.set("where", None)
    return changed


def turn_union(tree: exp.Expr, rng: Random) -> bool:
    node = _one(
        tree,
        rng,
        exp.Union,
        where=lambda n: not n.args.get("distinct") and isinstance(n.parent, exp.Subquery),
    )
    if node is None or any(isinstance(each, exp.Alias) for each in node.expression.selects):
        return False
    names = [each.alias_or_name for each in node.this.selects]
    left, right = node.expression.copy(), node.this.copy()
    if "*" not in names and len(left.selects) == len(names) and isinstance(left, exp.Select):
        aliased = [
            exp.alias_(each.unalias().copy(), name, quoted=True)
            for each, name in zip(left.selects, names, strict=True)
        ]
        left.set("expressions", aliased)
    node.set("this", left)
    node.set("expression", right)
    return True


def turn_join(tree: exp.Expr, rng: Random) -> bool:
    """a JOIN b as b JOIN a."""
    node = _one(tree, rng, exp.Select, where=lambda n: len(n.args.get("joins") or []) == 1)
    if node is None:
        return False
    join = node.args["joins"][0]
    if join.side or join.kind not in ("", "INNER") or node.find(exp.Star):
        return False
    first, second = node.args["from_"].this.copy(), join.this.copy()
    node.args["from_"].set("this", second)
    join.set("this", first)
    return True


def on_in_where(tree: exp.Expr, rng: Random) -> bool:
    """A condition of JOIN ... ON as one of WHERE."""
    node = _one(
        tree,
        rng,
        exp.Join,
        where=lambda n: n.args.get("on") is not None and not n.side and n.kind in ("", "INNER"),
    )
    if node is None:
        return False
    select, on = node.parent_select, node.args["on"]
    if not isinstance(on, exp.And) or node.find_ancestor(exp.Select) is not select:
        return False
    node.set("on", on.this.copy())
    where = select.args.get("where")
    moved = _paren(on.expression)
    select.set(
        "where",
        exp.Where(this=moved if where is None else exp.And(this=_paren(where.this), expression=moved)),
    )
    return True


# -- nearly the same -----------------------------------------------------------------------------------------
def other_constant(tree: exp.Expr, rng: Random) -> bool:
    around = (*COMPARISONS, exp.In, exp.Between, exp.Add, exp.If)
    node = _one(tree, rng, exp.Literal, where=lambda n: isinstance(n.parent, around))
    if node is None:
        return False
    if node.is_string:
        node.replace(exp.Literal.string(rng.choice(["a", "b", "p", "2024-01-03"])))
    else:
        node.replace(exp.Literal.number(rng.choice(["0", "1", "2", "4", "5", "0.5", "4.0", "1e0"])))
    return True


def other_comparison(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, *COMPARISONS)
    if node is None or node.find_ancestor(exp.Join):
        return False
    node.replace(_NEAR[type(node)](this=node.this.copy(), expression=node.expression.copy()))
    return True


def other_junction(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, exp.And, exp.Or, where=lambda n: not n.find_ancestor(exp.Join))
    if node is None:
        return False
    node.replace(
        (exp.Or if isinstance(node, exp.And) else exp.And)(
            this=_paren(node.this), expression=_paren(node.expression)
        )
    )
    return True


def drop(tree: exp.Expr, rng: Random) -> bool:
    """One side of AND or OR, NOT, or the whole of WHERE."""
    node = _one(tree, rng, exp.And, exp.Or, exp.Not, exp.Where, where=lambda n: not n.find_ancestor(exp.Join))
    if node is None:
        return False
    if isinstance(node, exp.Where):
        if isinstance(node.parent, exp.Select):
            node.pop()
            return True
        return False
    node.replace(_paren(node.this if isinstance(node, exp.Not) else rng.choice([node.this, node.expression])))
    return True


def need(tree: exp.Expr, rng: Random) -> bool:
    """x IS NOT NULL beside a condition about x, or beside one about something else."""
    columns = [node for node in tree.find_all(exp.Column) if node.find_ancestor(exp.Where)]
    found = _conditions(tree)
    if not columns or not found:
        return False
    node, column = rng.choice(found), rng.choice(columns)
    test = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    node.replace(exp.And(this=_paren(node), expression=exp.Paren(this=test)))
    return True


def doubt(tree: exp.Expr, rng: Random) -> bool:
    """A condition IS NOT FALSE, or OR NULL: true of more or of the same rows."""
    found = _conditions(tree)
    if not found:
        return False
    node = rng.choice(found)
    text = f"({node.sql(dialect='duckdb')})"
    node.replace(sqlglot.parse_one(rng.choice([
        f"{text} IS NOT FALSE", f"({text} OR NULL)", f"({text} IS DISTINCT FROM FALSE)", f"COALESCE({text}, TRUE)",
        f"(CASE WHEN {text} THEN TRUE ELSE FALSE END)", f"NOT (CASE WHEN {text} THEN FALSE ELSE TRUE END)",
        f"({text} IS NOT DISTINCT FROM TRUE)", f"(NOT ({text}) IS TRUE)", f"(({text}) IS FALSE) IS FALSE",
    ]), read="duckdb"))  # fmt: skip
    return True


def other_aggregate(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, exp.Sum, exp.Avg)
    if node is None:
        return False
    node.replace((exp.Avg if isinstance(node, exp.Sum) else exp.Sum)(this=node.this.copy()))
    return True


def other_join(tree: exp.Expr, rng: Random) -> bool:
    node = _one(tree, rng, exp.Join, where=lambda n: n.args.get("on") is not None and n.kind in ("", "INNER"))
    if node is None:
        return False
    node.set("side", None if node.side else "LEFT")
    node.set("kind", None)
    return True


CHANGES: list[Change] = [
    turn, deny, swap, regroup, de_morgan, spell_out, idle, fold, count_otherwise, count_there, sum_where, shuffle, wrap,
    push_down, filter_instead, turn_union, turn_join, on_in_where, other_constant, other_comparison, other_junction, drop,
    need, doubt, other_aggregate, other_join,
]  # fmt: skip
