"""A TOML file or a dict goes in; a `Policy` comes out, or a PolicyError that names the setting to mend."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from privsql.errors import PolicyError, did_you_mean
from privsql.names import folded, joined, parts_of
from privsql.neighbours import Accounting, Neighbours
from privsql.policy.checks import (
    EVERYONE,
    PART_FOR_KEYS,
    delta_of,
    epsilon_of,
    is_name,
    key_set_of,
    limit_of,
    neighbours_of,
    range_of,
    version_of,
)
from privsql.policy.policy import ColumnPolicy, Policy, Share, TablePolicy, UnitPolicy
from privsql.suggestions import Argument, InPolicy, Way

_BUDGET = {
    "epsilon",
    "delta",
    "per_query",
    "per_query_least",
    "max_failures",
    "analysts",
    "dataset",
    "accountant",
    "part_for_keys",
}
_TABLE = {"public", "unit", "max_groups", "max_rows", "unique", "matches", "columns"}
_MOST_SCHEMAS = 2  # names before a table's: of its database and its schema


def load_policy(source: Policy | Mapping[str, Any] | str | Path | None) -> Policy:
    """Load a policy.

    Arguments:
        source: the path of a TOML file, a dict of the same shape, a Policy (returned as it is), or None for
            a policy that declares nothing.

    Returns:
        The checked Policy.

    Raises:
        PolicyError: the file cannot be read, or a setting is unknown or does not make sense.
        ArgumentError: an epsilon, a delta, a version or the neighbour relation is out of range.

    Example:
        >>> from privsql.policy import load_policy
        >>> load_policy({"tables": {"visits": {"unit": "user_id"}}}).table("visits").unit.columns
        ('user_id',)
    """
    match source:
        case None:
            return Policy()
        case Policy():
            return source
        case str() | Path():
            try:
                return _policy(tomllib.loads(Path(source).read_text(encoding="utf-8")))
            except OSError:
                problem = "the policy file cannot be read"
                raise PolicyError("policy-file", problem, "check its path") from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise PolicyError("policy-file", f"the policy file is not valid TOML: {error}") from None
        case Mapping():
            return _policy(source)
        case _:
            raise PolicyError("policy-shape", "policy must be a Policy, a dict or the path of a TOML file")


def unit_of(value: Any, where: str = "unit") -> UnitPolicy:
    """A privacy unit: 'user_id', ['clinic', 'patient'], or 'customer_id -> customers.id' for the unit of the
    row that it references.
    """
    listed = [value] if isinstance(value, str) else value
    example: list[Way] = [(Argument("unit", '"COLUMN"') if where == "unit" else 'unit = "COLUMN"',)]
    example.append((InPolicy('unit = "customer_id -> customers.id"'),))
    if (
        not isinstance(listed, (list, tuple))
        or not listed
        or not all(isinstance(each, str) for each in listed)
    ):
        raise PolicyError("policy-unit", f"{where} must be a column name or a list of column names", example)
    parts = [[side.strip() for side in each.split("->")] for each in listed]
    columns = tuple(part[0] for part in parts)
    if not all(columns) or len({column.lower() for column in columns}) < len(columns):
        raise PolicyError(
            "policy-unit", f"{where} has an empty column name, or names a column twice", example
        )
    if all(len(part) == 1 for part in parts):
        return UnitPolicy(columns)
    targets = [parts_of(part[1]) if len(part) == 2 else () for part in parts]
    tables = [joined(target[:-1]) for target in targets]
    if any(len(target) < 2 for target in targets) or len({each.lower() for each in tables}) > 1:
        raise PolicyError("policy-unit", f"{where} must reference columns of a single other table", example)
    return UnitPolicy(columns, tables[0], tuple(target[-1] for target in targets))


def _policy(raw: Mapping[str, Any]) -> Policy:
    _only(raw, {"neighbours", "budget", "tables", "min_units", "version"}, "the policy")
    budget = _section(raw.get("budget", {}), "budget")
    _only(budget, _BUDGET, "budget")
    named = list(_named_tables(_section(raw.get("tables", {}), "tables")))
    tables = dict(named)
    if len(tables) < len(named):
        raise PolicyError("policy-duplicate", "the policy has one table twice", "keep one of them")
    folded(tables, "tables")
    return Policy(
        neighbours=neighbours_of(raw.get("neighbours", Neighbours.REPLACE_ONE)),
        epsilon=epsilon_of(budget["epsilon"], "budget.epsilon") if "epsilon" in budget else None,
        delta=delta_of(budget.get("delta", 0), "budget.delta"),
        **_per_query(budget),
        max_failures=limit_of(budget.get("max_failures"), "budget.max_failures"),
        analysts=_analysts(_section(budget.get("analysts", {}), "budget.analysts")),
        dataset=_dataset(budget.get("dataset")),
        **_accountant(budget),
        version=version_of(raw.get("version")),
        min_units=limit_of(raw.get("min_units"), "min_units") or 1,
        tables={name.lower(): _table_policy(_section(table, name), name) for name, table in tables.items()},
    )


def _named_tables(section: Mapping[str, Any], schema: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Tables by name. [tables.sales.orders] is table orders of schema sales, like [tables."sales.orders"]."""
    for name, value in section.items():
        if len(schema) < _MOST_SCHEMAS and isinstance(value, Mapping) and _holds_tables(value):
            yield from _named_tables(value, (*schema, name))
        else:
            yield joined((*schema, name)) if schema else name, value


