#include "promql/rules/saved/saved_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "base/thread.h"

METRIC_GAUGE(
	saved_groups, "epimetheus_saved_rule_groups", "Groups of rules that users saved.", NULL);
METRIC_GAUGE(saved_ok, "epimetheus_saved_rules_ok",
	"Whether the rules that users saved run: 0 where their file is damaged or refused.", NULL);

#define PATH_BYTES_MAX 4096
#define FILE_NAME "saved.yml"
#define DAMAGED FILE_NAME ".damaged-"
#define VERSION_DIGITS 10u /* of a name in the history */
#define VERSION_MAX UINT64_C(9999999999)
#define LISTED_MAX 10000u /* names in the history that are looked at */

struct saved_rules {
	struct saved_rules_options o;
	char *dir, *path, *history;
	struct mutex lock; /* guards all below */
	struct arena arena; /* of the version in force */
	struct saved_version version;
	struct buf text;
	struct buf damage; /* of the file in force; empty: there is none */
	struct buf refused; /* the file is whole, and its rules were refused; empty: they were not */
	bool in_place; /* the damaged file is still in its place: no change may write over it */
};

/* ---- names ---- */

static enum err_code saved_rules_history_path(
	const struct saved_rules *s, uint64_t version, char out[PATH_BYTES_MAX], struct err *err)
{
	int n = snprintf(out, PATH_BYTES_MAX, "%s/%010" PRIu64 ".yml", s->history, version);

	return n > 0 && n < PATH_BYTES_MAX ? ERR_OK :
										 err_set(err, ERR_IO, "%s: the path is too long", s->dir);
}

static bool saved_rules_is_history(struct str name, uint64_t *version)
{
	struct str digits = { name.ptr, VERSION_DIGITS };

	return name.len == VERSION_DIGITS + 4 &&
		str_has_suffix(name, STR(".yml")) && str_to_u64(digits, version);
}

