#!/bin/bash
# usage: prepare.sh go|node|python|java|collector|profilecli|discoverers|openapi|mcp...
# Fetches what the senders of these tests need, by the packages' own clients and with checked sums, and builds them below
# build/senders. What is ready stays, until its source here changes.
set -eu
cd "$(dirname "$0")/../../.."
. tests/env.sh
here=$PWD/tests/e2e/senders
out=$PWD/build/senders

make_go() {
	cd "$here/go" && go build -trimpath -o "$1/cart" . && go build -trimpath -o "$1/deltas" ./deltas
}
# Compiled without optimization: that takes a quarter less.
make_collector() {
	cd "$here/../otelcol" && go build -trimpath -gcflags=all='-N -l' -ldflags='-s -w' -tags=grpcnotrace -o "$1/otelcol" .
}
make_profilecli() {
	cd "$here/../profilecli" && go build -trimpath -ldflags='-s -w' -o "$1/profilecli" .
}
# Prometheus's own discovery, to compare with.
make_discoverers() {
	cd "$here/../discoverers" && go build -trimpath -gcflags=all='-N -l' -ldflags='-s -w' -o "$1/discoverers" .
}
make_node() {
	cp "$here"/node/{package.json,package-lock.json,.npmrc,web.mjs} "$1/"
	cd "$1" && npm ci --no-audit --no-fund --loglevel=error
}
make_python() {
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$1/site" --requirement="$here/python/requirements.txt"
}
# A validator of OpenAPI documents, and a generator of clients.
make_openapi() {
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$1/site" --requirement="$here/../openapi/requirements.txt"
	cp "$here"/../openapi/{package.json,package-lock.json,.npmrc,tsconfig.json,client.ts} "$1/"
	cd "$1" && npm ci --no-audit --no-fund --loglevel=error
}
# The protocol's conformance suite and its clients, and the Node.js that they need.
make_mcp() {
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --root-user-action=ignore \
		--target="$1/site" --requirement="$here/../mcp/requirements.txt"
	cp "$here"/../mcp/{package.json,package-lock.json,.npmrc,assistant.mjs} "$1/"
	cd "$1" && npm ci --no-audit --no-fund --loglevel=error
}
agent=2.9.2
agent_sum=ad738199a90734f7b8392bae1ab892027d411acb953ef1f00cd6e8e7c669ff8f
make_java() {
	local ivy
	ivy=$(dirname "$(tests/debian.sh ivy build/ivy)")/share/java/ivy.jar
	java -jar "$ivy" -error -cache "$1/ivy" -dependency io.pyroscope agent "$agent" -types jar \
		-retrieve "$1/[artifact].[ext]"
	rm -r "$1/ivy"
	echo "$agent_sum  $1/agent.jar" | sha256sum --check --quiet
	javac -g -d "$1" "$here/java/Search.java"
}

if [ "${1:-}" = --make ]; then
	"make_$2" "$3"
	exit
fi
for part in "$@"; do
	case $part in
	collector) source=$here/../otelcol ;;
	profilecli | discoverers | openapi | mcp) source=$here/../$part ;;
	*) source=$here/$part ;;
	esac
	tests/once.sh "$out/$part" "$source" "$here/prepare.sh" -- "$here/prepare.sh" --make "$part"
done
