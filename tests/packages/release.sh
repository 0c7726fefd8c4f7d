#!/bin/bash
# usage: release.sh
# `make release` on a small repository, with a `make` that only writes down how it was called: what is refused, what a release
# leaves, and that one which fails leaves nothing.
set -u
cd "$(dirname "$0")/../.." || exit 2
tree=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printed=$work/printed
. tests/packages/cases.sh
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null PATH=$work/bin:$PATH
mkdir -p "$work/bin" "$work/repository"
cat >"$work/bin/make" <<'FAKE'
#!/bin/bash
[ ! -e "$FAIL" ] || exit 1
mkdir -p "$2/build/dist"
echo "$(git -C "$2" describe --tags) $(cat "$2/base/VERSION") $4" >"$2/build/dist/made"
FAKE
chmod +x "$work/bin/make"
export FAIL=$work/fail

state() { git rev-parse HEAD; git tag; git status --porcelain; }
refused() { # VERSION MESSAGE: and the repository is as before
	local before out
	before=$(state)
	! out=$(cmd/dist/release.sh "$1" 2>&1) || { echo "it was taken"; return 1; }
	grep -qF "release: error: $2" <<<"$out" || { echo "$out"; return 1; }
	equal "$(state)" "$before"
}

cd "$work/repository" || exit 2
for file in base/self/{commit.sh,commit,.gitattributes} cmd/dist/release.sh; do
	install -D "$tree/$file" "$file"
done
mkdir -p web/book/changes
printf '# Changes\n\n## Unreleased\n\n- Scraping.\n' >web/book/changes/changes.md
echo /build/ >.gitignore
echo 0.2.0-dev >base/VERSION
git init -q
git config user.name a
git config user.email a@b
git add .
git commit -q -m first

for word in '' 1 v0.2.0 0.2 0.2.0-dev 00.2.0 0.2.0.1; do
	ok "'$word' is no version" refused "$word" "VERSION is '$word'"
done
ok "an older version" refused 0.1.9 "0.1.9 is not newer than 0.2.0-dev"
touch new
ok "a dirty tree" refused 0.2.0 "files differ from commit"
rm new
touch "$FAIL"
before=$(state)
! cmd/dist/release.sh 0.2.0 >/dev/null 2>&1
ok "what cannot be made leaves nothing" equal "$(state)" "$before"
rm "$FAIL"

ok "a release" cmd/dist/release.sh 0.2.0
ok "the files are of its tag" equal "$(cat build/dist/made)" 'v0.2.0 0.2.0 dist'
ok "two commits" equal "$(git log --reverse --format=%s)" "$(printf 'first\nbase: version 0.2.0\nbase: version 0.2.1-dev')"
ok "the tag is of the first" equal "$(git rev-parse 'v0.2.0^{commit}')" "$(git rev-parse HEAD~1)"
ok "Changes of the tag" equal "$(git show v0.2.0:web/book/changes/changes.md | sed -E 's/[0-9]{4}(-[0-9]{2}){2}/DATE/')" \
	"$(printf '# Changes\n\n## 0.2.0 (DATE)\n\n- Scraping.')"
ok "Changes of what comes" equal "$(sed -n 3,5p web/book/changes/changes.md)" "$(printf '## Unreleased\n\nNothing yet.')"
ok "nothing else is changed" equal "$(git status --porcelain)" ""
ok "the same again" refused 0.2.0 "0.2.0 is not newer than 0.2.1-dev"
ok "the next" cmd/dist/release.sh 0.3.0
git checkout -q -b older v0.2.0
ok "a branch of an older version has no list of what is new" refused 0.2.1 "web/book/changes/changes.md has no section"
sed -i 's/^## 0.2.0/## Unreleased\n\n- A fault.\n\n&/' web/book/changes/changes.md
git commit -q -a -m fault
ok "a branch of an older version" cmd/dist/release.sh 0.2.1
git checkout -q -b other v0.2.0
printf '## Unreleased\n' >>web/book/changes/changes.md
git commit -q -a -m other
ok "a version that another branch has" refused 0.2.1 "0.2.1 is released"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
