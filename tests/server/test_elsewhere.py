"""llama.cpp's server generates the same text as Kotha's server."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.server.conftest import started

from kotha.artifacts import model_folder as bundle
from kotha.export.targets import export
from kotha.server.app import make_app
from kotha.server.settings import ServeSettings
from kotha.storage import bundled

pytest.importorskip("gguf", reason="GGUF files are written by the gguf library")
pytest.importorskip("xllamacpp", reason="llama.cpp's own server comes with the xllamacpp wheel")
openai = pytest.importorskip("openai", reason="both are asked by OpenAI's client")

# llama-server as a library, with the same routes as the program. It exits when stdin is closed, and prints its address.
LLAMA_SERVER = """
import sys, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.port, settings.n_parallel, settings.cpuparams.n_threads = sys.argv[1], 0, 1, 1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("gguf") / "box.gguf"
    assert export(bundle.load(bundled.FOLDER), "gguf", file, weights="f32", lines=["নদীর ধারে"]).passed
    command = [sys.executable, "-c", LLAMA_SERVER, str(file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        yield server.stdout.readline().strip()
        server.stdin.close()
        assert server.wait(60) == 0


def test_llama_server_writes_the_same_text(llama_server: str) -> None:
    """This uses the bundled model, because an untrained model does not generate real text."""

    def written(url: str, prompt: str) -> str:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        plainly = {"repetition_penalty": 1.0}  # llama.cpp's default; Kotha's is 1.1
        made = client.completions.create(model="box", prompt=prompt, max_tokens=24, temperature=0, extra_body=plainly)
        return str(made.choices[0].text)

    for url in started(make_app([bundled.NAME], ServeSettings(), device="cpu")):
        for prompt in ("নদীর ধারে", "আমি", "একদিন সকালে বাবা"):
            assert len(written(url, prompt)) > 20
            assert written(url, prompt) == written(llama_server, prompt)
