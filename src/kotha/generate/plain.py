"""Writing, the plain way: look at everything again for each token, as the course does.

The readable twin of a faster engine to come. Past the context it slides: only the last tokens are looked at.
"""

import torch
from torch import Tensor

from kotha.model.gpt import GPT
from kotha.text.tokenizer import Tokenizer


@torch.no_grad()
def write(
    model: GPT,
    tokenizer: Tokenizer,
    prompt: str,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 40,
    seed: int = 0,
) -> str:
    """The prompt and what the model writes after it, up to the end of the text."""
    generator = torch.Generator().manual_seed(seed)
    end = tokenizer.special["eos"]
    written = tokenizer.encode(prompt) or [end]
    device = model.tokens.weight.device
    was_training = model.training
    model.eval()
    for _ in range(tokens):
        seen = torch.tensor([written[-model.config.context_length :]], device=device)
        logits = model(seen)[0, -1].float().cpu()  # (V,)
        token = sample(logits, temperature, top_k, generator)
        if token == end:
            break
        written.append(token)
    model.train(was_training)
    return tokenizer.decode(written)


def sample(logits: Tensor, temperature: float, top_k: int, generator: torch.Generator) -> int:
    """One token, drawn from the most likely ones: (V,) -> (). Temperature 0 takes the best."""
    if temperature == 0:
        return int(logits.argmax())
    values, ids = logits.topk(min(top_k, len(logits)))
    chances = (values / temperature).softmax(dim=-1)
    return int(ids[torch.multinomial(chances, 1, generator=generator)])
