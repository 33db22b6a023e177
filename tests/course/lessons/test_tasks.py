"""The synthetic tasks: every question has an answer, and measured examples are held out."""

from dataclasses import asdict, replace

import numpy as np
import torch
from tests.course.lessons.small import TINY, loud

from kotha.course.lessons import cross, heads, mini
from kotha.course.lessons.catalogue import lesson
from kotha.course.lessons.coreference import PRONOUN, VOCABULARY, coreference, looks, spelled, who_is_it
from kotha.course.lessons.lstm import echo
from kotha.course.lessons.runner import MeasuredLesson
from kotha.course.lessons.training_data import classroom
from kotha.course.lessons.vision import ELSEWHERE, SIDE, bitmap, digits, digits_of, draw, images_of
from kotha.inside.heads.importance import every_head, silence
from kotha.model.config import Seq2SeqConfig
from kotha.model.seq2seq import Seq2Seq


def test_fewer_training_tokens_are_a_prefix_with_the_same_held_out_text() -> None:
    whole, few = classroom(TINY), classroom(replace(TINY, most_tokens=50))
    assert len(few.learned) == 50 and np.array_equal(few.learned, whole.learned[:50])
    assert torch.equal(few.windows(), whole.windows()) and torch.equal(
        few.windows(1, learned=True), whole.windows(1, learned=True)
    )


def test_a_perfect_model_recalls_four_positions() -> None:
    puzzle = heads.four_places(8)
    rows = puzzle.batch(0, 0)
    assert torch.equal(rows, puzzle.batch(0, 0)) and not torch.equal(rows, puzzle.batch(0, 1))
    assert rows.shape == (8, 13) and (rows[:, -1] == rows.max()).all()
    assert puzzle.right(loud(heads.make(TINY, 2)), rows).shape == (8, 4)


def test_the_answer_is_the_person_that_the_pronoun_refers_to() -> None:
    rows = who_is_it(300).batch(0, 0)
    children = VOCABULARY.index("শিক্ষক")
    for text in rows:
        people, answer = text[[0, 3]], text[-1]
        assert answer in people and (people < children).sum() == 1, "one child and one adult"
        assert (VOCABULARY[text[PRONOUN]] == "সে") == bool(answer < children)
    assert 0.4 < (rows[:, 0] == rows[:, -1]).float().mean() < 0.6, "the position does not give the answer away"
    assert spelled(torch.tensor([0, 16, 24, 8, 17, 25, 26, 0])) == "রহিম ঘাটে, শিক্ষক মাঠে। সে রহিম।"


def test_a_silenced_head_has_no_effect_and_is_restored() -> None:
    torch.manual_seed(0)
    model = loud(coreference(MeasuredLesson(lesson("coreference"), **asdict(TINY))).tasks["whole"].make())
    rows = who_is_it(4).windows(16)
    every = list(looks(model, rows))
    assert len(every) == 2 * TINY.n_heads
    before = model(rows[:, :-1])
    with silence(model, every):
        at_pronoun = model(rows[:, :-1])[:, PRONOUN]
        same = rows[:, PRONOUN] == rows[0, PRONOUN]
        assert torch.allclose(at_pronoun[same], at_pronoun[0].expand(int(same.sum()), -1)), "no head looks back"
    assert torch.equal(model(rows[:, :-1]), before)
    assert 0 <= who_is_it(4).share_right(model, rows) <= 1


def test_a_model_that_looks_back_solves_the_echo_task() -> None:
    class Repeats(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(rows.roll(3, dims=1), 16).float()

    assert echo(4, 12, 3).share_right(Repeats()) == 1.0
    assert echo(4, 12, 2).share_right(Repeats()) < 0.3


def test_digits_are_drawn_inside_and_outside_the_training_range() -> None:
    desk = digits(50, 8)
    assert digits_of(desk.batch(0, 0)).max() < 10 and images_of(desk.batch(0, 0)).shape == (8, 1, SIDE, SIDE)
    home, away = (images_of(rows).mean(dim=0)[0] for rows in (desk.windows(), draw((2**31,), 500, ELSEWHERE)))
    assert home[:8, :7].mean() > 5 * home[12:].abs().mean() and away[8:, 8:].mean() > 5 * away[:5].abs().mean()
    assert len({bitmap(digit).tobytes() for digit in range(10)}) == 10
    learned = {row.numpy().tobytes() for row in torch.cat([desk.batch(0, step) for step in range(20)])}
    assert len(learned) <= 50 and not learned & {row.numpy().tobytes() for row in desk.windows()}


def test_a_phrase_is_grammatical_if_its_sign_agrees_with_its_number() -> None:
    right = cross.draw((0,), 64)[:, 4:]
    assert cross.grammatical(right).all()
    shuffled = torch.cat((right[1:, :1], right[:-1, 1:3], right[1:, 3:]), dim=1)  # other words of the same kinds
    assert cross.grammatical(shuffled).all()
    wrong_sign = right.clone()
    wrong_sign[:, 3] = 2 * right[:, 3].min() + 1 - right[:, 3]
    assert not cross.grammatical(wrong_sign).any() and not cross.grammatical(right.flip(1)).any()


def test_every_head_of_a_translator_belongs_to_one_kind() -> None:
    sizes = {"context_length": 8, "d_model": 8, "n_heads": 2, "n_layers": 1, "n_decoder_layers": 1}
    model = Seq2Seq(Seq2SeqConfig(vocab_size=cross.VOCABULARY, **sizes))
    found = [name for kind in cross.HEADS for name in cross.heads_of(model, kind)]
    assert sorted(found) == sorted(every_head(model)) and len(found) == 6


def test_the_mini_transformer_in_numpy_is_torch_s() -> None:
    for masked in (True, False):
        given = mini.numbers(1)
        (weights, logits), (their_weights, their_logits) = mini.by_numpy(given, masked), mini.by_torch(given, masked)
        assert np.allclose(weights, their_weights, atol=1e-12) and np.allclose(logits, their_logits, atol=1e-12)
        assert (np.triu(weights, k=1) > 0).any() == (not masked)
        lines = mini.printed(1, masked).splitlines()
        assert len(lines) == 6 and lines[1].split()[:4] == lines[1].split()[4:]
