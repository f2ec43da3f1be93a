# Bowerbird in a container: an ordinary user, git, ripgrep (in the Python package), bubblewrap.
# Build and start with compose.yaml beside this file: docker compose up --build

FROM node:22-bookworm-slim AS node

FROM python:3.11-slim-bookworm AS build
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
WORKDIR /src
COPY locks/base.txt locks/base.txt
RUN python -m venv /opt/bowerbird-env \
 && /opt/bowerbird-env/bin/pip install --no-cache-dir --require-hashes -r locks/base.txt
COPY . .
# The wheel's build makes the pages, too.
RUN /opt/bowerbird-env/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/bowerbird-env/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home bowerbird \
 && install -d -o bowerbird -g bowerbird /config /data /workspace
COPY --from=build /opt/bowerbird-env /opt/bowerbird-env
ENV PATH=/opt/bowerbird-env/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    BOWERBIRD_AGENT__DATA_DIR=/data \
    BOWERBIRD_SERVER__HOST=0.0.0.0 \
    BOWERBIRD_SERVER__AUTH=token \
    WORKSPACE_DIR=/workspace
USER bowerbird
WORKDIR /config
VOLUME ["/data", "/workspace"]
EXPOSE 8000
# Asks the running server; `docker ps` shows the answer.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/live', timeout=4)"]
# tini hands SIGTERM on and buries the children of commands.
ENTRYPOINT ["tini", "--", "bowerbird"]
CMD ["serve"]
