/* Saved rules: what a change makes of them, through faults of the disk and damage. */
#include "promql/rules/saved/saved_rules.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "promql/rules/rules.h"
#include "tests/check.h"
#include "tests/failing_fs.h"
#include "tests/scratch.h"

#define NOW (INT64_C(1700000000) * NS_PER_S)
#define RULE(name, over) \
	"groups:\n- name: " name "\n  interval: 1m\n  rules:\n  - alert: " name \
	"\n    expr: total(cpu) > " over "\n    for: 5m\n    labels: {severity: warning}\n" \
	"    annotations: {summary: \"{{ $value }} of \\\"x\\\"\\n# no comment\"}\n"

struct world {
	char base[64], dir[80];
	struct saved_rules *s;
	struct arena a;
	struct err err;
};

static bool world_again(struct world *w, struct fs *fs)
{
	struct saved_rules_options o = { .fs = fs, .dir = w->dir };

	saved_rules_close(w->s);
	w->s = NULL;
	return !saved_rules_open(&o, &w->s, &w->err);
}

static void world_make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	snprintf(w->base, sizeof(w->base), SCRATCH "epi-saved-XXXXXX");
	CHECK(scratch_dir(w->base) != NULL);
	snprintf(w->dir, sizeof(w->dir), "%s/rules", w->base);
	arena_init(&w->a, 64u << 20);
	CHECK(world_again(w, &fs_posix));
}

static void world_end(struct world *w)
{
	saved_rules_close(w->s);
	arena_release(&w->a);
	CHECK_OK(fs_remove_tree(&fs_posix, w->base, &w->err), &w->err);
}

static enum err_code world_change(struct world *w, struct saved_change c)
{
	struct saved_next next;
	enum err_code rc;

	c.user = c.user.len ? c.user : STR("alice b%");
	c.now_ns = NOW;
	if ((rc = saved_rules_prepare(w->s, &c, &w->a, &next, &w->err)))
		return rc;
	return saved_rules_commit(w->s, &next, &w->err);
}

static enum err_code world_put(struct world *w, const char *text, bool replace)
{
	return world_change(
		w, (struct saved_change){ .kind = SAVED_PUT, .sent = str_of(text), .replace = replace });
}

static enum err_code world_undo(struct world *w)
{
	return world_change(w, (struct saved_change){ .kind = SAVED_UNDO });
}

/* "2: A B": the version in force, and its groups. */
static const char *world_groups(struct world *w)
{
	struct saved_reading r;
	struct buf out = { 0 };
	char *text;

	if (saved_rules_read(w->s, &w->a, &r, &w->err))
		return w->err.msg;
	buf_printf(&out, "%llu:", (unsigned long long)r.version.version);
	for (size_t i = 0; i < r.version.groups_n; i++)
		buf_printf(&out, " " STR_FMT, STR_ARG(r.version.groups[i].name));
	if (r.warning.len)
		buf_printf(&out, "; " STR_FMT, STR_ARG(r.warning));
	text = arena_strndup(&w->a, out.ptr, out.len);
	buf_release(&out);
	return text;
}

TEST(saved_rules_change)
{
	struct world w;

	world_make(&w);
	CHECK_STR(str_of(world_groups(&w)), "0:");
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(world_put(&w, RULE("B", "1"), false), &w.err);
	CHECK_STR(str_of(world_groups(&w)), "2: A B");
	CHECK(world_put(&w, RULE("A", "2"), false) == ERR_EXISTS);
	CHECK_STR(str_of(w.err.msg), "\"A\" is saved already: replace=true replaces it");
	CHECK_OK(world_put(&w, RULE("A", "2"), true), &w.err);
	CHECK_OK(
		world_change(&w, (struct saved_change){ .kind = SAVED_DELETE, .name = STR("B") }), &w.err);
	CHECK(world_change(&w, (struct saved_change){ .kind = SAVED_DELETE, .name = STR("B") }) ==
		ERR_NOT_FOUND);
	CHECK_STR(str_of(w.err.msg), "no saved rule is called \"B\"");
	CHECK(world_again(&w, &fs_posix));
	CHECK_STR(str_of(world_groups(&w)), "4: A");
	world_end(&w);
}

