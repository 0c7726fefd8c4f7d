#!/bin/bash
# Makes helm, kubeconform and kustomize of the versions in go.mod, and JSON schemas of Kubernetes, the Gateway API and the Prometheus
# operator; prints the folder that has them. All come from their modules, once: a quarter of an hour of a processor, and 2 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
if [ "${1:-}" != --make ]; then
	tests/once.sh build/charts tests/charts/prepare.sh tests/charts/go.mod tests/charts/schemas tests/charts/objects -- tests/charts/prepare.sh --make
	echo "$PWD/build/charts"
	exit
fi
. tests/env.sh
dir=$2
cd "$dir"
printf 'module fetch\n\ngo 1.26.0\n' >go.mod
module() {
	local from
	from=$(go mod download -json "$1" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p') || true
	[ -n "$from" ] || { echo "tests/charts/prepare.sh: $1 cannot be fetched" >&2; return 1; }
	echo "$from"
}
kubernetes=$(module k8s.io/kubernetes@v1.34.2)
gateway=$(module sigs.k8s.io/gateway-api@v1.6.0)
operator=$(module github.com/prometheus-operator/prometheus-operator@v0.85.0)
cd "$root/tests/charts"
export GOFLAGS=-mod=readonly
go build -o "$dir/" helm.sh/helm/v4/cmd/helm github.com/yannh/kubeconform/cmd/kubeconform sigs.k8s.io/kustomize/kustomize/v5 ./objects
mkdir "$dir/kinds"
go run ./schemas "$dir/kinds" "$kubernetes/api/openapi-spec/swagger.json" \
	"$gateway/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml" \
	"$operator/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml" \
	"$operator/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"
