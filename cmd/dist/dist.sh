#!/bin/bash
# usage: dist.sh BUILD OUT
# Makes what a release has, of the programs in BUILD, in the folder OUT: the sources, an archive of the programs, a Debian
# package, one for rpm, a container image, bills of materials, and SHA256SUMS. The same commit gives the same bytes in any directory. Asks no host.
#   MINISIGN_KEY   a file with a secret key of minisign: SHA256SUMS is signed. Minisign asks for the key's password
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
build=$(realpath "$1") out=$(realpath -m "$2")
cd "$(dirname "$0")/../.."

die() {
	echo "dist: error: $*" >&2
	exit 1
}

read -r revision time < <(base/self/commit.sh) || die "a release is made of a commit, and this tree has none"
[[ $revision != *-dirty ]] || die "files differ from commit ${revision%-dirty}: commit them first, or put them aside"
[ -e .git ] || die "the sources are taken from git, and this tree is an unpacked archive"
"$build/epimetheus" --version | grep -q "(revision $revision," || die "$build/epimetheus is of another commit: make all"
version=$(<base/VERSION)
architecture=$(dpkg --print-architecture)
# Of the system whose libraries are linked.
distribution=$(. /etc/os-release && echo "$ID-$VERSION_ID")
export SOURCE_DATE_EPOCH=$time
# A build between releases sorts before the release, and behind earlier builds.
package=${version/-/\~}
[[ $version != *-dev ]] || package+=.$(date -u -d "@$time" +%Y%m%d%H%M%S).$revision

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out" "$work/parts" "$work/archive"

"$build/dist_parts" "$work/parts" "$architecture" "$distribution"
name=epimetheus-$version
tar_as_one() { # DIR NAME: NAME.tar.gz of DIR/NAME; owners, times and the order of files are always the same
	tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$time" -C "$1" -c "$2" | gzip -9n
}
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$work/out/$name.tar.gz"

cmd/dist/stage.sh "$build" "$work/parts" "$work/root"
cmd/dist/debian.sh "$work/root" "$package-1" "$architecture" "$work/out"
cmd/dist/rpm.sh "$build/nfpm" "$work/root" "${package/\~/-}" "$architecture" "$work/out"

programs=$name-linux-$architecture
cmd/dist/image.sh "$work/root" "$version" "$revision" "$architecture" "$work/out/$programs.oci.tar"
mkdir "$work/archive/$programs"
cp -r "$work/root/usr/bin/." "$work/root/usr/share/man/man1" "$work/root/usr/share/bash-completion/completions" \
	"$work/root/usr/lib/systemd/system/epimetheus.service" "$work/root/etc/epimetheus/epimetheus.yml" \
	"$work/root/usr/share/doc/epimetheus/licenses.txt" LICENSE "$work/archive/$programs/"
tar_as_one "$work/archive" "$programs" >"$work/out/$programs.tar.gz"
cp "$work/parts/sbom.spdx.json" "$work/out/$programs.spdx.json"
cp "$work/parts/sbom.cdx.json" "$work/out/$programs.cdx.json"

(cd "$work/out" && sha256sum -- * >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$work/out/"
if [ -n "${MINISIGN_KEY:-}" ]; then
	minisign -S -s "$MINISIGN_KEY" -m "$work/out/SHA256SUMS" -t "epimetheus $version" >/dev/null
fi
rm -rf "$out"
mkdir -p "$(dirname "$out")"
mv "$work/out" "$out"
chmod 755 "$out"
(cd "$out" && printf '  %s\n' *)
