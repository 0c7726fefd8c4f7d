#!/bin/bash
# Shows that each rule of the lint can fail: a copy of the tree gets one breach at a time, and the rule must report it.
set -u
cd "$(dirname "$0")/../.." || exit 2
top=$PWD copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
passed=0 failed=0

breach() { # rule, file, text that is appended to it, what is named when not the file
	rm -rf "$copy/tree"
	mkdir "$copy/tree"
	tests/files.sh | tar -c --null -T - | tar -x -C "$copy/tree"
	mkdir -p "$(dirname "$copy/tree/$2")"
	printf '%b' "$3" >>"$copy/tree/$2"
	if "$top/tests/lint/run.sh" "$copy/tree" "$1" | grep -qF "$1: ${4:-$2}"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL rule $1 does not see a breach in $2"
	fi
}

long_function=$(printf 'void f(void)\\n{\\n'; for _ in $(seq 90); do printf '\\tg();\\n'; done; printf '}\\n')
breach includes base/str.c '#include "tsdb/db.h"\n'
breach includes tsdb/db.c '#include "promql/engine/engine.h"\n'
breach includes tsdb/db.c '#include "tsdb/head/head_internal.h"\n'
breach floor_plan tsdb/attic/x.c 'int x;\n' 'tsdb/attic: not a row'
breach floor_plan Makefile 'uses_base := web\n' 'base: uses web'
breach folder_size base/x.c '' 'base: 36 files'
breach format base/str.c 'int  x;\n'
breach readmes Makefile 'ROOMS += attic\n' attic/README.md
breach top_level stray/x.txt 'x\n' stray:
breach names base/str.c 'void log_write(void)\n{\n}\n'
breach names tsdb/db.c 'struct arena {\n\tint x;\n};\n'
breach names base/str.c 'static void take_all(void)\n{\n}\n'
breach names base/str.c 'static void take(void)\n{\n}\n'
breach names base/str.c 'static void str_take_all(struct buf *q)\n{\n}\n'
breach shape base/str.c "$long_function"
breach width base/str.c "/* $(printf 'x%.0s' $(seq 120)) */\n"
breach blanks base/str.c 'int x; \n'
breach promises base/str.c '/* TO''DO */\n'
breach banned base/str.c 'int f(char *p) { return ato''i(p); }\n'
breach limits web/page.c 'int f(void) { return db_querier_''open(0); }\n'
breach limits web/page.c 'int f(void) { return query_''run(0); }\n'
breach parameters web/page.c 'int f(struct http_in *in) { return in->params[0].name.len; }\n'
breach evaluation promql/costs/fresh.c 'struct ev''al;\n'
breach typedefs base/str.c 'typedef struct x y;\n'
breach headers base/fresh.h 'int x;\n'
breach scripts tests/fresh.sh '#!/bin/bash\n'
breach itself base/str.c '/* /wo''rk/ */\n'
breach node_18 tests/node.mjs 'export const last = [1].toSor''ted();\n'
breach book cmd/epimetheus/options.c '\t{ "fresh.flag", FLAG_BOOL, NULL, NULL, "" },\n'
breach book cmd/epitool/push.c '\t{ "fresh-flag", FLAG_BOOL, NULL, NULL, "" },\n'
breach book discovery/alerting.c '\t{ "fresh_key", YAML_BOOL, 0, NULL, NULL, "Fresh.", 0 },\n'
breach book base/log.c 'METRIC_COUNTER(fresh, "epimetheus_fresh_total", "Fresh.", NULL);\n'
breach book base/log.c 'METRIC_GAUGE(\n\tfresh, "epimetheus_fresh", "Fresh.", NULL);\n'
breach book web/routes.c '\t{ HTTP_GET, "/api/v1/fresh", NEEDS_READ, fresh, API, "" },\n'
breach words base/str.c 'int f(struct err *e) { return err_set(e, ERR_INVALID, "read it anew"); }\n'
breach words promql/rules/rules.c 'const char t[] = "a function that is too dear";\n'
breach words web/ui/src/main.tsx 'export const Late = () => <p>It is under way</p>;\n'
rm -rf "$copy/tree"

# No two rooms may have a function of the same name: the linker would take the first one without a word.
twice=$(find "${1:-build}/lib" -path "*/lib/tests" -prune -o -name '*.a' -exec nm -A -g --defined-only {} + 2>/dev/null |
	awk 'NF > 1 && $(NF - 1) ~ /^[TDBR]$/ { print $NF }' | sort | uniq -d)
names=$(find "${1:-build}/lib" -path "*/lib/tests" -prune -o -name "*.a" -print | wc -l)
if [ -z "$twice" ] && [ "$names" -gt 5 ]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "FAIL names defined twice in $names libraries:" $twice
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
