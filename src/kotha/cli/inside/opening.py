"""What the commands that read a text with a model share: their flags, the model, and its own words where asked for."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.bundle import Bundle
    from kotha.inside.inputs import Reading, Write

_LONGEST_TITLE, _CUT = 90, " …"

Run = Annotated[Path, Parameter(help="A run folder (its best model), or a model folder.")]
Text = Annotated[str | None, Parameter(help="What the model reads; [MASK] hides a word from a BERT.")]
Second = Annotated[str | None, Parameter(help="The second sentence of a pair, for a BERT.")]
Target = Annotated[str | None, Parameter(help="The translation, for a Seq2Seq; left out, the model writes it.")]
Image = Annotated[Path | None, Parameter(help="A PNG, JPEG, PGM, .npy or .json image, for a ViT.")]
Field = Annotated[str, Parameter(help="Field or column that holds the text.")]
Pair = Annotated[tuple[str, str] | None, Parameter(help="For a translating model: the fields of source and target.")]
Tokens = Annotated[int, Parameter(help="Read so many tokens at most: each head is measured on all of them.")]
Html = Annotated[Path | None, Parameter(help="Write one offline page to this file.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user wants read."""

    text: str | None = None
    second: str | None = None
    target: str | None = None
    image: Path | None = None
    generate: int | None = None
    """Tokens that the model shall add."""
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            raise UsageError(f"--generate {self.generate} writes nothing; use 1 or more, or leave it out")
        if self.generate is None and (self.temperature or self.seed):
            raise UsageError("--temperature and --seed say how the model goes on; add --generate N")
        if self.text is not None and self.image is not None:
            raise UsageError("--text and --image are for different models; give one of them")


def open_model(run: Path) -> "Bundle":
    """The model of a run or model folder, with its tokenizer; narrow weights as float32, in which none is lost."""
    from kotha import bundle

    return bundle.load(run).widened()


def read_asked(opened: "Bundle", asked: Asked) -> "Reading":
    """What a user wants read, as the model's input; remarks go to stderr."""
    from kotha.inside.inputs import read, read_image
    from kotha.inside.pictures import load_picture
    from kotha.model.config import ViTConfig

    model, config = opened.model, opened.config
    if asked.image is not None and isinstance(config, ViTConfig):
        reading = read_image(model, load_picture(asked.image, config))
    elif asked.image is not None:
        raise UsageError(f"--image is for a ViT, and this model is a {config.family}; give it --text")
    elif asked.text is None:
        raise UsageError(f"a {config.family} model needs {'--image' if isinstance(config, ViTConfig) else '--text'}")
    else:
        write = _writer(opened, asked)
        reading = read(model, opened.tokenizer, asked.text, second=asked.second, target=asked.target, write=write)
    tell(reading)
    return reading


def headline(asked: Asked, otherwise: str = "") -> str:
    """A page's title: the text (``otherwise`` if none was given), cut between words, or else letters, if it is long."""
    import textwrap

    from kotha.text.akshara import aksharas

    if asked.image is not None:
        return asked.image.name
    text = " ".join((otherwise if asked.text is None else asked.text).split())
    if not text:
        return "An empty text"
    whole_words = textwrap.shorten(text, _LONGEST_TITLE, placeholder=_CUT)
    return "".join(aksharas(text)[: _LONGEST_TITLE // 2]) + _CUT if whole_words == _CUT.strip() else whole_words


def tell(reading: "Reading") -> None:
    """Say on stderr what the user should know about how the input was taken."""
    for remark in reading.remarks:
        print(f"kotha: {remark}", file=sys.stderr)


def _writer(opened: "Bundle", asked: Asked) -> "Write | None":
    """The model's own words: of a GPT if asked for, of a Seq2Seq also where no target is given."""
    from kotha.model.gpt import GPT
    from kotha.model.seq2seq import Seq2Seq

    model: Any = opened.model
    special = {} if opened.tokenizer is None else opened.tokenizer.special
    if isinstance(model, Seq2Seq) and (asked.generate is not None or asked.target is None):
        from kotha.generate.beam import BeamSettings, beam_search

        if asked.temperature:
            raise UsageError("a Seq2Seq's translation is its best one; leave --temperature out")
        if not {"bos", "eos"} <= special.keys():
            raise UsageError("this tokenizer has no mark to start and end a target; give --target TEXT")
        room = model.config.context_length - 1
        beams = BeamSettings(
            start=special["bos"], end=special["eos"], beams=1, tokens=min(asked.generate or room, room)
        )
        return lambda source: beam_search(model, source, beams)[0].ids
    if asked.generate is None:
        return None
    if not isinstance(model, GPT):
        return lambda _ids: ()  # the reading says why this body cannot write
    from kotha.generate.plain import continue_plainly
    from kotha.generate.settings import SamplingSettings

    settings = SamplingSettings(temperature=asked.temperature, seed=asked.seed)
    ends = {special["eos"]} if "eos" in special else set()
    return lambda ids: continue_plainly(model, ids, asked.generate or 0, settings, ends)
