"""``python -m kotha`` is ``kotha``."""

import sys

from kotha.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
