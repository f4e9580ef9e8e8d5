"""Functions that choose among their arguments go in: DECODE, CHOOSE, multiIf; the same as CASE comes out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp


def plain_case(node: exp.Expr) -> exp.Expr | None:
    """The same as CASE; None for anything else."""
    match node:
        case exp.DecodeCase(expressions=[value, *rest]):
            return _decoded(value, rest)
        case exp.Elt(this=number, expressions=options):
            return _chosen(number, options)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _named(name.lower(), arguments)
        case _:
            return None


def _named(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    match name, arguments:
        case "decode", [value, *rest] if len(rest) > 1:
            return _decoded(value, rest)
        case "choose", [number, *options] if options:
            return _chosen(number, options)
        case "field", [value, *options] if options and all(map(_is_known, options)):
            places = [exp.If(this=each, true=_number(place)) for place, each in enumerate(options, 1)]
            return exp.Case(this=value, ifs=places, default=_number(0))
        case "multiif", [*pairs, otherwise] if pairs and len(pairs) % 2 == 0:
            return exp.Case(ifs=_branches(pairs), default=otherwise)
        case _:
            return None


def _decoded(value: exp.Expr, rest: Sequence[exp.Expr]) -> exp.Expr | None:
    """DECODE takes NULL for the same as NULL, so it is CASE only where it compares with known constants."""
    pairs, default = (rest[:-1], rest[-1]) if len(rest) % 2 else (rest, None)
    if not all(map(_is_known, pairs[::2])):
        return None
    return exp.Case(this=value, ifs=_branches(pairs), default=default)


def _branches(pairs: Sequence[exp.Expr]) -> list[exp.If]:
    return [exp.If(this=when, true=then) for when, then in zip(pairs[::2], pairs[1::2], strict=True)]


def _chosen(number: exp.Expr, options: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Case(
        this=number,
        ifs=[exp.If(this=_number(place), true=each) for place, each in enumerate(options, 1)],
    )


def has_rising_ends(node: exp.WidthBucket) -> bool:
    """Whether the buckets of WIDTH_BUCKET(x, 0, 100, 10) are written out, and in rising order."""
    low, high, many = (_value_of(node.args.get(name)) for name in ("min_value", "max_value", "num_buckets"))
    return low is not None and high is not None and many is not None and low < high and many >= 1


def _value_of(node: exp.Expr | None) -> float | None:
    match node:
        case exp.Paren():
            return _value_of(node.this)
        case exp.Neg():
            value = _value_of(node.this)
            return None if value is None else -value
        case exp.Literal(is_string=False):
            return float(node.name)
        case _:
            return None


def _is_known(node: exp.Expr) -> bool:
    """A constant other than NULL."""
    while isinstance(node, (exp.Neg, exp.Paren)):
        node = node.this
    return isinstance(node, (exp.Literal, exp.Boolean))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
