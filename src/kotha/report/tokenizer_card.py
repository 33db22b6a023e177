"""Report cards of tokenizers as one offline page, drawn as the studio draws them: figures, and a sample cut by each."""

from collections.abc import Sequence
from dataclasses import asdict

from kotha.report.single_file import report_page
from kotha.text.tokenizer.card import Card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_cuts


def cards_page(cards: Sequence[Card], tokenizers_by_name: dict[str, Tokenizer], sample: str, source: str) -> str:
    """The whole page as HTML; ``source`` says on what was measured."""
    told = [
        {**asdict(card), "pieces": list(map(asdict, view_cuts(tokenizers_by_name[card.name], sample)))}
        for card in cards
    ]
    data = {"source": source, "cards": told}
    return report_page("tokenizers", "Tokenizers side by side", data, made_by="kotha tokenizer card")
