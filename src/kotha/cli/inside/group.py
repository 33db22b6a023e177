"""The commands of ``kotha inside``, loaded when they are called."""

from cyclopts import App

# Name of the command, where its function is, and what help says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "worksheet": ("worksheet:worksheet", "One attention head as arithmetic on paper; the workshop's, or your model's."),
    "exercise": ("tutor:exercise", "A tutor in two languages: questions, hints, recognised mistakes, points."),
    "score": ("tutor:score", "Score files of a class, marked anew, in one table."),
    "flow": ("views:flow", "A text through the whole model, with shapes and figures at every station."),
    "trace": ("views:trace", "What was recorded at every named place, as a table or as numbers."),
    "attention": ("views:attention", "Who looks at whom: a page of every head, layer by layer."),
    "lens": ("views:lens", "What each layer would say next."),
    "heads": ("heads:heads", "What each head does, how much it matters, and which ones overlap."),
    "prune": ("heads:prune", "Remove heads from the weights, and measure what that costs and saves."),
    "embeddings": ("embeddings:embeddings", "Neighbours of a word, a map of words, and what a width costs."),
}

app = App(name="inside", help="Look into a model: every number, every head.", help_format="plaintext")
for order, (name, (target, about)) in enumerate(COMMANDS.items()):
    app.command(f"kotha.cli.inside.{target}", name=name, help=about, sort_key=order)