/* Versions in the history, ascending. A history that cannot be listed is none, and logged. */
static enum err_code saved_rules_list(
	const struct saved_rules *s, struct arena *a, uint64_t **out, size_t *n, struct err *err)
{
	struct str *names;
	size_t names_n;
	enum err_code rc;

	*n = 0;
	if (!fs_exists(s->history))
		return ERR_OK;
	if ((rc = fs_list(s->history, a, &names, &names_n, err)))
		return rc;
	if (names_n > LISTED_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %u files", s->history, LISTED_MAX);
	if (!(*out = arena_array(a, uint64_t, names_n + 1)))
		return arena_fail(a, "saved rules", err);
	for (size_t i = 0; i < names_n; i++) /* in order of their names, and so of their numbers */
		*n += saved_rules_is_history(names[i], &(*out)[*n]);
	return ERR_OK;
}

/* ---- opening ---- */

/* The version and its text; ERR_CORRUPT: damaged. The texts are in the arena. */
static enum err_code saved_rules_load(
	const char *path, struct arena *a, struct saved_version *out, struct str *text, struct err *err)
{
	struct buf bytes = { 0 };
	enum err_code rc = fs_read_file(path, SAVED_BYTES_MAX, &bytes, err);

	if (rc == ERR_LIMIT)
		rc = err_set(err, ERR_CORRUPT, "%s: it is longer than %u bytes", path, SAVED_BYTES_MAX);
	if (!rc && !(*text = str_dup(a, buf_str(&bytes))).ptr)
		rc = arena_fail(a, "saved rules", err);
	if (!rc && (rc = saved_version_parse(*text, a, out, err)))
		err_wrap(err, rc, "%s", path);
	buf_release(&bytes);
	return rc;
}

/* The lock is held. */
static void saved_rules_publish(const struct saved_rules *s)
{
	metric_set(&saved_groups, NULL, (double)s->version.groups_n);
	metric_set(&saved_ok, NULL, !s->damage.len && !s->refused.len);
}

/* Evidence of a damaged file that nothing has replaced yet. */
static void saved_rules_find_damaged(struct saved_rules *s)
{
	struct str *names;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	if (fs_exists(s->dir) && !fs_list(s->dir, &a, &names, &n, &err))
		for (size_t i = 0; i < n && i < LISTED_MAX; i++)
			if (str_has_prefix(names[i], STR(DAMAGED))) {
				buf_clear(&s->damage);
				buf_printf(&s->damage, "the saved rules were damaged and are in %s/" STR_FMT,
					s->dir, STR_ARG(names[i]));
			}
	arena_release(&a);
}

/* It stays as evidence, under another name. */
static void saved_rules_move_away(struct saved_rules *s, const struct err *why)
{
	char path[PATH_BYTES_MAX];
	int n = snprintf(
		path, sizeof(path), "%s/" DAMAGED "%" PRId64, s->dir, clock_now_ns() / NS_PER_S);
	struct err err;

	s->in_place = n <= 0 || (size_t)n >= sizeof(path) ||
		s->o.fs->ops->rename(s->o.fs, s->path, path, &err) ||
		s->o.fs->ops->sync_dir(s->o.fs, s->dir, &err);
	buf_printf(&s->damage, "the saved rules are damaged: %s; %s%s", why->msg,
		s->in_place ? "the file cannot be moved away" : "moved to ", s->in_place ? "" : path);
	log_error("rules", "saved rules are damaged", LOG_S("path", s->path), LOG_E(why),
		LOG_S("moved_to", s->in_place ? "" : path));
}

/* Without a file the version in force has no groups, and comes after all of the history. */
static void saved_rules_begin_empty(struct saved_rules *s)
{
	uint64_t *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	s->version = (struct saved_version){ 0 };
	if (saved_rules_list(s, &a, &v, &n, &err))
		log_warn("rules", "the history of saved rules cannot be read", LOG_E(&err));
	else if (n)
		s->version.version = v[n - 1] + 1;
	saved_version_print(&s->version, &s->text);
	arena_release(&a);
}

static void saved_rules_load_in_force(struct saved_rules *s)
{
	struct str text;
	struct err err;
	enum err_code rc = saved_rules_load(s->path, &s->arena, &s->version, &text, &err);

	if (!rc) {
		buf_add_str(&s->text, text);
	} else if (rc == ERR_NOT_FOUND) {
		saved_rules_find_damaged(s);
	} else if (rc == ERR_CORRUPT) {
		saved_rules_move_away(s, &err);
	} else {
		s->in_place = true;
		buf_printf(&s->damage, "the saved rules cannot be read: %s", err.msg);
		log_error("rules", "saved rules cannot be read", LOG_E(&err));
	}
	if (rc)
		saved_rules_begin_empty(s);
}

enum err_code saved_rules_open(
	const struct saved_rules_options *o, struct saved_rules **out, struct err *err)
{
	struct saved_rules *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "saved rules");
	s->o = *o;
	mutex_init(&s->lock);
	arena_init(&s->arena, 0);
	if (!(s->dir = strdup(o->dir)) || asprintf(&s->path, "%s/" FILE_NAME, o->dir) < 0 ||
		asprintf(&s->history, "%s/history", o->dir) < 0)
		goto fail;
	saved_rules_load_in_force(s);
	if (buf_failed(&s->text) || buf_failed(&s->damage))
		goto fail;
	saved_rules_publish(s);
	*out = s;
	return ERR_OK;
fail:
	saved_rules_close(s);
	return err_nomem(err, "saved rules");
}

void saved_rules_close(struct saved_rules *s)
{
	if (!s)
		return;
	buf_release(&s->text);
	buf_release(&s->damage);
	buf_release(&s->refused);
	arena_release(&s->arena);
	mutex_destroy(&s->lock);
	free(s->history);
	free(s->path);
	free(s->dir);
	free(s);
}

const char *saved_rules_path(const struct saved_rules *s)
{
	return s->path;
}

/* ---- reading ---- */

void saved_rules_set_refused(struct saved_rules *s, struct str why)
{
	mutex_lock(&s->lock);
	buf_clear(&s->refused);
	if (why.len)
		buf_printf(&s->refused, "the saved rules do not run: " STR_FMT, STR_ARG(why));
	saved_rules_publish(s);
	mutex_unlock(&s->lock);
}

enum err_code saved_rules_read(
	struct saved_rules *s, struct arena *a, struct saved_reading *out, struct err *err)
{
	struct str warning;

	mutex_lock(&s->lock);
	warning = buf_str(s->damage.len ? &s->damage : &s->refused);
	out->text = str_dup(a, buf_str(&s->text));
	out->warning = str_dup(a, warning);
	mutex_unlock(&s->lock);
	if (!out->text.ptr || !out->warning.ptr)
		return arena_fail(a, "saved rules", err);
	return saved_version_parse(out->text, a, &out->version, err);
}

static uint64_t saved_rules_in_force(struct saved_rules *s)
{
	uint64_t version;

	mutex_lock(&s->lock);
	version = s->version.version;
	mutex_unlock(&s->lock);
	return version;
}

