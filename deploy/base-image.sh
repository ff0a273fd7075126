#!/bin/sh
# Make the images' base from Debian packages, for sites without a registry of images:
#
#     sudo deploy/base-image.sh [NAME] [MIRROR]      default: colonnade-base, Debian's own mirror
#     BASE_IMAGE=colonnade-base docker compose build
#
# Needs debootstrap, root and a running Docker engine. CA certificates of the site, as in
# /usr/local/share/ca-certificates/*.crt, become part of the base.
set -eu
name=${1:-colonnade-base}
mirror=${2:-http://deb.debian.org/debian}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root" "$mirror"
for certificate in /usr/local/share/ca-certificates/*.crt; do
    [ -e "$certificate" ] && cp "$certificate" "$root/usr/local/share/ca-certificates/"
done
chroot "$root" update-ca-certificates >/dev/null
# What only installing packages needs.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/usr/share/doc/* \
    "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/usr/share/info/*
find "$root/usr/lib/python3" "$root/usr/lib/python3.11" -depth -name __pycache__ -exec rm -r {} +
tar -C "$root" -c . | docker import --change 'CMD ["python3"]' - "$name"
