#!/bin/bash
# usage: commit.sh [TREE]
# Prints the commit that a tree is of, and its date in seconds since 1970: "8bebaa4fad70 1764512591". "-dirty" behind the
# commit says that files differ from it. In an unpacked archive it prints what `git archive` wrote into the file `commit`.
# Prints nothing if neither is known.
set -eu
cd "${1:-$(dirname "$0")/../..}"
if [ -e .git ]; then
	read -r commit time < <(git show -s --format='%H %ct' HEAD 2>/dev/null) || exit 0
	commit=${commit:0:12}
	[ -z "$(git --no-optional-locks status --porcelain)" ] || commit+=-dirty
	echo "$commit $time"
elif read -r commit time <base/self/commit && [[ $commit =~ ^[0-9a-f]{40,64}$ ]]; then
	echo "${commit:0:12} $time"
fi
