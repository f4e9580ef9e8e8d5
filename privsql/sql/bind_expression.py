"""A permitted sqlglot node goes in; a typed expression over the columns in scope comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from privsql.errors import Place, PrivsqlError, Refused, SqlError, did_you_mean
from privsql.sql import literals
from privsql.sql.expressions import Call, Expression, Literal
from privsql.sql.functions import ALIASES, FUNCTIONS, PARTS, UNITS, Function, arithmetic, common
from privsql.sql.gate import place_of
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    MOMENTS,
    NULL,
    NUMBERS,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    integer,
)

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "is_same", exp.NullSafeNEQ: "is_distinct",
}  # fmt: skip
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
    "Translate": ("translate", ("this", "from_", "to")), "StartsWith": ("starts_with", ("this", "expression")),
    "EndsWith": ("ends_with", ("this", "expression")), "Contains": ("contains", ("this", "expression")),
    "StrPosition": ("strpos", ("this", "substr")), "Reverse": ("reverse", ("this",)),
    "SplitPart": ("split_part", ("this", "delimiter", "part_index")), "Ascii": ("ascii", ("this",)),
    "Unicode": ("unicode", ("this",)), "Levenshtein": ("levenshtein", ("this", "expression")),
    "BitLength": ("bit_length", ("this",)), "JarowinklerSimilarity": ("jaro_winkler_similarity", ("this", "expression")),
    "SimilarTo": ("similar_to", ("this", "expression")), "RegexpLike": ("regexp_matches", ("this", "expression", "flag")),
    "RegexpFullMatch": ("regexp_full_match", ("this", "expression")),
    "RegexpReplace": ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    "RegexpExtract": ("regexp_extract", ("this", "expression", "group")),
    "Abs": ("abs", ("this",)), "Ceil": ("ceil", ("this",)), "Floor": ("floor", ("this",)),
    "Round": ("round", ("this", "decimals")), "Trunc": ("trunc", ("this",)), "Sign": ("sign", ("this",)),
    "Sqrt": ("sqrt", ("this",)), "Cbrt": ("cbrt", ("this",)), "Exp": ("exp", ("this",)), "Ln": ("ln", ("this",)),
    "Sin": ("sin", ("this",)), "Cos": ("cos", ("this",)), "Tan": ("tan", ("this",)), "Asin": ("asin", ("this",)),
    "Acos": ("acos", ("this",)), "Atan": ("atan", ("this",)), "Atan2": ("atan2", ("this", "expression")),
    "Sinh": ("sinh", ("this",)), "Cosh": ("cosh", ("this",)), "Tanh": ("tanh", ("this",)),
    "Degrees": ("degrees", ("this",)), "Radians": ("radians", ("this",)), "Pi": ("pi", ()),
    "Pow": ("pow", ("this", "expression")), "IsNan": ("isnan", ("this",)), "IsInf": ("isinf", ("this",)),
    "Year": ("year", ("this",)), "Month": ("month", ("this",)), "Day": ("day", ("this",)), "Hour": ("hour", ("this",)),
    "Minute": ("minute", ("this",)), "Second": ("second", ("this",)), "Quarter": ("quarter", ("this",)),
    "Week": ("week", ("this",)), "WeekOfYear": ("week", ("this",)), "DayOfWeek": ("dayofweek", ("this",)),
    "DayOfWeekIso": ("isodow", ("this",)), "DayOfMonth": ("day", ("this",)), "DayOfYear": ("dayofyear", ("this",)),
    "Dayname": ("dayname", ("this",)), "Monthname": ("monthname", ("this",)), "LastDay": ("last_day", ("this",)),
    "TimeToUnix": ("epoch", ("this",)), "DateFromParts": ("make_date", ("year", "month", "day")),
    "TimeToStr": ("strftime", ("this", "format")), "StrToTime": ("try_strptime", ("this", "format")),
}  # fmt: skip
_CAST_TYPES: dict[str, Type] = {
    "BOOLEAN": BOOLEAN, "TINYINT": integer(*INTEGER_BOUNDS["TINYINT"]), "UTINYINT": integer(*INTEGER_BOUNDS["UTINYINT"]),
    "SMALLINT": integer(*INTEGER_BOUNDS["SMALLINT"]), "USMALLINT": integer(*INTEGER_BOUNDS["USMALLINT"]),
    "INT": integer(*INTEGER_BOUNDS["INTEGER"]), "UINT": integer(*INTEGER_BOUNDS["UINTEGER"]),
    "BIGINT": BIGINT, "UBIGINT": integer(*INTEGER_BOUNDS["UBIGINT"]), "INT128": integer(*INTEGER_BOUNDS["HUGEINT"]),
    "FLOAT": DOUBLE, "DOUBLE": DOUBLE, "TEXT": TEXT, "VARCHAR": TEXT, "CHAR": TEXT, "NVARCHAR": TEXT, "DATE": DATE,
    "TIME": TIME, "TIMESTAMP": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP, "DATETIME": TIMESTAMP,
}  # fmt: skip


class ExpressionBinder:
    """Binds expressions over rows. `column` resolves a column node; subclasses see each node first by `special`."""

    def __init__(self, column: Callable[[exp.Column], Expression]) -> None:
        self.column = column

    def special(self, node: exp.Expr) -> Expression | None:
        return None

    def bind(self, node: exp.Expr | None) -> Expression:
        if node is None:
            raise SqlError("sql-syntax", "an argument is missing here", "check the commas and parentheses")
        try:
            found = self.special(node)
            return found if found is not None else self._bind(node)
        except PrivsqlError as error:
            raise error.at(place_of(node)) from None

    def condition(self, node: exp.Expr) -> Expression:
        """An expression that is true or not: WHERE, FILTER, HAVING, WHEN."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type.kind is not Kind.BOOLEAN:
            raise _type_error(
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
                return Call("and", (self.compare(">=", value, low), self.compare("<=", value, high)), BOOLEAN)
            case exp.In():
                return self._in(node)
            case exp.Like() | exp.ILike():
                return self._negated(node, self._like(node, None))
            case exp.Escape():
                return self._negated(node.this, self._like(node.this, node.expression))
            case exp.Neg():
                return self._negate(self.bind(node.this))
            case exp.DPipe():
                return self.call("||", [self._as_text(self.bind(node.this)), self._as_text(self.bind(node.expression))])
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._choice([self.condition(node.this), self.bind(node.args["true"])], node.args.get("false"))
            case exp.Coalesce():
                return self.unify("coalesce", self._all(node))
            case exp.Least() | exp.Greatest():
                return self.unify(type(node).__name__.lower(), self._all(node))
            case exp.Nullif():
                left, right = self.same_type([self.bind(node.this), self.bind(node.expression)])
                return Call("nullif", (left, right), left.type)
            case exp.TryCast() | exp.Cast():
                return self._cast(node)
            case exp.Anonymous():
                return self._named(node)
            case exp.Trim():
                name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                    str(node.args.get("position") or "").upper(), "trim"
                )
                return self.call(name, self._present(node, ("this", "expression")))
            case exp.Concat() | exp.ConcatWs():
                name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"  # ConcatWs is a Concat, too
                return self.call(name, [self._as_text(self.bind(each)) for each in node.expressions])
            case exp.Log():
                return self._log(node)
            case exp.TimestampTrunc() | exp.DateTrunc():
                return self.call("date_trunc", [self._unit(node.args.get("unit"), UNITS), self.bind(node.this)])
            case exp.Extract():
                return self._extract(str(node.this.name), node.expression)
            case exp.TsOrDsToDate():
                return self.convert(self.bind(node.this), DATE, explicit=True)
            case exp.DateDiff() | exp.TsOrDsDiff():
                unit = self._unit(node.args.get("unit"), UNITS)
                return self.call("date_diff", [unit, self.bind(node.expression), self.bind(node.this)])
            case exp.DateAdd() | exp.DateSub():
                return self._date_add(node)
        if type(node) in _COMPARISONS:
            return self.compare(_COMPARISONS[type(node)], self.bind(node.this), self.bind(node.expression))
        if type(node) in _ARITHMETIC:
            operator = _ARITHMETIC[type(node)]
            left, right = self.bind(node.this), self.bind(node.expression)
            whole = left.type.kind is Kind.INTEGER and right.type.kind is Kind.INTEGER
            if operator == "/" and node.args.get("typed") and whole:
                operator = "//"  # dialects in which 7 / 2 is 3
            return self.arithmetic(operator, left, right)
        known = _NODES.get(type(node).__name__)
        if known is None:
            raise Refused(
                "refused-expression",
                f"{type(node).__name__.upper()} has no meaning in this place",
                "use COUNT, SUM or AVG, or move it out",
            )
        return self.call(known[0], self._present(node, known[1]))

    # -- the table of functions ----------------------------------------------------------------------------
    def call(self, name: str, args: Sequence[Expression]) -> Expression:
        """A function of the table, with its arguments checked and brought to the types it takes."""
        function = FUNCTIONS[name]
        takes = _expand(function, len(args))
        if takes is None:
            raise SqlError(
                "sql-arguments",
                f"{name} takes {_signature(function)}, not {len(args)} arguments",
                "give it those arguments",
            )
        if name in ("replace", "regexp_replace") and isinstance(args[2], Literal) and len(str(args[2].value)) > 100:
            raise Refused(
                "refused-pattern", f"the replacement of {name} is longer than 100 characters", "use a shorter one"
            )
        bound = tuple(self._argument(function, each, want) for each, want in zip(args, takes, strict=True))
        if name in ("like_escape", "ilike_escape"):
            _check_escape(bound[1], bound[2])
        return Call(name, bound, function.gives([each.type for each in bound]))

    def _argument(self, function: Function, value: Expression, want: str) -> Expression:
        if want.isupper() and not isinstance(value, Literal):
            raise Refused(
                "refused-pattern",
                f"this argument of {function.name} must be written out as a constant",
                "write a constant, as in LIKE 'A%': a pattern from a row could fail on some rows and so tell about them",
            )
        kind = value.type.kind
        if kind is Kind.NULL:
            return Literal(None, {"text": TEXT, "bool": BOOLEAN, "moment": TIMESTAMP}.get(want.lower(), DOUBLE))
        match want.lower():
            case "any":
                return value
            case "num" if kind in NUMBERS:
                return value
            case "double" if kind in NUMBERS:
                return self.convert(value, DOUBLE)
            case "int" if kind is Kind.INTEGER:
                return self.convert(value, BIGINT) if value.type.sql == "HUGEINT" else value
            case "text" if kind is Kind.TEXT:
                return value
            case "bool" if kind is Kind.BOOLEAN:
                return value
            case "moment" if kind in MOMENTS:
                return value
            case "moment" if isinstance(value, Literal) and kind is Kind.TEXT:
                return self.convert(value, TIMESTAMP)
        raise _type_error(
            f"{function.name} takes {_signature(function)}, not {value.type}", suggestion="cast the argument"
        )

    def _named(self, node: exp.Anonymous) -> Expression:
        raw = str(node.this).lower()
        name = ALIASES.get(raw, raw)
        args = node.expressions
        if name in ("extract", "isoyear") and len(args) == 2 and isinstance(args[0], exp.Literal):
            return self._extract(str(args[0].this), args[1])
        if name == "date_trunc" and len(args) == 2:
            return self.call("date_trunc", [self._unit(args[0], UNITS), self.bind(args[1])])
        if name in ("isnull", "notnull") and len(args) == 1:
            test = Call("is_null", (self.bind(args[0]),), BOOLEAN)
            return test if name == "isnull" else Call("not", (test,), BOOLEAN)
        if name == "zeroifnull" and len(args) == 1:
            return self.unify("coalesce", [self.bind(args[0]), literals.whole(0)])
        if name in ("now", "today", "current_date", "get_current_timestamp"):
            raise Refused("refused-function", "the time of asking would make the same question another one each time",
                          "write the date out: DATE '2024-01-31'")  # fmt: skip
        if name not in FUNCTIONS or name == "||":
            raise Refused(
                "refused-function",
                f"the function {raw} has no rule, so no bound on one person's part is known",
                did_you_mean(raw, sorted(FUNCTIONS)),
            )
        return self.call(name, [self.bind(each) for each in args])

    # -- operators -----------------------------------------------------------------------------------------
    def compare(self, operator: str, left: Expression, right: Expression) -> Expression:
        left, right = self.same_type([left, right])
        if left.type.kind is Kind.INTERVAL:
            raise _type_error(
                "intervals cannot be compared here", suggestion="compare dates, or date_diff('day', a, b) with a number"
            )
        return Call(operator, (left, right), BOOLEAN)

    def arithmetic(self, operator: str, left: Expression, right: Expression) -> Expression:
        kinds = (left.type.kind, right.type.kind)
        if kinds[0] in MOMENTS or kinds[1] in MOMENTS:
            return self._moment_arithmetic(operator, left, right)
        left, right = (self._as_number(each, operator) for each in (left, right))
        divisor = right.value if isinstance(right, Literal) and isinstance(right.value, int) else None
        result = arithmetic(operator, left.type, right.type, divisor)
        if operator == "//" and result.kind is not Kind.INTEGER:
            raise _type_error("// divides whole numbers only", suggestion="write floor(a / b)")
        return Call(operator, (left, right), result)

    def _moment_arithmetic(self, operator: str, left: Expression, right: Expression) -> Expression:
        match (operator, left.type.kind, right.type.kind):
            case ("+" | "-", Kind.DATE | Kind.TIMESTAMP, Kind.INTERVAL):
                return Call("date_add", (left, self._signed(operator, right)), TIMESTAMP)
            case ("+", Kind.INTERVAL, Kind.DATE | Kind.TIMESTAMP):
                return Call("date_add", (right, left), TIMESTAMP)
            case ("+" | "-", Kind.DATE, Kind.INTEGER):
                days = right if operator == "+" else self._negate(right)
                return Call("date_shift", (left, self.convert(days, integer(*INTEGER_BOUNDS["INTEGER"]))), DATE)
            case ("-", Kind.DATE, Kind.DATE):
                return Call("date_minus", (left, right), BIGINT)
        raise _type_error(
            f"{left.type} {operator} {right.type} has no rule",
            suggestion="use date_diff('day', a, b) or d + INTERVAL 1 DAY",
        )

    def _signed(self, operator: str, value: Expression) -> Expression:
        if operator == "+":
            return value
        if not isinstance(value, Literal) or value.value is None:
            raise _type_error("an interval must be written out as a constant", suggestion="INTERVAL 3 DAY")
        amount, unit = str(value.value).split(" ")
        return Literal(f"{-int(amount)} {unit}", value.type)

    def _negate(self, value: Expression) -> Expression:
        value = self._as_number(value, "-")
        if isinstance(value, Literal) and value.value is not None:
            # Python's minus rounds a Decimal to 28 digits
            negated: Any = value.value.copy_negate() if isinstance(value.value, Decimal) else -value.value
            return Literal(negated, integer(negated, negated) if value.type.kind is Kind.INTEGER else value.type)
        return Call("neg", (value,), arithmetic("-", integer(0, 0), value.type, None))

    def _date_add(self, node: exp.Expr) -> Expression:
        amount = node.expression
        if not isinstance(amount, exp.Interval):
            unit = node.args.get("unit")
            amount = exp.Interval(this=amount, unit=unit or exp.Var(this="DAY"))
        operator = "+" if isinstance(node, exp.DateAdd) else "-"
        return self.arithmetic(operator, self.bind(node.this), self._interval(amount))

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
                    raise _type_error(f"IS TRUE needs a condition, this is {value.type}")
                return Call("is_true" if truth.this else "is_false", (value,), BOOLEAN)
        raise Refused(
            "refused-expression",
            "IS is read with NULL, TRUE, FALSE and DISTINCT FROM only",
            "write = or IS NOT DISTINCT FROM",
        )

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions:
            raise Refused("refused-in", "IN needs a list of values", "write IN ('CA', 'NY')")
        args = self.same_type([self.bind(node.this), *(self.bind(each) for each in node.expressions)])
        return Call("in", tuple(args), BOOLEAN)

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Expression:
        name = "like" if isinstance(node, exp.Like) else "ilike"
        args = [self.bind(node.this), self.bind(node.expression)]
        if escape is None:
            return self.call(name, args)
        mark = self.bind(escape)
        if not isinstance(mark, Literal) or not isinstance(mark.value, str) or len(mark.value) != 1:
            raise Refused("refused-pattern", "ESCAPE must be one character, written out", "LIKE '10!%' ESCAPE '!'")
        return self.call(f"{name}_escape", [*args, mark])

    def _negated(self, node: exp.Expr, bound: Expression) -> Expression:
        return Call("not", (bound,), BOOLEAN) if node.args.get("negate") else bound

    def _case(self, node: exp.Case) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            test = (
                self.condition(branch.this) if subject is None else self.compare("=", subject, self.bind(branch.this))
            )
            parts += [test, self.bind(branch.args["true"])]
        return self._choice(parts, node.args.get("default"))

    def _choice(self, parts: list[Expression], default: exp.Expr | None) -> Expression:
        last = self.bind(default) if default is not None else Literal(None, NULL)
        values = self.same_type([*parts[1::2], last])
        args = [each for pair in zip(parts[0::2], values[:-1], strict=True) for each in pair]
        return Call("case", (*args, values[-1]), _shared(values))

    def unify(self, name: str, args: list[Expression]) -> Expression:
        unified = self.same_type(args)
        return Call(name, tuple(unified), _shared(unified))

    def _log(self, node: exp.Log) -> Expression:
        if node.expression is None:
            return self.call("log10", [self.bind(node.this)])
        base = self.bind(node.this)
        if isinstance(base, Literal) and base.value in (2, 10):
            return self.call(f"log{base.value}", [self.bind(node.expression)])
        raise Refused(
            "refused-function", "logarithms are read to the bases e, 2 and 10", "write ln(x), log2(x) or log10(x)"
        )

    def _extract(self, part: str, value: exp.Expr) -> Expression:
        name = PARTS.get(part.lower().removesuffix("s"))
        if name is None:
            raise SqlError("sql-arguments", f"there is no date part {part}", did_you_mean(part, sorted(PARTS)))
        return self.call(name, [self.bind(value)])

    def _unit(self, node: exp.Expr | None, known: Sequence[str]) -> Literal:
        name = str(node.name if node is not None else "day").lower().removesuffix("s")
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
            name = unit.name if unit is not None else ""
        found = literals.interval(text, name)
        if found is None:
            raise Refused("refused-interval", "an interval is a whole number of one unit", "write INTERVAL 3 MONTH")
        return found

    def _cast(self, node: exp.Cast) -> Expression:
        target = node.to
        name = target.this.name if hasattr(target.this, "name") else str(target.this)
        if name == "DECIMAL":
            params = [int(each.name) for each in target.expressions if each.name.isdigit()]
            precision, scale = (*params, 0)[:2] if params else (18, 3)
            if not 1 <= precision <= 38 or scale > precision:
                raise SqlError(
                    "sql-arguments", "DECIMAL(precision, scale) needs 1 <= precision <= 38", "DECIMAL(18, 3)"
                )
            to = decimal(precision, scale)
        elif name in _CAST_TYPES and not target.args.get("nested"):
            to = _CAST_TYPES[name]
        elif name == "UUID" or name == "INTERVAL":
            raise Refused("refused-cast", f"casts to {name} have no rule", "compare the text instead")
        else:
            raise Refused("refused-cast", f"casts to {name} have no rule", "cast to a plain type")
        return self.convert(self.bind(node.this), to, explicit=True)

    def convert(self, value: Expression, to: Type, explicit: bool = False) -> Expression:
        """A cast; of a literal, the literal read as that type."""
        if isinstance(value, Literal):
            converted = literals.convert(value, to)
            if converted is not None:
                return converted
            if not explicit:
                raise _type_error(f"this constant is not a {to}")
        return value if value.type == to and not explicit else Call("cast", (value,), to)

    def same_type(self, values: Sequence[Expression]) -> list[Expression]:
        """Values brought to one type, so that DuckDB has nothing left to decide."""
        kinds = {each.type.kind for each in values}
        if len(kinds - {Kind.NULL, Kind.TEXT}) and Kind.TEXT in kinds:
            # 'constants' next to other types are read as those types, as SQL does
            goal = common([each.type for each in values if each.type.kind is not Kind.TEXT])
            if goal is not None and goal.kind is not Kind.NULL:
                wide = BIGINT if goal.kind is Kind.INTEGER else goal
                values = [
                    self._constant(each, wide) if isinstance(each, Literal) and each.type.kind is Kind.TEXT else each
                    for each in values
                ]
        goal = common([each.type for each in values])
        if goal is None:
            shown = " and ".join(sorted({str(each.type) for each in values}))
            raise _type_error(f"{shown} do not go together", suggestion="cast one of them")
        if goal.kind is Kind.NULL:
            goal = TEXT
        if goal.kind is Kind.DOUBLE:
            return [self.convert(each, goal) for each in values]
        return [
            each if each.type.kind is goal.kind and goal.kind is not Kind.DECIMAL else self.convert(each, goal)
            for each in values
        ]

    def _constant(self, value: Literal, to: Type) -> Expression:
        converted = literals.convert(value, to)
        if converted is None and to.kind is Kind.INTEGER:
            converted = literals.convert(value, DOUBLE)
        if converted is None and to.kind is Kind.DATE:
            converted = literals.convert(value, TIMESTAMP)
        if converted is None:
            raise _type_error(
                f"this text constant cannot be read as {to}",
                suggestion="write a constant of that type, as in DATE '2024-01-31' or 42",
            )
        return converted

    def _as_number(self, value: Expression, operator: str) -> Expression:
        if value.type.kind is Kind.NULL:
            return Literal(None, DOUBLE)
        if value.type.kind not in NUMBERS:
            raise _type_error(f"{operator} needs numbers, this is {value.type}", suggestion="cast it")
        return value

    def _as_text(self, value: Expression) -> Expression:
        return value if value.type.kind in (Kind.TEXT, Kind.NULL) else Call("cast", (value,), TEXT)

    def _all(self, node: exp.Expr) -> list[Expression]:
        return [self.bind(each) for each in [node.this, *node.expressions]]

    def _present(self, node: exp.Expr, names: Sequence[str]) -> list[Expression]:
        values: list[Any] = [node.args.get(name) for name in names]
        return [self.bind(each) for each in values if each is not None]


