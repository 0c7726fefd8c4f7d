#!/bin/bash
# usage: prepare.sh go|node|python|java|collector|profilecli|discoverers...
# Fetches what the senders of these tests need, by the packages' own clients and with checked sums, and builds them below
# build/senders. What is ready stays; one of each is made at a time.
set -eu
cd "$(dirname "$0")/../../.."
here=$PWD/tests/e2e/senders
out=$PWD/build/senders
mkdir -p "$out"

make_go() {
	(cd "$here/go" && GOTOOLCHAIN=local "$("$PWD/../../../go.sh")" build -trimpath -o "$1/cart" .)
}
# Compiled without optimization: that takes a quarter less.
make_collector() {
	(cd "$here/../otelcol" && GOTOOLCHAIN=local "$("$PWD/../../go.sh")" build -trimpath -gcflags=all='-N -l' \
		-ldflags='-s -w' -tags=grpcnotrace -o "$1/otelcol" .)
}
make_profilecli() {
	(cd "$here/../profilecli" && GOTOOLCHAIN=local "$("$PWD/../../go.sh")" build -trimpath -ldflags='-s -w' \
		-o "$1/profilecli" .)
}
# Prometheus's own discovery, to compare with.
make_discoverers() {
	(cd "$here/../discoverers" && GOTOOLCHAIN=local "$("$PWD/../../go.sh")" build -trimpath -gcflags=all='-N -l' \
		-ldflags='-s -w' -o "$1/discoverers" .)
}
make_node() {
	cp "$here"/node/{package.json,package-lock.json,.npmrc,web.mjs} "$1/"
	(cd "$1" && npm ci --no-audit --no-fund --loglevel=error)
}
make_python() {
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$1/site" --requirement="$here/python/requirements.txt"
}
agent=2.9.2
agent_sum=ad738199a90734f7b8392bae1ab892027d411acb953ef1f00cd6e8e7c669ff8f
make_java() {
	local ivy
	ivy=$(dirname "$(tests/debian.sh ivy build/ivy)")/share/java/ivy.jar
	java -jar "$ivy" -error -cache "$1/ivy" -dependency io.pyroscope agent "$agent" -types jar \
		-retrieve "$1/[artifact].[ext]" >/dev/null
	rm -r "$1/ivy"
	echo "$agent_sum  $1/agent.jar" | sha256sum --check --quiet
	javac -g -d "$1" "$here/java/Search.java"
}

for part in "$@"; do
	(
		exec 9>"$out/$part.lock"
		flock 9
		dir=$out/$part
		case $part in
		collector) source=$here/../otelcol ;;
		profilecli) source=$here/../profilecli ;;
		discoverers) source=$here/../discoverers ;;
		*) source=$here/$part ;;
		esac
		if [ -n "$(find "$dir/.ready" -newer "$here/prepare.sh" 2>/dev/null)" ] &&
			[ -z "$(find "$source" -newer "$dir/.ready")" ]; then
			exit 0
		fi
		rm -rf "$dir"
		mkdir -p "$dir"
		"make_$part" "$dir"
		touch "$dir/.ready"
	)
done
