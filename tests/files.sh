#!/bin/bash
# Lists the files of the tree that the current directory is in, separated by NUL: those that git tracks or would track;
# in a tree without git (an unpacked archive) all but the built ones.
set -u
if top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$(realpath "$top")" = "$(realpath .)" ]; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -path ./build -prune -o -name node_modules -prune -o -type f -printf '%P\0'
fi | while IFS= read -r -d '' f; do
	[ ! -f "$f" ] || printf '%s\0' "$f"
done
