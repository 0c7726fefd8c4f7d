#!/bin/bash
# usage: rpm.sh NFPM ROOT VERSION ARCHITECTURE OUT
# Makes OUT/epimetheus-VERSION.ARCHITECTURE.rpm of the files below ROOT (stage.sh), by NFPM, a program. VERSION is a semantic one;
# ARCHITECTURE as Debian calls it. SOURCE_DATE_EPOCH is the time of its files.
#   MAINTAINER   who answers for the package, "NAME <ADDRESS>"
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
nfpm=$(realpath "$1") root=$(realpath "$2") version=$3 architecture=$4 out=$(realpath "$5")
maintainer=${MAINTAINER:-Epimetheus maintainers <epimetheus@packages.example>}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root" "$work/tree"
# Places that differ from Debian's.
mkdir "$work/tree/usr/share/zsh/site-functions"
mv "$work"/tree/usr/share/zsh/vendor-completions/* "$work/tree/usr/share/zsh/site-functions/"
rmdir "$work/tree/usr/share/zsh/vendor-completions"

(
	cat <<END
name: epimetheus
version: $version
release: "1"
arch: $architecture
maintainer: "$maintainer"
description: |
$(sed -n '/^Description:/,$p' cmd/dist/debian/control | sed -e 1d -e 's/^ \.$//' -e 's/^ //' -e 's/^/  /')
license: Apache-2.0
mtime: $(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)
recommends: [ca-certificates]
rpm:
  group: System Environment/Daemons
  summary: Continuous profiling server
  buildhost: localhost
  compression: gzip
scripts:
  preinstall: cmd/dist/rpm/preinstall
  postinstall: cmd/dist/rpm/postinstall
  preremove: cmd/dist/rpm/preremove
  postremove: cmd/dist/rpm/postremove
contents:
END
	cd "$work/tree"
	find . -type f -printf '%P\n' | sort | while read -r file; do
		type=
		[[ $file != etc/* ]] || type=config\|noreplace
		[[ $file != usr/share/doc/* ]] || type=doc
		printf '  - {src: "%s", dst: "/%s", type: "%s", file_info: {mode: 0%s, owner: root, group: root}}\n' \
			"$PWD/$file" "$file" "$type" "$(stat -c %a "$file")"
	done
	for dir in etc/epimetheus usr/share/doc/epimetheus; do
		printf '  - {dst: "/%s", type: dir, file_info: {mode: 0755, owner: root, group: root}}\n' "$dir"
	done
) >"$work/nfpm.yaml"
"$nfpm" package --config "$work/nfpm.yaml" --packager rpm --target "$out/" >"$work/log" || { cat "$work/log" >&2; exit 1; }
