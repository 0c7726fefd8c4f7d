#!/bin/bash
# Debian's packages whose static libraries are linked into the programs.
#   packages.sh record FILE REVISION TIME PACKAGE...   writes FILE, a C source with the revision, its date (TIME is in seconds
#                                                 since 1970) and the installed versions (base/self/libraries.h), unless it
#                                                 would be the same
#   packages.sh behind PACKAGE...                 a line for each of which apt knows a newer version: "NAME OLD NEW". apt's
#                                                 lists here are read, and no host is asked; without apt there is no line
set -eu
export LC_ALL=C

versions() { # "PACKAGE VERSION"; one for each package, also where it is installed for two architectures
	dpkg-query -W -f='${Package} ${Version}\n' "$@" 2>/dev/null | sort -u -k1,1 || true
}

record() {
	local file=$1 revision=$2 date= name version known
	[ -z "$3" ] || date=$(date -u -d "@$3" +%FT%TZ)
	shift 3
	known=$(versions "$@")
	mkdir -p "$(dirname "$file")"
	{
		echo '#include "base/self/libraries.h"'
		printf 'const char build_revision[] = "%s";\n' "$revision"
		printf 'const char build_date[] = "%s";\n' "$date"
		echo 'const struct library_package library_packages[] = {'
		for name in "$@"; do
			version=$(awk -v name="$name" '$1 == name { print $2 }' <<<"$known")
			# The compiler's own library has the compiler's version in its package's name.
			printf '\t{ "%s", "%s" },\n' "$(sed 's/^\(libstdc++\)-[0-9]*-/\1-/' <<<"$name")" "${version:-unknown}"
		done
		echo '};'
		printf 'const size_t library_packages_n = %d;\n' $#
	} >"$file.new"
	if cmp -s "$file.new" "$file"; then
		rm "$file.new"
	else
		mv "$file.new" "$file"
	fi
}

behind() {
	command -v apt-cache >/dev/null || return 0
	local name old new
	{ apt-cache policy "$@" 2>/dev/null || true; } | awk '
		/^[^ ]/ { name = $1; sub(/:$/, "", name) }
		/^  Installed:/ { old = $2 }
		/^  Candidate:/ { if (old != "(none)" && $2 != "(none)" && $2 != old) print name, old, $2 }' |
		while read -r name old new; do
			dpkg --compare-versions "$new" gt "$old" && echo "$name $old $new"
		done || true
}

"$@"
