"""python -m tests.attacks [FILE ...]: the three numbers for files of attack cases; exits 1 if an attack is not held.

Without a file: the shared cases, if they are on this machine, and own.jsonl beside this.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.attacks.judge import OWN, SHARED, is_held, run, summary


def main() -> int:
    paths = [Path(each) for each in sys.argv[1:]] or [each for each in (SHARED, OWN) if each.exists()]
    missing = [str(each) for each in paths if not each.exists()]
    if missing:
        print(f"there is no file {', '.join(missing)}", file=sys.stderr)
        return 2
    results = run(paths)
    print(summary(results))
    return 0 if is_held(results) else 1


if __name__ == "__main__":
    sys.exit(main())
