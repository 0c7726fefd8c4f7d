#!/bin/bash
# usage: inside.sh OLD.deb NEW.deb DATA TIME EXPECTED NEW.rpm
# What an operator does with the Debian package, in an empty root of its own network: installs OLD, starts the service, upgrades
# to NEW, removes, purges; then the package for rpm. DATA is a data directory that an older program wrote, EXPECTED what its profiles answer at TIME.
# Called by tests/packages/run.sh. No systemd runs here: the service is started as its unit says, by its user.
set -u
old=$1 new=$2 data=$3 time=$4 expected=$5 rpm=$6
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
unit=/usr/lib/systemd/system/epimetheus.service
log=/tmp/service.log printed=/tmp/printed
. "$(dirname "$0")/cases.sh"

of_unit() { sed -n "s/^$1=//p" "$unit"; }

# All files of the machine but those that any package changes, with the contents of configuration.
snapshot() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var/lib/dpkg -o -path /var/cache \
		-o -path /var/log -o -name '*-' -path '/etc/*' -o -name .pwd.lock \) -prune -o -printf '%p %M %u %g\n' | sort
	find /etc -type f ! -name '*-' ! -name .pwd.lock -print0 | sort -z | xargs -0 md5sum
}

service=
start_service() {
	local ARGS command
	ARGS=$(. /etc/default/epimetheus && echo "$ARGS")
	command=$(of_unit ExecStart)
	command=${command//\$ARGS/$ARGS}
	# shellcheck disable=SC2086
	setpriv --reuid="$(of_unit User)" --regid="$(of_unit Group)" --init-groups --no-new-privs --bounding-set=-all \
		--inh-caps=-all $command >"$log" 2>&1 &
	service=$!
}
end_service() { # as systemd does it
	kill -TERM "$service" || return
	wait "$service"
}
answers() { epitool query --server=http://127.0.0.1:7272 "$@"; }
wait_for_profile() { # with a stack, which a query finds; minutes only end what has failed
	local begun=$SECONDS
	# An idle server's profile may have no stack.
	until answers --format=folded "$1" >/tmp/answer 2>/tmp/reason && [ -s /tmp/answer ]; do
		if ! kill -0 "$service" 2>/dev/null || [ $((SECONDS - begun)) -gt 600 ]; then
			tail -n 20 /tmp/reason
			tail -n 20 "$log"
			return 1
		fi
		sleep 1
	done
}
SCRAPED='merge(cpu{job="epimetheus"}[1h])'
OLD_DATA='merge(cpu:samples{job="shop"}[3h])'
check_old_data() { equal "$(answers --format=folded --time="$time" "$OLD_DATA" | sort)" "$(sort "$expected")"; }

snapshot >/tmp/before
ok "the package before is installed" dpkg -i "$old"
ok "the files are as the package has them" equal "$(dpkg --verify epimetheus)" ""
ok "the user has no shell and no password" equal "$(getent passwd epimetheus | cut -d: -f6,7)" /var/lib/epimetheus:/usr/sbin/nologin
ok "the data directory is the user's alone" equal "$(stat -c '%U %G %a' /var/lib/epimetheus)" "epimetheus epimetheus 750"
ok "nobody else may change the configuration" equal "$(stat -c '%U %a' /etc/epimetheus/epimetheus.yml /etc/default/epimetheus | sort -u)" "root 644"
ok "the configuration is valid" epitool check config /etc/epimetheus/epimetheus.yml
ok "the service starts with the system" test -L /etc/systemd/system/multi-user.target.wants/epimetheus.service

cp -r "$data/." /var/lib/epimetheus/
chown -R epimetheus:epimetheus /var/lib/epimetheus
sed -i 's/^ARGS="/&--storage.tsdb.retention.time=100y /' /etc/default/epimetheus
cp /etc/default/epimetheus /tmp/default
start_service
ok "its target is scraped" wait_for_profile "$SCRAPED"
ok "it answers of older data" check_old_data
ok "it is of the user" equal "$(stat -c %U "/proc/$service")" epimetheus
ok "it ends in order" end_service
at=$(($(date +%s) + 1)) # the second that has begun is over then
before=$(epitool query --data=/var/lib/epimetheus --format=folded --time="$at" "$SCRAPED" | sort)
ok "what was scraped is stored" test -n "$before"

ok "the new package is installed over it" dpkg -i "$new"
ok "the version is new" equal "$(dpkg-query -W -f='${Version}' epimetheus)" "$(dpkg-deb -f "$new" Version)"
ok "flags of the operator stay" cmp /etc/default/epimetheus /tmp/default
start_service
ok "the new one is ready" wait_for_profile "$SCRAPED"
ok "the new one answers of older data" check_old_data
ok "the new one answers of what was scraped before" equal "$(answers --format=folded --time="$at" "$SCRAPED" | sort)" "$before"
ok "the new one ends in order" end_service

ok "an older package is installed over it" dpkg -i --force-downgrade "$old"
ok "the new package is installed again" dpkg -i "$new"
ok "the package is removed" dpkg -r epimetheus
ok "its programs are gone" not command -v epimetheus
ok "profiles stay" test -d /var/lib/epimetheus/blocks
ok "the configuration stays" cmp /etc/default/epimetheus /tmp/default
ok "the package is purged" dpkg -P epimetheus
snapshot >/tmp/after
ok "nothing is left" diff /tmp/before /tmp/after

# Debian's rpm has no packages of its own, so nothing that a package needs is known to it.
ok "the package for rpm is installed" rpm --force-debian --nodeps -i "$rpm"
ok "its files are as the package has them" equal "$(rpm --nodeps -V epimetheus)" ""
ok "its user is there" equal "$(getent passwd epimetheus | cut -d: -f6)" /var/lib/epimetheus
ok "its unit names programs that are there" test -x "$(of_unit ExecStart | cut -d' ' -f1)"
ok "its configuration is valid" epitool check config /etc/epimetheus/epimetheus.yml
ok "it is erased" rpm --force-debian -e epimetheus
ok "programs of it are gone" not test -e /usr/bin/epimetheus
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
