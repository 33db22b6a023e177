"""Looking inside a model: what happened at a named place, and views that show themselves in a notebook."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kotha.api import Place
from kotha.api.loaded_model import OpenedModel
from kotha.api.model_input import read_asked, translator
from kotha.api.options import Asked, SheetOptions
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import OnProgress
from kotha.storage import bundled
from kotha.storage.status import is_file

if TYPE_CHECKING:
    from kotha.course.worksheet.page import SheetView
    from kotha.inside.attention import Alignment, AttentionMaps
    from kotha.inside.flow import Flow
    from kotha.inside.heads.study import Study
    from kotha.inside.lens import Lens
    from kotha.inside.trace import Trace
    from kotha.inside.view import View

Text = TypeVar("Text", str, str | None)


class InspectionMixin(OpenedModel):
    """The part of a ``LanguageModel`` that looks in.

    Each view shows itself in a notebook, as one page that asks the network for nothing; ``save("x.html")`` writes the
    page, ``to_dict()`` gives the numbers, ``found`` is the typed result. ``asked`` is what else a model may be given:
    ``generate=12`` (and look at what it writes), ``second`` (a BERT's other sentence), ``target`` (a translation).
    A str is a text, never a file: one that names a file is refused. ``heads`` reads a file too, given as a ``Path``.
    """

    @contextmanager
    @checked()
    def trace(
        self, text: str, *, layers: Sequence[str | int] | None = None, places: Sequence[str] | None = None
    ) -> "Iterator[Trace]":
        """What happens at every named place while the model reads a text.

        ``layers`` are numbers or names such as ``blocks.0``, ``places`` names or patterns such as ``*.weights``; all,
        if left out.

        >>> with lm.trace("নদীর ধারে") as seen:
        ...     seen["blocks.0.attention.weights"].shape[:2]  # texts, heads
        torch.Size([1, 3])
        """
        from kotha.inside.hook_points import choose_layers
        from kotha.inside.inputs import read
        from kotha.inside.trace import trace

        given = read(self.bundle.model, self.bundle.tokenizer, _as_text(text))
        chosen = choose_layers(self.bundle.model, layers) if layers else None
        with trace(self.bundle.model, layers=chosen, places=places) as seen:
            given.pass_through(self.bundle.model)
            yield seen

    @checked(Asked)
    def attention(
        self, text: str | None = None, *, layers: Sequence[str | int] = (), **asked: Any
    ) -> "View[AttentionMaps]":
        """Who looks at whom, in every head.

        >>> lm.attention("নদীর ধারে").save("attention.html")
        PosixPath('attention.html')
        >>> len(lm.attention("নদীর ধারে", layers=["0"]).found.maps)
        1
        """
        from kotha.inside.attention import attention_view
        from kotha.inside.hook_points import choose_layers

        chosen = choose_layers(self.bundle.model, layers)
        return attention_view(self.bundle, read_asked(self.bundle, Asked(_as_text(text), **asked)), chosen)

    @checked()
    def alignment(
        self, text: str, *, target: str | None = None, layer: int | None = None, beams: int = 4
    ) -> "View[Alignment]":
        """Which pieces of a text its translation was written from: the cross-attention of one decoder layer.

        Without a ``target`` it is the model's own translation; ``layer`` counts from 0, and is the last but one if left
        out.

        >>> kotha.load("seq2seq").alignment("নদীর ধারে", target="মা").save("alignment.html")
        PosixPath('alignment.html')
        """
        from kotha.inside.attention import alignment_view

        return alignment_view(self.bundle, text, target, layer, translator(self.bundle, beams))

    @checked(Asked)
    def flow(self, text: str | None = None, **asked: Any) -> "View[Flow]":
        """A text's way through the model: shapes and figures at every station, and the answer.

        >>> lm.flow("নদীর ধারে").title
        'নদীর ধারে'
        """
        from kotha.inside.flow import QUESTION, flow_view

        return flow_view(self.bundle, read_asked(self.bundle, Asked(_as_text(text), **asked), QUESTION))

    @checked(Asked)
    def lens(self, text: str | None = None, **asked: Any) -> "View[Lens]":
        """What each layer would say next, as if the model ended there (the logit lens).

        >>> len(lm.lens("নদীর ধারে").found.layers)
        3
        """
        from kotha.inside.lens import lens_view, refuse_classes

        refuse_classes(self.bundle.model)
        return lens_view(self.bundle, read_asked(self.bundle, Asked(_as_text(text), **asked)))

    @checked()
    def heads(
        self,
        text: str | Path | None = None,
        *,
        path: Place | None = None,
        tokens: int = 2048,
        field: str = "text",
        pair: tuple[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> "View[Study]":
        """What each head does and what it is worth, on a text or a file of texts; left out, on what the run held out.

        Of a file, ``field`` holds the text, and ``pair`` names the fields of translations.

        >>> from pathlib import Path
        >>> lm.heads(Path("stories.jsonl"), tokens=66).found.tokens  # two windows, and what each foretells
        64
        >>> [head.head for head in lm.heads("নদীর ধারে একটি গ্রাম। গ্রামের নাম নদী।").found.heads][:2]
        ['blocks.0.attention.0', 'blocks.0.attention.1']
        """
        from kotha.inside.heads.measuring import TextSource
        from kotha.inside.heads.study import heads_view

        named: Any = {} if self.path is None else {"name": bundled.title(self.path)}
        file, said = (text, None) if isinstance(text, Path) else (path, _as_text(text))
        where: Any = {"path": None if file is None else str(file), "text": said, "run": self.path}
        source = TextSource(**where, tokens=tokens, field=field, pair=pair)
        return heads_view(self.bundle, source, **named, on_progress=on_progress)

    @checked(SheetOptions)
    def worksheet(self, text: str, **which: Any) -> "SheetView":
        """One attention head as arithmetic: every product, sum and exponential, to be done again by hand.

        ``which`` is ``layer`` and ``head``; a translating model also has a ``target``, two stacks (``stack``) and
        ``part``, attention or cross.

        >>> lm.worksheet("নদীর ধারে", layer=1, head=2).save_spreadsheet("sheet.xlsx")
        PosixPath('sheet.xlsx')
        """
        from kotha.course.worksheet.model import model_sheet
        from kotha.course.worksheet.page import sheet_view

        which = SheetOptions(text=_as_text(text), **which).of_model
        return sheet_view(model_sheet(self.bundle, text, **which))


def _as_text(text: Text) -> Text:
    """A text to be read as it stands; who gives a file's name most likely means what the file says."""
    with suppress(OSError, ValueError):  # far too long for a name, or with a NUL in it
        if text is not None and is_file(Path(text)):
            raise UsageError(
                "{text!r} is the name of a file, not a text; pass the contents of the file (heads also accepts a path)",
                text=text,
            )
    return text
