"""Real processes on one ledger: killed at every step, starved of disk, forked; and what every ledger must do."""
