"""What a data owner declares: a TOML file, a dict or keywords go in, a checked `Policy` comes out."""

from privsql.policy.load import load_policy
from privsql.policy.policy import ColumnPolicy, Policy, Share, TablePolicy, UnitPolicy

__all__ = ["ColumnPolicy", "Policy", "Share", "TablePolicy", "UnitPolicy", "load_policy"]
