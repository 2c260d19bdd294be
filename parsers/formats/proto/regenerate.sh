#!/usr/bin/env bash
# Rebuilds the *_pb2 modules beside the .proto files.
#
# grpcio-tools 1.62 carries protoc 25, the last one whose output runs on every protobuf from 4.25 on: newer ones write a
# check into each module that refuses any older runtime, and this package must not move a training job's protobuf.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3.11}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet 'grpcio-tools==1.62.3' 'setuptools<81'
# The import path becomes part of the descriptor's file name, so it is the installed one.
mkdir -p "$work/root/tpuprof/parsers/formats"
cp -r "$here" "$work/root/tpuprof/parsers/formats/proto"
cd "$work/root"
"$work/venv/bin/python" -m grpc_tools.protoc -I. --python_out=. --pyi_out=. tpuprof/parsers/formats/proto/*.proto
cp tpuprof/parsers/formats/proto/*_pb2.py tpuprof/parsers/formats/proto/*_pb2.pyi "$here/"