def _holds_tables(section: Mapping[str, Any]) -> bool:
    """Whether a section is of a schema: it has sections only, and none that a table has or that is called
    much like one.
    """
    return bool(section) and all(
        isinstance(each, Mapping) and not get_close_matches(name.lower(), _TABLE, 1, 0.8)
        for name, each in section.items()
        if isinstance(name, str)
    )


def _per_query(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The most and the least that one query may cost."""
    most, least = (
        epsilon_of(budget[name], f"budget.{name}") if name in budget else None
        for name in ("per_query", "per_query_least")
    )
    if most is not None and least is not None and least > most:
        problem = "budget.per_query_least is above budget.per_query, so every query would be rejected"
        raise PolicyError("policy-shape", problem, f"per_query_least = {float(most):g}")
    return {"per_query": most, "per_query_least": least}


def _analysts(raw: Mapping[str, Any]) -> dict[str, Share]:
    """ana = 2.0, or ana = { epsilon = 2.0, delta = 1e-7 }; "*" is everyone else."""
    found = {}
    for name, value in raw.items():
        if name != EVERYONE and not is_name(name):
            problem = "a name in budget.analysts is empty or not plain text"
            raise PolicyError("policy-shape", problem, "ana = 2.0")
        share = value if isinstance(value, Mapping) else {"epsilon": value}
        _only(share, {"epsilon", "delta"}, "budget.analysts")
        if "epsilon" not in share:
            raise PolicyError("policy-shape", "an entry of budget.analysts has no epsilon", "ana = 2.0")
        delta = delta_of(share["delta"], "delta in budget.analysts") if "delta" in share else None
        found[name] = Share(epsilon_of(share["epsilon"], "epsilon in budget.analysts"), delta)
    return found


def _accountant(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The accountant, if it can keep a guarantee of this kind, and its setting."""
    name, names = budget.get("accountant"), [each.value for each in Accounting]
    if name is not None and name not in names:
        problem = f"there is no accountant {name!r}"
        raise PolicyError("policy-accountant", problem, did_you_mean(str(name), names))
    if name == "zcdp" and not ("epsilon" in budget and budget.get("delta")):
        problem = "the zcdp accountant needs both epsilon and delta: rho is computed from them"
        raise PolicyError("policy-accountant", problem, "delta = 1e-6")
    if name == "pure" and budget.get("delta"):
        problem = "the pure accountant cannot be used with a delta"
        raise PolicyError("policy-accountant", problem, 'accountant = "approximate"')
    part = budget.get("part_for_keys")
    if part is not None and name != "zcdp":
        problem = "part_for_keys applies to the zcdp accountant only: the part of delta reserved for keys"
        raise PolicyError("policy-accountant", problem, 'accountant = "zcdp"')
    return {
        "accountant": None if name is None else Accounting(name),
        "part_for_keys": PART_FOR_KEYS if part is None else delta_of(part, "part_for_keys (of delta)"),
    }


def _dataset(value: Any) -> str | None:
    if value is not None and not is_name(value):
        raise PolicyError("policy-shape", "budget.dataset must be a name", 'dataset = "clinic"')
    return None if value is None else str(value)


def _table_policy(raw: Mapping[str, Any], name: str) -> TablePolicy:
    where = f"tables.{name}"
    _only(raw, _TABLE, where)
    if not isinstance(raw.get("public", False), bool):
        raise PolicyError("policy-shape", f"{where}.public must be true or false", "public = true")
    columns = _section(raw.get("columns", {}), f"{where}.columns")
    folded(columns, f"{where}.columns")
    return TablePolicy(
        public=raw.get("public", False),
        unit=None if raw.get("unit") is None else unit_of(raw["unit"], f"{where}.unit"),
        max_groups=limit_of(raw.get("max_groups"), f"{where}.max_groups"),
        max_rows=limit_of(raw.get("max_rows"), f"{where}.max_rows"),
        unique=_unique(raw.get("unique", ()), f"{where}.unique"),
        matches=_matches(raw.get("matches", {}), f"{where}.matches"),
        columns={
            column.lower(): _column_policy(_section(entry, column), f"{where}.columns.{column}")
            for column, entry in columns.items()
        },
    )


def _unique(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
    """['code'] or [['year', 'number']]: columns in which no two rows agree."""
    if not isinstance(value, (list, tuple)):
        raise PolicyError("policy-shape", f"{where} must be a list of columns", 'unique = ["code"]')
    found = [(each,) if isinstance(each, str) else each for each in value]
    if not all(
        isinstance(each, (list, tuple)) and each and all(isinstance(n, str) for n in each) for each in found
    ):
        raise PolicyError("policy-shape", f"{where} must be a list of columns", 'unique = ["code"]')
    for each in found:
        folded(dict.fromkeys(each), where)
    return tuple(tuple(each) for each in found)


def _matches(value: Any, where: str) -> dict[str, int]:
    """{doctor_id = 50}: how many rows may share one value."""
    found = {}
    folded(_section(value, where), where)
    for name, most in _section(value, where).items():
        checked = limit_of(most, f"{where}.{name}")
        assert checked is not None or most is None
        if checked is not None:
            found[name.lower()] = checked
    return found


def _column_policy(raw: Mapping[str, Any], where: str) -> ColumnPolicy:
    _only(raw, {"range", "values", "nullable"}, where)
    nullable = raw.get("nullable", True)
    if not isinstance(nullable, bool):
        raise PolicyError("policy-shape", f"{where}.nullable must be true or false", "nullable = false")
    bounds = range_of(raw["range"], f"{where}.range") if "range" in raw else {}
    values = key_set_of(raw["values"], f"{where}.values") if "values" in raw else None
    return ColumnPolicy(values=values, null_is_key=nullable, **bounds)


def _section(value: Any, where: str) -> Mapping[str, Any]:
    """A table of the TOML file."""
    if not isinstance(value, Mapping):
        raise PolicyError("policy-shape", f"{where} must be a TOML table (a dict)", f"[{where}]")
    if not all(isinstance(name, str) for name in value):
        raise PolicyError("policy-shape", f"the names in {where} must be strings")
    return value


def _only(raw: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in raw:
        if name not in known:
            problem = f"{where} has no setting {name!r}"
            raise PolicyError("policy-unknown", problem, did_you_mean(str(name), sorted(known)))
