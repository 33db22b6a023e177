"""The curves of a run as charts, each with the sentence or two that a reader needs who has never seen one.

A chart whose figures are not in the run folder is left out.
"""

from collections.abc import Sequence
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.i18n.wording import page_voice
from kotha.report.chart import Chart, Level, Marker, Point, Series
from kotha.training.show.findings import Record, smooth

Figure = tuple[str, str]  # an SVG and its caption

# What the known references mean; others are shown by their name.
_EXPLAINED = {
    "ln V": "ln V is the loss of a model that finds every token equally likely.",
    "unigram": "Unigram is the loss of a model that only knows how often each token occurs.",
    "ln K": "ln K is the loss of a model that finds every answer equally likely.",
    "class frequencies": "Class frequencies: the loss of a model that only knows how often each answer occurs.",
    "ln 2": "ln 2 is the loss of tossing a coin for whether two sentences belong together.",
    "floor": "No model can get below the floor: so much is chance in the text itself.",
}
_GUESSED = {"next-token": "next token", "translation": "next token", "masked-words": "hidden token"}


def loss_chart(record: Record) -> Figure | None:
    """Training and validation loss, and what knowing less would give."""
    training, validation = record.line("loss_nats"), record.line("validation", "loss_nats")
    if not training and not validation:
        return None
    series = _raw_and_smooth("training", training, "warm") if training else []
    series += [Series("validation", validation, dots=True)] if validation else []
    values = references(record)
    levels = [Level(value, f"{name} = {value:.2f}") for name, value in values.items()]
    guessed = _GUESSED.get(str(record.config.get("task", "next-token")), "right answer")
    y_title = f"loss, nats per {guessed.split()[-1]}, log scale"
    chart = Chart("Loss", "step", y_title, series, levels, _best_marker(record), log_y=True)
    caption = [f"How surprised the model is by each {guessed}: lower is better."]
    if training and validation:
        caption.append("Orange is the text it learns from (pale: single steps), green is text it never learns from.")
    return chart.svg(page_voice()), " ".join(caption + [words for name, words in _EXPLAINED.items() if name in values])


def references(record: Record) -> dict[str, float]:
    """What the loss is to be compared with, in nats: what knowing less reaches, and below what nothing can get."""
    known = mapping(record.config, "references")
    values = {name: value for name in known if (value := figure(known, name)) is not None}
    floor = figure(record.config, "floors", "bits_per_byte")
    if record.best and floor is not None and (rate := nats_for_a_bit_per_byte(record.best["validation"])):
        values["floor"] = floor * rate
    return values


def nats_for_a_bit_per_byte(validation: dict[str, Any]) -> float | None:
    """How many nats a token one bit per byte is, on the text of an evaluation."""
    loss, bits = figure(validation, "loss_nats"), figure(validation, "bits_per_byte")
    return loss / bits if loss and bits else None


def validation_charts(record: Record) -> list[Figure]:
    """How good the model is, in units that need no knowledge of its tokenizer."""
    floor = figure(record.config, "floors", "bits_per_byte")
    majority = figure(record.best or {}, "validation", "majority")
    needed = "Bits that the model needs for one byte of text it has not seen; comparable between tokenizers."
    needed += "" if floor is None else " No model can get below the floor: so much is chance in the text itself."
    right = "Right answers on examples it has not seen"
    right += "." if majority is None else ", and what always giving the most frequent answer would reach."
    alike = "The same for one character. In UTF-8 a Bangla character takes three bytes."
    lowest = [] if floor is None else [Level(floor, f"floor = {floor:.3g}")]
    usual = [] if majority is None else [Level(100 * majority, f"most frequent answer = {majority:.1%}")]
    return [
        *_over_steps(record, "bits per byte", ("validation", "bits_per_byte"), needed, lowest),
        *_over_steps(record, "bits per character", ("validation", "bits_per_character"), alike),
        *_over_steps(record, "right answers, %", ("validation", "accuracy"), right, usual),
    ]


def health_charts(record: Record) -> list[Figure]:
    """What tells whether the training itself went well: steps, pulls and speed."""
    clip = figure(record.config, "training", "gradient_clip")
    longest = [] if clip is None else [Level(clip, f"longest allowed = {clip:g}")]
    rate = "How far a step may move the weights: more and more while warming up, less towards the end."
    pull = "How strongly a batch pulls at the weights. A single high peak is a batch worth looking at"
    pull += "." if clip is None else "; pulls above the dashed line are shortened."
    share = "How much of the arithmetic that the machine could do at most went into the model; the rest is waiting."
    share += " Gaps are steps that were faster than that: the machine was busy when its most was timed."
    speed = "Tokens that the machine learns from in a second."
    return [
        *_over_steps(record, "learning rate", ("learning_rate",), rate),
        *_over_steps(record, "gradient norm", ("gradient_norm",), pull, longest, log_y=True),
        *_over_steps(record, "tokens per second", ("tokens_per_second",), speed),
        *_over_steps(record, "% of the machine's peak", ("peak_share",), share),
    ]


def _over_steps(
    record: Record, title: str, keys: tuple[str, ...], caption: str, levels: Sequence[Level] = (), log_y: bool = False
) -> list[Figure]:
    """One figure of a run, where it has it: evaluations as dots, what differs from batch to batch raw and smooth."""
    points = record.line(*keys)
    if "%" in title:
        points = [(x, None if y is None or y > 1 else 100 * y) for x, y in points]  # older runs kept larger shares
    if all(y is None for _, y in points):
        return []
    series = [Series(title, points, dots=keys[0] == "validation")]
    if keys[0] not in ("validation", "learning_rate"):
        series = _raw_and_smooth(title, points, "accent")
    scale = f"{title}, log scale" if log_y else title
    chart = Chart(title.capitalize(), "step", scale, series, levels, log_y=log_y, from_zero=not log_y)
    return [(chart.svg(page_voice()), caption)]


def _raw_and_smooth(name: str, points: list[Point], colour: str) -> list[Series]:
    return [Series(f"{name}, single steps", points, colour, faint=True), Series(name, smooth(points), colour)]


def _best_marker(record: Record) -> Marker | None:
    if not record.best or record.best is record.evaluations[-1]:
        return None
    return Marker(record.best["step"], f"best: step {record.best['step']:,}")
