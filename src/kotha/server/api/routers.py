"""Every route of our own, in the order of the OpenAPI page."""

from kotha.server.api import (
    about,
    ask,
    card,
    classify,
    compare,
    doctor,
    exercise,
    fill,
    judging,
    machine,
    plan,
    progress,
    tables,
    text,
    training,
    translate,
    write,
)
from kotha.server.api.inside import attention, embeddings, flow, heads, lens, numbers, silence, worksheet

_TEXT = (text, card, write)
_INSIDE = (about, attention, lens, flow, heads, worksheet, exercise, silence, numbers, embeddings)
_USES = (
    classify,
    fill,
    translate,
    ask,
    plan,
    doctor,
    compare,
    judging,
    machine,
    progress,
    training,
    tables,
)
ROUTERS = [module.router for module in (*_TEXT, *_INSIDE, *_USES)]
