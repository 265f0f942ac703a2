# The server of isolated environments, without an adapter.
#
# The context holds wheels/ with llenvs-container and all that it needs (build.sh collects them), so that the build
# needs no network.
#
#   SYSTEM   a Debian or Ubuntu with python3 and python3-venv: one that make_base_image.sh made, or python:3.12-slim
ARG SYSTEM=llenvs-system:debian

FROM ${SYSTEM} AS build
COPY wheels /wheels
RUN python3 -m venv /opt/llenvs \
  && /opt/llenvs/bin/pip install --no-index --find-links /wheels --no-cache-dir llenvs-container

FROM ${SYSTEM}
RUN useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin llenvs
COPY --from=build /opt/llenvs /opt/llenvs
ENV PATH=/opt/llenvs/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LANG=C.UTF-8 \
    HOME=/tmp
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["llenvs-container"]
CMD ["--help"]
