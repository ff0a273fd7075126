#!/bin/sh
# Inside a build: `install.sh party` makes the environment of a role with what it requires, and
# `install.sh` adds the package from the sources that are there.
set -eu
home=/opt/colonnade
packages=$home/lib/python3.*/site-packages
install="tools/bin/pip --python $home/bin/python install --quiet --no-index --no-compile"
if [ $# = 1 ]; then
    python3 -m venv --without-pip $home
    $install --find-links wheels --require-hashes --requirement "requirements-$1.txt"
    find $home -depth -type d -name tests -exec rm -r {} +  # that packages bring along
    changed=$home
else
    tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
    $install --no-deps dist/colonnade-*.whl
    changed=$(echo $packages/colonnade)
fi
# Whole seconds, which layers keep: compiled kernels are valid only for the time of their source.
find $changed -exec touch -h -d 2020-01-01T00:00:00Z {} +
$home/bin/python -m compileall -q -j 0 $changed
