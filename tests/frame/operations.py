"""Operations on a frame, by how they are written: `df` is protected, `other` and `wards` are not."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pandas as pd

ROW_BY_ROW = [
    "df.head(10)",
    "df.tail(10)",
    "df.iloc[5:20]",
    "df.loc[df['age'] > 50]",
    "df[df['state'] == 'CA']",
    "df[['age', 'state']]",
    "df.query('cost > 100')",
    "df.filter(items=['age', 'cost'])",
    "df.select_dtypes('number')",
    "df.drop(columns='day')",
    "df.drop(index=[0, 1])",
    "df.dropna()",
    "df.drop_duplicates('user')",
    "df.sample(10, random_state=1)",
    "df.nlargest(10, 'change')",
    "df.truncate(after=20)",
    "df.copy()",
    "df.copy(deep=False)",
    "copy.copy(df)",
    "copy.deepcopy(df)",
    "pickle.loads(pickle.dumps(df))",
    "pd.DataFrame(df)",
    "pd.DataFrame(df, columns=['age', 'state'])",
    "pd.DataFrame({'age': df['age'], 'state': df['state']})",
    "pd.DataFrame(df.to_dict('list'))",
    "pd.DataFrame(df.to_numpy(), columns=df.columns)",
    "df['age'].to_frame()",
    "df.assign(z=1)",
    "df.rename(columns={'age': 'years'})",
    "df.set_axis(list('abcdefg'), axis=1)",
    "df.add_prefix('p_')",
    "df.reindex(range(30))",
    "df.set_index('user')",
    "df.reset_index()",
    "df.sort_values('age')",
    "df.sort_index(ascending=False)",
    "df.astype({'change': 'float64'})",
    "df.convert_dtypes()",
    "df.fillna({'age': 0})",
    "df.replace({'ZZ': 'TX'})",
    "df.where(df['cost'] > 100)",
    "df.mask(df['cost'] > 100)",
    "df[['age', 'change']].clip(0, 100)",
    "df[['cost', 'change']] * 2",
    "df[['cost', 'change']].round(1)",
    "df.eval('double = change * 2')",
    "df.pipe(lambda each: each.head(5))",
    "df.apply(lambda column: column)",
    "df[['change']].map(abs)",
    "df.explode('state')",
    "df.merge(wards, on='state')",
    "df.merge(wards, on='state', how='left')",
    "df.join(wards.set_index('state'), on='state')",
    "df.join(other.add_prefix('o_'))",
    "pd.concat([df, other])",
    "pd.concat([df, other.add_prefix('o_')], axis=1)",
    "pd.concat([df.head(5), df.tail(5)])",
    "df.combine_first(other)",
    "df.isna()",
    "pd.get_dummies(df, columns=['state'])",
]
ACROSS_ROWS = [
    "df.groupby('state', as_index=False)['cost'].sum()",
    "df.groupby('state').size().reset_index(name='n')",
    "df.pivot_table(index='state', columns='smoker', values='cost').reset_index()",
    "df.pivot(index='user', columns='state', values='cost')",
    "df.melt(id_vars='user', value_vars=['cost', 'change'])",
    "df.describe()",
    "df[['cost', 'change']].cumsum()",
    "df[['cost', 'change']].rolling(3).mean()",
    "df[['cost', 'change']].shift(1)",
    "df.value_counts(['state']).reset_index()",
    "df[['cost', 'change']].agg(['sum', 'mean'])",
    "df[['cost', 'change']].T",
]
OUTSIDE = [
    "pd.read_csv(io.StringIO(df.to_csv(index=False)))",
]


def table() -> pd.DataFrame:
    """Rows of people, each with a user of their own."""
    index = np.arange(60)
    return pd.DataFrame(
        {
            "user": index,
            "age": pd.array((index * 7) % 130, dtype="Int64"),
            "cost": (index * 37.5) % 1100,
            "change": (index % 30) - 7,
            "state": np.array(["CA", "NY", "TX", "ZZ"])[index % 4],
            "smoker": index % 3 == 0,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(index, unit="D"),
        }
    )


def as_python_objects(df: pd.DataFrame) -> pd.DataFrame:
    """The same with texts as Python objects: pyarrow's pieces of text are shared more often than other columns are."""
    return df.astype({"state": object})


def made(operation: str, df: pd.DataFrame, other: pd.DataFrame, wards: pd.DataFrame) -> pd.DataFrame:
    """The frame that an operation makes."""
    names = {
        "df": df,
        "other": other,
        "wards": wards,
        "pd": pd,
        "np": np,
        "copy": copy,
        "io": io,
        "pickle": pickle,
    }
    return eval(operation, names)