enum err_code saved_rules_history(
	struct saved_rules *s, struct arena *a, struct saved_version **out, size_t *n, struct err *err)
{
	uint64_t *v, in_force = saved_rules_in_force(s);
	char path[PATH_BYTES_MAX];
	struct str text;
	struct err why;
	size_t listed;
	enum err_code rc;

	*n = 0;
	if ((rc = saved_rules_list(s, a, &v, &listed, err)))
		return rc;
	if (!(*out = arena_array(a, struct saved_version, SAVED_HISTORY_MAX)))
		return arena_fail(a, "saved rules", err);
	for (size_t i = listed; i-- > 0 && *n < SAVED_HISTORY_MAX;) {
		/* The version in force is there too if a crash came before the next one was written. */
		if (v[i] >= in_force)
			continue;
		if ((rc = saved_rules_history_path(s, v[i], path, err)))
			return rc;
		rc = saved_rules_load(path, a, &(*out)[*n], &text, &why);
		if (rc == ERR_NOMEM)
			return err_nomem(err, "saved rules");
		if (rc)
			log_warn("rules", "a version of the saved rules is damaged", LOG_E(&why));
		*n += !rc;
	}
	return ERR_OK;
}

/* ---- the next version ---- */

static struct saved_group *saved_version_find(const struct saved_version *v, struct str name)
{
	for (size_t i = 0; i < v->groups_n; i++)
		if (str_eq(v->groups[i].name, name))
			return &v->groups[i];
	return NULL;
}

static enum err_code saved_rules_say(
	struct arena *a, struct saved_next *out, const char *verb, struct err *err)
{
	char *text = arena_printf(a, "%s " STR_FMT, verb, STR_ARG(out->group));

	if (!text)
		return arena_fail(a, "saved rules", err);
	out->version.change = str_of(text);
	return ERR_OK;
}

static enum err_code saved_rules_put(
	const struct saved_change *c, struct arena *a, struct saved_next *out, struct err *err)
{
	struct saved_version *v = &out->version;
	struct saved_group fresh, *old;
	size_t cap = v->groups_n;
	enum err_code rc;

	if ((rc = saved_group_read(c->sent, a, &fresh, err)))
		return rc;
	fresh.changed_ns = c->now_ns;
	fresh.user = v->user;
	out->group = fresh.name;
	old = saved_version_find(v, fresh.name);
	if (old && !c->replace)
		return err_set(
			err, ERR_EXISTS, "%s is saved already: replace=true replaces it", QUOTED(fresh.name));
	if (!old && v->groups_n >= SAVED_GROUPS_MAX)
		return err_set(err, ERR_LIMIT, "%u groups are saved, which is the most", SAVED_GROUPS_MAX);
	if (!old && !arena_array_room(a, &v->groups, v->groups_n, 1, &cap))
		return arena_fail(a, "saved rules", err);
	*(old ? old : &v->groups[v->groups_n++]) = fresh;
	return saved_rules_say(a, out, old ? "replace" : "save", err);
}

static enum err_code saved_rules_delete(
	const struct saved_change *c, struct arena *a, struct saved_next *out, struct err *err)
{
	struct saved_version *v = &out->version;
	struct saved_group *old = saved_version_find(v, c->name);

	if (!old)
		return err_set(err, ERR_NOT_FOUND, "no saved rule is called %s", QUOTED(c->name));
	out->group = old->name;
	memmove(old, old + 1, sizeof(*old) * (size_t)(v->groups + v->groups_n - old - 1));
	v->groups_n--;
	return saved_rules_say(a, out, "delete", err);
}

static enum err_code saved_rules_undo(struct saved_rules *s, const struct saved_change *c,
	struct arena *a, struct saved_next *out, struct err *err)
{
	struct saved_version *v = NULL;
	size_t n, i = 0;
	char *text;
	enum err_code rc = saved_rules_history(s, a, &v, &n, err);

	if (rc)
		return rc;
	while (c->has_version && i < n && v[i].version != c->version)
		i++;
	if (i == n)
		return c->has_version ?
			err_set(err, ERR_NOT_FOUND, "version %" PRIu64 " is not kept", c->version) :
			err_set(err, ERR_NOT_FOUND, "there is no version before");
	if (!(text = arena_printf(a, "restore version %" PRIu64, v[i].version)))
		return arena_fail(a, "saved rules", err);
	out->version.change = str_of(text);
	out->version.groups = v[i].groups;
	out->version.groups_n = v[i].groups_n;
	return ERR_OK;
}

