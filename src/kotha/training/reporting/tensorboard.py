"""TensorBoard: a listener that writes each event of a run as scalars and text.

The values and names are those in ``metrics.jsonl``. TensorBoard logging requires the extra ``kotha[tensorboard]``; the
package is imported only when used.
"""

import math
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from kotha.errors import InstallCommand, KothaError


class TensorBoard(AbstractContextManager["TensorBoard"]):
    """Writes event files to a folder; call it with each event.

    ::

        with TensorBoard(run / "tensorboard") as board:
            board({"step": 1, "loss_nats": 8.3})
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            message = "TensorBoard files cannot be written: {why}; install it with: {command}"
            raise KothaError(message, why=str(error), command=InstallCommand("tensorboard")) from error
        self._open: Any = lambda: SummaryWriter(str(folder))

    @cached_property
    def _writer(self) -> Any:
        """Return the writer; it is created at the first event, so a run that fails to start leaves no folder behind."""
        return self._open()

    def __call__(self, event: dict[str, Any]) -> None:
        """Write the values of a step under train/, those of an evaluation under validation/."""
        step = event["step"]
        if "validation" not in event:
            self._scalars("train", event, step)
            return
        self._scalars("validation", event["validation"], step)
        if event.get("sample"):
            self._writer.add_text("validation/sample", event["sample"], step)

    def _scalars(self, prefix: str, figures: dict[str, Any], step: int) -> None:
        """Write every number under ``prefix``, including values nested one level deep; NaN and infinity are omitted."""
        for name, value in figures.items():
            if isinstance(value, dict):
                self._scalars(f"{prefix}/{name}", value, step)
            elif name != "step" and isinstance(value, int | float) and math.isfinite(value):
                self._writer.add_scalar(f"{prefix}/{name}", value, step)

    def __exit__(self, *_: object) -> None:
        """Flush and close the files."""
        if "_writer" in self.__dict__:
            self._writer.close()
