"""What is asked of a model: questions with known answers, and its task again on texts that are written otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.i18n.message import OnProgress

if TYPE_CHECKING:
    from kotha.evaluation.instructions import InstructionScore
    from kotha.evaluation.masked import MaskedScore
    from kotha.evaluation.robustness import Robustness


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
        from kotha.evaluation.instructions import evaluate_instructions
        from kotha.finetune.instruct import learned_from
        from kotha.text.corpus.dialogues import read_dialogues

        asked = read_dialogues(Path(path), instruction, answer, errors=errors)
        return evaluate_instructions(self.bundle, asked, learned_from(self.path), on_progress)

    @checked()
    def evaluate_masked(
        self,
        text: Place | Sequence[str],
        *,
        baselines: Place | None = "auto",
        split: str = "validation",
        field: str = "text",
        errors: Literal["stop", "skip", "replace"] = "stop",
        on_progress: OnProgress | None = None,
    ) -> "MaskedScore":
        """Measure how many hidden words a BERT guesses, and how many pairs of stretches it judges right.

        ``text`` is a file, a folder, a data folder (one ``split`` of it) or a list of documents. Beside it what
        counting reaches in the data folder ``baselines``; auto is the one that the run was trained on, if it is there.

        >>> score = kotha.load("bert").evaluate_masked("stories.jsonl")
        >>> score.words_accuracy <= score.words_top5, score.pairs > 0
        (True, True)
        """
        from kotha.evaluation.masked import evaluate_masked
        from kotha.evaluation.perplexity import MAX_TOKENS
        from kotha.text.held_out import tokens_of

        model, tokenizer = self._bert
        held_out = self._held_out(tokenizer, text, split=split, field=field, errors=errors)
        data = self._data(baselines)
        learned = None if data is None else tokens_of(data["train"], MAX_TOKENS)
        return evaluate_masked(model, tokenizer, held_out, learned, on_progress)

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
        from kotha.evaluation.robustness import evaluate_perturbed

        how: Any = {"share": share, "seed": seed, "pair": pair or (None, None), "errors": errors}
        how["on_progress"] = on_progress
        return evaluate_perturbed(self.bundle, Path(path), kinds, **how)