/* The file is a rule file, and says the same as what was sent. */
TEST(saved_rules_file)
{
	const struct rules_load l = { .interval_ns = NS_PER_S, .query_offset_ns = 7 };
	struct saved_reading r;
	struct rule_set *set;
	struct world w;

	world_make(&w);
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(world_put(&w,
				 "{\"groups\": [{\"name\": \"x y\", \"labels\": {\"team\": \"z\"}, \"limit\": 3, "
				 "\"rules\": [{\"record\": \"r\", \"expr\": \"total(cpu)\\n\"}]}]}",
				 false),
		&w.err);
	CHECK_OK(saved_rules_read(w.s, &w.a, &r, &w.err), &w.err);
	CHECK_STR(r.version.groups[0].user, "alice b%");
	CHECK(r.version.groups[0].changed_ns == NOW);
	CHECK_STR(r.version.change, "save x y");
	CHECK_OK(rule_set_load_text("f", r.text, &l, &set, &w.err), &w.err);
	CHECK(set->groups_n == 2 && set->groups[0].interval_ns == NS_PER_MIN);
	CHECK(set->groups[1].interval_ns == NS_PER_S && set->groups[1].query_offset_ns == 7);
	CHECK(set->groups[1].limit == 3 && set->groups[0].rules[0].for_ns == 5 * NS_PER_MIN);
	CHECK_STR(set->groups[1].name, "x y");
	CHECK_STR(set->groups[1].rules[0].labels[0].text, "z");
	CHECK_STR(set->groups[0].rules[0].annotations[0].text, "{{ $value }} of \"x\"\n# no comment");
	rule_set_unref(set);
	world_end(&w);
}

TEST(saved_rules_refuse)
{
	static const struct {
		const char *sent;
		enum err_code rc;
		const char *message;
	} cases[] = {
		{ "groups: []", ERR_INVALID, "0 groups with 0 rules: send one group with its rules" },
		{ "groups: [{name: a}]", ERR_INVALID,
			"1 groups with 0 rules: send one group with its rules" },
		{ "groups:\n- name: a\n  rules:\n  - alert: X\n    expr: total(cpu) >\n", ERR_INVALID,
			"rule:5:11: group \"a\", rule 1, \"X\": could not parse expression: 1:13: unexpected "
			"end of query" },
		{ "groups:\n- name: a\n  rulez: []\n", ERR_INVALID,
			"rule:3:3: group \"a\": field rulez not found in type rule_group; did you mean "
			"\"rules\"?" },
		{ "{", ERR_INVALID, NULL },
	};
	struct world w;

	world_make(&w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(world_put(&w, cases[i].sent, false) == cases[i].rc);
		if (cases[i].message)
			CHECK_STR(str_of(w.err.msg), cases[i].message);
	}
	CHECK_STR(str_of(world_groups(&w)), "0:");
	CHECK(!fs_exists(w.dir));
	world_end(&w);
}

TEST(saved_rules_undo)
{
	struct saved_version *v;
	struct world w;
	size_t n;

	world_make(&w);
	CHECK(world_undo(&w) == ERR_NOT_FOUND);
	CHECK_STR(str_of(w.err.msg), "there is no version before");
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(world_undo(&w), &w.err);
	CHECK_STR(str_of(world_groups(&w)), "2:");
	CHECK_OK(world_undo(&w), &w.err); /* of the undo */
	CHECK_STR(str_of(world_groups(&w)), "3: A");
	for (unsigned i = 0; i < SAVED_HISTORY_MAX + 5; i++)
		CHECK_OK(world_put(&w, RULE("A", "2"), true), &w.err);
	CHECK_OK(saved_rules_history(w.s, &w.a, &v, &n, &w.err), &w.err);
	CHECK(n == SAVED_HISTORY_MAX && v[0].version == SAVED_HISTORY_MAX + 7);
	CHECK(v[n - 1].version == 8);
	CHECK_STR(v[0].change, "replace A");
	CHECK(world_change(
			  &w, (struct saved_change){ .kind = SAVED_UNDO, .has_version = true, .version = 7 }) ==
		ERR_NOT_FOUND);
	CHECK_STR(str_of(w.err.msg), "version 7 is not kept");
	CHECK_OK(world_change(&w,
				 (struct saved_change){ .kind = SAVED_UNDO, .has_version = true, .version = 8 }),
		&w.err);
	CHECK_STR(str_of(world_groups(&w)), "29: A");
	world_end(&w);
}

/* Each call of the write path fails in turn: the old rules are there, or the new ones. */
TEST(saved_rules_disk_fails)
{
	struct failing_fs f = { .fs.ops = &failing_fs_ops };
	bool done = false, either = false;
	int calls = 0;
	const char *groups;
	struct world w;

	for (; !done && calls < 100; calls++) {
		world_make(&w);
		CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
		f.calls_left = calls;
		CHECK(world_again(&w, &f.fs));
		done = !world_put(&w, RULE("B", "1"), false);
		CHECK_STR(str_of(world_groups(&w)), done ? "2: A B" : "1: A"); /* in force */
		CHECK(world_again(&w, &fs_posix));
		groups = world_groups(&w);
		if (!done && strcmp(groups, "1: A"))
			either = true; /* the directory was not synced */
		CHECK(!strcmp(groups, "2: A B") || (!done && !strcmp(groups, "1: A")));
		CHECK_OK(world_put(&w, RULE("C", "1"), false), &w.err);
		CHECK_OK(world_undo(&w), &w.err);
		CHECK(strstr(world_groups(&w), groups + 2) != NULL);
		world_end(&w);
	}
	CHECK(done && either && calls > 8); /* both files, each written, synced and renamed */
}

