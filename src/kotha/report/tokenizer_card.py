"""Report cards of tokenizers as one offline page, drawn as the studio draws them: figures, and a sample cut by each."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kotha.report.single_file import report_page
from kotha.text.tokenizer.card import Card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import ends_inside, view


def cards_page(cards: Sequence[Card], tokenizers_by_name: dict[str, Tokenizer], sample: str, source: str) -> str:
    """The whole page as HTML; ``source`` says on what was measured."""
    told = [{**asdict(card), "pieces": _pieces(tokenizers_by_name[card.name], sample)} for card in cards]
    data = {"source": source, "cards": told}
    return report_page("tokenizers", "Tokenizers side by side", data, made_by="kotha tokenizer card")


def _pieces(tokenizer: Tokenizer, sample: str) -> list[dict[str, Any]]:
    """The tokens of the sample, each with whether its end falls inside a letter."""
    seen = view(tokenizer, sample)
    inside = ends_inside(tokenizer, sample, [token.id for token in seen])
    return [
        {
            "id": token.id,
            "text": token.text,
            "part": token.is_part,
            "cut": cut,
            "bytes": len(tokenizer.token_bytes(token.id)),
        }
        for token, cut in zip(seen, inside, strict=True)
    ]
