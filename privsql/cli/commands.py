"""Parsed arguments go in; the text that a command prints comes out. Each function imports what it needs, so
that help and errors are immediate.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsql.errors import ArgumentError, BoundingWarning, PolicyError

if TYPE_CHECKING:
    import pandas as pd

    from privsql.results.composed_answer import AnyAnswer
    from privsql.session import Session


def demo(arguments: argparse.Namespace) -> str:
    from privsql.demo import demo

    return demo()


def query(arguments: argparse.Namespace) -> str:
    _check_output(arguments.format, arguments.output)
    with _session(arguments) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundingWarning)  # shown below, in the terms of the command line
        answer = session.query(
            _sql(arguments), **_options(arguments), fresh=arguments.fresh, show_all=arguments.show_all
        )
    _warn(answer, arguments.format)
    if arguments.format == "parquet":
        answer.to_parquet(arguments.output)
        return f"wrote {arguments.output}"
    text = _answer_text(answer, arguments.format, arguments.output is None and sys.stdout.isatty())
    if arguments.output is None:
        return text
    _write(arguments.output, text)
    return f"wrote {arguments.output}"


def _answer_text(answer: AnyAnswer, format_: str, terminal: bool) -> str:
    match format_:
        case "csv":
            return _csv([answer.columns, *answer.fetchall()])
        case "json":
            return _json(answer)
        case "markdown":
            return _markdown(answer.intervals())
        case _:
            from privsql.results.display import shown

            return shown(answer, terminal=terminal)


def _check_output(format_: str, output: str | None) -> None:
    """Refuse what cannot be written before it is paid for."""
    from privsql.results.extras import need_parquet

    if format_ == "parquet":
        need_parquet()
        if output is None:
            raise ArgumentError("argument-shape", "a Parquet file cannot be printed", "-o answer.parquet")
    if output is None:
        return
    path = Path(output)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentError(
            "argument-output", "the output file cannot be written; nothing was paid", "check the path"
        )


def _write(output: str, text: str) -> None:
    from privsql.results.extras import unwritable

    try:
        Path(output).write_text(f"{text}\n", encoding="utf-8")
    except OSError:
        raise unwritable() from None


def explain(arguments: argparse.Namespace) -> str:
    with _session(arguments) as session:
        plan = session.explain(_sql(arguments), **_options(arguments), fresh=arguments.fresh)
    return json.dumps(plan.to_dict(), indent=2) if arguments.format == "json" else str(plan)


def advise(arguments: argparse.Namespace) -> str:
    options = {
        name: value for name, value in _options(arguments).items() if name not in ("epsilon", "within")
    }
    if arguments.epsilons is not None:
        options["epsilons"] = arguments.epsilons
    with _session(arguments) as session:
        found = session.advise(_sql(arguments), rows=arguments.rows, **options)
    if arguments.plot:
        found.plot().figure.savefig(arguments.plot, dpi=150)
    if arguments.format == "json":
        return json.dumps(found.df().to_dict("records"), indent=2)
    return str(found)


def audit(arguments: argparse.Namespace) -> str:
    from privsql.audit.progress_line import ProgressLine
    from privsql.cli.declarations import declared_policy
    from privsql.connecting import connect

    progress = ProgressLine(sys.stderr)
    with connect(arguments.source, policy=declared_policy(arguments)) as session:
        found = session.audit(
            _sql(arguments),
            releases=arguments.releases,
            tries=arguments.tries,
            progress=progress,
            data=arguments.data,
            **_options(arguments),
        )
    progress.close()
    arguments.code = 0 if found.held else 1
    if arguments.plot:
        found.plot(arguments.plot)
    return (
        json.dumps(found.to_dict(), indent=2, allow_nan=False) if arguments.format == "json" else str(found)
    )


def policy_init(arguments: argparse.Namespace) -> str:
    if arguments.output is None:
        return _draft(arguments).removesuffix("\n")
    path = Path(arguments.output)
    try:
        # before anything is spent; never overwrite a policy that somebody has edited
        path.touch(exist_ok=False)
    except FileExistsError:
        raise PolicyError(
            "policy-file", "the policy file already exists", "choose another name with -o"
        ) from None
    except OSError:
        raise PolicyError("policy-file", "the policy file cannot be written", "check its path") from None
    try:
        path.write_text(_draft(arguments), encoding="utf-8")
    except BaseException:
        path.unlink()
        raise
    return f"wrote {path}; read it, then run: privsql policy check {path} {arguments.source}"


def _draft(arguments: argparse.Namespace) -> str:
    from privsql.drafting.write import draft

    return draft(
        arguments.source,
        arguments.epsilon,
        arguments.unit,
        ranges=arguments.find_ranges,
        ledger=arguments.ledger,
        analyst=arguments.analyst,
    )


def policy_check(arguments: argparse.Namespace) -> str:
    from privsql.drafting.check_policy import check_policy

    return check_policy(arguments.policy, arguments.source)


def budget(arguments: argparse.Namespace) -> str:
    from privsql.budget.ledger_file.ledger_reader import open_reader
    from privsql.budget.ledger_file.show import report, show

    with closing(open_reader(arguments.ledger)) as ledger:
        rows, runs = ledger.rows(), ledger.runs()
    if arguments.format == "json":
        return json.dumps(report(rows, arguments.by, runs), indent=2, ensure_ascii=False, allow_nan=False)
    return show(Path(arguments.ledger).name, rows, arguments.by, runs)


def history(arguments: argparse.Namespace) -> str:
    from privsql.budget.ledger_file.ledger_reader import open_reader
    from privsql.budget.ledger_file.show_history import entries_of, show_history

    with closing(open_reader(arguments.ledger)) as ledger:
        rows = ledger.rows()
    match arguments.format:
        case "json":
            return json.dumps(entries_of(rows), indent=2, ensure_ascii=False)
        case "csv":
            entries = entries_of(rows)
            return _csv([list(entries[0]), *(list(each.values()) for each in entries)])
        case _:
            return show_history(rows)


def renew(arguments: argparse.Namespace) -> str:
    from privsql.budget.caps import renewal_of
    from privsql.budget.ledger_file.file_ledger import forgive, renew
    from privsql.policy.checks import delta_of, epsilon_of

    if arguments.failures:
        _alone(arguments)
        row = forgive(arguments.ledger, arguments.reason, arguments.analyst or "")
        whose = f"of {arguments.analyst} " if arguments.analyst else ""
        return f"the count of failed queries {whose}was reset to 0, recorded as entry {row.number}"
    epsilon = Fraction(0) if arguments.epsilon is None else epsilon_of(arguments.epsilon)
    by = renewal_of(epsilon, delta_of(arguments.delta or 0))
    scope = "query" if arguments.per_query else "dataset" if arguments.analyst is None else "analyst"
    row = renew(arguments.ledger, by, arguments.reason, scope, arguments.analyst or "")
    return f"renewed, recorded as entry {row.number}"


def _alone(arguments: argparse.Namespace) -> None:
    if arguments.per_query or arguments.epsilon is not None or arguments.delta is not None:
        raise ArgumentError(
            "argument-shape",
            "--failures raises no cap, so it cannot be combined with --epsilon, --delta or --per-query",
            "run the command twice: once with --failures, once for the cap",
        )


def anchor(arguments: argparse.Namespace) -> str:
    from privsql.budget.ledger_file.verify import anchor_of, verify

    return str(anchor_of(verify(arguments.ledger)))


def verify(arguments: argparse.Namespace) -> str:
    from privsql.budget.ledger_file.ledger_reader import rules_of
    from privsql.budget.ledger_file.verify import read_anchor, verify

    rows = verify(arguments.ledger, None if arguments.anchor is None else read_anchor(arguments.anchor))
    anchored = ", and nothing was undone since the anchor" if arguments.anchor else ""
    unit, spent = rules_of(rows[:1]).caps.accountant.unit, rows[-1].total
    total = f"{unit} {spent.size:g}, delta {spent.delta:g} spent"
    return f"the ledger is valid: {len(rows)} entries, {total}{anchored}"


def _session(arguments: argparse.Namespace) -> Session:
    from privsql.cli.declarations import declared_policy
    from privsql.connecting import connect

    return connect(
        arguments.source,
        declared_policy(arguments),
        ledger=arguments.ledger,
        analyst=arguments.analyst,
        deadline=getattr(arguments, "deadline", None),
        memory_limit=getattr(arguments, "memory_limit", None),
        time_quantum=getattr(arguments, "time_quantum", None),
        version=getattr(arguments, "data_version", None),
    )


def _sql(arguments: argparse.Namespace) -> str:
    if arguments.sql != "-":
        return str(arguments.sql)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise ArgumentError("argument-shape", "standard input is not text", "send the SQL as UTF-8") from None


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ["epsilon", "delta", "within", "confidence", "dialect", "mechanism", "nonnegative", "consistent"]
    names += ["max_rows", "max_groups"]
    return {name: getattr(arguments, name, None) for name in names}


def _warn(answer: AnyAnswer, shown_as: str) -> None:
    """Print warnings, and how to declare limits, to standard error."""
    lines = [f"warning: {sentence}" for sentence in answer.warnings] if shown_as == "csv" else []
    if any(each.undeclared for each in answer.plan.bounding):
        ways = "set --max-rows and --max-groups (auto: found privately), or declare them in the policy"
        lines.append(f"hint: default limits apply: {ways}")
    for line in lines:
        print(line, file=sys.stderr)


def _csv(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().removesuffix("\n")


def _markdown(frame: pd.DataFrame) -> str:
    """The rows as a table in Markdown."""
    rows = [
        ["" if value is None or value != value else f"{value}" for value in row] for row in frame.to_numpy()
    ]
    lines = [list(map(str, frame.columns)), ["---"] * len(frame.columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _json(answer: AnyAnswer) -> str:
    rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.fetchall()]
    ends = _records(answer.intervals(0.95))
    document = {
        "columns": answer.columns,
        "rows": rows,
        "intervals": {"level": 0.95, "rows": [{**end, **row} for end, row in zip(ends, rows, strict=True)]},
        "receipt": answer.receipt,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = [[_plain(value) for value in frame.iloc[:, place].tolist()] for place in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """A value in JSON: NULL, NaN and open ends of intervals become null, dates become text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    return None if text in ("NaT", "<NA>") else text
