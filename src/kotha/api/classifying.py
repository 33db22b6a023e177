"""What a classifier does: it names classes, and is measured on examples with labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.wording import OnProgress

if TYPE_CHECKING:
    from kotha.evaluate.classification import ClassificationScore
    from kotha.generate.classes import Classified


class TellsClasses(OpenedModel):
    """The methods of a model that tells classes apart."""

    @overload
    def classify(self, text: str, *, why: bool = False) -> "Classified": ...

    @overload
    def classify(self, text: list[str], *, why: bool = False) -> "list[Classified]": ...

    @checked()
    def classify(self, text: str | Sequence[str], *, why: bool = False) -> "Classified | list[Classified]":
        """Of which class a text is, or each of a list, with probabilities; ``why`` tells what each token was worth.

        >>> answer = kotha.load("moods").classify("বাহ, কী চমৎকার")
        >>> answer.label in answer.probabilities
        True
        >>> lm.classify("বাহ")
        Traceback (most recent call last):
        ...
        kotha.errors.UsageError: this is a gpt model, and no classifier; make one of it with adapt classify
        """
        from kotha.generate.classes import Classifier

        several = [text] if isinstance(text, str) else list(text)
        answers = Classifier(self.bundle).classify(several, why)
        return answers[0] if isinstance(text, str) else answers

    @checked()
    def evaluate_classes(
        self,
        table: Place,
        *,
        text: str | None = None,
        label: str | None = None,
        baselines: bool = True,
        errors: Literal["stop", "skip", "replace"] = "stop",
        on_progress: OnProgress | None = None,
    ) -> "ClassificationScore":
        """Measure how well it tells the texts of a table apart: accuracy, macro-F1, each class, confusion matrix.

        ``text`` and ``label`` are its fields; left out, they are guessed. With ``baselines`` beside what the commonest
        class and TF-IDF with logistic regression reach, if its run still has the examples that it learned from.

        >>> score = kotha.load("moods").evaluate_classes("moods.csv", baselines=False)
        >>> score.examples, score.labels
        (24, ('ভালো', 'মন্দ'))
        """
        from kotha.adapt.classify import read_examples
        from kotha.adapt.examples import EXAMPLES
        from kotha.evaluate.classification import evaluate_classifier
        from kotha.text.corpus.labelled import read_labelled

        held_out = read_labelled(Path(table), text, label, errors=errors)
        learned = None
        if baselines and self.path is not None and (self.path / EXAMPLES).is_dir():
            learned = read_examples(self.path).train
        return evaluate_classifier(self.bundle, held_out, learned, on_progress)
