"""The page is offline and escapes what it is given."""

from kotha.report.page import Page


def test_text_cannot_write_into_the_page() -> None:
    attack = "<script>alert('x')</script>&\""
    page = Page(attack, attack)
    page.heading(attack)
    page.paragraph(attack)
    page.story(attack)
    page.table([attack], [[attack]], {})
    page.pieces([(attack, True)])
    page.matrix([attack, attack], [[attack, attack]])
    page.sums([attack])
    page.note(attack)
    page.story(attack, attack)
    page.settings([(attack, attack)])
    page.figure("<svg></svg>", attack)
    page.figures([("<svg></svg>", attack)])
    with page.folded(attack):
        page.paragraph(attack)
    html = page.html(attack)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 24  # title twice, lead, footer, and each of the rest


def test_nothing_is_fetched_from_elsewhere() -> None:
    html = Page("কথা", "lead").html("footer")
    assert "http" not in html.lower()
    assert "@import" not in html


def test_cells_are_marked() -> None:
    page = Page("t")
    page.table(["a", "b"], [["1", "2"], ["3", "4"]], {(1, 0): "best"})
    assert '<td class="best">3</td><td>4</td>' in page.html()


def test_a_matrix_has_labels_and_shades() -> None:
    page = Page("t")
    page.matrix(["", "ব্যাংক"], [["সুদ", "0.5"]], [[0.5]])
    page.matrix(["", "1"], [["সুদ", "0.5"]], given=True)
    html = page.html()
    assert '<th scope="row">সুদ</th><td style="--share:0.500">0.5</td>' in html
    assert '<table class="matrix given">' in html and "<td>0.5</td>" in html


def test_sums_keep_their_lines() -> None:
    page = Page("t")
    page.sums(["1 + 1 = 2", "2 + 2 = 4"])
    assert ">1 + 1 = 2\n2 + 2 = 4</div>" in page.html()


def test_what_no_file_can_hold_is_replaced() -> None:
    page = Page("\ud800")
    page.paragraph("a\x00\ufffeb")
    assert "<p>a\ufffd\ufffdb</p>" in page.html().encode("utf-8").decode("utf-8")


def test_figures_keep_their_picture_and_stand_together() -> None:
    page = Page("t")
    page.figures([("<svg>1</svg>", "one"), ("<svg>2</svg>", "two")])
    html = page.html()
    assert "<figure><svg>1</svg><figcaption>one</figcaption></figure>" in html
    assert html.count('<div class="figures">') == 1


def test_folded_parts_are_inside() -> None:
    page = Page("t")
    with page.folded("more"):
        page.paragraph("inside")
    page.paragraph("outside")
    assert "<details><summary>more</summary>\n<p>inside</p>\n</details>\n<p>outside</p>" in page.html()
