"""A watch over the loss: one that is not a number, or that jumps, means that something is wrong."""

import math
from collections import deque

_RECENT = 50


class Watch:
    """Remembers the last losses and says what is strange about a new one."""

    def __init__(self, spike: float | None) -> None:
        self._spike = spike
        self.recent: deque[float] = deque(maxlen=_RECENT)

    def complaint(self, loss: float) -> str | None:
        """What is wrong with this loss; None when nothing is."""
        if not math.isfinite(loss):
            return f"is {loss}"
        usual = sum(self.recent) / len(self.recent) if len(self.recent) == _RECENT else math.inf
        if self._spike is not None and loss > usual + self._spike:
            return f"rose to {loss:.3f} from about {usual:.3f}"
        self.recent.append(loss)
        return None
