"""Pieces as learners write them, right and wrong: independent of our own, with other functions and other loops."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

F, INF = nn.functional, float("inf")


def allowed(s: Any) -> Any:
    return torch.tril(torch.ones(s.size(-2), s.size(-1)))


def scaled(q: Any, k: Any) -> Any:
    return torch.einsum("...td,...sd->...ts", q, k) * k.size(-1) ** -0.5


def causal(s: Any) -> Any:
    return torch.where(allowed(s) == 0, -INF, s)


def softmax(s: Any, dim: int = -1) -> Any:
    return F.softmax(s, dim=dim)


def plain(x: Any) -> Any:
    return x


def core(score: Callable = scaled, mask: Callable = causal, share: Callable = softmax, mix: Callable = torch.matmul):
    """The lines that one head and several heads have in common."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        return mix(share(mask(score(q, k))), v)

    return attend


CORES: dict[str, dict[str, Callable]] = {
    "no-scale": {"score": lambda q, k: q @ k.transpose(-1, -2)},
    "scale-by-width": {"score": lambda q, k: q @ k.transpose(-1, -2) / k.size(-1)},
    "scale-by-length": {"score": lambda q, k: q @ k.transpose(-1, -2) / k.size(-2) ** 0.5},
    "scale-multiplied": {"score": lambda q, k: q @ k.transpose(-1, -2) * k.size(-1) ** 0.5},
    "scale-after-softmax": {
        "score": lambda q, k: q @ k.transpose(-1, -2),
        "mix": lambda w, v: (w / v.size(-1) ** 0.5) @ v,
    },
    "no-mask": {"mask": plain},
    "mask-with-zero": {"mask": lambda s: s * allowed(s)},
    "mask-after-softmax": {"mask": plain, "share": lambda s: softmax(s) * allowed(s)},
    "mask-reversed": {"mask": lambda s: torch.where(allowed(s).T == 0, -INF, s)},
    "mask-inverted": {"mask": lambda s: s.masked_fill(allowed(s).bool(), -INF)},
    "mask-hides-itself": {"mask": lambda s: s.masked_fill(torch.triu(torch.ones_like(s)).bool(), -INF)},
    "mask-one-late": {"mask": lambda s: s.masked_fill(torch.triu(torch.ones_like(s), diagonal=2).bool(), -INF)},
    "no-softmax": {"mask": lambda s: s * allowed(s), "share": plain},
    "softmax-over-queries": {"share": lambda s: torch.exp(s) / torch.exp(s).sum(-2, keepdim=True)},
    "softmax-over-batch": {"share": lambda s: softmax(s, 0)},
    "query-key-swapped": {"score": lambda q, k: scaled(k, q)},
    "weights-transposed": {"mix": lambda w, v: torch.einsum("...st,...sd->...td", w, v)},
}


def attention(bias: bool = False, forward: Callable | None = None, **changes: Callable) -> type:
    class MyAttention(nn.Module):
        def __init__(self, d_model, d_head):
            super().__init__()
            self.query = nn.Linear(d_model, d_head, bias=bias)
            self.key = nn.Linear(d_model, d_head, bias=bias)
            self.value = nn.Linear(d_model, d_head, bias=bias)

        def forward(self, x):
            if forward:
                return forward(self, x)
            return core(**changes)(self.query(x), self.key(x), self.value(x))

    return MyAttention


def width_of(d: Callable) -> Callable:
    """Attention whose scores are divided by the root of something other than the width of a head."""

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return softmax(causal(q @ k.transpose(1, 2) / d(x) ** 0.5)) @ v

    return forward


ATTENTION = {name: attention(**changes) for name, changes in CORES.items()} | {
    "scale-by-model-width": attention(forward=width_of(lambda x: x.size(-1))),
    "key-is-query": attention(forward=lambda m, x: core()(m.query(x), m.query(x), m.value(x))),
    "value-is-key": attention(forward=lambda m, x: core()(m.query(x), m.key(x), m.key(x))),
    "value-forgotten": attention(forward=lambda m, x: core()(m.query(x), m.key(x), x)),
    "weights-returned": attention(mix=lambda w, v: w),
}


def cut(x: Any, n: int) -> Any:
    return torch.stack(x.chunk(n, dim=-1), dim=1)


def join(y: Any) -> Any:
    return torch.cat(y.unbind(1), dim=-1)


