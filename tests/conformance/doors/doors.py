"""The doors that a query can come through, each used as its user would: a new door is one more row of DOORS."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from typing import Any

import pandas as pd
import sqlalchemy

import privsql
from privsql import PrivsqlError, dbapi
from privsql.cli import main
from tests.conftest import clinic

Rows = list[tuple[Any, ...]]


def _rows(df: pd.DataFrame) -> Rows:
    return list(df.itertuples(index=False, name=None))


class Frame:
    """df.dp.explain(...)."""

    def __init__(self, df: pd.DataFrame) -> None:
        self.df, self.policy, self.arguments = df, {}, {"epsilon": 1.0}

    def ask(self, sql: str) -> None:
        self.df.dp.explain(sql, **self.arguments)

    def query(self, sql: str) -> Rows:
        return _rows(self.df.dp.query(sql, **self.arguments))

    def follow(self, way: str) -> None:
        self.arguments |= eval(f"dict({', '.join(re.findall(_KEYWORD, way))})")


class Session(Frame):
    """connect(df, policy).explain(...), with lines of a policy as the suggestion writes them."""

    where = "the policy"

    def ask(self, sql: str) -> None:
        with privsql.connect({"df": self.df}, self.policy) as session:
            session.explain(sql, **self.arguments)

    def query(self, sql: str) -> Rows:
        with privsql.connect({"df": self.df}, self.policy) as session:
            return _rows(session.query(sql, **self.arguments).df())

    def follow(self, way: str) -> None:
        self.policy = self._lines(way)
        super().follow(way)

    def _lines(self, way: str) -> dict[str, Any]:
        found = re.search(rf"(\w+ = \{{.*\}}) \(in {re.escape(self.where)}, under (\[.*?\])\)", way)
        return (
            {}
            if found is None
            else tomllib.loads(f"{found[2]}\n" + "\n".join(re.split(r"(?<=\}), ", found[1])))
        )


class Cursor(Session):
    """privsql.dbapi.connect(df, policy).cursor().execute(...)."""

    def ask(self, sql: str) -> None:
        with self._connect() as connection:
            connection.session.explain(sql, **connection.settings)

    def query(self, sql: str) -> Rows:
        with self._connect() as connection:
            return connection.cursor().execute(sql).fetchall()

    def _connect(self) -> dbapi.Connection:
        return dbapi.connect({"df": self.df}, self.policy, settings=self.arguments, **self._price())

    def _price(self) -> dict[str, Any]:
        return {name: self.arguments[name] for name in ("epsilon", "delta") if name in self.arguments}


class Engine(Session):
    """sqlalchemy.create_engine("privsql:///df.parquet?...")."""

    def __init__(self, df: pd.DataFrame, tmp_path: Any) -> None:
        super().__init__(df)
        df.to_parquet(tmp_path / "df.parquet")
        self.path = tmp_path / "df.parquet"

    def query(self, sql: str) -> Rows:
        options = "&".join(f"{name}={value}" for name, value in self.arguments.items())
        engine = sqlalchemy.create_engine(f"privsql:///{self.path}?{options}")
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.exec_driver_sql(sql).fetchall()]
        except sqlalchemy.exc.DBAPIError as error:
            raise error.orig or error from None
        finally:
            engine.dispose()


class CommandLine(Session):
    """privsql explain df.parquet ..., with options and a policy file."""

    where = "a policy file (--policy FILE)"

    def __init__(self, df: pd.DataFrame, tmp_path: Any, capsys: Any) -> None:
        super().__init__(df)
        self.directory, self.capsys, self.options = tmp_path, capsys, {}
        df.to_parquet(tmp_path / "df.parquet")

    def ask(self, sql: str) -> None:
        self._run("explain", sql)

    def query(self, sql: str) -> Rows:
        found = json.loads(self._run("query", sql, "--format", "json"))
        return [tuple(row[name] for name in found["columns"]) for row in found["rows"]]

    def _run(self, command: str, sql: str, *more: str) -> str:
        """What the command prints; its refusal is raised as the library would raise it."""
        named = {f"--{name.replace('_', '-')}": str(value) for name, value in self.arguments.items()}
        line = [part for each in (named | self.options).items() for part in each]
        if self.policy:
            columns = self.policy["tables"]["df"]["columns"]
            text = "\n".join(f"{name} = {{ {_toml(column)} }}" for name, column in columns.items())
            (self.directory / "p.toml").write_text(f"[tables.df.columns]\n{text}")
            line += ["--policy", str(self.directory / "p.toml")]
        code = main([command, str(self.directory / "df.parquet"), sql, *line, *more])
        printed = self.capsys.readouterr()
        if code:
            first, _, hint = printed.err.rstrip().partition("\nhint: ")
            raise PrivsqlError(re.findall(r"\[([a-z-]+)\]", first)[-1], first, hint)
        return str(printed.out)

    def follow(self, way: str) -> None:
        assert not re.search(r"\b(delta|epsilon|keys|ranges|unit)=", way), way
        self.policy = self._lines(way)
        option = re.search(r"--(?!policy)[a-z-]+ \S+", way)
        self.options = {} if option is None else dict([shlex.split(option[0])])


_KEYWORD = r"\b(?:(?:ranges|keys)=\{.*?\}|(?:delta|epsilon|max_rows)=[\w.-]+)"


def _toml(column: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {str(value).replace(chr(39), chr(34))}" if not isinstance(value, str) else f'{name} = "{value}"'
                     for name, value in column.items())  # fmt: skip


Door = Frame
DOORS: dict[str, Callable[[pd.DataFrame, Any, Any], Door]] = {
    "frame": lambda df, tmp_path, capsys: Frame(df),
    "session": lambda df, tmp_path, capsys: Session(df),
    "cursor": lambda df, tmp_path, capsys: Cursor(df),
    "engine": lambda df, tmp_path, capsys: Engine(df, tmp_path),
    "command": CommandLine,
}


def door_of(name: str, tmp_path: Any, capsys: Any) -> Door:
    """The door to a table df, a small clinic."""
    return DOORS[name](clinic(60).astype({"user": str}), tmp_path, capsys)
