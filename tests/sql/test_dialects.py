"""What an answer under dialect= means, where the outcome of a text case does not show it."""

from __future__ import annotations

import pandas as pd

import privsql  # noqa: F401 -- registers df.dp


def test_len_of_tsql_does_not_count_spaces_at_the_end() -> None:
    names = pd.DataFrame({"name": ["ab ", "ab", " b", "abc"] * 10})
    answer = names.dp.query("SELECT COUNT(*) AS n FROM df WHERE LEN(name) = 2", epsilon=1e4, dialect="tsql")
    assert answer["n"].tolist() == [30]
    assert names.dp.query("SELECT COUNT(*) AS n FROM df WHERE LEN(name) = 2", epsilon=1e4)["n"].tolist() == [
        20
    ]
