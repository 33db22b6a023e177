"""The page is offline and escapes what it is given."""

from kotha.page import Page


def test_text_cannot_write_into_the_page() -> None:
    attack = "<script>alert('x')</script>&\""
    page = Page(attack, attack)
    page.heading(attack)
    page.paragraph(attack)
    page.story(attack)
    page.table([attack], [[attack]], {})
    page.pieces([(attack, True)])
    html = page.html(attack)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 10  # title twice, lead, and one for each part below


def test_nothing_is_fetched_from_elsewhere() -> None:
    html = Page("কথা", "lead").html("footer")
    assert "http" not in html.lower()
    assert "@import" not in html


def test_cells_are_marked() -> None:
    page = Page("t")
    page.table(["a", "b"], [["1", "2"], ["3", "4"]], {(1, 0): "best"})
    assert '<td class="best">3</td><td>4</td>' in page.html()
