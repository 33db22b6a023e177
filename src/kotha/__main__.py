"""Make ``python -m kotha`` run the ``kotha`` command; ``kotha.cli`` is imported by name, as it is in a higher layer."""

import sys
from importlib import import_module

run = import_module("kotha.cli").run

if __name__ == "__main__":
    sys.exit(run())
