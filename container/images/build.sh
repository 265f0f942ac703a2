#!/usr/bin/env bash
# Builds the image of one adapter from this checkout.
#
#   build.sh ADAPTER [IMAGE]     e.g. build.sh reasoning-gym llenvs-env:latest; IMAGE: llenvs-ADAPTER:latest by default
#
# Environment: ENGINE (docker), SYSTEM (llenvs-system:debian, see make_base_image.sh), BASE (llenvs-base:latest).
# Needs uv, and a Python of the image's version on this machine (uv finds it), to collect the wheels.
set -euo pipefail

adapter="${1:?give the name of a folder in packages/}"
image="${2:-llenvs-$adapter:latest}"
engine="${ENGINE:-docker}"
system="${SYSTEM:-llenvs-system:debian}"
base="${BASE:-llenvs-base:latest}"
images="$(cd "$(dirname "$0")" && pwd)"
checkout="$(cd "$images/../.." && pwd)"
[[ -f $checkout/packages/$adapter/pyproject.toml ]] || { echo "there is no packages/$adapter" >&2; exit 1; }

context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT
# the only folder that a build sees; wheels of this adapter and no others
mkdir "$context/wheels"

python="$("$engine" run --rm --network none --entrypoint python3 "$system" \
  -c 'import sys; print("%d.%d" % sys.version_info[:2])')"

cd "$checkout"
ours=(core container "packages/$adapter")
for part in "${ours[@]}"; do
  uv build --quiet --wheel --out-dir "$context/wheels" "$part"
done
# pinned by the workspace's settings (exclude-newer), so that two builds hold the same releases
uv pip compile --quiet --no-header --no-annotate --python-version "$python" \
  --no-emit-package llenvs-core --no-emit-package llenvs-container --no-emit-package "llenvs-$adapter" \
  --output-file "$context/requirements.txt" container/pyproject.toml "packages/$adapter/pyproject.toml" >/dev/null
uvx --quiet --python "$python" pip wheel -qq --disable-pip-version-check --no-deps \
  --wheel-dir "$context/wheels" --requirement "$context/requirements.txt"

# the classic builder, which every engine has; it needs no network, and gets none
export DOCKER_BUILDKIT=0
build() {
  "$engine" build --network none "$@" "$context" >"$context.log" 2>&1 || { tail -n 40 "$context.log" >&2; exit 1; }
}
trap 'rm -rf "$context" "$context.log"' EXIT
build --build-arg "SYSTEM=$system" --tag "$base" --file "$images/base.Dockerfile"
build --build-arg "BASE=$base" --build-arg "ADAPTER=llenvs-$adapter" --tag "$image" --file "$images/adapter.Dockerfile"
echo "$image"
