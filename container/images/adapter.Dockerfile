# The server with one adapter, on top of base.Dockerfile.
#
# The context holds wheels/ with the adapter and all that it needs (build.sh collects them).
#
#   BASE      the image that base.Dockerfile made
#   ADAPTER   the adapter's distribution, e.g. llenvs-reasoning-gym
ARG BASE=llenvs-base:latest

FROM ${BASE} AS build
USER root
COPY wheels /wheels
ARG ADAPTER
# compiled now, since the root file system of a running container is read-only
RUN /opt/llenvs/bin/pip install --no-index --find-links /wheels --no-cache-dir --compile "${ADAPTER}"

FROM ${BASE}
COPY --from=build /opt/llenvs /opt/llenvs
