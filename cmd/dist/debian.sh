#!/bin/bash
# usage: debian.sh ROOT VERSION ARCHITECTURE OUT
# Makes OUT/epimetheus_VERSION_ARCHITECTURE.deb of the files below ROOT (stage.sh). SOURCE_DATE_EPOCH is the time of its files.
#   MAINTAINER   who answers for the package, "NAME <ADDRESS>"
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
root=$(realpath "$1") version=$2 architecture=$3 out=$(realpath "$4")
maintainer=${MAINTAINER:-Epimetheus maintainers <epimetheus@packages.example>}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree doc=$work/tree/usr/share/doc/epimetheus
cp -r "$root" "$tree"

cat cmd/dist/debian/copyright "$doc/licenses.txt" >"$doc/copyright.new"
sed -i '/^Comment:$/,${/^Comment:$/!{s/^$/./;s/^/ /}}' "$doc/copyright.new"
mv "$doc/copyright.new" "$doc/copyright"
rm "$doc/licenses.txt"
gzip -9n <web/book/changes/changes.md >"$doc/changelog.gz"
{
	printf 'epimetheus (%s) unstable; urgency=medium\n\n  * Built of version %s; changelog.gz says what is new.\n\n' "$version" "${version%-*}"
	printf ' -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.Debian.gz"
install -D -m 644 cmd/dist/debian/lintian-overrides "$tree/usr/share/lintian/overrides/epimetheus"

# What is linked statically, as sources: their licences ask for these, and whoever looks for a faulty library finds it here.
mapfile -t packages < <(grep -o 'pkg:deb/[^@]*' "$doc/sbom.cdx.json" | sed 's|.*/||; s/%2B/+/g')
# shellcheck disable=SC2016
built_using=$(dpkg-query -W -f='${source:Package} (= ${source:Version})\n' "${packages[@]}" | sort -u | paste -sd, | sed 's/,/, /g')
size=$(find "$tree" -type f -o -type l -printf 'x' | wc -c)
size=$(($(find "$tree" -type f -printf '%s\n' | awk '{ n += int(($1 + 1023) / 1024) } END { print n }') + size))

mkdir "$tree/DEBIAN"
sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@MAINTAINER@|$maintainer|" -e "s|@SIZE@|$size|" \
	-e "s|@BUILT_USING@|$built_using|" cmd/dist/debian/control >"$tree/DEBIAN/control"
install -m 755 cmd/dist/debian/{postinst,prerm,postrm} "$tree/DEBIAN/"
(cd "$tree" && find etc -type f | sort | sed 's|^|/|') >"$tree/DEBIAN/conffiles"
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
chmod 644 "$tree/DEBIAN/"{control,conffiles,md5sums}
# gzip: xz takes ten times as long, for a tenth less.
dpkg-deb --root-owner-group -Zgzip --build "$tree" "$out/epimetheus_${version}_$architecture.deb" >/dev/null
