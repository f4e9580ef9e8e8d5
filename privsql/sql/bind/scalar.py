"""A permitted sqlglot node goes in; a typed expression over the columns in scope comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.functions import ALIASES, FUNCTIONS, PARTS, UNITS
from privsql.errors import PrivsqlError, Refused, SqlError, did_you_mean
from privsql.sql.parse.permitted import WAYS_OUT
from privsql.sql.parse.places import place_of
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    MOMENTS,
    NULL,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    integer,
)

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is_same",
    exp.NullSafeNEQ: "is_distinct",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}

# sqlglot's own node classes for functions of the table: class -> (function, its arguments in our order).
_NODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Lower": ("lower", ("this",)), "Upper": ("upper", ("this",)), "Length": ("length", ("this",)),
    "Substring": ("substring", ("this", "start", "length")), "Left": ("left", ("this", "expression")),
    "Right": ("right", ("this", "expression")), "Replace": ("replace", ("this", "expression", "replacement")),
    "Translate": ("translate", ("this", "from_", "to")),
    "StartsWith": ("starts_with", ("this", "expression")), "EndsWith": ("ends_with", ("this", "expression")),
    "Contains": ("contains", ("this", "expression")), "StrPosition": ("strpos", ("this", "substr")),
    "Reverse": ("reverse", ("this",)), "SplitPart": ("split_part", ("this", "delimiter", "part_index")),
    "Ascii": ("ascii", ("this",)), "Unicode": ("unicode", ("this",)),
    "Levenshtein": ("levenshtein", ("this", "expression")), "BitLength": ("bit_length", ("this",)),
    "JarowinklerSimilarity": ("jaro_winkler_similarity", ("this", "expression")),
    "SimilarTo": ("similar_to", ("this", "expression")),
    "RegexpLike": ("regexp_matches", ("this", "expression", "flag")),
    "RegexpFullMatch": ("regexp_full_match", ("this", "expression")),
    "RegexpReplace": ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    "RegexpExtract": ("regexp_extract", ("this", "expression", "group")), "Abs": ("abs", ("this",)),
    "Ceil": ("ceil", ("this",)), "Floor": ("floor", ("this",)), "Round": ("round", ("this", "decimals")),
    "Trunc": ("trunc", ("this",)), "Sign": ("sign", ("this",)), "Sqrt": ("sqrt", ("this",)),
    "Cbrt": ("cbrt", ("this",)), "Exp": ("exp", ("this",)), "Ln": ("ln", ("this",)),
    "Sin": ("sin", ("this",)), "Cos": ("cos", ("this",)), "Tan": ("tan", ("this",)),
    "Asin": ("asin", ("this",)), "Acos": ("acos", ("this",)), "Atan": ("atan", ("this",)),
    "Atan2": ("atan2", ("this", "expression")), "Sinh": ("sinh", ("this",)), "Cosh": ("cosh", ("this",)),
    "Tanh": ("tanh", ("this",)), "Degrees": ("degrees", ("this",)), "Radians": ("radians", ("this",)),
    "Pi": ("pi", ()), "Pow": ("pow", ("this", "expression")), "IsNan": ("isnan", ("this",)),
    "IsInf": ("isinf", ("this",)), "Year": ("year", ("this",)), "Month": ("month", ("this",)),
    "Day": ("day", ("this",)), "Hour": ("hour", ("this",)), "Minute": ("minute", ("this",)),
    "Second": ("second", ("this",)), "Quarter": ("quarter", ("this",)), "Week": ("week", ("this",)),
    "WeekOfYear": ("week", ("this",)), "DayOfWeek": ("dayofweek", ("this",)),
    "DayOfWeekIso": ("isodow", ("this",)), "DayOfMonth": ("day", ("this",)),
    "DayOfYear": ("dayofyear", ("this",)), "Dayname": ("dayname", ("this",)),
    "Monthname": ("monthname", ("this",)), "LastDay": ("last_day", ("this",)),
    "TimeToUnix": ("epoch", ("this",)), "DateFromParts": ("make_date", ("year", "month", "day")),
    "TimeToStr": ("strftime", ("this", "format")), "StrToTime": ("try_strptime", ("this", "format")),
}  # fmt: skip
_CAST_TYPES: dict[str, Type] = {
    "BOOLEAN": BOOLEAN, "TINYINT": integer(*INTEGER_BOUNDS["TINYINT"]),
    "UTINYINT": integer(*INTEGER_BOUNDS["UTINYINT"]), "SMALLINT": integer(*INTEGER_BOUNDS["SMALLINT"]),
    "USMALLINT": integer(*INTEGER_BOUNDS["USMALLINT"]), "INT": integer(*INTEGER_BOUNDS["INTEGER"]),
    "UINT": integer(*INTEGER_BOUNDS["UINTEGER"]), "BIGINT": BIGINT,
    "UBIGINT": integer(*INTEGER_BOUNDS["UBIGINT"]), "INT128": integer(*INTEGER_BOUNDS["HUGEINT"]),
    "FLOAT": DOUBLE, "DOUBLE": DOUBLE, "TEXT": TEXT, "VARCHAR": TEXT, "CHAR": TEXT, "NVARCHAR": TEXT,
    "DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP, "DATETIME": TIMESTAMP,
}  # fmt: skip


class ExpressionBinder:
    """Binds expressions over rows. `column` resolves a column node; subclasses see each node first by
    `special`.
    """

    def __init__(self, column: Callable[[exp.Column], Expression]) -> None:
        self.column = column

    def special(self, node: exp.Expr) -> Expression | None:
        return None

    def bind(self, node: exp.Expr | None) -> Expression:
        if node is None:
            raise SqlError("sql-syntax", "an argument is missing here", "check the commas and parentheses")
        try:
            found = self.special(node)
            if found is None:
                found = self._bind(node)
                for each in found.args if isinstance(found, Call) else ():
                    build.not_a_list(each)
            return build.small(found)
        except PrivsqlError as error:
            raise error.at(place_of(node)) from None

    def condition(self, node: exp.Expr) -> Expression:
        """An expression that is true or not: WHERE, FILTER, HAVING, WHEN."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type.kind is not Kind.BOOLEAN:
            raise build.type_error(
                f"a condition must be true or false, this is {bound.type}",
                place_of(node),
                "compare it: x > 0, x IS NOT NULL",
            )
        return bound

    def _bind(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Column():
                return self.column(node)
            case exp.Paren():
                return self.bind(node.this)
            case exp.Literal():
                return self._literal(node)
            case exp.RawString():
                return Literal(str(node.this), TEXT)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.Null():
                return Literal(None, NULL)
            case exp.Interval():
                return self._interval(node)
            case exp.And() | exp.Or():
                return self._junction(node)
            case exp.Not():
                return Call("not", (self.condition(node.this),), BOOLEAN)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                value, low, high = (self.bind(node.args[name]) for name in ("this", "low", "high"))
                return Call(
                    "and", (build.compare(">=", value, low), build.compare("<=", value, high)), BOOLEAN
                )
            case exp.In() if not node.args.get("query"):
                return self._in(node)
            case exp.In() | exp.Exists():
                raise Refused(
                    "refused-exists",
                    "a subquery inside an expression can depend on many people's rows",
                    "EXISTS (...) and IN (SELECT ...) are read as conditions of WHERE by themselves, joined with AND",
                )
            case exp.Like() | exp.ILike():
                return self._negated(node, self._like(node, None))
            case exp.Escape(this=exp.Like() | exp.ILike()):
                return self._negated(node.this, self._like(node.this, node.expression))
            case exp.Escape():  # SIMILAR TO, ~ and GLOB, of which DuckDB has none with ESCAPE
                raise Refused(
                    "refused-pattern", "ESCAPE is read behind LIKE and ILIKE only", "LIKE '10!%' ESCAPE '!'"
                )
            case exp.Neg():
                return build.negate(self.bind(node.this))
            case exp.DPipe():
                return build.call(
                    "||", [build.as_text(self.bind(node.this)), build.as_text(self.bind(node.expression))]
                )
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._choice(
                    [self.condition(node.this), self.bind(node.args["true"])], node.args.get("false")
                )
            case exp.Coalesce():
                return build.unify("coalesce", self._all(node))
            case exp.Least() | exp.Greatest():
                values = self._all(node)
                chosen = build.unify(type(node).__name__.lower(), values)
                # DuckDB passes over NULL; in some dialects one NULL makes the result NULL
                return chosen if node.args.get("ignore_nulls") else build.null_if_any(values, chosen)
            case exp.Nullif():
                pair = [self.bind(node.this), self.bind(node.expression)]
                left, right = build.comparable(
                    build.with_truths(pair) if pair[0].type.kind is Kind.BOOLEAN else pair
                )
                return Call("nullif", (left, right), left.type)
            case exp.TryCast() | exp.Cast():
                return self._cast(node)
            case exp.Anonymous():
                return self._named(node)
            case exp.Trim():
                name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                    str(node.args.get("position") or "").upper(), "trim"
                )
                return build.call(name, self._present(node, ("this", "expression")))
            case exp.Concat() | exp.ConcatWs():
                # ConcatWs is a Concat, too
                name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"
                values = [build.as_text(self.bind(each)) for each in node.expressions]
                joined = build.call(name, values)
                return joined if node.args.get("coalesce") else build.null_if_any(values, joined)
            case exp.Log():
                return self._log(node)
            case exp.TimestampTrunc() | exp.DateTrunc():
                moment = self.bind(node.this)
                cut = build.call("date_trunc", [self._unit(node.args.get("unit"), UNITS), moment])
                # in some dialects
                stays = node.args.get("input_type_preserved") and moment.type.kind is Kind.DATE
                return build.convert(cut, DATE) if stays else cut
            case exp.Extract():
                return self._extract(_word(node.this), node.expression)
            case exp.TsOrDsToDate():
                day = self.bind(node.this)
                if node.args.get("default_date") and day.type.kind not in (*MOMENTS, Kind.TEXT):
                    raise Refused(
                        "refused-dialect", "a number is another day in other dialects", "give a date"
                    )
                return build.convert(day, DATE, explicit=True)
            case exp.TsOrDsToTimestamp() | exp.TimeStrToTime():
                return build.convert(self.bind(node.this), TIMESTAMP, explicit=True)
            case exp.StrToDate():
                return build.convert(
                    build.call("try_strptime", self._present(node, ("this", "format"))), DATE, explicit=True
                )
            case exp.SafeDivide():
                return build.arithmetic("/", self.bind(node.this), self.bind(node.expression))
            case exp.DateDiff() | exp.TsOrDsDiff():
                unit = self._unit(node.args.get("unit"), UNITS)
                return build.call("date_diff", [unit, self.bind(node.expression), self.bind(node.this)])
            case exp.DateAdd() | exp.DateSub():
                return self._date_add(node)
        if type(node) in _COMPARISONS:
            return build.compare(_COMPARISONS[type(node)], self.bind(node.this), self.bind(node.expression))
        if type(node) in _ARITHMETIC:
            operator = _ARITHMETIC[type(node)]
            left, right = self.bind(node.this), self.bind(node.expression)
            whole = left.type.kind is Kind.INTEGER and right.type.kind is Kind.INTEGER
            if operator == "/" and node.args.get("typed") and whole:
                operator = "//"  # dialects in which 7 / 2 is 3
            return build.arithmetic(operator, left, right)
        known = _NODES.get(type(node).__name__)
        if isinstance(node, (exp.Explode, exp.ArrayDistinct)):
            raise Refused("refused-unnest", *WAYS_OUT["Unnest"])
        if known is None:
            raise Refused(
                "refused-expression",
                f"{type(node).__name__.upper()} has no meaning in this place",
                "use COUNT, SUM or AVG, or move it out",
            )
        args = self._present(node, known[1])
        # in some dialects all matches are replaced
        if isinstance(node, exp.RegexpReplace) and len(args) == 3:
            args.append(Literal("" if node.args.get("single_replace") else "g", TEXT))
        return build.call(known[0], args)

    # -- the table of functions ----------------------------------------------------------------------------
    def _named(self, node: exp.Anonymous) -> Expression:
        raw = str(node.this).lower()
        name = ALIASES.get(raw, raw)
        args = node.expressions
        if name in ("extract", "isoyear") and len(args) == 2 and isinstance(args[0], exp.Literal):
            return self._extract(_word(args[0]), args[1])
        if name == "date_trunc" and len(args) == 2:
            return build.call("date_trunc", [self._unit(args[0], UNITS), self.bind(args[1])])
        if name in ("isnull", "notnull") and len(args) == 1:
            test = Call("is_null", (self.bind(args[0]),), BOOLEAN)
            return test if name == "isnull" else Call("not", (test,), BOOLEAN)
        if name == "zeroifnull" and len(args) == 1:
            return build.unify("coalesce", [self.bind(args[0]), literals.whole(0)])
        if name in ("all", "some"):
            raise Refused("refused-any", *WAYS_OUT["Any"])
        if name in ("now", "today", "current_date", "get_current_timestamp"):
            raise Refused(
                "refused-function",
                "the time of asking would make the same question another one each time",
                "write the date out: DATE '2024-01-31'",
            )
        if name not in FUNCTIONS or name == "||":
            raise Refused(
                "refused-function",
                f"the function {raw} has no rule, so no bound on one person's part is known",
                did_you_mean(raw, sorted(FUNCTIONS)),
            )
        return build.call(name, [self.bind(each) for each in args])

    # -- operators -----------------------------------------------------------------------------------------
    def _date_add(self, node: exp.Expr) -> Expression:
        amount = node.expression
        if not isinstance(amount, exp.Interval):
            unit = node.args.get("unit")
            amount = exp.Interval(this=amount, unit=unit or exp.Var(this="DAY"))
        operator = "+" if isinstance(node, exp.DateAdd) else "-"
        return build.arithmetic(operator, self.bind(node.this), self._interval(amount))

    def _junction(self, node: exp.Expr) -> Expression:
        kind, parts, pending = type(node), [], [node]
        while pending:  # flat and iterative: a chain of a thousand ORs is one node
            each = pending.pop()
            if type(each) is kind:
                pending.extend([each.expression, each.this])
            else:
                parts.append(self.condition(each))
        return Call("and" if kind is exp.And else "or", tuple(parts), BOOLEAN)

    def _is(self, node: exp.Is) -> Expression:
        value = self.bind(node.this)
        match node.expression:
            case exp.Null():
                return Call("is_null", (value,), BOOLEAN)
            case exp.Boolean() as truth:
                if value.type.kind is not Kind.BOOLEAN:
                    raise build.type_error(f"IS TRUE needs a condition, this is {value.type}")
                return Call("is_true" if truth.this else "is_false", (value,), BOOLEAN)
        raise Refused(
            "refused-expression",
            "IS is read with NULL, TRUE, FALSE and DISTINCT FROM only",
            "write = or IS NOT DISTINCT FROM",
        )

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions:
            raise Refused("refused-in", "IN needs a list of values", "write IN ('CA', 'NY')")
        args = build.comparable(
            build.with_truths([self.bind(node.this), *(self.bind(each) for each in node.expressions)])
        )
        return Call("in", tuple(args), BOOLEAN)

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Expression:
        name = "like" if isinstance(node, exp.Like) else "ilike"
        args = [self.bind(node.this), self.bind(node.expression)]
        if escape is None:
            return build.call(name, args)
        mark = self.bind(escape)
        if not isinstance(mark, Literal) or not isinstance(mark.value, str) or len(mark.value) != 1:
            raise Refused(
                "refused-pattern", "ESCAPE must be one character, written out", "LIKE '10!%' ESCAPE '!'"
            )
        return build.call(f"{name}_escape", [*args, mark])

    def _negated(self, node: exp.Expr, bound: Expression) -> Expression:
        return Call("not", (bound,), BOOLEAN) if node.args.get("negate") else bound

    def _case(self, node: exp.Case) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            test = (
                self.condition(branch.this)
                if subject is None
                else build.compare("=", subject, self.bind(branch.this))
            )
            parts += [test, self.bind(branch.args["true"])]
        return self._choice(parts, node.args.get("default"))

    def _choice(self, parts: list[Expression], default: exp.Expr | None) -> Expression:
        last = self.bind(default) if default is not None else Literal(None, NULL)
        values = build.same_type([*parts[1::2], last])
        args = [each for pair in zip(parts[0::2], values[:-1], strict=True) for each in pair]
        return Call("case", (*args, values[-1]), build.shared_type(values))

    def _log(self, node: exp.Log) -> Expression:
        if node.expression is None:
            return build.call("log10", [self.bind(node.this)])
        base = self.bind(node.this)
        if isinstance(base, Literal) and base.value in (2, 10):
            return build.call(f"log{int(base.value)}", [self.bind(node.expression)])
        raise Refused(
            "refused-function",
            "logarithms are read to the bases e, 2 and 10",
            "write ln(x), log2(x) or log10(x)",
        )

    def _extract(self, part: str, value: exp.Expr) -> Expression:
        name = PARTS.get(part.lower().removesuffix("s"))
        if name is None:
            raise SqlError(
                "sql-arguments", f"there is no date part {part}", did_you_mean(part, sorted(PARTS))
            )
        return build.call(name, [self.bind(value)])

    def _unit(self, node: exp.Expr | None, known: Sequence[str]) -> Literal:
        name = "day" if node is None else _word(node).lower().removesuffix("s")
        name = {"mm": "month", "mon": "month", "yyyy": "year", "yy": "year", "dd": "day", "q": "quarter"}.get(
            name, name
        )
        if name not in known:
            raise SqlError("sql-arguments", f"there is no unit {name}", did_you_mean(name, known))
        return Literal(name, TEXT)

    # -- constants and types -------------------------------------------------------------------------------
    def _literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            return Literal(str(node.this), TEXT)
        found = literals.number(str(node.this))
        if found is None:
            raise SqlError("sql-syntax", "this number cannot be read")
        return found

    def _interval(self, node: exp.Interval) -> Expression:
        amount = self.bind(node.this) if node.this is not None else None
        unit = node.args.get("unit")
        text = str(amount.value) if isinstance(amount, Literal) and amount.value is not None else ""
        if unit is None and text.count(" ") == 1:
            text, name = text.split(" ")
        else:
            name = _word(unit) if unit is not None else ""
        found = literals.interval(text, name)
        if found is None:
            raise Refused(
                "refused-interval", "an interval is a whole number of one unit", "write INTERVAL 3 MONTH"
            )
        return found

    def _cast(self, node: exp.Cast) -> Expression:
        target = node.to
        name = target.this.name if hasattr(target.this, "name") else str(target.this)
        if name == "DECIMAL":
            given = [literals.ordinal(each.name) for each in target.expressions]
            params = [each for each in given if each is not None]
            precision, scale = (*params, 0)[:2] if params else (18, 3)
            if len(params) < len(given) or len(given) > 2 or not 1 <= precision <= 38 or scale > precision:
                raise SqlError(
                    "sql-arguments", "DECIMAL(precision, scale) needs 1 <= precision <= 38", "DECIMAL(18, 3)"
                )
            to = decimal(precision, scale)
        elif name in _CAST_TYPES and not target.args.get("nested"):
            to = _CAST_TYPES[name]
            sizes = [each.name for each in target.expressions]
            length = literals.ordinal(sizes[0]) if to is TEXT and len(sizes) == 1 else None
            if length is not None:  # VARCHAR(2) cuts, in the dialects that keep the 2
                return build.call(
                    "left", [build.convert(self.bind(node.this), TEXT, explicit=True), literals.whole(length)]
                )
            # TIMESTAMP(3) cuts what is below 1 ms
            if sizes and (to, sizes) not in ((TEXT, ["MAX"]), (TIMESTAMP, ["6"])):
                raise Refused(
                    "refused-cast",
                    "casts to a type of a size, like TIMESTAMP(3), have no rule",
                    "leave the size out, or cut with LEFT or date_trunc",
                )
        elif name == "UUID" or name == "INTERVAL":
            raise Refused("refused-cast", f"casts to {name} have no rule", "compare the text instead")
        else:
            raise Refused("refused-cast", f"casts to {name} have no rule", "cast to a plain type")
        value = self.bind(node.this)
        if (
            isinstance(value, Literal)
            and not isinstance(node, exp.TryCast)
            and literals.unreadable(value, to)
        ):
            raise build.type_error(
                f"this constant cannot be read as {to}",
                suggestion="write one that can, as in DATE '2024-01-31' or 42; TRY_CAST, where NULL is meant",
            )
        return build.convert(value, to, explicit=True)

    def _all(self, node: exp.Expr) -> list[Expression]:
        return [self.bind(each) for each in [node.this, *node.expressions]]

    def _present(self, node: exp.Expr, names: Sequence[str]) -> list[Expression]:
        values: list[Any] = [node.args.get(name) for name in names]
        return [self.bind(each) for each in values if each is not None]


def _word(node: exp.Expr) -> str:
    """A part or unit of time as it is written: day, 'day', ('day'). In NOT 'day' sqlglot finds the same
    word.
    """
    while isinstance(node, exp.Paren) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEXT_TYPES)
    ):
        node = node.this
    if not isinstance(node, (exp.Literal, exp.Var, exp.Column, exp.Identifier)):
        raise SqlError("sql-arguments", "a part or unit of time is a word", "write date_trunc('month', d)")
    return str(node.name)
