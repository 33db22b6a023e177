"""What shall be read by a model that is looked into, and how its pieces are told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from kotha.api.asked import Asked
from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import OnProgress
from kotha.inside.hook_points import layers
from kotha.inside.inputs import ModelInput, speller
from kotha.model.config import ViTConfig
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.server.api.requests import EXAMPLE, AboutModel, Png, WireAnswer, check_reads, count_tokens, picture
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.settings import Limits
from kotha.server.wire import InEnglish

HeadName = Annotated[str, Field(max_length=80, examples=["blocks.0.attention.0"])]
LayerName = Annotated[str, Field(max_length=80)] | Annotated[int, Field(ge=0, le=100_000)]
Heads = list[HeadName]


def inside_router() -> APIRouter:
    """Where a question about the inside of a model is asked."""
    return APIRouter(prefix="/api/inside", tags=["Inside"])


class LookRequest(AboutModel):
    """What a model shall read while it is watched; a text for most, an image for a ViT."""

    text: str | None = Field(None, examples=[EXAMPLE], description="What it reads; left out for a ViT.")
    second: str | None = Field(None, description="A BERT's other sentence.")
    target: str | None = Field(None, description="A Seq2Seq's translation; left out, it writes one.")
    image: Png | None = Field(None, description="A PNG in base64, for a ViT.")

    def to_input(self, served: Served, limits: Limits, generate: int | None = None, **how: Any) -> Asked:
        """As the library is asked, once it is known to be short enough to be shown."""
        check_reads(served)
        if self.image is not None:
            pixels = picture(served, self.image, limits)
            _check_patches(served, limits)
            return Asked(self.text, self.second, self.target, pixels, generate, **how)
        room = limits.positions - (generate or 0)
        if room < 1:
            raise RefusedError(
                "{positions:,} positions can be shown at once; generate fewer",
                param="generate",
                positions=limits.positions,
            )
        if not isinstance(served.model.model, ViT):  # which says itself that it reads no text
            for name, given in (("text", self.text), ("second", self.second)):
                room -= 0 if given is None else count_tokens(served, given, room, name)
            if self.target is not None:
                count_tokens(served, self.target, limits.positions, "target")
        return Asked(self.text, self.second, self.target, None, generate, **how)


class WatchRequest(LookRequest):
    """… with heads that may be silent meanwhile."""

    silenced: Heads = Field([], max_length=4096, description="Heads that add nothing while it reads.")


class LinePiece(WireAnswer):
    """A position as it reads: a token, or a patch of an image, which has no id."""

    id: int | None = Field(description="Its number in the vocabulary; a patch has none.")
    text: str = Field(
        description="As it reads: ␣ a space, a sign on ◌, part of a character in ‹›; a patch by row and column."
    )
    part: bool = Field(description="Whether it is only part of a character.")


class LikelyAnswer(WireAnswer):
    """A token, or of a ViT a class, and how likely it is."""

    id: int = Field(description="Of the token or the class.")
    text: str = Field(description="As it reads.")
    probability: float = Field(description="From 0 to 1.")


class ToldAnswer(WireAnswer):
    """What a model says in the end, at one place; the likeliest first."""

    question: str = Field(description="What is asked at this place.")
    best: list[LikelyAnswer] = Field(description="The likeliest first.")


class Looked(WireAnswer):
    """What was read: lines of pieces by name (``tokens``; ``source`` and ``target``; ``patches``)."""

    family: str = Field(description="Of the model.")
    lines: dict[str, list[LinePiece]] = Field(description="Every position as it reads, by the name of its line.")
    grid: tuple[int, int] | None = Field(description="Rows and columns of an image's patches.")
    remarks: list[InEnglish] = Field(description="What to know about how it was taken.")


def read_as(bundle: Bundle, given: ModelInput) -> dict[str, Any]:
    """What every answer says of what was read."""
    return {
        "family": bundle.config.family,
        "lines": given.lines_to_dict(),
        "grid": given.grid,
        "remarks": list(map(str, given.remarks)),
    }


def spelling(bundle: Bundle) -> Callable[[int], str]:
    """How an answer's id reads: as a token, or as a class."""
    config = bundle.config
    return config.class_names.__getitem__ if isinstance(config, ViTConfig) else speller(bundle.tokenizer)


@contextmanager
def looking_up(model: Model, on_progress: OnProgress) -> Iterator[None]:
    """Let every pass through a model's layers look up whether anyone still waits for what comes of it."""

    def look_up(*_: object) -> None:
        on_progress("", 0, 1)

    hooks = [block.register_forward_pre_hook(look_up) for block in layers(model).values()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _check_patches(served: Served, limits: Limits) -> None:
    config = served.model.config
    assert isinstance(config, ViTConfig), "the picture was read for one"
    count = 1 + (config.image_size // config.patch_size) ** 2
    if count > limits.positions:
        raise RefusedError(
            "{name} cuts an image into {count:,} patches; {positions:,} can be shown",
            name=served.name,
            count=count,
            positions=limits.positions,
        )