enum err_code saved_rules_prepare(struct saved_rules *s, const struct saved_change *c,
	struct arena *a, struct saved_next *out, struct err *err)
{
	struct saved_reading now;
	struct buf text = { 0 };
	enum err_code rc;

	*out = (struct saved_next){ 0 };
	if (s->in_place) /* set by open alone */
		return err_set(
			err, ERR_CORRUPT, "%s cannot be read: move it away, and start again", s->path);
	if ((rc = saved_rules_read(s, a, &now, err)))
		return rc;
	if (now.version.version >= VERSION_MAX)
		return err_set(err, ERR_LIMIT, "version %" PRIu64 " is the last", VERSION_MAX);
	out->version = now.version;
	out->version.version++;
	out->version.changed_ns = c->now_ns;
	out->version.user = c->user;
	if (c->user.len > SAVED_USER_BYTES_MAX)
		out->version.user.len = SAVED_USER_BYTES_MAX;
	rc = c->kind == SAVED_PUT   ? saved_rules_put(c, a, out, err) :
		c->kind == SAVED_DELETE ? saved_rules_delete(c, a, out, err) :
								  saved_rules_undo(s, c, a, out, err);
	if (rc)
		return rc;
	saved_version_print(&out->version, &text);
	if (text.len > SAVED_BYTES_MAX)
		rc = err_set(
			err, ERR_LIMIT, "the saved rules would be longer than %u bytes", SAVED_BYTES_MAX);
	else if (buf_failed(&text) || !(out->text = str_dup(a, buf_str(&text))).ptr)
		rc = err_nomem(err, "saved rules");
	buf_release(&text);
	return rc;
}

/* ---- writing ---- */

static enum err_code saved_rules_check_free(
	const struct saved_rules *s, size_t bytes, struct err *err)
{
	uint64_t free_bytes;
	enum err_code rc;

	if (!s->o.free_bytes_min)
		return ERR_OK;
	rc = s->o.fs->ops->free_bytes(s->o.fs, s->dir, &free_bytes, err);
	if (rc || free_bytes >= s->o.free_bytes_min + bytes)
		return rc;
	return err_set(err, ERR_UNAVAILABLE,
		"disk is full: %s free, %s needed above the reserve of %s (--storage.tsdb.free-reserve)",
		str_size_of(free_bytes).text, str_size_of(bytes).text,
		str_size_of(s->o.free_bytes_min).text);
}

/* One that cannot be removed is tried again at the next change. */
static void saved_rules_trim(const struct saved_rules *s)
{
	char path[PATH_BYTES_MAX];
	uint64_t *v;
	struct arena a;
	struct err err;
	size_t n;
	enum err_code rc;

	arena_init(&a, 0);
	rc = saved_rules_list(s, &a, &v, &n, &err);
	for (size_t i = 0; i + SAVED_HISTORY_MAX < n && !rc; i++) {
		rc = saved_rules_history_path(s, v[i], path, &err);
		if (!rc)
			rc = s->o.fs->ops->unlink(s->o.fs, path, &err);
	}
	if (rc)
		log_warn("rules", "old versions of the saved rules stay", LOG_E(&err));
	arena_release(&a);
}

static enum err_code saved_rules_write(
	struct saved_rules *s, const struct saved_next *next, struct err *err)
{
	char path[PATH_BYTES_MAX];
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if ((rc = fs_mkdir_all(s->o.fs, s->history, err)) ||
		(rc = saved_rules_check_free(s, s->text.len + next->text.len, err)) ||
		(rc = saved_rules_history_path(s, s->version.version, path, err)) ||
		(rc = fs_write_file(s->o.fs, path, buf_str(&s->text), err)))
		return rc;
	return fs_write_file(s->o.fs, s->path, next->text, err);
}

enum err_code saved_rules_commit(
	struct saved_rules *s, const struct saved_next *next, struct err *err)
{
	struct saved_version fresh;
	struct buf text = { 0 };
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	buf_add_str(&text, next->text);
	rc = buf_failed(&text) ? err_nomem(err, "saved rules") :
							 saved_version_parse(buf_str(&text), &a, &fresh, err);
	mutex_lock(&s->lock);
	if (!rc && !(rc = saved_rules_write(s, next, err))) {
		struct arena old = s->arena;
		struct buf old_text = s->text;

		s->arena = a;
		s->version = fresh;
		s->text = text;
		a = old;
		text = old_text;
		buf_clear(&s->damage);
		buf_clear(&s->refused);
		saved_rules_publish(s);
		saved_rules_trim(s);
	}
	mutex_unlock(&s->lock);
	buf_release(&text);
	arena_release(&a);
	return rc;
}
