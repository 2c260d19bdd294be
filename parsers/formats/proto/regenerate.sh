#!/usr/bin/env bash
# Rebuilds the *_pb2 modules beside the .proto files, those of pprof too.
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
cp -r "$here" "$here/../pprof" "$work/root/tpuprof/parsers/formats"
cd "$work/root"
"$work/venv/bin/python" -m grpc_tools.protoc -I. --python_out=. --pyi_out=. tpuprof/parsers/formats/*/*.proto
# Offsets of messages in their file serve CopyToProto of the pure-Python runtime alone, which nothing here calls.
sed -i '/\._serialized_\(start\|end\)=/d' tpuprof/parsers/formats/*/*_pb2.py
for folder in proto pprof; do
    cp tpuprof/parsers/formats/$folder/*_pb2.py* "$here/../$folder/"
done
