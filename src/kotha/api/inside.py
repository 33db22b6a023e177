"""Inspect a model: activations at hook points, and views for notebooks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.api import AnyPath
from kotha.api.loaded_model import OpenedModel, as_text
from kotha.api.model_input import read_input, translator
from kotha.api.options import InputOptions, SheetOptions
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.artifacts.own_text import own_opening
from kotha.i18n.message import OnProgress
from kotha.storage import bundled

if TYPE_CHECKING:
    from kotha.course.worksheet.page import SheetView
    from kotha.inside.attention import Alignment, AttentionMaps
    from kotha.inside.flow import Flow
    from kotha.inside.heads.study import Study
    from kotha.inside.lens import Lens
    from kotha.inside.trace import Trace
    from kotha.inside.view import View


class InspectionMixin(OpenedModel):
    """Inspection methods for ``LanguageModel``.

    A view is displayed in a notebook as an offline page. ``save("x.html")`` writes the page, ``to_dict()`` returns the
    numbers, and ``found`` is the typed result. ``options`` are the other fields of the input: ``generate=12`` (also
    inspect 12 generated tokens), ``second`` (the second sentence for a BERT model) and ``target`` (a translation). A
    string is always treated as text, so the name of a file raises an error. ``heads`` also accepts a file as
    a ``Path``.
    """

    @contextmanager
    @checked()
    def trace(
        self, text: str, *, layers: Sequence[str | int] | None = None, hook_points: Sequence[str] | None = None
    ) -> "Iterator[Trace]":
        """Record the activations at every hook point while the model reads a text.

        ``layers`` are numbers or names such as ``blocks.0``; ``hook_points`` are names or patterns such as
        ``*.weights`` (default: all).

        >>> with lm.trace("নদীর ধারে") as seen:
        ...     seen["blocks.0.attention.weights"].shape[:2]  # texts, heads
        torch.Size([1, 3])
        """
        from kotha.inside.hook_points import choose_layers
        from kotha.inside.inputs import read
        from kotha.inside.trace import trace

        given = read(self.bundle.model, self.bundle.tokenizer, as_text(text))
        chosen = choose_layers(self.bundle.model, layers) if layers else None
        with trace(self.bundle.model, layers=chosen, hook_points=hook_points) as seen:
            given.pass_through(self.bundle.model)
            yield seen

    @checked(InputOptions)
    def attention(
        self, text: str | None = None, *, layers: Sequence[str | int] = (), **options: Any
    ) -> "View[AttentionMaps]":
        """Return the attention weights of every head.

        >>> lm.attention("নদীর ধারে").save("attention.html")
        PosixPath('attention.html')
        >>> len(lm.attention("নদীর ধারে", layers=["0"]).found.maps)
        1
        """
        from kotha.inside.attention import attention_view
        from kotha.inside.hook_points import choose_layers

        chosen = choose_layers(self.bundle.model, layers)
        return attention_view(self.bundle, read_input(self.bundle, InputOptions(as_text(text), **options)), chosen)

    @checked()
    def alignment(
        self, text: str, *, target: str | None = None, layer: int | None = None, beams: int = 4
    ) -> "View[Alignment]":
        """Align a text with its translation by the cross-attention of one decoder layer.

        Without a ``target``, the model translates the text. ``layer`` counts from 0 (default: the second-to-last
        layer).

        >>> kotha.load("seq2seq").alignment("নদীর ধারে", target="মা").save("alignment.html")
        PosixPath('alignment.html')
        """
        from kotha.inside.attention import alignment_view

        return alignment_view(self.bundle, as_text(text), target, layer, translator(self.bundle, beams))

    @checked(InputOptions)
    def flow(self, text: str | None = None, **options: Any) -> "View[Flow]":
        """Return shapes and statistics at every stage of the forward pass, and the prediction.

        >>> lm.flow("নদীর ধারে").title
        'নদীর ধারে'
        """
        from kotha.inside.flow import QUESTION, flow_view

        usual = own_opening(self.path, self.tokenizer) or QUESTION
        return flow_view(self.bundle, read_input(self.bundle, InputOptions(as_text(text), **options), usual))

    @checked(InputOptions)
    def lens(self, text: str | None = None, **options: Any) -> "View[Lens]":
        """Return what each layer would predict next if the model ended there (the logit lens).

        >>> len(lm.lens("নদীর ধারে").found.layers)
        3
        """
        from kotha.inside.lens import lens_view, refuse_classes

        refuse_classes(self.bundle.model)
        return lens_view(self.bundle, read_input(self.bundle, InputOptions(as_text(text), **options)))

    @displayed
    @checked()
    def heads(
        self,
        text: str | Path | None = None,
        *,
        path: AnyPath | None = None,
        tokens: int = 2048,
        field: str = "text",
        pair: tuple[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> "View[Study]":
        """Measure what each head does and how important it is, on a text or a file (default: the held-out documents).

        For a file, ``field`` names the field with the text, and ``pair`` the two fields of a translation.

        >>> from pathlib import Path
        >>> lm.heads(Path("stories.jsonl"), tokens=66).found.tokens  # two windows of predictions
        64
        >>> [head.head for head in lm.heads("নদীর ধারে একটি গ্রাম। গ্রামের নাম নদী।").found.heads][:2]
        ['blocks.0.attention.0', 'blocks.0.attention.1']
        """
        from kotha.inside.heads.measuring import TextSource
        from kotha.inside.heads.study import heads_view

        title: Any = {} if self.path is None else {"name": bundled.title(self.path)}
        file, words = (text, None) if isinstance(text, Path) else (path, as_text(text))
        given: Any = {"path": None if file is None else str(file), "text": words, "run": self.path}
        source = TextSource(**given, tokens=tokens, field=field, pair=pair)
        return heads_view(self.bundle, source, **title, on_progress=on_progress)

    @checked(SheetOptions)
    def worksheet(self, text: str, **which: Any) -> "SheetView":
        """Write out the arithmetic of one attention head: every product, sum and exponential.

        ``which`` may set ``layer`` and ``head``, and for a Seq2Seq model also ``target``, ``stack`` (encoder or
        decoder) and ``part`` (attention or cross).

        >>> lm.worksheet("নদীর ধারে", layer=1, head=2).save_spreadsheet("sheet.xlsx")
        PosixPath('sheet.xlsx')
        """
        from kotha.course.worksheet.model import model_sheet
        from kotha.course.worksheet.page import sheet_view

        which = SheetOptions(text=as_text(text), **which).of_model
        return sheet_view(model_sheet(self.bundle, text, **which))
