"""What commands that let a model write share: their flags, and the engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from kotha.generate.engine import Engine
    from kotha.generate.settings import SamplingSettings

Run = Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="JSON on stdout.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a model writes: one flag for each field."""

    tokens: Annotated[int, Parameter(help="Tokens to write at most.")] = 150
    temperature: Annotated[float, Parameter(help="0 always takes the best token, 1 draws as the model says.")] = 0.8
    top_k: Annotated[int | None, Parameter(negative_none="no-", help="Draw among this many of the best tokens.")] = 40
    top_p: Annotated[
        float | None, Parameter(help="Draw among the fewest best tokens with this probability together.")
    ] = None
    min_p: Annotated[float | None, Parameter(help="Draw among tokens at least this share as likely as the best.")] = (
        None
    )
    repetition_penalty: Annotated[float | None, Parameter(help="Above 1: what was said becomes less likely.")] = None
    seed: Annotated[int, Parameter(help="The same seed gives the same text.")] = 0
    stop: Annotated[tuple[str, ...], Parameter(negative="", help="End before this text; may be given again.")] = ()
    weights: Annotated[
        Literal["as-they-are", "auto", "float32", "bfloat16", "int8"],
        Parameter(help="Narrower ones are read faster and say almost the same; auto measures."),
    ] = "as-they-are"

    def settings(self, place: int = 0) -> "SamplingSettings":
        """How the text at a place is drawn; each place has a seed of its own."""
        from kotha.generate.settings import SamplingSettings

        return SamplingSettings(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            seed=self.seed + place,
        )

    def open_engine(self, run: Path, max_batch: int = 1) -> "Engine":
        """The engine of a run or model folder, on a GPU where there is one."""
        import kotha

        kind: Any = None if self.weights == "as-they-are" else self.weights
        return kotha.load(run).engine(max_batch, kind)
