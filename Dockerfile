# kotha serve in a container, on CPUs, as a user who may do nothing else:
#
#   docker build -t kotha .
#   python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > key && chmod 444 key
#   docker run --init --read-only --tmpfs /tmp:exec --cap-drop ALL -p 127.0.0.1:8000:8000 \
#       -v "$PWD/key:/run/secrets/kotha-key:ro" -v "$PWD/run:/models/run:ro" -v kotha-jobs:/jobs kotha /models/run
#
# What follows the image's name are models (left out: the one in the box) and options. docs/serving.md says more.

FROM debian:stable-slim AS builder
# Another index, where the one that pip knows has no torch for CPUs alone.
ARG PIP_EXTRA_INDEX_URL
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/build && python3 -m venv /opt/kotha
WORKDIR /source
COPY constraints.txt ./
# First what changes seldom, so that a change of ours does not bring torch anew.
RUN /opt/build/bin/pip install --no-cache-dir --constraint constraints.txt hatchling \
 && /opt/kotha/bin/pip install --no-cache-dir --constraint constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .
RUN /opt/kotha/bin/pip install --no-cache-dir --constraint constraints.txt "$(echo /wheel/kotha-*.whl)[serve]" \
 && /opt/kotha/bin/pip uninstall -y pip

FROM debian:stable-slim
# With a C compiler: the step that writes is compiled where it runs, for that processor.
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin kotha \
 && install --directory --owner=kotha --group=kotha --mode=0700 /jobs
COPY --from=builder /opt/kotha /opt/kotha
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER kotha
WORKDIR /tmp
VOLUME ["/jobs"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/opt/kotha/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
STOPSIGNAL SIGTERM
# Reached from outside the container, so it needs a key: a file that is mounted, in no layer and no environment.
ENTRYPOINT ["/opt/kotha/bin/kotha", "serve", "--host", "0.0.0.0", "--key-file", "/run/secrets/kotha-key", "--jobs", "/jobs"]