def _expand(function: Function, count: int) -> list[str] | None:
    """The argument kinds for a call with that many arguments, or None."""
    takes: list[str] = []
    for want in function.takes:
        if want.endswith("*"):
            takes += [want[:-1]] * max(0, count - len(takes))
        elif want.endswith("?"):
            takes += [want[:-1]] if len(takes) < count else []
        else:
            takes.append(want)
    return takes if len(takes) == count else None


def _check_escape(pattern: Expression, escape: Expression) -> None:
    """DuckDB fails on a malformed pattern only at rows that match it so far, and TRY does not hold that back."""
    mark = escape.value if isinstance(escape, Literal) else None
    text = pattern.value if isinstance(pattern, Literal) else None
    if mark is None or text is None:
        return
    if len(mark) != 1 or not mark.isascii():
        raise Refused("refused-pattern", "ESCAPE must be one plain character, written out", "LIKE '10#%' ESCAPE '#'")
    if len(text.replace(mark * 2, "")) and text.replace(mark * 2, "").endswith(mark):
        raise Refused("refused-pattern", "this pattern ends in its escape character", "LIKE '10#%' ESCAPE '#'")


def _shared(values: Sequence[Expression]) -> Type:
    """The type of values that same_type brought together: whole numbers keep their own bounds, so it must hold them all."""
    shared = common([each.type for each in values])
    assert shared is not None
    return shared


def _signature(function: Function) -> str:
    words = {"num": "a number", "double": "a number", "int": "a whole number", "moment": "a date or timestamp"}
    shown = [words.get(each.strip("?*").lower(), each.strip("?*").lower()) for each in function.takes]
    return f"({', '.join(shown)})"


def _type_error(message: str, place: Place | None = None, suggestion: str = "") -> SqlError:
    return SqlError("sql-type", message, suggestion, place)
