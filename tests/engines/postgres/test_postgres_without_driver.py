"""Without psycopg, and where PostgreSQL cannot be read yet, the message says what to do, and shows no address."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import privsql
from privsql.engines.duckdb.open_source import open_engine

ADDRESS = "postgresql://ann:ZQSECRETZQ.duckdb@db.example/clinic"


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("psycopg", "privsql.engines.postgres."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(privsql.PrivsqlError) as raised:
        privsql.connect(ADDRESS)
    assert raised.value.code == "argument-extra"
    assert "privsql[postgres]" in str(raised.value.suggestion)
    assert "ZQSECRETZQ" not in str(raised.value)


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS.replace("postgresql", "postgres")])
def test_what_reads_duckdb_alone_says_so(address: Any) -> None:
    with pytest.raises(privsql.SourceError) as raised:
        open_engine(address)
    assert raised.value.code == "source-kind"
    assert "ZQSECRETZQ" not in str(raised.value) + str(raised.value.suggestion)
