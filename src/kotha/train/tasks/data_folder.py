"""The task that a data folder of plain text offers to a model of each family."""

from kotha.errors import ConfigError
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig
from kotha.text.shards import Dataset
from kotha.train.config import TrainConfig
from kotha.train.tasks.masked_words import MaskedWords
from kotha.train.tasks.next_token import NextToken
from kotha.train.tasks.task import Task


def task_for(model: ModelConfig, config: TrainConfig, data: Dataset) -> Task:
    """Next tokens for a GPT, masked words for a BERT."""
    if isinstance(model, GPTConfig):
        return NextToken(model, config, data)
    if isinstance(model, BERTConfig):
        return MaskedWords(model, config, data)
    needs = {"seq2seq": "pairs of texts", "vit": "images with their classes"}[model.family]
    raise ConfigError(
        f"a {model.family} model learns from {needs}, and {data.path} holds plain text; "
        "use a gpt or bert preset, or train it from Python (kotha.train.tasks)"
    )
