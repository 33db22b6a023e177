"""The curves of a run, each with the sentence or two that a reader needs who has never seen one.

A curve whose figures are not in the run folder is left out.
"""

from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.i18n.message import Message, Text
from kotha.report.document import Curves, DrawnLine
from kotha.training.show.findings import Record

# What the known references mean; others are shown by their name.
_FLOOR = Message("No model can get below the floor: so much is chance in the text itself.")
_EXPLAINED = {
    "ln V": Message("ln V is the loss of a model that finds every token equally likely."),
    "unigram": Message("Unigram is the loss of a model that only knows how often each token occurs."),
    "ln K": Message("ln K is the loss of a model that finds every answer equally likely."),
    "class frequencies": Message(
        "Class frequencies: the loss of a model that only knows how often each answer occurs."
    ),
    "ln 2": Message("ln 2 is the loss of tossing a coin for whether two sentences belong together."),
    "floor": _FLOOR,
}
_TOKEN, _ANSWER = Message("loss, nats per token, log scale"), Message("loss, nats per answer, log scale")
# What a task guesses, and the unit of its loss.
_GUESSED = {
    "next-token": (Message("next token"), _TOKEN),
    "translation": (Message("next token"), _TOKEN),
    "masked-words": (Message("hidden token"), _TOKEN),
}
_STEP = Message("step")


def loss_chart(record: Record) -> Curves | None:
    """Training and validation loss, and what knowing less would give."""
    training, validation = record.line("loss_nats"), record.line("validation", "loss_nats")
    if not training and not validation:
        return None
    lines = [DrawnLine(Message("training"), training, 2, "smoothed")] if training else []
    lines += [DrawnLine(Message("validation"), validation, 1, "dots")] if validation else []
    values = references(record)
    levels = [(value, _level(Message(name), f"{value:.2f}")) for name, value in values.items()]
    guessed, unit = _GUESSED.get(str(record.config.get("task", "next-token")), (Message("right answer"), _ANSWER))
    caption: list[Text] = [Message("How surprised the model is by each {what}: lower is better.", what=guessed)]
    if training and validation:
        colours = "Orange is the text it learns from (pale: single steps), green is text it never learns from."
        caption.append(Message(colours))
    caption += [words for name, words in _EXPLAINED.items() if name in values]
    return Curves(Message("Loss"), _STEP, unit, lines, levels, _best_marker(record), caption, log_y=True)


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


def validation_charts(record: Record) -> list[Curves]:
    """How good the model is, in units that need no knowledge of its tokenizer."""
    floor = figure(record.config, "floors", "bits_per_byte")
    majority = figure(record.best or {}, "validation", "majority")
    needed = "Bits that the model needs for one byte of text it has not seen; comparable between tokenizers."
    alike = Message("The same for one character. In UTF-8 a Bangla character takes three bytes.")
    right = Message("Right answers on examples it has not seen.")
    if majority is not None:
        usual = (
            "Right answers on examples it has not seen, and what always giving the most frequent answer would reach."
        )
        right = Message(usual)
    lowest = [] if floor is None else [(floor, _level(Message("floor"), f"{floor:.3g}"))]
    level = [] if majority is None else [(100 * majority, _level(Message("most frequent answer"), f"{majority:.1%}"))]
    explained = [Message(needed)] if floor is None else [Message(needed), _FLOOR]
    return [
        *_over_steps(record, Message("bits per byte"), ("validation", "bits_per_byte"), explained, lowest),
        *_over_steps(record, Message("bits per character"), ("validation", "bits_per_character"), [alike]),
        *_over_steps(record, Message("right answers, %"), ("validation", "accuracy"), [right], level),
    ]


def health_charts(record: Record) -> list[Curves]:
    """What tells whether the training itself went well: steps, pulls and speed."""
    clip = figure(record.config, "training", "gradient_clip")
    longest = [] if clip is None else [(clip, _level(Message("longest allowed"), f"{clip:g}"))]
    rate = Message("How far a step may move the weights: more and more while warming up, less towards the end.")
    pull = [
        Message("How strongly a batch pulls at the weights."),
        Message("A single high peak is a batch worth looking at."),
    ]
    pull += [] if clip is None else [Message("Pulls above the dashed line are shortened.")]
    share = [
        Message(
            "How much of the arithmetic that the machine could do at most went into the model; the rest is waiting."
        ),
        Message("Gaps are steps that were faster than that: the machine was busy when its most was timed."),
    ]
    speed = Message("Tokens that the machine learns from in a second.")
    return [
        *_over_steps(record, Message("learning rate"), ("learning_rate",), [rate]),
        *_over_steps(record, Message("gradient norm"), ("gradient_norm",), pull, longest, log_y=True),
        *_over_steps(record, Message("tokens per second"), ("tokens_per_second",), [speed]),
        *_over_steps(record, Message("% of the machine's peak"), ("peak_share",), share),
    ]


def _over_steps(
    record: Record,
    name: Message,
    keys: tuple[str, ...],
    caption: list[Message],
    levels: list[tuple[float, Message]] | None = None,
    log_y: bool = False,
) -> list[Curves]:
    """One figure of a run, where it has it: evaluations as dots, what differs from batch to batch raw and smooth."""
    points = record.line(*keys)
    if keys[-1] in ("accuracy", "peak_share"):
        points = [(x, None if y is None or y > 1 else 100 * y) for x, y in points]  # older runs kept larger shares
    if all(y is None for _, y in points):
        return []
    look = "dots" if keys[0] == "validation" else "plain" if keys[0] == "learning_rate" else "smoothed"
    y_name = Message("{what}, log scale", what=name) if log_y else name
    lines = [DrawnLine(name, points, 1, look)]
    return [Curves(name, _STEP, y_name, lines, levels or (), None, caption, log_y=log_y, from_zero=not log_y)]


def _level(name: Message, value: str) -> Message:
    return Message("{name} = {value}", name=name, value=value)


def _best_marker(record: Record) -> tuple[float, Text] | None:
    if not record.best or record.best is record.evaluations[-1]:
        return None
    step = record.best["step"]
    return step, Message("best: step {step:,}", step=step)
