"""A whole block on paper, to the guess: two heads, joined, W_O; add and LayerNorm; feed-forward; add and LayerNorm; the
vocabulary's scores, softmax, argmax.

The norm comes last, as in the paper of 2017 and in the book's chapter 5, whose numbers these are. A test holds every
matrix against torch's own LayerNorm, attention and softmax.
"""

from dataclasses import dataclass, replace

import numpy as np

from kotha.course.worksheet import operations
from kotha.course.worksheet.operations import Array, Joined, Product
from kotha.course.worksheet.sheet import GrowingSheet, Sheet, give_eps, lay_out
from kotha.course.worksheet.workshop import WORKSHOP, Given
from kotha.i18n.message import Message

EPS = 1e-5


@dataclass(frozen=True)
class BlockGiven:
    """What the sheet of a block is computed from."""

    heads: tuple[Given, ...]  # each with the same tokens and vectors
    w_o: Array  # (all heads' width, C)
    w_1: Array  # (C, inner)
    w_2: Array  # (inner, C)
    vocabulary: tuple[str, ...]
    w_vocabulary: Array  # (C, V)


BLOCK = BlockGiven(
    heads=(
        WORKSHOP,
        replace(
            WORKSHOP,
            w_q=np.array([[2.0, 0], [0, 1], [0, 0], [1, 0]]),
            w_k=np.array([[0.0, 1], [2, 0], [1, 0], [0, 1]]),
            w_v=np.array([[0.0, 1], [0, 0], [1, 0], [0, 0]]),
        ),
    ),
    w_o=np.array([[0.5, 0.1, 0.0, 0.2], [0.1, 0.4, 0.3, 0.0], [0.0, 0.2, 0.6, 0.1], [0.3, 0.0, 0.1, 0.5]]),
    w_1=np.array([[1.0, 0, -1, 0, 1, 0], [0, 1, 0, -1, 1, 0], [-1, 0, 1, 0, 0, 1], [0, -1, 0, 1, 0, 1]]),
    w_2=np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]) / 2,
    vocabulary=("হার", "নদী", "কমানো", "ভাত", "বৃদ্ধি"),
    w_vocabulary=np.array([[1.0, 2, 0, -1, 0], [0, 1, 1, 0, -1], [1, 1, 0, 0, 0], [0, 0, 1, 0, 1]]),
)


def drawn_block(seed: int) -> BlockGiven:
    """The same sizes with other numbers, one decimal each."""
    random = np.random.default_rng(seed)

    def draw(like: Array) -> Array:
        return random.integers(-9, 10, like.shape) / 10

    x = random.integers(1, 10, WORKSHOP.x.shape) / 10
    heads = tuple(
        replace(head, x=x, w_q=draw(head.w_q), w_k=draw(head.w_k), w_v=draw(head.w_v)) for head in BLOCK.heads
    )
    others = (draw(matrix) for matrix in (BLOCK.w_o, BLOCK.w_1, BLOCK.w_2, BLOCK.w_vocabulary))
    w_o, w_1, w_2, w_vocabulary = others
    return BlockGiven(heads, w_o, w_1, w_2, BLOCK.vocabulary, w_vocabulary)


def block_sheet(given: BlockGiven = BLOCK) -> Sheet:
    """The sheet of a block.

    >>> block_sheet().steps["guess"].values.ravel().tolist()[-1]
    5.0
    """
    tokens, mask = given.heads[0].tokens, np.tri(len(given.heads[0].tokens))
    steps = GrowingSheet(tokens, tokens)
    for number, head in enumerate(given.heads, 1):
        steps.made.update(lay_out(head.head(mask), tokens, shifted=False, number=number))
    outputs = tuple(f"output_{number}" for number in range(1, len(given.heads) + 1))
    title = Message("joined = {first} beside {second}", first=outputs[0], second=outputs[1])
    steps.work_out("joined", title, Joined(outputs), tokens)
    steps.give("W_O", Message("W_O, which mixes what the heads found"), given.w_o)
    steps.work_out("attended", "attended = joined × W_O", Product(("joined", "W_O")), tokens)
    first = _add_and_norm(steps, "X", "attended", 1)
    steps.give("W_1", Message("W_1, which makes rows wider"), given.w_1)
    steps.work_out("wide", f"wide = {first} × W_1", Product((first, "W_1")), tokens)
    title = Message("kept = wide, 0 where it is negative (ReLU)")
    steps.work_out("kept", title, operations.kept_positive("wide"), tokens)
    steps.give("W_2", Message("W_2, which makes them narrow again"), given.w_2)
    steps.work_out("fed", "fed = kept × W_2", Product(("kept", "W_2")), tokens)
    second = _add_and_norm(steps, first, "fed", 2)
    title = Message("W_vocabulary, a column for each token")
    steps.give("W_vocabulary", title, given.w_vocabulary, columns=given.vocabulary)
    _guess(steps, second, given.vocabulary)
    lead = Message(
        "All that a transformer of one block does, as arithmetic: each number is worked out from those above."
    )
    return Sheet(
        steps.made,
        tokens,
        tokens,
        text=" ".join(map(str, tokens)),
        heading=Message("A block by hand, from vectors to the next word"),
        lead=lead,
        remarks=(Message("The last row guesses what comes next: only there has every word been seen."),),
    )


def _add_and_norm(steps: GrowingSheet, before: str, part: str, number: int) -> str:
    """The residual connection and LayerNorm: the name of what comes out."""
    rows, name = steps.tokens, f"normed_{number}"
    total, mean, apart, size, gain = (f"{each}_{number}" for each in ("sum", "mean", "apart", "size", "gain"))
    give_eps(steps, EPS)
    title = Message("{name} = {before} + {part} (the residual connection)", name=total, before=before, part=part)
    steps.work_out(total, title, operations.added(before, part), rows)
    title = Message("{name}, the mean of each row of {of}", name=mean, of=total)
    steps.work_out(mean, title, operations.means(total), rows)
    steps.work_out(apart, f"{apart} = {total} − {mean}", operations.less(total, mean), rows)
    title = Message("{name} = √(mean of squares of {of} + ε), the standard deviation", name=size, of=apart)
    steps.work_out(size, title, operations.root_mean_square(apart, "eps"), rows)
    ones = np.ones((1, steps.made[total].values.shape[1]))
    steps.give(gain, Message("{name}, learned; here 1", name=gain), ones)
    normed = f"{name} = {apart} / {size} × {gain} (LayerNorm)"
    return steps.work_out(name, normed, operations.normed(apart, size, gain), rows)


def _guess(steps: GrowingSheet, read: str, vocabulary: tuple[str, ...]) -> None:
    """From vectors to scores for every token, to chances, to a guess."""
    rows = steps.tokens
    steps.work_out("logits", f"logits = {read} × W_vocabulary", Product((read, "W_vocabulary")), rows, vocabulary)
    steps.work_out("raised", "raised = e^logits", operations.powers("logits"), rows, vocabulary)
    title = Message("{sums} of each row of {powers}", sums="totals", powers="raised")
    steps.work_out("totals", title, operations.row_sums("raised"), rows)
    steps.work_out("chances", "chances = raised / totals", operations.shares("raised", "totals"), rows, vocabulary)
    title = Message("guess = the column of the largest chance (argmax): {vocabulary}", vocabulary=vocabulary)
    steps.work_out("guess", title, operations.column_of_largest("chances"), rows)
