#!/bin/bash
# Prints the files of the tree around the current directory, with NUL between them: those that git tracks or would track.
# In a tree without git (an unpacked archive) it prints all but the build.
set -u
if top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$(realpath "$top")" = "$(realpath .)" ]; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -path ./build -prune -o -name node_modules -prune -o -type f -printf '%P\0'
fi | while IFS= read -r -d '' f; do
	[ ! -f "$f" ] || printf '%s\0' "$f"
done
