"""Tokenizer report cards on one offline page: metrics, and a sample text split by each tokenizer."""

from collections.abc import Sequence
from dataclasses import asdict

from kotha.report.single_file import report_page
from kotha.text.tokenizer.card import Card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_cuts


def cards_page(cards: Sequence[Card], tokenizers_by_name: dict[str, Tokenizer], sample: str, source: str) -> str:
    """Return the page as HTML; ``source`` names the measured text."""
    rows = [
        {**asdict(card), "pieces": list(map(asdict, view_cuts(tokenizers_by_name[card.name], sample)))}
        for card in cards
    ]
    data = {"source": source, "cards": rows}
    return report_page("tokenizers", "Tokenizers side by side", data, made_by="kotha tokenizer card")
