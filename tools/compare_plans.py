"""Shows that a refactoring left every plan as it was.

    python tools/compare_plans.py dump before.json      # at the commit you start from
    python tools/compare_plans.py dump after.json       # with your change
    python tools/compare_plans.py compare before.json after.json

A dump holds what anybody can see of a plan: to_dict(), its explanation, all statements, its accuracy and
the events that a ledger charges. The queries are the text cases, and those that the generators of
tests/soundness and tests/fuzz write, each time the same ones. Comparing fails if any plan differs.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

import privsql  # noqa: E402
from privsql.budget.released import released  # noqa: E402
from privsql.planning.composed_plan import ComposedPlan  # noqa: E402
from tests.cases.test_cases import ALL_CASES, FIXTURES, Case, session_of  # noqa: E402
from tests.fuzz.texts import corpus, mutated  # noqa: E402
from tests.soundness.check import KINDS, Runner  # noqa: E402 -- found by the path above

Dump = dict[str, Any]

WORLDS = {"rows": 100, "units": 50}  # each with the queries that KINDS says: 1,000 of either kind
TEXTS = 1_500
NUMBERS: list[Dump] = [{"delta": 1e-6}, {"delta": 1e-6, "mechanism": "gaussian"}, {"mechanism": "laplace"}]
LABELS: list[Dump] = [{"mechanism": each} for each in ("laplace", "gumbel", "exponential")]
SHOWN = 10  # differences printed


def what_shows(session: privsql.Session, sql: str, **arguments: Any) -> Dump:
    """Everything visible of the plan for a query, or its refusal."""
    try:
        plan = session.explain(sql, **arguments)
        if isinstance(plan, ComposedPlan):
            return {"plan": plan.to_dict(), "text": str(plan)}
        accuracy = plan.accuracy(0.95)
        return {
            "plan": plan.to_dict(),
            "text": str(plan),
            "statements": list(plan.statements),
            "runs": list(plan.runs),
            "accuracy": [dict(accuracy), accuracy.notes, accuracy.together],
            "charged": [each.to_json() for each in released(plan.measurements)],
            "cheaper": plan.repriced(plan.loss / 2).to_dict()["measurements"],
        }
    except Exception as error:  # noqa: BLE001 -- a crash is compared, too
        return {"error": f"{type(error).__name__}: {error}"}


def plans_of_cases() -> Iterator[tuple[str, Dump]]:
    for case in ALL_CASES:
        for neighbours in ("replace-one", "add-remove"):
            plain = _of_case(case, neighbours)
            yield f"case {case.name} {neighbours}", plain
            chooses = "report-noisy-max" in plain.get("text", "")
            for options in LABELS if chooses else NUMBERS:  # delta also shows keys that nobody declared
                yield f"case {case.name} {neighbours} {options}", _of_case(case, neighbours, options)


def _of_case(case: Case, neighbours: str, options: Mapping[str, Any] | None = None) -> Dump:
    try:
        session = case.session(neighbours)
    except privsql.PrivsqlError as error:
        return {"error": str(error)}
    epsilon = {} if "within" in case.settings else {"epsilon": 1.0}
    return what_shows(session, case.sql, **{**epsilon, **case.arguments(), **(options or {})})


def plans_of_generators() -> Iterator[tuple[str, Dump]]:
    for name, worlds in WORLDS.items():
        runner = Runner(name)
        for seed in range(worlds):
            world = runner.world(seed)
            session = privsql.connect(runner.empty, policy=world.policy)
            for number in range(KINDS[name].queries):
                generator = KINDS[name].generator(Random(f"query {seed} {number}"), world)
                sql = generator.query()
                shown = what_shows(session, sql, epsilon=1.0, **generator.options)
                yield f"{name} {seed} {number}: {sql}", shown
        runner.close()


def plans_of_texts() -> Iterator[tuple[str, Dump]]:
    """Mutated texts; where noise can be chosen, sometimes another than by default."""
    known = [(schema, sql) for schema, sql in corpus() if schema in FIXTURES]
    for number in range(TEXTS):
        rng = Random(f"text {number}")
        schema, sql = rng.choice(known)
        sql = mutated(rng, sql) if number % 3 else sql
        options = rng.choice([{}, {}, {"delta": 1e-6}, {"delta": 1e-6, "mechanism": "gaussian"}])
        session = session_of(schema, rng.choice(["replace-one", "add-remove"]))
        yield f"text {number} {options}: {sql}", what_shows(session, sql, epsilon=1.0, **options)


def dump(path: Path) -> None:
    found: Dump = {}
    for plans in (plans_of_cases, plans_of_generators, plans_of_texts):
        found |= dict(plans())
    text = json.dumps(found, default=str, indent=0, sort_keys=True)
    path.write_text(text, encoding="utf-8")
    refused = sum("error" in each for each in found.values())
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    print(f"{len(found):,} queries, {len(found) - refused:,} with a plan; digest {digest}")


def compare(before: Path, after: Path) -> int:
    """The number of queries whose plans differ; the first few are printed."""
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    different = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    for name in sorted(different)[:SHOWN]:
        was, now = one.get(name, {}), other.get(name, {})
        print(name)
        for part in sorted(was.keys() | now.keys()):
            if was.get(part) != now.get(part):
                print(f"  {part} before: {was.get(part)}\n  {part} after:  {now.get(part)}")
    print(f"{len(one):,} queries before, {len(other):,} after: {len(different):,} differ")
    return len(different)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["dump", path]:
            with warnings.catch_warnings(action="ignore"):
                dump(Path(path))
            return 0
        case ["compare", before, after]:
            return 1 if compare(Path(before), Path(after)) else 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
