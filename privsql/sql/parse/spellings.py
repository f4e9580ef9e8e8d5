"""A parsed query goes in; it comes out with other spellings of what has a rule written plainly, before
anything is permitted.

Only what has exactly one plain meaning is rewritten; everything else is left as it stands, and refused where
it has no rule.
"""

from __future__ import annotations

from sqlglot import exp

from privsql.sql.parse.rewritten.other_names import write_other_names


def write_plainly(statement: exp.Expr) -> None:
    """Rewrites in place; the parts of a node move as they are, with their places in the text."""
    for node in list(statement.walk()):
        plain = _plain(node)
        if plain is not None:
            node.replace(plain)
    write_other_names(statement)


def _plain(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Is(args={"negate": True}) if _has_only(node, "this", "expression", "negate"):
            return exp.Not(this=exp.Is(this=node.this, expression=node.expression))
        case exp.RegexpILike() if _has_only(node, "this", "expression"):  # x ~* 'a'
            return exp.RegexpLike(this=node.this, expression=node.expression, flag=exp.Literal.string("i"))
        case exp.RegexpLike(args={"full_match": True}) if _has_only(node, "this", "expression", "full_match"):
            return exp.RegexpFullMatch(this=node.this, expression=node.expression)
        case exp.Date() if _has_only(node, "this"):
            return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.DATE))
        case exp.Convert() if _has_only(node, "this", "expression"):  # CONVERT(date, x)
            return exp.Cast(this=node.expression, to=node.this)
        case exp.DatetimeTrunc() if _has_only(node, "this", "unit"):
            return exp.TimestampTrunc(this=node.this, unit=node.args["unit"])
        # exact before the noise
        case exp.Hll(this=of) if not node.expressions:
            return exp.Count(this=exp.Distinct(expressions=[of]), big_int=True)
        case exp.WithinGroup(
            this=exp.Mode() as mode, expression=exp.Order(expressions=[exp.Ordered() as term])
        ):
            # the order decides between equals, as noise does
            return exp.Mode(this=term.this) if _has_only(mode) else None
        # as it is without saying so
        case exp.IgnoreNulls(this=exp.AnyValue() as any_value) if _has_only(node, "this"):
            return any_value
        case _:
            return _plain_membership(node)


def _plain_membership(node: exp.Expr) -> exp.Expr | None:
    """x = ANY(...), x <> ALL(...), x IN UNNEST(...) and list_contains as x IN (...)."""
    match node:
        case exp.EQ() if _is_alone_in_list(node):
            return None
        case exp.EQ(expression=exp.Any(this=compared)):
            return _member(node.this, compared)
        case exp.EQ(expression=exp.Anonymous(this=str(name), expressions=[compared])) if (
            name.upper() == "SOME"
        ):
            return _member(node.this, compared)
        case exp.NEQ(expression=exp.All(this=compared)):
            return _negated(_member(node.this, compared))
        case exp.NEQ(expression=exp.Anonymous(this=str(name), expressions=[compared])) if (
            name.upper() == "ALL"
        ):
            return _negated(_member(node.this, compared))
        case exp.In(args={"unnest": exp.Unnest(expressions=[listed]) as opened}) if _has_only(
            node, "this", "unnest"
        ):
            return _member(node.this, listed) if _has_only(opened, "expressions") else None
        case exp.ArrayContains(this=exp.Array() as listed) if _has_only(node, "this", "expression"):
            # NULL among the elements is passed over, and makes no test unknown as it would in IN
            known = [each for each in listed.expressions if not isinstance(each, exp.Null)]
            plain = known and all(map(_is_constant, known))
            return exp.In(this=node.expression, expressions=known) if plain else None
        case _:
            return None


def _member(value: exp.Expr, compared: exp.Expr) -> exp.Expr | None:
    """value IN (a, b) for a list that is written out, value IN (SELECT ...) for a query; None for anything
    else.
    """
    while isinstance(compared, exp.Paren):
        compared = compared.this
    match compared:
        case exp.Array() if compared.expressions and not any(
            isinstance(each, exp.Query) for each in compared.expressions
        ):
            return exp.In(this=value, expressions=compared.expressions)
        case exp.Subquery() if _has_only(compared, "this"):
            return exp.In(this=value, query=compared)
        case exp.Select():
            return exp.In(this=value, query=exp.Subquery(this=compared))
        case _:
            return None


def _is_alone_in_list(node: exp.Expr) -> bool:
    """Whether it stands in x IN (y = ANY(z)), which DuckDB takes for x = ANY(z), and everybody else for x =
    (y = ANY(z)).
    """
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.In) and len(above.expressions) == 1 and above.expressions[0].unnest() is node


def _negated(inner: exp.Expr | None) -> exp.Expr | None:
    return None if inner is None else exp.Not(this=inner)


def _is_constant(node: exp.Expr) -> bool:
    """A constant that is not NULL, as what TRY_CAST gives may be."""
    while isinstance(node, (exp.Neg, exp.Paren, exp.Cast)) and not isinstance(node, exp.TryCast):
        node = node.this
    return isinstance(node, (exp.Literal, exp.Boolean))


def _has_only(node: exp.Expr, *names: str) -> bool:
    """Whether nothing else is set, which would be lost."""
    return not any(value for name, value in node.args.items() if name not in names)
