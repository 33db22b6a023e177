"""What is asked of a model: questions with known answers, and its task again on texts that are written otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.wording import OnProgress

if TYPE_CHECKING:
    from kotha.evaluate.instructions import InstructionScore
    from kotha.evaluate.robustness import Robustness


class IsTested(OpenedModel):
    """The methods that put a model to the test."""

    @checked()
    def evaluate_instructions(
        self,
        path: Place,
        *,
        instruction: str | None = None,
        answer: str | None = None,
        errors: Literal["stop", "skip", "replace"] = "stop",
        on_progress: OnProgress | None = None,
    ) -> "InstructionScore":
        """Measure how many questions of a file it answers right; fields as ``adapt_instruct`` has them.

        >>> lm.evaluate_instructions("pairs.jsonl").examples
        12
        """
        from kotha.adapt.instruct import learned_from
        from kotha.evaluate.instructions import evaluate_instructions
        from kotha.text.corpus.dialogues import read_dialogues

        asked = read_dialogues(Path(path), instruction, answer, errors=errors)
        return evaluate_instructions(self.bundle, asked, learned_from(self.path), on_progress)

    @checked()
    def evaluate_perturbed(
        self,
        path: Place,
        kinds: Sequence[str] = ("spelling", "typos", "latin"),
        *,
        share: float = 0.2,
        seed: int = 0,
        pair: tuple[str, str] | None = None,
        errors: Literal["stop", "skip", "replace"] = "stop",
        on_progress: OnProgress | None = None,
    ) -> "Robustness":
        """Measure how far a score falls on the same text with spelling noise, slips, in Latin letters …

        A kind that is a file is another text of the same sort, for another domain or dialect. ``share`` is that of the
        words that are changed; ``pair`` names the fields of translations.

        >>> lm.evaluate_perturbed("stories.jsonl", ["latin"]).falls[0].after > 0
        True
        """
        from kotha.evaluate.robustness import evaluate_perturbed

        how: Any = {"share": share, "seed": seed, "pair": pair or (None, None), "errors": errors}
        how["on_progress"] = on_progress
        return evaluate_perturbed(self.bundle, Path(path), kinds, **how)
