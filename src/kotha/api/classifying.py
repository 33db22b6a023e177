"""What a classifier does: it names classes, and is measured on examples with labels."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from kotha.api import Place
from kotha.api.opened import OpenedModel
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import OnProgress, Option
from kotha.model.vit import ViT

if TYPE_CHECKING:
    from kotha.evaluation.classification import ClassificationScore
    from kotha.generation.classes import Classified as Classified


class TellsClasses(OpenedModel):
    """The methods of a model that tells classes apart."""

    @overload
    def classify(self, text: Place, *, why: bool = False) -> "Classified": ...

    @overload
    def classify(self, text: list[str] | list[Path], *, why: bool = False) -> "list[Classified]": ...

    @checked()
    def classify(self, text: Place | Sequence[Place], *, why: bool = False) -> "Classified | list[Classified]":
        """Of which class a text is, or each of a list, with probabilities; ``why`` tells what each token was worth.

        A ViT reads the files of that name, images; where it looks is shown by ``attention(image=…)``.

        >>> answer = kotha.load("moods").classify("বাহ, কী চমৎকার")
        >>> answer.label in answer.probabilities
        True
        >>> lm.classify("বাহ")
        Traceback (most recent call last):
        ...
        kotha.errors.UsageError: this is a gpt model, and no classifier; make one of it with adapt classify
        """
        from kotha.generation.classes import Classifier, classify_images

        alone = isinstance(text, str | os.PathLike)
        several: list[Place] = [text] if isinstance(text, str | os.PathLike) else list(text)
        if isinstance(self.model, ViT):
            if why:
                raise UsageError("{why} is for texts; where a ViT looks is shown by its attention", why=Option("why"))
            answers = classify_images(self.bundle, [Path(each) for each in several])
        else:
            if not all(isinstance(each, str) for each in several):
                raise UsageError(
                    "{called} reads texts, and a path names a file; give what the file says", called=self._called
                )
            answers = Classifier(self.bundle).classify([str(each) for each in several], why)
        return answers[0] if alone else answers

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
        from kotha.evaluation.classification import evaluate_classifier
        from kotha.finetune.classify import ClassifyTexts
        from kotha.text.corpus.labelled import read_labelled

        held_out = read_labelled(Path(table), text, label, errors=errors)
        learned = self._learned(ClassifyTexts()) if baselines else None
        return evaluate_classifier(self.bundle, held_out, learned, on_progress)

    @checked()
    def evaluate_images(
        self, images: Place, *, baselines: bool = True, on_progress: OnProgress | None = None
    ) -> "ClassificationScore":
        """Measure how well it tells images apart: those of a folder by class, or of an .npz archive (its test part).

        With ``baselines`` beside the commonest class and the nearest neighbour, if its run still has what it learned.

        >>> kotha.load("vit").evaluate_images("shapes.npz").examples
        12
        """
        from kotha.evaluation.classification import evaluate_images
        from kotha.finetune.images import ClassifyImages
        from kotha.generation.classes import vit_of
        from kotha.storage.images import read_labelled_images

        config = vit_of(self.bundle).config
        parts = read_labelled_images(Path(images), config.image_size, config.n_channels)
        learned = self._learned(ClassifyImages()) if baselines else None
        return evaluate_images(self.bundle, parts.get("test", parts["train"]), learned, on_progress)