def multi_head(
    split: Callable = cut,
    joined: Callable = join,
    output: Callable = lambda m, y, x: m.output(y),
    project: Callable = lambda m, x: (m.query(x), m.key(x), m.value(x)),
    n: Callable = lambda n_heads: n_heads,
    **changes: Callable,
) -> type:
    class MultiHead(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n = n(n_heads)
            for name in ("query", "key", "value", "output"):
                setattr(self, name, nn.Linear(d_model, d_model))

        def forward(self, x):
            q, k, v = (split(each, self.n) for each in project(self, x))
            return output(self, joined(core(**changes)(q, k, v)), x)

    return MultiHead


MyMultiHead = multi_head()


def model_width(q: Any, k: Any) -> Any:
    return q @ k.transpose(-1, -2) / (k.size(1) * k.size(-1)) ** 0.5


MULTI_HEAD = {name: multi_head(**changes) for name, changes in CORES.items()} | {
    "scale-by-model-width": multi_head(score=model_width),
    "key-is-query": multi_head(project=lambda m, x: (m.query(x), m.query(x), m.value(x))),
    "value-is-key": multi_head(project=lambda m, x: (m.query(x), m.key(x), m.key(x))),
    "one-head": multi_head(n=lambda n_heads: 1),
    "softmax-over-heads": multi_head(share=lambda s: softmax(s, 1)),
    "split-without-transpose": multi_head(split=lambda x, n: x.reshape(x.size(0), n, x.size(1), x.size(2) // n)),
    "joined-without-transpose": multi_head(
        joined=lambda y: y.reshape(y.size(0), y.size(2), y.size(1) * y.size(3)),
    ),
    "heads-attend-to-heads": multi_head(
        split=lambda x, n: x.reshape(x.size(0), x.size(1), n, x.size(2) // n), joined=lambda y: y.flatten(2)
    ),
    "heads-interleaved": multi_head(split=lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1)),
    "no-output": multi_head(output=lambda m, y, x: y),
    "attention-adds-input": multi_head(output=lambda m, y, x: x + m.output(y)),
}


def feedforward(forward: Callable, down: bool = True) -> type:
    class MyMLP(nn.Module):
        def __init__(self, d_model, d_ff):
            super().__init__()
            self.up = nn.Linear(d_model, d_ff)
            if down:
                self.down = nn.Linear(d_ff, d_model)

        def forward(self, x):
            return forward(self, x)

    return MyMLP


def exact_gelu(x: Any) -> Any:
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


MyFeedForward = feedforward(lambda m, x: m.down(exact_gelu(m.up(x))))
TanhFeedForward = feedforward(lambda m, x: m.down(nn.GELU("tanh")(m.up(x))))
FEEDFORWARD = {
    "relu": feedforward(lambda m, x: m.down(torch.clamp(m.up(x), min=0))),
    "silu": feedforward(lambda m, x: m.down(F.silu(m.up(x)))),
    "tanh": feedforward(lambda m, x: m.down(torch.tanh(m.up(x)))),
    "sigmoid": feedforward(lambda m, x: m.down(torch.sigmoid(m.up(x)))),
    "no-activation": feedforward(lambda m, x: m.down(m.up(x))),
    "activation-first": feedforward(lambda m, x: m.down(m.up(nn.GELU()(x)))),
    "activation-last": feedforward(lambda m, x: nn.GELU()(m.down(m.up(x)))),
    "activation-twice": feedforward(lambda m, x: nn.GELU()(m.down(nn.GELU()(m.up(x))))),
    "no-second-layer": feedforward(lambda m, x: nn.GELU()(m.up(x)), down=False),
    "feedforward-adds-input": feedforward(lambda m, x: x + m.down(exact_gelu(m.up(x)))),
}


def block(
    forward: Callable | None = None,
    heads: type = MyMultiHead,
    mlp: type = MyFeedForward,
    norm: Callable = nn.LayerNorm,
    second: bool = True,
) -> type:
    class TransformerBlock(nn.Module):
        def __init__(self, d_model, n_heads, d_ff):
            super().__init__()
            self.attention = heads(d_model, n_heads)
            self.feedforward = mlp(d_model, d_ff)
            self.attention_norm = norm(d_model)
            if second:
                self.feedforward_norm = norm(d_model)

        def forward(self, x):
            if forward:
                return forward(x, self.attention, self.feedforward, self.attention_norm, self.feedforward_norm)
            x += self.attention(self.attention_norm(x))  # in place, which changes the input
            return self.feedforward(self.feedforward_norm(x)) + x

    return TransformerBlock


def then(first: Callable, second: Callable) -> Callable:
    """Two steps, each of (x, attention or feed-forward part, its norm)."""
    return lambda x, a, f, n, m: second(first(x, a, n), f, m)


def pre(x: Any, part: Callable, norm: Callable) -> Any:
    return x + part(norm(x))


def bare(x: Any, part: Callable, norm: Callable) -> Any:
    return part(norm(x))


def post(x: Any, part: Callable, norm: Callable) -> Any:
    return norm(x + part(x))


def outer(x: Any, part: Callable, norm: Callable) -> Any:
    return x + norm(part(x))


def inner(x: Any, part: Callable, norm: Callable) -> Any:
    x = norm(x)
    return x + part(x)


def unnormed(x: Any, part: Callable, norm: Callable) -> Any:
    return x + part(x)


def skipped(x: Any, part: Callable, norm: Callable) -> Any:
    return x


def once(self: Any, x: Any) -> Any:
    x = x + self.attention(self.attention_norm(x))
    return x + self.feedforward(self.attention_norm(x))


MyBlock = block()
OneNormBlock = block(second=False)
OneNormBlock.forward = once  # type: ignore[attr-defined]
BLOCK = {
    "no-residual": block(then(bare, bare)),
    "no-attention-residual": block(then(bare, pre)),
    "no-feedforward-residual": block(then(pre, bare)),
    "post-norm": block(then(post, post)),
    "norm-of-output": block(then(outer, outer)),
    "residual-after-norm": block(then(inner, inner)),
    "same-norm-twice": OneNormBlock,
    "norms-swapped": block(lambda x, a, f, n, m: pre(pre(x, a, m), f, n)),
    "no-norms": block(then(unnormed, unnormed)),
    "no-attention-norm": block(then(unnormed, pre)),
    "no-feedforward-norm": block(then(pre, unnormed)),
    "rms-norm": block(norm=nn.RMSNorm),
    "feedforward-first": block(lambda x, a, f, n, m: pre(pre(x, f, m), a, n)),
    "parallel": block(lambda x, a, f, n, m: x + a(n(x)) + f(m(x))),
    "old-residual": block(lambda x, a, f, n, m: x + f(m(pre(x, a, n)))),
    "no-attention": block(then(skipped, pre)),
    "no-feedforward": block(then(pre, skipped)),
    # Mistakes in a part, and a mistake around a part that is accepted.
    "mask-with-zero": block(heads=MULTI_HEAD["mask-with-zero"]),
    "relu": block(mlp=FEEDFORWARD["relu"]),
    "no-residual ": block(then(bare, bare), mlp=TanhFeedForward),
}


def gpt(
    embed: Callable | None = None,
    run: Callable | None = None,
    end: Callable = lambda m, x: m.head(m.norm(x)),
    tied: bool = True,
    inside: type = MyBlock,
    repeat: bool = False,
) -> type:
    class MyGPT(nn.Module):
        def __init__(self, vocab_size, context_length, d_model, n_heads, d_ff, n_layers):
            super().__init__()
            self.tokens = nn.Embedding(vocab_size, d_model)
            self.positions = nn.Embedding(context_length, d_model)
            blocks = [inside(d_model, n_heads, d_ff) for _ in range(n_layers)]
            self.blocks = nn.ModuleList([blocks[0]] * n_layers if repeat else blocks)
            self.norm = nn.LayerNorm(d_model)
            self.head = nn.Linear(d_model, vocab_size)
            if tied:
                self.head.weight = self.tokens.weight

        def forward(self, tokens):
            p = self.positions(torch.arange(0, tokens.size(1)))
            x = embed(self, tokens) if embed else self.tokens(tokens) + p
            x = run(self, x, p) if run else nn.Sequential(*self.blocks)(x)
            return end(self, x)

    return MyGPT


def each_with_positions(m: Any, x: Any, p: Any) -> Any:
    for one in m.blocks:
        x = one(x + p)
    return x


def each_with_norm(m: Any, x: Any, p: Any) -> Any:
    for one in m.blocks:
        x = m.norm(one(x))
    return x


def forgotten_assignment(m: Any, x: Any, p: Any) -> Any:
    for one in m.blocks:
        y = one(x.clone())
    return y


GPT = {
    "no-positions": gpt(embed=lambda m, t: m.tokens(t)),
    "positions-twice": gpt(run=each_with_positions),
    "positions-multiplied": gpt(embed=lambda m, t: m.tokens(t) * m.positions.weight[: t.size(1)]),
    "positions-from-one": gpt(embed=lambda m, t: m.tokens(t) + m.positions.weight[1 : t.size(1) + 1]),
    "positions-reversed": gpt(embed=lambda m, t: m.tokens(t) + m.positions.weight[: t.size(1)].flip(0)),
    "positions-of-tokens": gpt(embed=lambda m, t: m.tokens(t) + m.positions(t)),
    "scaled-embeddings": gpt(
        embed=lambda m, t: m.tokens(t) * m.tokens.embedding_dim**0.5 + m.positions.weight[: t.size(1)]
    ),
    "no-final-norm": gpt(end=lambda m, x: m.head(x)),
    "norm-before-blocks": gpt(run=lambda m, x, p: nn.Sequential(*m.blocks)(m.norm(x)), end=lambda m, x: m.head(x)),
    "norm-after-each-block": gpt(run=each_with_norm, end=lambda m, x: m.head(x)),
    "no-blocks": gpt(run=lambda m, x, p: x),
    "first-block-only": gpt(run=lambda m, x, p: m.blocks[0](x)),
    "last-block-only": gpt(run=forgotten_assignment),
    "one-block-repeated": gpt(repeat=True),
    "blocks-reversed": gpt(run=lambda m, x, p: nn.Sequential(*list(m.blocks)[::-1])(x)),
    "no-head": gpt(end=lambda m, x: m.norm(x)),
    "probabilities-returned": gpt(end=lambda m, x: softmax(m.head(m.norm(x)))),
    "last-position-only": gpt(end=lambda m, x: m.head(m.norm(x[:, -1]))),
    "post-norm": gpt(inside=BLOCK["post-norm"], tied=False),
    "no-scale": gpt(inside=block(heads=MULTI_HEAD["no-scale"])),
    "no-final-norm ": gpt(inside=block(mlp=TanhFeedForward), end=lambda m, x: m.head(x)),
}


def my_loss(logits: Any, tokens: Any) -> Any:
    chances = softmax(logits)[:, :-1]
    return -torch.log(torch.gather(chances, 2, tokens[:, 1:].unsqueeze(2))).mean()


def of_loss(function: Callable) -> Callable:
    def my_loss(logits, tokens):
        return function(logits, tokens)

    return my_loss


def surprises(logits: Any, tokens: Any) -> Any:
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")  # (B, T - 1)


def right(logits: Any, tokens: Any, dim: int = -1) -> Any:
    return softmax(logits[:, :-1], dim).gather(2, tokens[:, 1:, None])


LOSS = {
    "not-shifted": of_loss(lambda z, t: F.cross_entropy(z.transpose(1, 2), t)),
    "shifted-backwards": of_loss(lambda z, t: F.cross_entropy(z[:, 1:].transpose(1, 2), t[:, :-1])),
    "shifted-by-two": of_loss(lambda z, t: F.cross_entropy(z[:, :-2].transpose(1, 2), t[:, 2:])),
    "rolled": of_loss(lambda z, t: F.cross_entropy(z.transpose(1, 2), torch.cat([t[:, 1:], t[:, :1]], dim=1))),
    "shifted-across-texts": of_loss(lambda z, t: F.cross_entropy(z.reshape(-1, z.size(-1))[:-1], t.reshape(-1)[1:])),
    "last-position-loss": of_loss(lambda z, t: F.cross_entropy(z[:, -2], t[:, -1])),
    "sum": of_loss(lambda z, t: surprises(z, t).sum()),
    "mean-over-batch": of_loss(lambda z, t: surprises(z, t).sum(1).mean()),
    "mean-over-positions": of_loss(lambda z, t: surprises(z, t).sum(0).mean()),
    "no-mean": of_loss(surprises),
    "softmax-before": of_loss(lambda z, t: my_loss(softmax(z), t)),
    "softmax-over-positions": of_loss(lambda z, t: -right(z, t, 1).log().mean()),
    "axes-mixed": of_loss(
        lambda z, t: F.cross_entropy(z[:, :-1].transpose(1, 2).reshape(-1, z.size(-1)), t[:, 1:].reshape(-1))
    ),
    "no-minus": of_loss(lambda z, t: right(z, t).log().mean()),
    "no-logarithm": of_loss(lambda z, t: (1 - right(z, t)).mean()),
    "logarithm-of-mean": of_loss(lambda z, t: -right(z, t).mean().log()),
    "bits": of_loss(lambda z, t: -right(z, t).log2().mean()),
    "perplexity": of_loss(lambda z, t: surprises(z, t).mean().exp()),
}


def keep_k(z: Any, k: Any) -> Any:
    kept = torch.full_like(z, -INF)
    best = z.argsort(dim=-1, descending=True)[:, :k]
    return kept.scatter(-1, best, z.gather(-1, best))


def keep_p(z: Any, p: Any) -> Any:
    out = torch.full_like(z, -INF)
    for row, scores in enumerate(z):
        reached = 0.0
        for token in scores.argsort(descending=True):
            out[row, token] = scores[token]
            reached += softmax(scores)[token].item()
            if reached >= p:
                break
    return out


def sampler(
    heat: Callable = lambda z, t: z / t,
    top_k: Callable = keep_k,
    top_p: Callable = keep_p,
    end: Callable = lambda z, t, whole: softmax(z),
    p_first: bool = False,
) -> Callable:
    k_of, p_of = top_k, top_p

    def my_sampling(logits, temperature=1.0, top_k=None, top_p=None):
        z = whole = heat(logits, temperature)
        if top_k is not None:
            z = k_of(z, top_k)
        if top_p is not None:
            z = torch.where(p_of(whole, top_p) == -INF, -INF, z) if p_first else p_of(z, top_p)
        return end(z, temperature, whole)

    return my_sampling


def p_short(z: Any, p: Any) -> Any:
    """Top-p without the token that crosses p, but with at least one."""
    values, order = torch.sort(z, descending=True)
    away = softmax(values).cumsum(-1) >= p
    away[:, 0] = False
    return z.masked_fill(torch.zeros_like(away).scatter(-1, order, away), -INF)


def p_unsorted(z: Any, p: Any) -> Any:
    chances = softmax(z)
    return z.masked_fill(chances.cumsum(-1) - chances >= p, -INF)


def p_misplaced(z: Any, p: Any) -> Any:
    values = softmax(z).sort(descending=True).values
    return z.masked_fill(values.cumsum(-1) - values >= p, -INF)


def p_ascending(z: Any, p: Any) -> Any:
    values, order = softmax(z).sort()
    return z.masked_fill((values.cumsum(-1) - values >= p).gather(-1, order.argsort(-1)), -INF)


SAMPLING = {
    "temperature-multiplied": sampler(lambda z, t: z * t),
    "temperature-ignored": sampler(lambda z, t: z),
    "temperature-last": sampler(lambda z, t: z, end=lambda z, t, w: softmax(z / t)),
    "temperature-after-softmax": sampler(lambda z, t: z, end=lambda z, t, w: softmax(z) / t),
    "top-k-one-less": sampler(top_k=lambda z, k: z.masked_fill(z <= z.sort().values[:, -k, None], -INF)),
    "top-k-one-more": sampler(top_k=lambda z, k: keep_k(z, k + 1)),
    "top-k-ignored": sampler(top_k=lambda z, k: z),
    "top-k-removes-best": sampler(top_k=lambda z, k: z.scatter(-1, z.topk(k).indices, -INF)),
    "top-k-keeps-worst": sampler(top_k=lambda z, k: -keep_k(-z, k).nan_to_num(neginf=INF)),
    "filter-with-zero": sampler(top_k=lambda z, k: torch.where(keep_k(z, k) == -INF, 0.0, z)),
    "top-p-ignored": sampler(top_p=lambda z, p: z),
    "top-p-without-crossing": sampler(top_p=p_short),
    "top-p-unsorted": sampler(top_p=p_unsorted),
    "top-p-not-mapped-back": sampler(top_p=p_misplaced),
    "top-p-ascending": sampler(top_p=p_ascending),
    "top-p-complement": sampler(top_p=lambda z, p: keep_p(z, 1 - p)),
    "top-p-before-top-k": sampler(p_first=True),
    "not-renormalised": sampler(end=lambda z, t, w: softmax(w) * (z > -INF)),
    "softmax-twice": sampler(end=lambda z, t, w: softmax(softmax(z))),
    "softmax-over-texts": sampler(end=lambda z, t, w: softmax(z, 0)),
    "logits-returned": sampler(end=lambda z, t, w: z),
}

RIGHT: dict[str, Any] = {
    "attention": attention(),
    "attention with biases": attention(bias=True),
    "multi-head attention": MyMultiHead,
    "feed-forward": MyFeedForward,
    "feed-forward with the tanh approximation": TanhFeedForward,
    "block": MyBlock,
    "block with the tanh approximation": block(mlp=TanhFeedForward),
    "GPT with a tied head": gpt(),
    "GPT with its own head": gpt(tied=False),
    "GPT without a head layer": gpt(end=lambda m, x: F.linear(m.norm(x), m.tokens.weight)),
    "GPT with the tanh approximation": gpt(inside=block(mlp=TanhFeedForward)),
    "loss": my_loss,
    "sampling": sampler(),
}
WRONG = {
    "attention": ATTENTION,
    "multi-head attention": MULTI_HEAD,
    "feed-forward": FEEDFORWARD,
    "block": BLOCK,
    "GPT": GPT,
    "loss": LOSS,
    "sampling": SAMPLING,
}
