# Turngate with git, to run the gates of a project: docker run --rm -v "$PWD:/project" turngate gates run --trust
FROM python:3.13-slim
# No versions of packages: Debian removes a version when the next one comes.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends git make \
 && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml README.md LICENSE CHANGELOG.md /src/
COPY examples/history /src/examples/history
COPY man /src/man
COPY src /src/src
RUN pip install --no-cache-dir /src && rm -rf /src \
 && git config --system --add safe.directory /project
WORKDIR /project
ENTRYPOINT ["turngate"]
CMD ["--help"]
