"""For all tests: how hypothesis looks for counter-examples.

No deadline, because a busy machine is not a defect. On CI the examples are the same each time, so that red means that
the change did it; elsewhere they are drawn anew.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kotha", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kotha")
