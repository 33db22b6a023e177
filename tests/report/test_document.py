"""A document is one offline file in both languages, and its data cannot inject markup."""

import math

from tests.report.shown import Shown

from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import Duration
from kotha.report.document import (
    Code,
    Columns,
    Confusion,
    Curves,
    DrawnLine,
    Folded,
    Heading,
    Headline,
    Links,
    Paragraph,
    Pieces,
    Quote,
    Report,
    Settings,
)
from kotha.report.page import pages_open_in
from kotha.report.table import Table

ATTACK = "</script><script>alert('x')</script>&\"\ud800\u2028"


def test_text_cannot_inject_markup() -> None:
    line = DrawnLine(ATTACK, [(0, 1.0)])
    blocks = [
        *(Heading(ATTACK), Paragraph([ATTACK, Message(ATTACK)]), Headline([(ATTACK, ATTACK)]), Code(ATTACK, ATTACK)),
        *(Table(ATTACK, [ATTACK], [[ATTACK]], [ATTACK]), Confusion(ATTACK, [ATTACK], [ATTACK], [[ATTACK]], [[0.5]])),
        *(Settings([(ATTACK, ATTACK)]), Quote(ATTACK, ATTACK, ATTACK), Pieces([(ATTACK, True)])),
        *(Links([(ATTACK, ATTACK, ATTACK)]), Folded(ATTACK, [Paragraph(ATTACK)]), Columns([[Paragraph(ATTACK)]])),
        Curves(ATTACK, ATTACK, ATTACK, [line], [(1.0, ATTACK)], (1.0, ATTACK), [ATTACK]),
    ]
    html = Report(ATTACK, [ATTACK], blocks, [ATTACK]).html()
    assert "alert('x')</script>" not in html and html.encode("utf-8")
    assert "<script>alert" not in html
    assert Shown(html).blocks("code")[0]["text"] == ATTACK


def test_nothing_is_fetched_and_the_policy_forbids_it() -> None:
    html = Report("কথা", ["lead"], []).html()
    assert "default-src 'none'" in html and "'unsafe-inline'" not in html
    assert "<noscript><h1>কথা</h1>" in html


def test_a_page_has_both_languages_and_opens_in_the_requested_one() -> None:
    document = Report(Message("Loss"), [Plural("{n} layer", "{n:,} layers", n=1200)], [Heading(Message("Settings"))])
    with pages_open_in("bn"):
        bangla = Shown(document.html())
    english = Shown(document.html())
    assert (bangla.language, english.language) == (["bn"], ["en"])
    assert "<title>লস · কথা</title>" in bangla.html and "<title>Loss · কথা</title>" in english.html
    assert bangla.data == english.data
    assert english.bangla == {"Loss": "লস", "{n:,} layers": "{n:,}টি স্তর", "Settings": "সেটিংস"}
    assert english.words("bn") == ["লস", "১,২০০টি স্তর", "সেটিংস"]


def test_points_are_thinned_and_nan_is_a_gap() -> None:
    points = [(step, math.nan if step == 7 else 1 / (step + 3)) for step in range(20_000)]
    (curves,) = Shown(Report("t", [], [Curves("t", "x", "y", [DrawnLine("l", points)])]).html()).blocks("curves")
    drawn = curves["lines"][0]["points"]
    assert len(drawn) < 700 and drawn[0] == [0.0, 0.33333] and [7.0, None] in drawn


def test_a_notebook_shows_an_html_table() -> None:
    table = Table("<b>", ["", Message("measured")], [["x", Message("{t}", t=Duration(64))]], ["<i>"])
    assert table.html() == (
        "<table><caption>&lt;b&gt;</caption><thead><tr><th></th><th>measured</th></tr></thead>"
        "<tbody><tr><td>x</td><td>64 seconds</td></tr></tbody></table><p>&lt;i&gt;</p>"
    )
