"""``/api/models/{name}``: what a model is, for whoever wants to draw it."""

import asyncio

from fastapi import APIRouter, Request
from pydantic import Field

from kotha.inside.hook_points import attentions
from kotha.model.config import TextConfig, ViTConfig
from kotha.server.api.requests import WireAnswer
from kotha.server.state import state_of
from kotha.server.wire import NamedModel

router = APIRouter(prefix="/api", tags=["Inside"])


class AttentionSite(WireAnswer):
    """An attention and its heads; where some were pruned, the others keep their numbers."""

    name: str = Field(description="As other addresses take it: blocks.0.attention.")
    heads: list[int] = Field(description="Their numbers, from 0.")


class AboutServed(WireAnswer):
    """A model's family and sizes."""

    name: str = Field(description="What it is asked for by.")
    family: str = Field(description="gpt, bert, seq2seq, vit, or a classifier made of one.")
    parameters: int = Field(description="Numbers that were learned.")
    vocab_size: int | None = Field(description="Tokens that it knows; null of a model that reads images.")
    context_length: int | None = Field(description="Tokens that it reads at once; null of a model that reads images.")
    image_size: int | None = Field(description="Pixels of a side; null of a model that reads text.")
    labels: list[str] = Field(description="Of a model that names classes.")
    takes_turns: bool = Field(description="Whether it was taught to converse.")
    attentions: list[AttentionSite] = Field(description="All attentions, in the order of the arithmetic.")


@router.get("/models/{name}")
async def about(request: Request, name: NamedModel) -> AboutServed:
    """What a model is: its family, its sizes, and the names of its attentions and heads."""
    async with state_of(request).registry.use(name) as served:
        model, config = served.model.model, served.model.config
        labels = config.class_names if isinstance(config, ViTConfig) else getattr(config, "labels", ())
        return AboutServed(
            name=served.name,
            family=config.family,
            parameters=sum(each.numel() for each in model.parameters()),
            vocab_size=config.vocab_size if isinstance(config, TextConfig) else None,
            context_length=config.context_length if isinstance(config, TextConfig) else None,
            image_size=config.image_size if isinstance(config, ViTConfig) else None,
            labels=list(labels),
            takes_turns=await asyncio.to_thread(lambda: served.takes_turns),
            attentions=[AttentionSite(name=name, heads=list(each.heads)) for name, each in attentions(model).items()],
        )
