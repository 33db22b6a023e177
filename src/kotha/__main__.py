"""``python -m kotha`` is ``kotha``: both begin in ``kotha.cli``, found by name, so that this stands on no package."""

import sys
from importlib import import_module

run = import_module("kotha.cli").run

if __name__ == "__main__":
    sys.exit(run())
