"""SQL text goes in; what sqlglot reads comes out in the neutral form: functions as privsql takes them (its table of nodes)."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from itertools import product
from typing import Any

from sqlglot import exp

from privsql.algebra.functions import OPPOSITE
from privsql.sql.parse.permitted import FUNCTION_OF
from tests.fuzz import neutral
from tests.fuzz.duckdb_reads import UnreadError
from tests.fuzz.neutral import Node

_COMPARED = (*OPPOSITE, "is_same", "is_distinct")
_AGGREGATES = {
    "Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max", "Median": "median", "Variance": "var_samp", "VariancePop": "var_pop",
    "Stddev": "stddev_samp", "StddevPop": "stddev_pop", "StddevSamp": "stddev_samp", "Mode": "mode", "CountIf": "count_if",
    "LogicalOr": "bool_or", "LogicalAnd": "bool_and", "CovarPop": "covar_pop", "CovarSamp": "covar_samp", "Corr": "corr",
    "RegrSlope": "regr_slope", "RegrIntercept": "regr_intercept", "RegrR2": "regr_r2", "RegrCount": "regr_count",
    "RegrAvgx": "regr_avgx", "RegrAvgy": "regr_avgy", "ArgMax": "arg_max", "ArgMin": "arg_min", "Quantile": "quantile",
    "ApproxQuantile": "approx_quantile", "PercentileCont": "quantile_cont", "PercentileDisc": "quantile_disc",
    "ArrayDistinct": "list_distinct", "Array": "list_value", "Explode": "unnest", "GroupingId": "grouping_id", "Grouping": "grouping",
    "Coalesce": "coalesce", "Least": "least", "Greatest": "greatest", "Nullif": "nullif", "ConcatWs": "concat_ws",
    "Concat": "concat", "Tuple": "row", "Transform": "list_transform", "Flatten": "flatten",
    "BitwiseRightShift": ">>", "BitwiseLeftShift": "<<", "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank",
    "PercentRank": "percent_rank", "CumeDist": "cume_dist", "Ntile": "ntile", "Lag": "lag", "Lead": "lead",
    "FirstValue": "first_value", "LastValue": "last_value", "NthValue": "nth_value", "First": "first", "Last": "last", "AnyValue": "any_value",
}  # fmt: skip
# By the power of ten by which the unit is smaller than a second: the names that DuckDB has for it.
_FROM_EPOCH = {"": "to_timestamp", "3": "epoch_ms", "6": "make_timestamp", "9": "make_timestamp_ns"}


def query(node: exp.Expr) -> Node:
    ctes = []
    for each in node.args["with_"].expressions if node.args.get("with_") else []:
        alias = each.args["alias"]
        ctes.append(
            (alias.name, tuple(column.name for column in alias.args.get("columns") or ()), query(each.this))
        )
    match node:
        case exp.Subquery():
            read = source(node.this) if isinstance(node.this, exp.Table) else query(node.this)
        case exp.Union() | exp.Except() | exp.Intersect():
            kind = f"{type(node).__name__.lower()}{' by name' if node.args.get('by_name') else ''}"
            read = neutral.set_operation(
                kind, not node.args.get("distinct"), query(node.this), query(node.expression)
            )
        case exp.Pivot():
            read = neutral.select([(neutral.STAR, "")], source(node))
        case exp.Select():
            read = _select(node)
        case exp.Values():
            read = neutral.select([(neutral.STAR, "")], ("values", _rows(node)))
        case exp.Table():
            read = neutral.select([(neutral.STAR, "")], source(node))
        case _:
            raise UnreadError(type(node).__name__)
    if read[0] == "tail" and any(node.args.get(name) for name in ("order", "limit", "offset")):
        raise UnreadError("LIMIT behind a LIMIT in parentheses")
    return neutral.with_names(ctes, _tail(node, read))


def _tail(node: exp.Expr, read: Node) -> Node:
    order = [_ordered(each) for each in node.args["order"].expressions] if node.args.get("order") else []
    limit, offset = node.args.get("limit"), node.args.get("offset")
    return neutral.tail(
        read, order, _most(limit) if limit else None, expression(offset.expression) if offset else None
    )


def _most(limit: exp.Expr) -> Node:
    if isinstance(limit, exp.Fetch):
        return expression(limit.args["count"]) if limit.args.get("count") else neutral.number("1")
    return expression(limit.expression)


def _select(node: exp.Select) -> Node:
    if node.args.get("windows"):
        node = _with_windows(node.copy())
    items = [
        (expression(each.unalias()), each.alias if isinstance(each, exp.Alias) else "")
        for each in node.expressions
    ]
    below: Node = ()
    if node.args.get("from_") is not None:
        below = _joined(source(node.args["from_"].this), node.args.get("joins") or [])
    if node.args.get("laterals"):
        raise UnreadError("LATERAL VIEW")
    different = node.args.get("distinct")
    on = different.args.get("on") if different is not None else None
    distinct = different is not None if on is None else _keys(on)
    where, having, qualify = (node.args.get(name) for name in ("where", "having", "qualify"))
    return neutral.select(
        items, below, expression(where.this) if where else None, _groups(node.args.get("group")),
        expression(having.this) if having else None, distinct,
        expression(qualify.this) if qualify else None,
    )  # fmt: skip


def _with_windows(select: exp.Select) -> exp.Select:
    """What WINDOW names, written where it is used."""
    named: dict[str, exp.Window] = {}
    for each in select.args["windows"]:
        _complete(each, named)
        named[each.name.lower()] = each
    for each in list(select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))):
        if isinstance(each, exp.Window) and each.args.get("over"):
            _complete(each, named)
    return select


def _complete(window: exp.Window, named: dict[str, exp.Window]) -> None:
    if base := named.get(window.alias.lower()):
        for part in ("partition_by", "order", "spec"):
            if not window.args.get(part) and base.args.get(part):
                found = base.args[part]
                window.set(part, [each.copy() for each in found] if isinstance(found, list) else found.copy())


def _groups(group: exp.Group | None) -> Node:
    if group is None:
        return ()
    if group.args.get("all"):
        return "all"
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    listed = [
        *group.expressions,
        *(each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or []),
    ]
    factors = [_sets(each) if isinstance(each, several) else [_keys(each)] for each in listed]
    return neutral.groups([key for part in combination for key in part] for combination in product(*factors))


def _sets(node: exp.Expr) -> list[tuple[Node, ...]]:
    parts = [_keys(each) for each in node.expressions]
    match node:
        case exp.Rollup():
            return [sum(parts[:count], ()) for count in range(len(parts), -1, -1)]
        case exp.Cube():
            return [
                sum((part for place, part in enumerate(parts) if mask >> place & 1), ())
                for mask in range(2 ** len(parts))
            ]
        case exp.GroupingSets():
            nested = (exp.Rollup, exp.Cube, exp.GroupingSets)
            return [
                one
                for each in node.expressions
                for one in (_sets(each) if isinstance(each, nested) else [_keys(each)])
            ]
    raise UnreadError(type(node).__name__)


def _keys(node: exp.Expr) -> tuple[Node, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(expression(each) for each in node.expressions)
    return (expression(node.unnest()),)


def _ordered(node: exp.Expr) -> Node:
    if not isinstance(node, exp.Ordered):
        return neutral.ordered(expression(node), False, False)
    inner = node.this
    named = (
        isinstance(inner, (exp.Column, exp.Var))
        and inner.name.upper() == "ALL"
        and not inner.args.get("table")
    )
    quoted = isinstance(inner, exp.Column) and inner.this.args.get("quoted")
    read = "all" if named and not quoted else expression(inner)
    return neutral.ordered(read, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


# -- FROM ----------------------------------------------------------------------------------------------------
def _joined(left: Node, joins: list[exp.Join]) -> Node:
    for each in joins:
        kind, side = (str(each.args.get(name) or "").lower() for name in ("kind", "side"))
        method = str(each.args.get("method") or "").lower()
        if method not in ("", "natural"):
            raise UnreadError("a join with a method")
        on, using = each.args.get("on"), [name.name for name in each.args.get("using") or []]
        how = (
            kind
            if kind in ("semi", "anti")
            else side or ("cross" if kind in ("cross", "") and on is None and not using else "inner")
        )
        if method:
            how = f"natural {'inner' if how == 'cross' else how}"
        left = neutral.join(how, left, source(each.this), expression(on) if on is not None else None, using)
    return left


def source(node: exp.Expr) -> Node:
    alias = node.args.get("alias")
    name = alias.name if isinstance(alias, exp.TableAlias) else node.alias
    columns = (
        [each.name for each in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    )
    match node:
        case exp.Table():
            if isinstance(node.this, exp.GenerateSeries):
                read = (
                    "opened",
                    expression(node.this),
                    name.lower(),
                    tuple(each.lower() for each in columns),
                )
            elif not isinstance(node.this, exp.Identifier):
                raise UnreadError("a table that is no name")
            else:
                path = [node.args.get("catalog"), node.args.get("db"), node.this]
                read = neutral.table(".".join(each.name for each in path if each), name, columns)
        case exp.Subquery() if _holds_table(node):
            read = source(node.this)
            if name:
                read = neutral.subquery(neutral.select([(neutral.STAR, "")], read), name, columns)
        case exp.Subquery():
            tailless = node.copy()
            tailless.set("alias", None)
            tailless.set("pivots", None)
            tailless.set("joins", None)
            read = neutral.subquery(query(tailless), name, columns)
        case exp.Values() if name == "_values" and not columns:  # sqlglot's own name for VALUES in a union
            read = ("values", _rows(node))
        case exp.Values():
            read = ("values", _rows(node), name.lower(), tuple(each.lower() for each in columns))
        case exp.Unnest():
            opened = neutral.call("unnest", [expression(each) for each in node.expressions])
            read = ("opened", opened, name.lower(), tuple(each.lower() for each in columns))
        case exp.Lateral() if isinstance(
            node.this, exp.Unnest
        ):  # what is beside it may be named without the word, too
            opened = neutral.call("unnest", [expression(each) for each in node.this.expressions])
            read = ("opened", opened, name.lower(), tuple(each.lower() for each in columns))
        case exp.Pivot() if node.args.get("unpivot"):
            read = _unpivot(source(node.this), node)
        case _:
            raise UnreadError(type(node).__name__)
    for each in node.args.get("pivots") or []:
        read = _unpivot(read, each)
    return _joined(read, node.args.get("joins") or [])


def _holds_table(node: exp.Expr) -> bool:
    """Whether a table, or a join of tables, stands in parentheses."""
    return isinstance(node, exp.Subquery) and (isinstance(node.this, exp.Table) or _holds_table(node.this))


def _rows(node: exp.Values) -> Node:
    return tuple(
        tuple(expression(each) for each in (row.expressions if isinstance(row, exp.Tuple) else [row]))
        for row in node.expressions
    )


def _unpivot(below: Node, node: exp.Expr) -> Node:
    if not node.args.get("unpivot"):
        raise UnreadError("PIVOT")
    alias = node.args.get("alias")
    name = alias.name if isinstance(alias, exp.TableAlias) else str(alias or "")
    into = node.args.get("into")
    if into is not None or not node.args.get("fields"):
        names = (
            (tuple(each.name.lower() for each in into.expressions), (into.this.name.lower(),))
            if into
            else (("value",), ("name",))
        )
        listed = node.expressions
    else:
        (inside,) = node.args["fields"]
        names = (tuple(each.name.lower() for each in node.expressions), (inside.this.name.lower(),))
        listed = inside.expressions
    entries = tuple(
        (expression(each.this if isinstance(each, (exp.Alias, exp.PivotAlias)) else each),
         each.args["alias"].name if isinstance(each, (exp.Alias, exp.PivotAlias)) else "")
        for each in listed
    )  # fmt: skip
    return ("unpivot", below, *names, entries, bool(node.args.get("include_nulls")), name.lower(), ())


# -- expressions ---------------------------------------------------------------------------------------------
def expression(node: exp.Expr) -> Node:
    match node:
        case exp.Paren():
            return expression(node.this)
        case exp.Literal() | exp.RawString():
            return (
                neutral.text(str(node.this))
                if isinstance(node, exp.RawString) or node.is_string
                else neutral.number(str(node.this))
            )
        case exp.Boolean():
            return neutral.truth(bool(node.this))
        case exp.Null():
            return neutral.NULL
        case exp.Column() if isinstance(node.this, exp.Star):
            return _star(node.this, node.table)
        case exp.Column():
            return neutral.column([each.name for each in node.parts])
        case exp.Star():
            return _star(node, "")
        case exp.And() | exp.Or():
            return neutral.junction(
                "and" if isinstance(node, exp.And) else "or",
                [expression(node.this), expression(node.expression)],
            )
        case exp.Not():
            return neutral.denied(expression(node.this))
        case exp.Neg():
            return neutral.negative(expression(node.this))
        case exp.Is():
            return _is(node)
        case exp.Between():
            return neutral.between(*(expression(node.args[name]) for name in ("this", "low", "high")))
        case exp.In() if node.args.get("query"):
            return ("in_query", expression(node.this), query(node.args["query"].unnest()))
        case exp.In():
            return ("in", expression(node.this), tuple(expression(each) for each in node.expressions))
        case exp.Subquery():
            return ("scalar", query(node.this))
        case exp.Exists():
            return ("exists", query(node.this))
        case exp.Escape():
            inner = node.this
            name = "like_escape" if isinstance(inner, exp.Like) else "ilike_escape"
            return _negated(
                inner,
                neutral.call(
                    name, [expression(each) for each in (inner.this, inner.expression, node.expression)]
                ),
            )
        case exp.Like() | exp.ILike():
            name = "like" if isinstance(node, exp.Like) else "ilike"
            return _negated(node, neutral.call(name, [expression(node.this), expression(node.expression)]))
        case exp.ArraySort():
            return _sorted_list(node)
        case exp.Case():
            return _case(node)
        case exp.If():
            default = node.args.get("false")
            return neutral.case(
                [(expression(node.this), expression(node.args["true"]))],
                expression(default) if default else None,
            )
        case exp.TryCast() | exp.Cast():
            return neutral.cast(_type(node.to), expression(node.this), isinstance(node, exp.TryCast))
        case exp.TsOrDsToDate():
            return neutral.cast(neutral.type_of("date"), expression(node.this))
        case exp.Interval():
            return _interval(node)
        case exp.Filter():
            return _filtered(node)
        case exp.WithinGroup():
            inner, order = expression(node.this), [_ordered(each) for each in node.expression.expressions]
            return neutral.call(inner[1], inner[2], False, None, order)
        case exp.Extract():
            return neutral.call("extract", [neutral.text(str(node.this.name)), expression(node.expression)])
        case exp.TimestampTrunc() | exp.DateTrunc():
            return neutral.call("date_trunc", [neutral.text(node.args["unit"].name), expression(node.this)])
        case exp.DateDiff() | exp.TsOrDsDiff():
            unit = node.args.get("unit")
            return neutral.call(
                "date_diff",
                [
                    neutral.text(unit.name if unit else "day"),
                    expression(node.expression),
                    expression(node.this),
                ],
            )
        case exp.DateAdd():
            amount = node.expression
            if not isinstance(amount, exp.Interval):
                amount = exp.Interval(this=amount, unit=node.args.get("unit") or exp.Var(this="DAY"))
            return neutral.call("+", [expression(node.this), expression(amount)])
        case exp.Collate() | exp.Window() | exp.Bracket() | exp.Try() | exp.Lambda() | exp.ArrayAgg():
            return _of_rendered(node)
        case exp.GenerateSeries():
            name = "range" if node.args.get("is_end_exclusive") else "generate_series"
            return neutral.call(name, _present(node, ("start", "end", "step")))
        case exp.Count():
            return _count(node)
        case exp.Anonymous():
            return _named(node)
        case exp.DPipe():
            return neutral.call("||", [expression(node.this), expression(node.expression)])
        case exp.Trim():
            name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                str(node.args.get("position") or "").upper(), "trim"
            )
            return neutral.call(name, _present(node, ("this", "expression")))
        case exp.Pad():
            return neutral.call(
                "lpad" if node.args.get("is_left") else "rpad",
                _present(node, ("this", "expression", "fill_pattern")),
            )
        case exp.SHA2() if node.args.get("length") is not None and node.args["length"].name == "256":
            return neutral.call("sha256", [expression(node.this)])
        case exp.Trunc():
            return neutral.call("trunc", _present(node, ("this", "decimals")))
        case exp.UnixToTime():
            scale = node.args.get("scale")
            return neutral.call(_FROM_EPOCH["" if scale is None else scale.name], [expression(node.this)])
        case exp.DateBin():
            return neutral.call("time_bucket", _present(node, ("this", "expression", "unit")))
        case exp.Log():
            return neutral.logarithm(_present(node, ("this", "expression")))
        case exp.Var() | exp.Identifier():
            return neutral.column([node.name])
    if type(node) in FUNCTION_OF:
        name, places = FUNCTION_OF[type(node)]
        args = _present(node, places)
        return neutral.compared(name, *args) if name in _COMPARED else neutral.call(name, args)
    if type(node).__name__ in _AGGREGATES:
        return _listed(_AGGREGATES[type(node).__name__], node)
    raise UnreadError(type(node).__name__)


def _present(node: exp.Expr, names: tuple[str, ...]) -> list[Node]:
    return [expression(node.args[name]) for name in names if node.args.get(name) is not None]


def _listed(name: str, node: exp.Expr) -> Node:
    """A function with its arguments: `this`, then a second one, then a list."""
    inner: Any = node.args.get("this")
    order: list[Node] = []
    if isinstance(inner, exp.Order):
        order, inner = [_ordered(each) for each in inner.expressions], inner.this
    distinct = isinstance(inner, exp.Distinct)
    first = [
        expression(each) for each in (inner.expressions if distinct else [inner] if inner is not None else [])
    ]
    rest = _present(node, ("expression", "quantile", "offset", "default"))
    rest += [expression(each) for each in node.expressions]
    return neutral.call(name, [*first, *rest], distinct, None, order)


def _named(node: exp.Anonymous) -> Node:
    """A function that sqlglot knows by its name alone."""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], (exp.Distinct, exp.Order)):
        return _listed(str(node.this), exp.Anonymous(this=node.expressions[0].copy()))
    return neutral.call(str(node.this), [expression(each) for each in node.expressions])


def _count(node: exp.Count) -> Node:
    if node.this is None:
        return neutral.call("count", [neutral.STAR])
    return _listed("count", node)


def _negated(node: exp.Expr, read: Node) -> Node:
    return neutral.denied(read) if node.args.get("negate") else read


def _star(node: exp.Star, table: str) -> Node:
    replaced = [(each.alias, expression(each.this)) for each in node.args.get("replace") or []]
    renamed = [(each.this.name, each.alias) for each in node.args.get("rename") or []]
    return neutral.star(table, [each.name for each in node.args.get("except_") or []], replaced, renamed)


def _sorted_list(node: exp.ArraySort) -> Node:
    """Both orders written out, as privsql writes them: sqlglot keeps none that is the default."""
    descending, first = node.args.get("asc") == exp.false(), node.args.get("nulls_first") == exp.true()
    orders = ["DESC" if descending else "ASC", "NULLS FIRST" if first else "NULLS LAST"]
    return neutral.call("list_sort", [expression(node.this), *map(neutral.text, orders)])


def _is(node: exp.Is) -> Node:
    value = expression(node.this)
    match node.expression:
        case exp.Null():
            return ("is_null", value)
        case exp.Boolean() as truth:
            return ("is", bool(truth.this), value)
    raise UnreadError("IS something else")


def _case(node: exp.Case) -> Node:
    subject = expression(node.this) if node.this is not None else None
    pairs = []
    for branch in node.args["ifs"]:
        test = expression(branch.this)
        pairs.append((test if subject is None else ("=", subject, test), expression(branch.args["true"])))
    default = node.args.get("default")
    return neutral.case(pairs, expression(default) if default is not None else None)


def _interval(node: exp.Interval) -> Node:
    amount, unit = node.this, node.args.get("unit")
    read = expression(amount) if amount is not None else neutral.NULL
    if read[0] not in ("number", "text"):
        raise UnreadError("an interval that is computed")
    text = str(read[-1]).strip()
    if unit is None and text.count(" ") == 1:
        return neutral.interval(*text.split(" "))
    return neutral.interval(text, unit.name if unit is not None else "")


def _filtered(node: exp.Filter) -> Node:
    inner, where = expression(node.this), expression(node.expression.this)
    if inner[0] != "call":
        raise UnreadError("FILTER of what is no call")
    distinct, _, order = inner[3:] if len(inner) > 3 else (False, None, ())
    return neutral.call(inner[1], inner[2], distinct, where, order)


def _type(node: exp.DataType) -> Node:
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    if node.args.get("nested"):
        return neutral.type_of(
            "list" if name == "ARRAY" else name, [_type(each) for each in node.expressions]
        )
    return neutral.type_of(name, [int(each.name) for each in node.expressions if each.name.isdigit()])


def _of_rendered(node: exp.Expr) -> Node:
    """What the gate lets nobody write, and what privsql itself renders."""
    match node:
        case exp.Collate():
            return ("collate", node.expression.name.lower(), expression(node.this))
        case exp.Bracket():  # sqlglot counts elements from 0
            (place,) = node.expressions
            return (
                "element",
                expression(node.this),
                neutral.number(str(int(place.name) + 1 - (node.args.get("offset") or 0))),
            )
        case exp.Try():
            return ("try", expression(node.this))
        case exp.Lambda():
            return ("lambda", tuple(each.name.lower() for each in node.expressions), expression(node.this))
        case exp.ArrayAgg():
            return _listed("list", node)
        case exp.Window():
            return _window(node)
    raise UnreadError(type(node).__name__)


def _window(node: exp.Window) -> Node:
    inner, order = node.this, node.args.get("order")
    skips_null = isinstance(inner, exp.IgnoreNulls)
    function = expression(inner.this if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)) else inner)
    by = [expression(each) for each in node.args.get("partition_by") or []]
    listed = [_ordered(each) for each in order.expressions] if order else []
    return neutral.over(function, by, listed, _frame(node.args.get("spec")), skips_null)


def _frame(spec: exp.WindowSpec | None) -> Node:
    if spec is None:
        return neutral.RUNNING
    ends = []
    for end in ("start", "end"):
        side, value = str(spec.args.get(f"{end}_side") or ""), spec.args.get(end) or "CURRENT ROW"
        if isinstance(value, exp.Expr):
            ends.append((f"{side}_{spec.args['kind']}".upper(), expression(value)))
        elif value == "CURRENT ROW":
            ends.append((f"CURRENT_ROW_{spec.args['kind']}".upper(), None))
        else:
            ends.append((f"{value}_{side}".upper(), None))
    return tuple(ends)
