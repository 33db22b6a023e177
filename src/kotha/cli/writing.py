"""What commands that let a model write share: their flags, and the engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.flags import flag

if TYPE_CHECKING:
    from kotha.generate.engine import Engine
    from kotha.generate.settings import SamplingSettings


_DRAWING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a model writes: one flag for each field."""

    tokens: Annotated[int, flag("Tokens to write at most.")] = 150
    temperature: Annotated[float, flag("0 always takes the best token, 1 draws as the model says.")] = 0.8
    top_k: Annotated[int | None, flag("Draw among this many of the best tokens.", negative="--no-top-k")] = 40
    top_p: Annotated[float | None, flag("Draw among the fewest best tokens with this probability together.")] = None
    min_p: Annotated[float | None, flag("Draw among tokens at least this share as likely as the best.")] = None
    repetition_penalty: Annotated[float | None, flag("Above 1: what was said becomes less likely.")] = None
    seed: Annotated[int, flag("The same seed gives the same text.")] = 0
    stop: Annotated[tuple[str, ...], flag("End before this text; may be given again.")] = ()
    weights: Annotated[
        Literal["as-they-are", "auto", "float32", "bfloat16", "int8"],
        flag("Narrower ones are read faster and say almost the same; auto measures."),
    ] = "as-they-are"

    def settings(self, place: int = 0) -> "SamplingSettings":
        """How the text at a place is drawn; each place has a seed of its own."""
        from kotha.generate.settings import SamplingSettings

        given = {name: getattr(self, name) for name in _DRAWING}
        return SamplingSettings(seed=self.seed + place, **given)

    def open_engine(self, run: Path, max_batch: int = 1) -> "Engine":
        """The engine of a run or model folder, on a GPU where there is one."""
        import kotha

        kind: Any = None if self.weights == "as-they-are" else self.weights
        return kotha.load(run).engine(max_batch, kind)
