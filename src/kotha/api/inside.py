"""Looking inside a model: what happened at a named place, and views that show themselves in a notebook."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.bundle import Bundle
from kotha.inside.asked import Asked

if TYPE_CHECKING:
    from kotha.inside.attention.maps import AttentionMaps
    from kotha.inside.flow.flow import Flow
    from kotha.inside.heads.study import Study
    from kotha.inside.lens.lens import Lens
    from kotha.inside.trace import Trace
    from kotha.inside.view import View
    from kotha.inside.worksheet.page import SheetView


class LooksInside:
    """The part of a ``LanguageModel`` that looks in.

    Each view shows itself in a notebook, as one page that asks the network for nothing; ``save("x.html")`` writes the
    page, ``to_dict()`` gives the numbers, ``found`` is the typed result. ``asked`` is what else a model may be given:
    ``generate=12`` (and look at what it writes), ``second`` (a BERT's other sentence), ``target`` (a translation).
    """

    bundle: Bundle
    path: Path | None

    @contextmanager
    def trace(
        self, text: str, *, layers: Sequence[str] | None = None, places: Sequence[str] | None = None
    ) -> "Iterator[Trace]":
        """What happens at every named place while the model reads a text.

        ``layers`` are names such as ``blocks.0``, ``places`` names or patterns such as ``*.attention.weights``; all,
        if left out.

        >>> with lm.trace("নদীর ধারে") as seen:
        ...     seen["blocks.0.attention.weights"].shape[:2]  # texts, heads
        torch.Size([1, 3])
        """
        from kotha.inside.inputs import read
        from kotha.inside.trace import trace

        given = read(self.bundle.model, self.bundle.tokenizer, text)
        with trace(self.bundle.model, layers=layers, places=places) as seen:
            given.pass_through(self.bundle.model)
            yield seen

    def attention(self, text: str, *, layers: Sequence[str] = (), **asked: Any) -> "View[AttentionMaps]":
        """Who looks at whom, in every head.

        >>> lm.attention("নদীর ধারে").save("attention.html")
        PosixPath('attention.html')
        >>> len(lm.attention("নদীর ধারে", layers=["0"]).found.maps)
        1
        """
        from kotha.inside.attention.page import attention_view

        return attention_view(self.bundle, Asked(text, **asked), layers)

    def flow(self, text: str, **asked: Any) -> "View[Flow]":
        """A text's way through the model: shapes and figures at every station, and the answer.

        >>> lm.flow("নদীর ধারে").title
        'নদীর ধারে'
        """
        from kotha.inside.flow.page import flow_view

        return flow_view(self.bundle, Asked(text, **asked))

    def lens(self, text: str, **asked: Any) -> "View[Lens]":
        """What each layer would say next, as if the model ended there (the logit lens).

        >>> len(lm.lens("নদীর ধারে").found.layers)
        3
        """
        from kotha.inside.lens.lens import lens_view

        return lens_view(self.bundle, Asked(text, **asked))

    def heads(self, text: str | None = None, *, tokens: int = 2048) -> "View[Study]":
        """What each head does and what it is worth, on a text; left out, on what the run held out.

        >>> [head.head for head in lm.heads("নদীর ধারে একটি গ্রাম। গ্রামের নাম নদী।").found.heads][:2]
        ['blocks.0.attention.0', 'blocks.0.attention.1']
        """
        from kotha.inside.heads.measuring import TextSource
        from kotha.inside.heads.page import heads_view

        name = "The model" if self.path is None else str(self.path)
        return heads_view(self.bundle, TextSource(text=text, run=self.path, tokens=tokens), name=name)

    def worksheet(self, text: str, *, layer: int = 0, head: int = 0, **more: Any) -> "SheetView":
        """One attention head as arithmetic: every product, sum and exponential, to be done again by hand.

        ``more`` is ``rows`` (whose arithmetic is written out), ``precision``, and of a translating model ``target``,
        ``stack`` and ``part``.

        >>> lm.worksheet("নদীর ধারে", layer=1, head=2).save_spreadsheet("sheet.xlsx")
        PosixPath('sheet.xlsx')
        """
        from kotha.inside.worksheet.model import worksheet_view

        return worksheet_view(self.bundle, text, layer=layer, head=head, **more)
