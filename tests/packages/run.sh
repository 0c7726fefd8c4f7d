#!/bin/bash
# usage: run.sh BUILD
# What `make dist` makes: the same bytes twice, bills of materials that are valid, a signature, and the Debian package in an
# empty root (inside.sh), where lintian has nothing to say about it. Needs root, and a kernel that lets it mount.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(realpath "${1:-build}")
tests=$PWD/tests/packages
work=$(mktemp -d)
printed=$work/printed
. tests/packages/cases.sh
trap 'rm -rf --one-file-system "$work"' EXIT

refused() { # MESSAGE COMMAND...: it fails and says why
	local message=$1
	shift
	not "$@" >"$work/refused" 2>&1 && grep -qF "$message" "$work/refused" || { cat "$work/refused"; false; }
}
finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

# Tools, fetched once.
site=$(tests/packages/prepare.sh site) || { echo "FAIL validators cannot be fetched"; failed=1; finish; }
minisign=$(tests/debian.sh "minisign" build/packages/minisign libraries)/minisign || { echo "FAIL minisign cannot be fetched"; failed=1; finish; }

images=$(dirname "$(dirname "$(tests/debian.sh "skopeo umoci" build/packages/images libraries)")") ||
	{ echo "FAIL skopeo cannot be fetched"; failed=1; finish; }
