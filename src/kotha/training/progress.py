"""The state of a run other than weights and optimizers, as saved in each checkpoint."""

import math
import time
from collections import deque
from dataclasses import dataclass, field

from kotha.i18n.message import Message

_RECENT, _LAST_SPEEDS = 50, 200


@dataclass
class Progress:
    """The state of a run other than weights and optimizers.

    Only training steps are timed; evaluation and saving are excluded.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_loss: float = math.inf
    evaluations_without_gain: int = 0
    evaluated_step: int = 0
    recent: list[float] = field(default_factory=list)  # most recent losses

    def __post_init__(self) -> None:
        self.recent = [float(loss) for loss in self.recent]
        self.speeds: deque[float] = deque(maxlen=_LAST_SPEEDS)  # tokens per second of recent steps
        self._since: tuple[float, int] | None = None

    def start_clock(self) -> None:
        """Start the clock unless it is running."""
        self._since = self._since or (time.perf_counter(), self.tokens)

    def stop_clock(self) -> None:
        """Stop the clock and add the elapsed time."""
        if self._since is not None:
            seconds, tokens = time.perf_counter() - self._since[0], self.tokens - self._since[1]
            self.seconds += seconds
            if tokens:
                self.speeds.append(tokens / max(1e-9, seconds))
            self._since = None

    def complaint(self, loss: float, spike: float | None) -> Message | None:
        """Describe a loss that is not finite or that spikes; record a normal loss and return None."""
        if not math.isfinite(loss):
            return Message("is {loss}", loss=loss)
        usual = sum(self.recent) / _RECENT if len(self.recent) == _RECENT else math.inf
        if spike is not None and loss > usual + spike:
            return Message("rose to {loss:.3f} from about {usual:.3f}", loss=loss, usual=usual)
        self.recent = [*self.recent, loss][-_RECENT:]
        return None
