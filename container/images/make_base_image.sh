#!/usr/bin/env bash
# Makes a Debian image with Python from the Debian mirror of this machine, for engines without a registry to pull from.
# Needs root, debootstrap and a running engine. A minute or two.
#
#   make_base_image.sh [IMAGE]          IMAGE: its name, llenvs-system:debian by default
#
# Environment: ENGINE (docker), SUITE (this machine's, e.g. bookworm), MIRROR (the one this machine's apt uses).
set -euo pipefail

image="${1:-llenvs-system:debian}"
engine="${ENGINE:-docker}"

for needed in debootstrap "$engine"; do
  command -v "$needed" >/dev/null || { echo "$needed is not installed; run: apt-get install debootstrap docker.io" >&2; exit 1; }
done
[[ $EUID -eq 0 ]] || { echo "debootstrap needs root" >&2; exit 1; }

suite="${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}"
mirror="${MIRROR:-$(
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
    awk -v suite="$suite" '$2 == suite && !seen++ { print $1 }'
)}"
[[ -n $mirror ]] || { echo "apt knows no mirror of $suite; give one as MIRROR" >&2; exit 1; }

root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=python3,python3-venv,libgomp1 "$suite" "$root/system" "$mirror" \
  >"$root/log" 2>&1 || { tail -n 30 "$root/log" >&2; exit 1; }

# what a container never reads
rm -rf "$root"/system/var/cache/apt/* "$root"/system/var/lib/apt/lists/* "$root"/system/var/log/* \
  "$root"/system/usr/share/{doc,man,locale,info}/*

tar -C "$root/system" --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -c . |
  "$engine" import --change 'CMD ["python3"]' - "$image" >/dev/null
echo "$image"
