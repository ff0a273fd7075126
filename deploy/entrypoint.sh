#!/bin/sh
# The root file system is read-only, and the compiler's cache must be writable: start from the image's.
if ! { mkdir -p "$NUMBA_CACHE_DIR" && cp -R /opt/colonnade/kernels/. "$NUMBA_CACHE_DIR"; } 2>/dev/null; then
    echo "colonnade: /tmp cannot be written; give the container a tmpfs there (--tmpfs /tmp)" >&2
    exit 3
fi
exec colonnade "$@"
