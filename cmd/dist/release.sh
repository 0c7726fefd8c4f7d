#!/bin/bash
# usage: release.sh VERSION
# Releases VERSION: writes it into the sources and into Changes, commits and tags that, and makes what `make dist` makes, all in a
# clone below build/release. Only when all is made does this tree get the commit and the tag, and build/dist the files. A second
# commit begins the next version. Nothing is pushed.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL REVISION REVISION_TIME VERSION
version=${1:-} tree=build/release/tree
changes=web/book/changes/changes.md

die() {
	echo "release: error: $*" >&2
	exit 1
}
newer() { dpkg --compare-versions "${1/-/\~}" gt "${2/-/\~}"; } # 0.2.0-dev comes before 0.2.0
number='(0|[1-9][0-9]*)'

[[ $version =~ ^$number\.$number\.$number$ ]] || die "VERSION is '$version'; a version is three numbers: make release VERSION=1.2.3"
next=${BASH_REMATCH[1]}.${BASH_REMATCH[2]}.$((BASH_REMATCH[3] + 1))-dev
read -r revision _ < <(base/self/commit.sh) && [ -e .git ] || die "a release is made of a commit, and this tree has none"
[[ $revision != *-dirty ]] || die "files differ from commit ${revision%-dirty}: commit them first, or put them aside"
current=$(<base/VERSION)
newer "$version" "$current" || die "$version is not newer than $current, the version of this tree"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || die "$version is released: the tag v$version is there"
for tag in $(git tag --list 'v*' --merged HEAD); do
	newer "$version" "${tag#v}" || die "$version is not newer than ${tag#v}, which is released"
done
grep -qx '## Unreleased' "$changes" || die "$changes has no section '## Unreleased' that says what is new"

rm -rf build/release
git clone -q . "$tree"
for key in user.name user.email user.signingkey; do
	value=$(git config "$key") && git -C "$tree" config "$key" "$value"
done
echo "$version" >"$tree/base/VERSION"
sed -i "s/^## Unreleased$/## $version ($(date -u +%F))/" "$tree/$changes"
git -C "$tree" commit -q -a -m "base: version $version"
git -C "$tree" tag -a "v$version" -m "Epimetheus $version"
make -C "$tree" --no-print-directory dist

echo "$next" >"$tree/base/VERSION"
sed -i "s/^## $version (.*)$/## Unreleased\n\nNothing yet.\n\n&/" "$tree/$changes"
git -C "$tree" commit -q -a -m "base: version $next"
git pull -q --ff-only "$tree" HEAD
git fetch -q "$tree" "refs/tags/v$version:refs/tags/v$version"
rm -rf build/dist
mv "$tree/build/dist" build/dist
rm -rf build/release
echo "  $version is in build/dist, and tagged v$version. To publish it: git push origin HEAD v$version"