of_images() { LD_LIBRARY_PATH=$(echo "$images"/usr/lib/*-linux-gnu) "$images/usr/bin/$1" "${@:2}"; }

# Parts that need no commit.
mkdir "$work/parts" "$work/one" "$work/two"
ok "parts of packages" "$build/dist_parts" "$work/parts" "$(dpkg --print-architecture)" debian-12
ok "bills of materials" env PYTHONPATH="$site" python3 "$tests/validate_sbom.py" "$work/parts"/sbom.{spdx,cdx}.json
for page in epimetheus epitool; do
	ok "manual page $page names its flags" grep -q '\\fB\\-\\-\\fR' "$work/parts/$page.1"
done
package() { # VERSION OUT
	cmd/dist/stage.sh "$build" "$work/parts" "$work/root-$1" &&
		SOURCE_DATE_EPOCH=1700000000 cmd/dist/debian.sh "$work/root-$1" "$1-1" "$(dpkg --print-architecture)" "$2"
}
ok "the package before" package 0.0.9 "$work/one"
ok "the package" package 0.1.0 "$work/two"

ok "the package for rpm" env SOURCE_DATE_EPOCH=1700000000 cmd/dist/rpm.sh "$build/nfpm" "$work/root-0.1.0" 0.1.0 \
	"$(dpkg --print-architecture)" "$work/two"

# The image, as two programs read it that have nothing to do with what wrote it.
image=$work/image.tar
ok "an image" env SOURCE_DATE_EPOCH=1700000000 cmd/dist/image.sh "$work/root-0.1.0" 0.1.0 abc "$(dpkg --print-architecture)" "$image"
ok "the image has its version" test "$(of_images skopeo inspect --format '{{index .Labels "org.opencontainers.image.version"}}' "oci-archive:$image")" = 0.1.0
ok "the image is copied" of_images skopeo --insecure-policy copy "oci-archive:$image" "oci:$work/oci:one"
ok "the image is unpacked" of_images umoci unpack --rootless --image "$work/oci:one" "$work/bundle"
ok "the image has the program" cmp "$work/bundle/rootfs/epimetheus" "$build/epimetheus"
ok "the image runs as nobody" node -e "const { process: p } = JSON.parse(require('fs').readFileSync('$work/bundle/config.json'));
	require('assert').deepEqual([p.user.uid, p.user.gid, p.args], [65534, 65534, ['/epimetheus', '--storage.tsdb.path=/data']])"
rm -rf "$work"/root-* "$work/bundle" "$work/oci" "$image"

# The whole of it, of clones in two places, by two people with habits of their own.
commit=$(base/self/commit.sh)
revision=${commit%% *}
if [[ $revision = *-dirty ]] || ! "$build/epimetheus" --version | grep -q "(revision $revision,"; then
	echo "SKIP make dist: the programs are not those of a commit"
	skipped=$((skipped + 1))
else
	git clone -q . "$work/here" && git clone -q . "$work/some/where/else"
	(umask 077 && cd "$work/here" && TZ=Asia/Kolkata LC_ALL=C.UTF-8 cmd/dist/dist.sh "$build" "$work/dist-a") >"$work/log" 2>&1
	ok "made once" test -s "$work/dist-a/SHA256SUMS"
	printf '\n\n' | "$minisign" -G -f -p "$work/key.pub" -s "$work/key" >/dev/null 2>&1
	(umask 002 && cd "$work/some/where/else" && PATH=$(dirname "$minisign"):$PATH MINISIGN_KEY=$work/key \
		cmd/dist/dist.sh "$build" "$work/dist-b" <<<'') >"$work/log" 2>&1
	ok "the same bytes in another directory" diff -r --exclude=SHA256SUMS.minisig "$work/dist-a" "$work/dist-b"
	ok "the sums are signed" "$minisign" -V -p "$work/key.pub" -m "$work/dist-b/SHA256SUMS"
	echo >>"$work/dist-b/SHA256SUMS"
	ok "a change is seen" not "$minisign" -V -p "$work/key.pub" -m "$work/dist-b/SHA256SUMS"
	ok "sums" bash -c "cd '$work/dist-a' && sha256sum --check --strict SHA256SUMS"
	archive=$(cd "$work/dist-a" && echo epimetheus-*-linux-*.tar.gz)
	sources=${archive%-linux-*}
	mkdir "$work/unpacked"
	tar -xzf "$work/dist-a/$sources.tar.gz" -C "$work/unpacked"
	ok "the sources know their commit" test "$("$work/unpacked/$sources/base/self/commit.sh")" = "$commit"
	ok "the archive has the programs" cmp <(tar -xzOf "$work/dist-a/$archive" "${archive%.tar.gz}/epimetheus") "$build/epimetheus"

	touch "$work/here/new"
	ok "a dirty tree is refused" refused "files differ from commit" "$work/here/cmd/dist/dist.sh" "$build" "$work/dist-c"
fi

# The root, with lintian, made once; each run has a copy.
[ "$(id -u)" = 0 ] || { echo "FAIL a root of its own needs root"; failed=$((failed + 1)); finish; }
command -v debootstrap >/dev/null || { echo "FAIL debootstrap is not installed: make deps-test-all"; failed=$((failed + 1)); finish; }
root=$(tests/packages/prepare.sh root) || { echo "FAIL no root can be made"; failed=$((failed + 1)); finish; }
cp -a --reflink=auto "$root" "$work/root"
mkdir "$work/root/packages" "$work/old"
tar -xzf tests/e2e/versions/ffd0ec5b.tar.gz -C "$work/old"
cp -r "$work/one" "$work/two" "$work/old/data" "$tests"/{inside,cases}.sh "$work/root/packages/"
node -e "const { answers } = JSON.parse(require('fs').readFileSync('$work/old/answers.json'));
	console.log(answers['the whole of a job'].join('\\n'))" >"$work/root/packages/expected"
at=$(node -p "JSON.parse(require('fs').readFileSync('$work/old/answers.json')).times.end")
# shellcheck disable=SC2016
in_root() { # COMMAND...: in the root, with processes, mounts and a network of its own
	unshare --mount --pid --ipc --uts --net --fork --kill-child --propagation private bash -euc '
		root=$1
		shift
		ip link set lo up
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount -t tmpfs -o mode=755 dev "$root/dev"
		for name in null zero full random urandom tty; do
			touch "$root/dev/$name"
			mount --bind "/dev/$name" "$root/dev/$name"
		done
		ln -s /proc/self/fd "$root/dev/fd"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"' _ "$work/root" "$@"
}
ok "lintian" in_root bash -c 'lintian --no-cfg --allow-root --tag-display-limit 0 --fail-on error,warning packages/two/*.deb'
in_root bash -c "exec packages/inside.sh packages/one/*.deb packages/two/*.deb packages/data $at packages/expected packages/two/*.rpm" >"$work/inside" 2>&1
sed '$d' "$work/inside"
if [[ $(tail -n 1 "$work/inside") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ 0\ skipped$ ]]; then
	passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
else
	tail -n 1 "$work/inside"
	echo "FAIL the package's test did not end"
	failed=$((failed + 1))
fi
finish
