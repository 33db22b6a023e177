"""Questions 1 to 5: self-attention by hand. Every answer is a step of the sheet."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kotha.course.exercises.grading import Expected, shape
from kotha.course.exercises.hints import hints_of_step
from kotha.course.exercises.setting import Question, Setting
from kotha.course.worksheet.showing import arithmetic
from kotha.i18n.wording import Words

# Whoever carries three decimals along, or 1.414 for a root, stays within this.
_CARRIED = 0.0005
_DECIMALS = 6

_WHY_HIDDEN = Words(
    "Softmax raises e to each score, and e to −∞ is exactly 0: a hidden token gets no weight at all, and the others "
    "still sum to 1. A 0 in its place would not do, since e^0 = 1 is a weight like any other.",
    "সফটম্যাক্সে e-কে প্রতিটি স্কোরের ঘাতে তোলা হয়, আর e-এর −∞ ঘাত ঠিক শূন্য: তাই মাস্ক-করা টোকেন কোনো ওজনই পায় না, "
    "বাকিগুলোর যোগফল তবু এক থাকে। সেখানে 0 বসালে চলত না: e^0 = 1, তাই মাস্ক-করা টোকেনও ওজন পেয়ে যেত।",
)


def attention_questions(setting: Setting) -> Iterator[Question]:
    """The questions about one head, in order."""
    n_tokens, d_head = setting.sheet.steps["K"].values.shape
    for letter in "QKV":
        asked = setting.ask(
            f"1{letter}",
            f"Compute {letter} = X × W_{letter}: {{rows}} rows of {{columns}} numbers. Type them row by row.",
            f"{letter} = X × W_{letter} বের করুন: {{rows}}টি সারি, প্রতি সারিতে {{columns}}টি সংখ্যা। সারির পর সারি লিখুন।",
            rows=n_tokens,
            columns=d_head,
        )
        yield _matrix(setting, asked, letter, ("X", f"W_{letter}"), 0.0)
    yield from _scores(setting, n_tokens, d_head)
    yield from _mask(setting, n_tokens)
    yield from _softmax(setting)
    asked = setting.ask("5", "Compute the output, weights × V, row by row.", "আউটপুট বের করুন: ওজন × V, সারির পর সারি।")
    yield _matrix(setting, asked, "output", ("weights", "V"))


def _scores(setting: Setting, n_tokens: int, d_head: int) -> Iterator[Question]:
    size: dict[str, Any] = {"rows": n_tokens, "columns": d_head}
    yield setting.ask(
        "2a",
        "K has shape ({rows}, {columns}). What shape has Kᵀ?",
        "K-এর আকার ({rows}, {columns})। Kᵀ-এর আকার কত?",
        Words(
            "Turning swaps rows and columns: ({columns}, {rows}).",
            "ট্রান্সপোজ করলে সারি হয় কলাম, কলাম হয় সারি: ({columns}, {rows})।",
        ),
        expected=shape(d_head, n_tokens),
        **size,
    )
    yield setting.ask(
        "2b-shape",
        "What shape has Q × Kᵀ?",
        "Q × Kᵀ-এর আকার কত?",
        Words(
            "({rows}, {columns}) × ({columns}, {rows}) gives ({rows}, {rows}): one score for each pair of tokens.",
            "({rows}, {columns}) × ({columns}, {rows}) থেকে হয় ({rows}, {rows}): প্রতি জোড়া টোকেনের জন্য একটি স্কোর।",
        ),
        expected=shape(n_tokens, n_tokens),
        **size,
    )
    asked = setting.ask("2b", "Compute Q × Kᵀ, row by row.", "Q × Kᵀ বের করুন, সারির পর সারি।")
    yield _matrix(setting, asked, "products", ("Q", "K"), 0.0)
    asked = setting.ask(
        "2c",
        "Divide each number by √d_k = √{columns} to get the scaled scores.",
        "প্রতিটি সংখ্যাকে √d_k = √{columns} দিয়ে ভাগ করে স্কোর বের করুন।",
        **size,
    )
    yield _matrix(setting, asked, "scores", ("products",))


def _mask(setting: Setting, n_tokens: int) -> Iterator[Question]:
    mask = setting.sheet.matrices["mask"]
    rows = "; ".join(" ".join(f"{value:g}" for value in row) for row in mask)
    yield setting.ask(
        "3a",
        "Write the causal mask of {rows} tokens: 1 where a token may look, 0 where not.",
        "{rows}টি টোকেনের ভবিষ্যৎ-আড়াল মাস্ক (causal mask) লিখুন: যে টোকেন দেখা যাবে তার ঘরে ১, যেটি দেখা যাবে না তার ঘরে ০।",
        Words(f"A token sees itself and those before it: {rows}", f"টোকেন নিজেকে আর আগেরগুলোকে দেখে:\n{rows}"),
        expected=Expected(tuple(mask.ravel().tolist()), columns=n_tokens, exact=True),
        rows=n_tokens,
    )
    asked = setting.ask(
        "3b",
        "Apply the mask to the scores. Type -inf (or -999) for minus infinity.",
        "স্কোরে মাস্ক বসান। ঋণাত্মক অসীমের জায়গায় `-inf` (বা `-999`) লিখুন।",
    )
    yield _matrix(setting, asked, "masked", ("scores", "mask"))
    yield setting.ask("3b-why", "Why minus infinity?", "ঋণাত্মক অসীম কেন?", _WHY_HIDDEN)


def _softmax(setting: Setting) -> Iterator[Question]:
    """One question for each row of the weights: 4a, 4b, 4c, and on where there are more tokens."""
    sheet = setting.sheet
    step, powers, sums = (sheet.steps[name] for name in ("weights", "powers", "sums"))
    n_tokens = len(step.rows)
    for row, token in enumerate(step.rows):
        shares = (arithmetic(sheet, step, row, column, _DECIMALS) for column in range(n_tokens))
        asked = setting.ask(
            f"4{chr(ord('a') + row)}",
            "Softmax of row {row}: what are the {columns} weights of “{token}”, hidden ones included?",
            "{row} নম্বর সারিতে সফটম্যাক্স প্রয়োগ করুন। মাস্ক-করা ঘরসহ “{token}”-এর {columns}টি ওজন কত কত?",
            *(arithmetic(sheet, powers, row, column, _DECIMALS) for column in range(n_tokens)),
            arithmetic(sheet, sums, row, 0, _DECIMALS),
            expected=Expected(tuple(step.values[row].tolist()), columns=n_tokens, slack=_CARRIED),
            row=row + 1,
            columns=n_tokens,
            token=token,
        )
        hints = hints_of_step(sheet, step, row)
        yield replace(asked, shows=("masked",), lines=tuple(shares), step="weights", row=row, hints=hints)


def _matrix(setting: Setting, asked: Question, name: str, shows: tuple[str, ...], slack: float = _CARRIED) -> Question:
    """The question, answered by a whole step."""
    step = setting.sheet.steps[name]
    height, width = step.values.shape
    cells = [(row, column) for row in range(height) for column in range(width)]
    expected = Expected(tuple(float(step.values[at]) for at in cells), columns=width, slack=slack)
    lines = tuple(arithmetic(setting.sheet, step, row, column, _DECIMALS) for row, column in cells)
    hints = hints_of_step(setting.sheet, step)
    return replace(asked, expected=expected, shows=shows, lines=lines, step=name, hints=hints)
