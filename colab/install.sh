#!/usr/bin/env bash
# Installs the project into a notebook's runtime. The runtime's jax stays: it belongs to the driver of its TPU or GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
python -m pip show -q ripzero 2> /dev/null && exit
python -m pip install -q --constraint <(python -m pip freeze | grep -iE '^(jax|jaxlib|libtpu|jax-cuda.*)==') -e '.[plots,play]'
