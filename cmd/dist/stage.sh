#!/bin/bash
# usage: stage.sh BUILD PARTS ROOT
# Fills ROOT with the files of a package, where they belong on a machine: of the programs in BUILD, and of what dist_parts wrote
# to PARTS.
set -euo pipefail
export LC_ALL=C
umask 022
build=$(realpath "$1") parts=$(realpath "$2") root=$(realpath -m "$3")
cd "$(dirname "$0")/../.."

install -d "$root"/usr/bin "$root"/usr/lib/systemd/system "$root"/usr/share/{man/man1,doc/epimetheus/examples} \
	"$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d} \
	"$root"/etc/{epimetheus,default}
install -m 755 "$build/epimetheus" "$build/epitool" "$root/usr/bin/"
install -m 644 cmd/dist/files/epimetheus.yml "$root/etc/epimetheus/"
install -m 644 cmd/dist/files/default "$root/etc/default/epimetheus"
for program in epimetheus epitool; do
	gzip -9n <"$parts/$program.1" >"$root/usr/share/man/man1/$program.1.gz"
done

completion() { # PROGRAM SHELL
	case $1 in
	epimetheus) "$build/epimetheus" "--completion-script=$2" ;;
	epitool) "$build/epitool" completion "$2" ;;
	esac
}
for program in epimetheus epitool; do
	completion $program bash >"$root/usr/share/bash-completion/completions/$program"
	completion $program zsh >"$root/usr/share/zsh/vendor-completions/_$program"
	completion $program fish >"$root/usr/share/fish/vendor_completions.d/$program.fish"
done

# The unit of the examples, with the user and the places of packages.
unit=$root/usr/lib/systemd/system/epimetheus.service
sed -e '1,/^\[Unit\]$/{/^#/d}' \
	-e 's|^\(Description=.*\)|\1\nDocumentation=man:epimetheus(1)|' \
	-e 's|^ExecStart=/usr/local/bin/\(epimetheus .*\)$|EnvironmentFile=-/etc/default/epimetheus\nExecStart=/usr/bin/\1 $ARGS|' \
	-e 's|^DynamicUser=yes$|User=epimetheus\nGroup=epimetheus|' \
	examples/systemd/epimetheus.service >"$unit"
for line in '^\[Unit\]$' '^ExecStart=/usr/bin/epimetheus .* \$ARGS$' '^EnvironmentFile=-/etc/default/' '^User=epimetheus$' '^Documentation='; do
	[ "$(grep -c "$line" "$unit")" = 1 ] || { echo "stage: the unit has no one line $line" >&2; exit 1; }
done

doc=$root/usr/share/doc/epimetheus
"$build/epimetheus" --licenses >"$doc/licenses.txt"
install -m 644 "$parts"/sbom.{spdx,cdx}.json "$doc/"
cp -r --no-preserve=mode examples/rules examples/dashboards "$doc/examples/"
