"""Unmodified third-party clients: simonw's ``llm`` and LangChain's OpenAI classes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.conftest import Address

PROMPT = "নদীর ধারে"


def test_llm_completes_and_chats(address: Address, tmp_path: Path) -> None:
    pytest.importorskip("llm", reason="simonw's client")
    models = [
        {"model_id": "writer", "model_name": "plain", "completion": True},
        {"model_id": "talker", "model_name": "taught"},
    ]
    lines = "".join(
        f"- model_id: {each['model_id']}\n  model_name: {each['model_name']}\n  api_base: {address.url}/v1\n"
        f"  completion: {str(bool(each.get('completion'))).lower()}\n"
        for each in models
    )
    (tmp_path / "extra-openai-models.yaml").write_text(lines, encoding="utf-8")
    environment = {**os.environ, "LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": "none", "PYTHONUTF8": "1"}
    program = str(Path(sys.executable).with_name("llm"))
    for model in ("writer", "talker"):
        for streams in (["--no-stream"], []):
            command = [program, "-m", model, *streams, "-o", "max_tokens", "12", "-o", "seed", "3", PROMPT]
            done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
            assert done.returncode == 0 and done.stdout.decode().strip(), done.stderr.decode()[-2000:]


def test_langchain_completes_chats_and_embeds(address: Address) -> None:
    chain = pytest.importorskip("langchain_openai", reason="LangChain's classes")
    where = {"base_url": f"{address.url}/v1", "api_key": "none"}
    writer = chain.OpenAI(model="plain", max_tokens=12, seed=3, temperature=0.8, **where)
    whole = writer.invoke(PROMPT)
    assert whole and "".join(writer.stream(PROMPT)) == whole
    talker = chain.ChatOpenAI(model="taught", max_tokens=12, seed=3, **where)
    result = talker.invoke([("system", "সংক্ষেপে বলো।"), ("human", PROMPT)])
    parts = [part.content for part in talker.stream([("system", "সংক্ষেপে বলো।"), ("human", PROMPT)])]
    assert result.content == "".join(parts) and result.usage_metadata["output_tokens"] <= 12
    embedder = chain.OpenAIEmbeddings(model="plain", check_embedding_ctx_length=False, **where)
    vectors = embedder.embed_documents(["নদী", "গ্রাম"])
    assert len(vectors) == 2 and vectors[0] == pytest.approx(embedder.embed_query("নদী"), abs=1e-6)
