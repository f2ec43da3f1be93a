#!/bin/sh
# Usage: release.sh VERSION
set -e
version=$1
[ -n "$version" ] || { echo "usage: release.sh VERSION" >&2; exit 2; }
mkdir -p dist
cp notes.txt "dist/notes-$version.txt"
echo "$version" > dist/LATEST
