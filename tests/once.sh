#!/bin/bash
# usage: once.sh DIR [SOURCE...] -- COMMAND...
# Makes a directory once: COMMAND fills DIR, which is empty and its last argument. Where several ask at once, the first makes
# it and the others wait. It is made again if a SOURCE (a file, or all below a folder) is newer. COMMAND prints to stderr only.
set -eu
dir=$(realpath -m "$1")
shift
sources=()
while [ "$1" != -- ]; do
	sources+=("$1")
	shift
done
shift
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ -e "$dir/.ready" ] && { [ ${#sources[@]} = 0 ] || [ -z "$(find "${sources[@]}" -newer "$dir/.ready" -print -quit)" ]; }; then
	exit 0
fi
rm -rf "$dir"
mkdir "$dir"
begun=$(mktemp) # a source that changes meanwhile is newer
trap 'rm -f "$begun"' EXIT
"$@" "$dir" >&2 9>&-
touch -r "$begun" "$dir/.ready"
