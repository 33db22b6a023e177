"""The numbers in a forward pass over HTTP: windows of matrices and the arithmetic of cells match the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.inside.small_models import TEXT
from tests.loopback import http
from tests.server.conftest import Address, ask, refused
from tests.server.test_inside import IMAGES, library, png

from kotha.api.model_input import read_input
from kotha.api.options import InputOptions
from kotha.inside.embeddings import Embeddings, nearest_words, word_map
from kotha.inside.numbers.ledger import Ledger, keep
from kotha.server.settings import Limits

READ: dict[str, dict[str, Any]] = {
    "gpt": {"text": TEXT},
    "bert": {"text": "নদীর [MASK] গ্রাম"},
    "seq2seq": {"text": TEXT, "target": "নদীর ধারে"},
    "vit": {},
}


def read(model: str) -> dict[str, Any]:
    return READ[model] or {"image": png(IMAGES[0])}


def ledger(house: Address, model: str) -> Ledger:
    bundle = library(house, model).bundle
    asked = (
        InputOptions(**READ[model])
        if READ[model]
        else InputOptions(image=IMAGES[0][None].astype(np.float32) / 127.5 - 1)
    )
    return keep(bundle.model, read_input(bundle, asked))


def window(house: Address, **asked: Any) -> np.ndarray[Any, Any]:
    response = http.post(f"{house.url}/api/inside/values", json=asked, timeout=60)
    assert response.status_code == 200, response.text
    shape = int(response.headers["x-rows"]), int(response.headers["x-columns"])
    return np.frombuffer(response.content, dtype="<f4").reshape(shape)


@pytest.mark.parametrize("model", READ)
def test_a_pass_and_its_windows_are_the_librarys_own(house: Address, model: str) -> None:
    result, kept = ask(house, "inside/pass", model=model, **read(model)), ledger(house, model)
    assert [each["site"] for each in result["sites"]] == list(kept.entries)
    for site in result["sites"]:
        entry = kept[site["site"]]
        assert tuple(site["shape"]) == entry.shape and site["heads"] == list(entry.heads)
        head = entry.heads[-1] if entry.heads else None
        expected = entry.matrix(head).float().numpy()
        if expected.size <= 30_000:
            np.testing.assert_allclose(
                window(house, model=model, site=entry.site, head=head, **read(model)), expected, atol=1e-6
            )
    for column in result["columns"]:
        lengths = kept[column["site"]].values.double().norm(dim=-1).tolist()
        assert column["lengths"] == pytest.approx(lengths, rel=1e-5)
        assert (column["changes"] is None) == (column["layer"] is None)
    spoken = [column for column in result["columns"] if column["cells"] is not None]
    assert bool(spoken) == (model != "vit")
    assert (
        result["answers"][0]["best"][0]["probability"]
        == pytest.approx(float(kept["probabilities"].values[-1].max()), abs=1e-5)
        or model == "bert"
    )


def test_the_loss_of_the_last_column_is_that_of_the_text(house: Address) -> None:
    result = ask(house, "inside/pass", model="gpt", text=TEXT)
    surprises = [cell["surprise_nats"] for cell in result["columns"][-1]["cells"]]
    assert surprises[-1] is None
    silent = ask(house, "inside/silence", model="gpt", text=TEXT, heads=["blocks.0.attention.0"])
    assert surprises[:-1] == pytest.approx(silent["whole"]["nats"], abs=1e-4)
    without = ask(house, "inside/pass", model="gpt", text=TEXT, silenced=["blocks.0.attention.0"])
    surprises = [cell["surprise_nats"] for cell in without["columns"][-1]["cells"]]
    assert surprises[:-1] == pytest.approx(silent["without"]["nats"], abs=1e-4)


def test_a_window_has_the_requested_rows_and_columns(house: Address) -> None:
    whole = window(house, model="gpt", site="blocks.1.attention.weights", head=2, text=TEXT)
    part = window(
        house, model="gpt", site="blocks.1.attention.weights", head=2, text=TEXT, row=2, rows=3, column=1, columns=2
    )
    assert (part == whole[2:5, 1:3]).all()
    hidden = window(house, model="gpt", site="blocks.1.attention.masked_scores", text=TEXT, row=0, rows=1)
    assert np.isneginf(hidden[0, 1:]).all()
    assert "unknown site" in refused(house, "inside/values", model="gpt", site="blocks.9", text=TEXT)
    assert "no head 9" in refused(
        house, "inside/values", model="gpt", site="blocks.0.attention.scores", head=9, text=TEXT
    )


def test_a_window_of_too_many_numbers_is_rejected(families: Path, serve: Any) -> None:
    at = serve(families / "gpt", limits=Limits(numbers=100))
    asked = {"model": "gpt", "site": "tokens.weight", "text": TEXT}
    response = http.post(f"{at.url}/api/inside/values", json=asked, timeout=60)
    assert response.status_code == 400 and "fewer rows" in response.json()["error"]["message"]
    response = http.post(f"{at.url}/api/inside/values", json={**asked, "rows": 2}, timeout=60)
    assert response.status_code == 200 and len(response.content) == 2 * 16 * 4


@pytest.mark.parametrize("model", READ)
def test_a_recipe_adds_up(house: Address, model: str) -> None:
    kept = ledger(house, model)
    for entry in list(kept.entries.values())[::7]:
        head = entry.heads[0] if entry.heads else None
        row = entry.shape[0] - 1
        result = ask(house, "inside/recipe", model=model, site=entry.site, head=head, row=row, column=1, **read(model))
        assert result["value"] == pytest.approx(float(entry.matrix(head)[row, 1]), abs=1e-5) or result["value"] is None
        if entry.operation is None:
            assert not result["lines"]
        elif result["value"] is not None:
            assert result["lines"][-1]["value"] == pytest.approx(result["value"], rel=1e-4, abs=1e-4)
        for line in result["lines"]:
            if line["kind"] == "sum":
                terms = sum(float(np.prod(term)) for term in line["terms"])
                assert terms + (line["more"] or {"value": 0})["value"] == pytest.approx(line["value"], abs=1e-9)


def test_a_long_line_reports_its_largest_terms(house: Address) -> None:
    result = ask(house, "inside/recipe", model="gpt", site="probabilities", row=0, column=5, text=TEXT)
    (line,) = [each for each in result["lines"] if each["gives"] == "total"]
    vocabulary = ledger(house, "gpt")["logits"].shape[1]
    answer = sum(float(np.exp(a - b)) for a, b in line["terms"])
    assert len(line["terms"]) + (line["more"] or {"count": 0})["count"] == vocabulary
    assert answer + (line["more"] or {"value": 0})["value"] == pytest.approx(line["value"], rel=1e-9)
    assert "rows" in refused(house, "inside/recipe", model="gpt", site="logits", row=99, column=0, text=TEXT)


def test_a_map_of_words_and_their_neighbours_are_the_librarys_own(house: Address) -> None:
    table = Embeddings(library(house, "gpt").bundle.model, library(house, "gpt").bundle.tokenizer)
    word = table.texts[table.frequent_words(3)[2]].strip()
    result = ask(house, "inside/embeddings", model="gpt", word=word, count=30, neighbours=4)
    near = nearest_words(table, table.find(word), 4)
    assert [each["text"] for each in result["word"]["neighbours"]] == [each.text for each in near]
    assert [each["cosine"] for each in result["word"]["neighbours"]] == pytest.approx(
        [each.cosine for each in near], abs=1e-6
    )
    laid = word_map(table, [table.find(word), *(table.find(each.text) for each in near)], 30)
    assert result["shares"] == pytest.approx(laid.shares, abs=1e-6)
    assert [(dot["text"], dot["chosen"]) for dot in result["dots"]] == [(dot.text, dot.chosen) for dot in laid.dots]
    assert ask(house, "inside/embeddings", model="bert")["word"] is None
    assert "no token embeddings" in refused(house, "inside/embeddings", model="vit")


def test_a_text_longer_than_the_context_is_remarked_on(families: Path, serve: Any) -> None:
    result = ask(serve(families / "gpt"), "inside/pass", model="gpt", text=TEXT * 8)
    [remark] = result["remarks"]
    assert remark["template"] == "the text has {n} tokens; the model sees only the last {most:,} (its context length)"
    assert (
        remark["values"]["most"] == len(result["lines"]["tokens"]) and "the model sees only the last" in remark["text"]
    )
