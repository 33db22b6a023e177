"""A server's models by name, loaded on first use and unloaded when memory is short.

A model in use is never unloaded. Loading takes seconds and runs in a thread; concurrent requests for the same model
share a single load. If a folder cannot be loaded, the request reports the error, and the next request tries again.
"""

import asyncio
import copy
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kotha.api.model import LanguageModel, load
from kotha.artifacts.model_folder import Bundle
from kotha.errors import nearest
from kotha.generation.weights import Weights, stored_weights
from kotha.inside.embeddings import Embeddings
from kotha.inside.heads.overlap import HeadWeights, head_weights
from kotha.inside.numbers.ledger import Ledger
from kotha.model.classifier import TextClassifier
from kotha.model.gpt import GPT
from kotha.server.batching import Batcher
from kotha.server.errors import RefusedError, by_name
from kotha.server.jobs.store import JobStore
from kotha.server.serial_executor import SerialExecutor
from kotha.server.settings import Limits, model_paths

# Memory that an engine may use for cached prompt prefixes.
_PREFIX_CACHE_BYTES = 64 << 20


class ServedModel:
    """A loaded model, with the batch in which a GPT generates text."""

    def __init__(self, name: str, model: LanguageModel, limits: Limits, weights: Weights | None = None) -> None:
        self.name, self.model, self.limits = name, model, limits
        self.users, self.last_used = 0, time.monotonic()
        self.turns = SerialExecutor()  # for everything but the batch, since inspection hooks into the model
        self.passes: OrderedDict[str, Ledger] = OrderedDict()  # the last few passes, by request
        self.batcher: Batcher | None = None
        if isinstance(model.model, GPT) and not isinstance(model.model, TextClassifier) and model.tokenizer is not None:
            engine = model.engine(limits.rows, weights or stored_weights(model.model), kept_bytes=_PREFIX_CACHE_BYTES)
            self.batcher = Batcher(engine, limits.waiting, limits.waiting_for_one, name)

    @cached_property
    def apart(self) -> Bundle:
        """The model for inspection; a copy if a batch uses the same weights, which hooks must not affect."""
        bundle = self.model.bundle
        if self.batcher is not None and self.batcher.engine.model is bundle.model:
            return replace(bundle, model=copy.deepcopy(bundle.model))
        return bundle

    @cached_property
    def head_weights(self) -> list[HeadWeights]:
        """Properties of each head that depend only on its weights; computed once."""
        return head_weights(self.apart.model)

    @cached_property
    def embeddings(self) -> Embeddings:
        """The word embeddings in double precision; computed once."""
        return Embeddings(self.apart.model, self.apart.tokenizer)

    @property
    def supports_chat(self) -> bool:
        """Whether the model was fine-tuned for conversation."""
        return self.batcher is not None and self.batcher.engine.chat is not None

    @property
    def n_bytes(self) -> int:
        """Size of the model's weights in bytes, including copies."""
        models = [self.model.model]
        models += [] if self.batcher is None else [self.batcher.engine.model]
        models += [self.apart.model] if "apart" in vars(self) else []
        tensors = (tensor for model in models for tensor in (*model.parameters(), *model.buffers()))
        return sum({id(tensor): tensor.nbytes for tensor in tensors}.values())

    def close(self, seconds: float | None = None) -> None:
        """Finish generating the texts in progress, for at most ``seconds``."""
        if self.batcher is not None:
            self.batcher.close(seconds)


class ModelRegistry:
    """A server's models by name, including those trained by its jobs."""

    def __init__(
        self,
        models: Iterable[str],
        limits: Limits,
        device: str = "auto",
        weights: Weights | None = None,
        jobs: JobStore | None = None,
    ) -> None:
        self.model_paths = model_paths(models)
        self._jobs = jobs
        self._limits, self.device, self._weights = limits, device, weights
        self._opened: dict[str, ServedModel] = {}
        self._opening: dict[str, asyncio.Task[ServedModel]] = {}

    @property
    def opened(self) -> dict[str, ServedModel]:
        """The loaded models."""
        return dict(self._opened)

    @property
    def named(self) -> dict[str, Path]:
        """The folders of all models, including those trained by jobs."""
        return self.model_paths if self._jobs is None else {**self.model_paths, **self._jobs.trained()}

    def path(self, name: str) -> Path:
        """Return a model's folder. This reads from disk, so call it from a worker thread."""
        if name in self.model_paths:
            return self.model_paths[name]
        path = None if self._jobs is None else self._jobs.trained_as(name)
        if path is None:
            named = self.named
            close = nearest(name, named)
            unknown = "this server has no model {name!r}{nearest}"
            raise RefusedError(unknown, 404, "model", "model_not_found", name=name, nearest=close)
        return path

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[ServedModel]:
        """Load a model if necessary, and keep it loaded inside the ``with`` block."""
        # Runs in a thread, because looking up a job reads from disk.
        path = self.model_paths[name] if name in self.model_paths else await asyncio.to_thread(self.path, name)
        served = self._opened.get(name) or await self._open(name, path)
        served.users += 1
        try:
            yield served
        finally:
            served.users -= 1
            served.last_used = time.monotonic()

    async def _open(self, name: str, path: Path) -> ServedModel:
        if name not in self._opening:
            self._opening[name] = asyncio.create_task(self._load(name, path))
        return await asyncio.shield(self._opening[name])

    async def _load(self, name: str, path: Path) -> ServedModel:
        try:
            with by_name({str(path): name}):
                model = await asyncio.to_thread(load, path, self.device)
            served = await asyncio.to_thread(ServedModel, name, model, self._limits, self._weights)
            self._opened[name] = served
            self._unload_unused()
            return served
        finally:
            del self._opening[name]

    def _unload_unused(self) -> None:
        """Unload the least recently used models until the rest fit, except those in use and the newest."""
        by_use = sorted(self._opened.values(), key=lambda served: served.last_used)
        for served in by_use[:-1]:
            if sum(each.n_bytes for each in self._opened.values()) <= self._limits.model_bytes:
                return
            if not served.users:
                self._opened.pop(served.name).close(0)

    def unload(self, name: str) -> None:
        """Unload a model before its folder is removed; raises RefusedError if it is in use."""
        served = self._opened.get(name)
        if name in self._opening or (served is not None and served.users):
            raise RefusedError("the model {name} is in use; try again later", 409, name=name)
        if served is not None:
            self._opened.pop(name).close(0)

    def close(self, seconds: float) -> None:
        """Finish generating the texts in progress, for at most ``seconds``, and unload all models."""
        until = time.monotonic() + seconds
        for name in list(self._opened):
            self._opened.pop(name).close(max(0.0, until - time.monotonic()))
