"""Outputs on pages: how they are compared, and how new outputs are written."""

from pathlib import Path

import pytest
from scripts.book.examples import Example, difference, examples, rewrite
from tests.shown import Pages

PAGE = """# A page

```console
kotha presets
```

<!-- about: any -->
```console
$ kotha train data
loss 4.08
$ kotha evaluate run
```
"""


def same(shown: str, printed: str, any_numbers: bool = False) -> bool:
    return difference(Example("kotha", shown, 1, any_numbers), printed) is None


def test_commands_are_read_with_their_outputs() -> None:
    assert examples(PAGE) == [
        Example("kotha presets", None, 4),
        Example("kotha train data", "loss 4.08", 9, any_numbers=True),
        Example("kotha evaluate run", None, 11, any_numbers=True),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "is_same"),
    [
        ("60 documents", "60 documents", True),
        ("60 documents", "61 documents", False),
        ("loss 4.08", "loss 4.09", True),
        ("loss 4.08", "loss 4.10", False),
        ("one\nthree", "one\ntwo\nthree", False),
        ("one\n…\nthree", "one\ntwo\nthree", True),
        ("one\n…\nthree", "one\nthree", True),
        ("নদীর ধারে …", "নদীর ধারে একটি গ্রাম", True),
        ("নদীর ধারে …", "নদীর ধারে একটি গ্রাম\nছিল", False),
        ("│ a │ 1 │", "┏━━━┳━━━┓\n│ a   │   1 │\n└───┴───┘", True),
        ("", "an unexpected line", False),
    ],
)
def test_outputs_are_compared_line_by_line(shown: str, printed: str, is_same: bool) -> None:
    assert same(shown, printed) == is_same


def test_where_any_number_may_stand_words_are_compared() -> None:
    assert same("২,০০০টি ডকুমেন্ট, 9.1e-06", "৬০টি ডকুমেন্ট, 2.4e-07", any_numbers=True)
    assert not same("2,000 documents", "60 files", any_numbers=True)


def test_an_output_is_written_below_its_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    rewrite(page, {9: "\n".join(map(str, range(20))), 11: "new"})
    trained, evaluated = examples(page.read_text(encoding="utf-8"))[1:]
    assert trained.shown == "\n".join([*map(str, range(11)), "…"])
    assert evaluated.shown == "new"


def test_a_command_fails_only_where_the_page_shows_its_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    error = "kotha: nowhere not found; specify a run folder or a model folder"
    page.write_text(f"```console\n$ kotha card nowhere\n{error}\n```\n", encoding="utf-8")
    Pages(page).check()
    page.write_text("```console\nkotha card nowhere\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nowhere not found"):
        Pages(page).check()


def test_a_page_in_bangla_is_held_to_its_own_language(tmp_path: Path) -> None:
    page, twin = tmp_path / "page.md", tmp_path / "page.bn.md"
    page.write_text("```console\nkotha tokenizer view box 'আমি'\n```\n", encoding="utf-8")
    shown = "```console\n$ kotha tokenizer view box 'আমি' --language bn\nআমি\n{}\n```\n"
    twin.write_text(shown.format("১টি টোকেন। টোকেন-নম্বর: 561"), encoding="utf-8")
    Pages(page).check()
    twin.write_text(shown.format("1 token: 561"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.bn\.md"):
        Pages(page).check()
