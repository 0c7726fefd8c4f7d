#!/bin/bash
# usage: image.sh ROOT VERSION REVISION ARCHITECTURE OUT.tar
# Makes a container image of the programs below ROOT (stage.sh) as an OCI archive: nothing but both programs, their licences, and
# an empty /data of the user nobody. It is what examples/kubernetes/Containerfile builds, without a builder of images.
# SOURCE_DATE_EPOCH is the time of its files. Source: github.com/opencontainers/image-spec, 1.0.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
root=$1 version=$2 revision=$3 architecture=$4 out=$5
user=65534
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/blobs/sha256" "$work/layer/licenses" "$work/layer/data"
cp "$root/usr/bin/epimetheus" "$root/usr/bin/epitool" "$work/layer/"
cp "$(dirname "$0")/../../LICENSE" "$root/usr/share/doc/epimetheus/licenses.txt" "$work/layer/licenses/"
chmod 750 "$work/layer/data"

pack() { tar --format=gnu --sort=name --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$@"; }
pack --owner=0 --group=0 -C "$work/layer" -cf "$work/layer.tar" epimetheus epitool licenses
pack --owner=$user --group=$user -C "$work/layer" -rf "$work/layer.tar" data

blob() { # FILE: becomes a blob; prints "digest":...,"size":...
	local sum
	sum=$(sha256sum "$1" | cut -d' ' -f1)
	printf '"digest":"sha256:%s","size":%d' "$sum" "$(stat -c %s "$1")"
	mv "$1" "$work/blobs/sha256/$sum"
}
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)
unpacked=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
gzip -9n <"$work/layer.tar" >"$work/layer.gz"
layer=$(blob "$work/layer.gz")
labels=$(printf '"org.opencontainers.image.%s":"%s",' title epimetheus description "Continuous profiling server" \
	licenses Apache-2.0 version "$version" revision "$revision" created "$created")
cat >"$work/config" <<END
{"created":"$created","architecture":"$architecture","os":"linux","config":{"User":"$user:$user","ExposedPorts":{"7272/tcp":{}},\
"Entrypoint":["/epimetheus"],"Cmd":["--storage.tsdb.path=/data"],"Volumes":{"/data":{}},"Labels":{${labels%,}}},\
"rootfs":{"type":"layers","diff_ids":["sha256:$unpacked"]},"history":[{"created":"$created","created_by":"cmd/dist/image.sh"}]}
END
config=$(blob "$work/config")
type=application/vnd.oci.image
cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"$type.manifest.v1+json","config":{"mediaType":"$type.config.v1+json",$config},\
"layers":[{"mediaType":"$type.layer.v1.tar+gzip",$layer}],"annotations":{${labels%,}}}
END
manifest=$(blob "$work/manifest")
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
cat >"$work/index.json" <<END
{"schemaVersion":2,"manifests":[{"mediaType":"$type.manifest.v1+json",$manifest,\
"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"epimetheus:$version"}}]}
END
pack --owner=0 --group=0 -C "$work" -cf "$out" oci-layout index.json blobs