TEST(saved_rules_damaged)
{
	char path[200], away[300];
	struct buf text = { 0 };
	const char *groups, *name;
	struct saved_next next;
	struct world w;

	world_make(&w);
	snprintf(path, sizeof(path), "%s", saved_rules_path(w.s));
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(world_put(&w, RULE("B", "1"), false), &w.err);
	CHECK_OK(fs_read_file(path, SAVED_BYTES_MAX, &text, &w.err), &w.err);
	text.ptr[text.len - 20] ^= 1;
	CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&text), &w.err), &w.err);
	CHECK(world_again(&w, &fs_posix));
	groups = world_groups(&w);
	CHECK(strstr(groups, "2:; the saved rules are damaged: ") == groups);
	CHECK(strstr(groups, "its checksum is wrong; moved to "));
	name = strrchr(groups, ' ');
	snprintf(away, sizeof(away), "%s", name ? name + 1 : "");
	CHECK(fs_exists(away) && !fs_exists(path));
	CHECK(world_again(&w, &fs_posix)); /* the warning stays */
	CHECK(strstr(world_groups(&w), "the saved rules were damaged and are in "));
	CHECK_OK(world_undo(&w), &w.err);
	CHECK_STR(str_of(world_groups(&w)), "3: A");
	CHECK(fs_exists(away));
	CHECK(world_again(&w, &fs_posix));
	CHECK_STR(str_of(world_groups(&w)), "3: A");

	/* It cannot be read, nor moved away: nothing writes over it. */
	CHECK(!unlink(path) && !mkdir(path, 0700));
	CHECK(world_again(&w, &fs_posix));
	CHECK(strstr(world_groups(&w), "the saved rules cannot be read: "));
	CHECK(saved_rules_prepare(w.s, &(struct saved_change){ .kind = SAVED_UNDO }, &w.a, &next,
			  &w.err) == ERR_CORRUPT);
	CHECK(strstr(w.err.msg, "cannot be read: move it away, and start again"));
	buf_release(&text);
	world_end(&w);
}

/* Every byte that is cut off or changed is noticed. */
TEST(saved_rules_bytes)
{
	struct saved_version v;
	struct saved_reading r;
	struct world w;
	char *text;

	world_make(&w);
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(saved_rules_read(w.s, &w.a, &r, &w.err), &w.err);
	CHECK((text = arena_strndup(&w.a, r.text.ptr, r.text.len)) != NULL);
	for (size_t i = 0; i < r.text.len; i++) {
		CHECK(saved_version_parse((struct str){ text, i }, &w.a, &v, &w.err) == ERR_CORRUPT);
		text[i] ^= 2;
		CHECK(saved_version_parse((struct str){ text, r.text.len }, &w.a, &v, &w.err) != ERR_OK);
		text[i] ^= 2;
	}
	CHECK_OK(saved_version_parse((struct str){ text, r.text.len }, &w.a, &v, &w.err), &w.err);
	world_end(&w);
}

/* A newer program's file stays in its place. */
TEST(saved_rules_newer)
{
	const char *path, *groups;
	struct buf text = { 0 };
	struct saved_next next;
	struct world w;

	world_make(&w);
	path = saved_rules_path(w.s);
	CHECK_OK(world_put(&w, RULE("A", "1"), false), &w.err);
	CHECK_OK(fs_read_file(path, SAVED_BYTES_MAX, &text, &w.err), &w.err);
	text.ptr[str_find(buf_str(&text), STR("saved-rules 1")) + (ptrdiff_t)strlen("saved-rules ")] =
			'2';
	CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&text), &w.err), &w.err);
	CHECK(world_again(&w, &fs_posix));
	groups = world_groups(&w);
	CHECK(strstr(groups, "1:; the saved rules cannot be read: ") == groups);
	CHECK(strstr(groups, "saved.yml: a newer version of Epimetheus wrote it"));
	CHECK(fs_exists(saved_rules_path(w.s)));
	CHECK(saved_rules_prepare(w.s, &(struct saved_change){ .kind = SAVED_UNDO }, &w.a, &next,
			  &w.err) == ERR_CORRUPT);
	buf_release(&text);
	world_end(&w);
}
