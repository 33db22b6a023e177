"""The sentence that the demo's page opens with."""

from types import SimpleNamespace

import pytest

from kotha.api.demo_page import _lead


@pytest.mark.parametrize(
    ("tokens", "read"), [(170_400, "170 times"), (2_500, "2.5 times"), (400, "40% of"), (1_234_000, "1,234 times")]
)
def test_it_says_how_often_the_texts_were_read(tokens: int, read: str) -> None:
    demo = SimpleNamespace(
        record=SimpleNamespace(summary={"tokens": tokens, "seconds": 60.0}),
        score=SimpleNamespace(
            bits_per_byte=1.0, baselines=SimpleNamespace(rows=[SimpleNamespace(name="unigram", bits_per_byte=2.0)])
        ),
        told=SimpleNamespace(share=0.9),
        shards=SimpleNamespace(train_tokens=1_000, train_documents=10),
    )
    assert f"({read} the 10 Bangla texts" in str(_lead(demo))
