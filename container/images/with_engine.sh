#!/usr/bin/env bash
# Runs a command with a container engine and the images that the docker tests need.
#
#   with_engine.sh COMMAND [ARGUMENT...]
#
# An engine that answers is used as it is. Otherwise one is started (root; Debian's docker.io and debootstrap are
# installed when missing) with all its data in a temporary directory, and stopped and removed in the end. Images that
# are missing are made from this machine's Debian mirror and this checkout. The first time takes three to five minutes.
set -euo pipefail

images="$(cd "$(dirname "$0")" && pwd)"
image="${LLENVS_TEST_IMAGE:-llenvs-env:latest}"
export LLENVS_TEST_IMAGE="$image" LLENVS_REQUIRE_ENGINE=1

missing=()
command -v docker >/dev/null && command -v dockerd >/dev/null || missing+=(docker.io)
command -v debootstrap >/dev/null || missing+=(debootstrap)
if ! docker info >/dev/null 2>&1 && ((${#missing[@]})); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if ! docker info >/dev/null 2>&1; then
  place="$(mktemp -d)"
  export DOCKER_HOST="unix://$place/docker.sock"
  start() {
    dockerd --data-root "$place/data" --exec-root "$place/exec" --pidfile "$place/pid" --host "$DOCKER_HOST" "$@" \
      >>"$place/log" 2>&1 &
    engine=$!
    for _ in $(seq 100); do
      docker info >/dev/null 2>&1 && return 0
      kill -0 "$engine" 2>/dev/null || return 1
      sleep 0.3
    done
    return 1
  }
  stop() {
    kill "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
    rm -rf "$place" || true
  }
  trap stop EXIT
  # a machine may lack what networks of containers need; all but two of the tests do without
  start || start --iptables=false || { tail -n 30 "$place/log" >&2; echo "dockerd does not start" >&2; exit 1; }
fi

has() { docker image inspect "$1" >/dev/null 2>&1; }
has llenvs-system:debian || "$images/make_base_image.sh" llenvs-system:debian
has "$image" || "$images/build.sh" reasoning-gym "$image"

"$@"
