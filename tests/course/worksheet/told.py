"""What the page of a sheet holds."""

import json
import re
from typing import Any


def told_by(page: str) -> dict[str, Any]:
    """The data inside a page, read again."""
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data: dict[str, Any] = json.loads(held)["data"]
    return data
