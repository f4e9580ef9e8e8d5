"""`python -m privsql` is the command `privsql`."""

import sys

from privsql.cli import main

if __name__ == "__main__":
    sys.exit(main())
