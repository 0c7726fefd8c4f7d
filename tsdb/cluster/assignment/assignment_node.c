#include "tsdb/cluster/assignment/assignment_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "tsdb/cluster/assignment/node_internal.h"

/* ---- the file ---- */

/* A file that cannot be read counts as missing: the bucket has the assignment. */
static void assignment_node_read_file(
	const struct assignment_node *n, struct arena *a, struct assignment *out)
{
	struct buf text = { 0 };
	struct err err;
	enum err_code rc;

	*out = (struct assignment){ 0 };
	if (!fs_exists(n->path))
		return;
	if (!(rc = fs_read_file(n->path, ASSIGNMENT_BYTES_MAX, &text, &err)))
		rc = assignment_parse(buf_str(&text), a, out, &err);
	if (rc) {
		log_warn("cluster", "the assignment that was followed cannot be read",
			LOG_S("path", n->path), LOG_E(&err));
		*out = (struct assignment){ 0 };
	}
	buf_release(&text);
}

static void assignment_node_write_file(
	const struct assignment_node *n, const struct assignment *list, uint64_t settled)
{
	struct assignment with = *list;
	struct buf text = { 0 };
	struct err err;
	enum err_code rc;

	with.settled = settled < list->number ? settled : list->number;
	assignment_print(&text, &with);
	rc = buf_failed(&text) ? err_nomem(&err, "assignment") :
							 fs_write_file(&fs_posix, n->path, buf_str(&text), &err);
	if (rc)
		log_warn("cluster", "the assignment that is followed is not written",
			LOG_S("path", n->path), LOG_E(&err));
	buf_release(&text);
}

/* ---- a new assignment ---- */

/* *fresh: it is another number. */
static enum err_code assignment_node_take(struct assignment_node *n, const struct assignment *list,
	const char *etag, bool *fresh, struct err *err)
{
	const struct assignment *known;
	struct assignment_rule *rule;
	struct assignment merged;
	enum err_code rc = ERR_OK;
	struct arena a;

	*fresh = false;
	arena_init(&a, 0);
	mutex_lock(&n->lock);
	known = assignment_rule_of(n->rule);
	if (list->number < known->number) {
		rc = err_set(err, ERR_CORRUPT,
			"the bucket has assignment %" PRIu64 ", but %" PRIu64 " was followed before",
			list->number, known->number);
	} else if (list->number > known->number) {
		if (!(rc = assignment_copy(list, known, &a, &merged, err)) &&
			!(rc = node_peers_set_locked(n, &merged, err)) &&
			!(rc = node_peers_rule_locked(n, &merged, &rule, err))) {
			assignment_rule_unref(n->rule);
			n->rule = rule;
			*fresh = true;
		}
	}
	if (!rc)
		memcpy(n->etag, etag, sizeof(n->etag));
	mutex_unlock(&n->lock);
	arena_release(&a);
	return rc;
}

static enum err_code assignment_node_read(struct assignment_node *n, bool *fresh, struct err *err)
{
	char etag[BUCKET_ETAG_BYTES_MAX], had[BUCKET_ETAG_BYTES_MAX];
	struct bucket_info info;
	struct assignment s;
	enum err_code rc = ERR_OK;
	struct arena a;

	*fresh = false;
	mutex_lock(&n->lock);
	memcpy(had, n->etag, sizeof(had));
	mutex_unlock(&n->lock);
	if (had[0] &&
		!(rc = bucket_head(n->o.bucket, STR(ASSIGNMENT_KEY), &info, err)) &&
			!strcmp(info.etag, had))
		return ERR_OK;
	arena_init(&a, 0);
	if (!rc && !(rc = assignment_get(n->o.bucket, &a, &s, etag, err)))
		rc = assignment_node_take(n, &s, etag, fresh, err);
	arena_release(&a);
	return rc;
}

enum err_code assignment_node_join(struct assignment_node *n, struct err *err)
{
	const struct assignment_change c = { ASSIGNMENT_JOIN, str_of(n->o.shard), n->o.total };
	char etag[BUCKET_ETAG_BYTES_MAX];
	struct assignment s;
	bool changed, fresh;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	if (!(rc = assignment_change(n->o.bucket, &c, &a, &s, etag, &changed, err)) &&
		!(rc = assignment_node_take(n, &s, etag, &fresh, err))) {
		mutex_lock(&n->lock);
		n->joined = true;
		mutex_unlock(&n->lock);
	}
	arena_release(&a);
	return rc;
}

/* ---- following ---- */

/* The rule is in force, and the manifest will say its number. */
static void assignment_node_follow(struct assignment_node *n)
{
	struct assignment_rule *rule;
	const struct assignment *s;
	uint64_t settled, before;

	mutex_lock(&n->lock);
	rule = assignment_rule_ref(n->rule);
	s = assignment_rule_of(rule);
	settled = n->settled;
	before = n->followed;
	mutex_unlock(&n->lock);
	if (s->number)
		assignment_node_write_file(n, s, settled);
	n->user.follow(n->user.ctx, rule);
	mutex_lock(&n->lock);
	n->followed = s->number;
	mutex_unlock(&n->lock);
	if (s->number) {
		n->user.followed(n->user.ctx, s->number);
		if (s->number != before)
			log_info("cluster", "assignment of shards is followed", LOG_I("number", s->number),
				LOG_I("shards", assignment_newest(s)->n));
	}
	assignment_rule_unref(rule);
}

static void assignment_node_note_failure(
	struct assignment_node *n, bool *failed, enum err_code rc, const struct err *err)
{
	if (rc && rc != ERR_CANCELED && !*failed)
		log_warn("cluster", "the assignment of shards cannot be read, is tried again", LOG_E(err));
	else if (!rc && *failed)
		log_info("cluster", "the assignment of shards is read again",
			LOG_I("number", assignment_node_number(n)));
	*failed = rc != ERR_OK;
}

/* One look at the assignment; what is new takes effect. */
static void assignment_node_look(struct assignment_node *n, bool *failed)
{
	int64_t began = clock_running_ns();
	bool fresh = false, joined;
	enum err_code rc;
	struct err err;

	mutex_lock(&n->lock);
	n->wanted = false;
	n->looks++;
	joined = n->joined;
	mutex_unlock(&n->lock);
	rc = joined ? assignment_node_read(n, &fresh, &err) : assignment_node_join(n, &err);
	mutex_lock(&n->lock);
	n->answered_ns = began;
	if (!rc)
		n->good_ns = began;
	fresh |= assignment_rule_of(n->rule)->number != n->followed;
	cond_broadcast(&n->changed);
	mutex_unlock(&n->lock);
	assignment_node_note_failure(n, failed, rc, &err);
	if (fresh)
		assignment_node_follow(n);
	atomic_store(&n->looked_ns, began);
}

/* True: nobody that lives is behind the number that is followed. */
static bool assignment_node_is_settled(struct assignment_node *n, uint64_t *number)
{
	bool settled = true;

	mutex_lock(&n->lock);
	*number = n->followed;
	for (size_t i = 0; i < n->peers_n; i++)
		settled &= n->peers[i].known && n->peers[i].floor >= *number;
	mutex_unlock(&n->lock);
	return settled;
}

static void assignment_node_settle(struct assignment_node *n, uint64_t number)
{
	struct assignment_rule *rule = NULL;

	mutex_lock(&n->lock);
	if (number > n->settled) {
		n->settled = number;
		rule = assignment_rule_ref(n->rule);
	}
	mutex_unlock(&n->lock);
	if (rule)
		assignment_node_write_file(n, assignment_rule_of(rule), number);
	assignment_rule_unref(rule);
}

/* Looks at the shards that are behind; targets that they gave up become ours. */
static void assignment_node_look_at_peers(struct assignment_node *n)
{
	struct assignment_rule *rule = NULL;
	uint64_t number;
	struct err err;
	bool changed;

	if (!assignment_node_is_settled(n, &number)) {
		node_peers_look(n, number, &changed);
		if (!changed)
			return;
		mutex_lock(&n->lock);
		if (node_peers_rule_locked(n, assignment_rule_of(n->rule), &rule, &err)) {
			log_warn("cluster", "targets still wait for other shards", LOG_E(&err));
		} else {
			assignment_rule_unref(n->rule);
			n->rule = assignment_rule_ref(rule);
		}
		mutex_unlock(&n->lock);
		if (rule)
			n->user.follow(n->user.ctx, rule);
		assignment_rule_unref(rule);
	}
	if (number && assignment_node_is_settled(n, &number))
		assignment_node_settle(n, number);
}

static bool assignment_node_pause(struct assignment_node *n, int64_t until_ns)
{
	bool closing;

	mutex_lock(&n->lock);
	while (!n->closing && !n->wanted && cond_wait_until(&n->changed, &n->lock, until_ns))
		;
	closing = n->closing;
	mutex_unlock(&n->lock);
	return !closing;
}

static void assignment_node_run(void *ctx)
{
	struct assignment_node *n = ctx;
	int64_t look_ns = clock_monotonic_ns(), until_ns;
	bool failed = false, wanted;
	uint64_t number;

	assignment_node_follow(n); /* that was read at the start */
	do { /* until the end; each turn waits */
		mutex_lock(&n->lock);
		wanted = n->wanted;
		mutex_unlock(&n->lock);
		if (wanted || clock_monotonic_ns() >= look_ns) {
			look_ns = clock_monotonic_ns() + n->o.look_ns;
			assignment_node_look(n, &failed);
		}
		assignment_node_look_at_peers(n);
		until_ns = clock_monotonic_ns() + PEERS_EVERY_NS;
		if (assignment_node_is_settled(n, &number) || until_ns > look_ns)
			until_ns = look_ns;
	} while (assignment_node_pause(n, until_ns));
}

/* ---- life ---- */

static enum err_code assignment_node_begin(
	struct assignment_node *n, const struct assignment_node_options *o, struct err *err)
{
	char *shard = arena_printf(&n->arena, "%s", o->shard);
	int64_t began = clock_running_ns();
	struct assignment s;
	enum err_code rc;
	struct arena a;
	struct err why;
	bool fresh;

	n->path = arena_printf(&n->arena, "%s/" ASSIGNMENT_FILE, o->dir);
	if (!shard || !n->path)
		return arena_fail(&n->arena, "assignment", err);
	n->o = *o;
	n->o.shard = shard;
	n->o.dir = NULL;
	n->looks = 1;
	n->o.look_ns = o->look_ns ? o->look_ns : ASSIGNMENT_LOOK_NS;
	arena_init(&a, 0);
	assignment_node_read_file(n, &a, &s);
	n->settled = s.settled;
	mutex_lock(&n->lock);
	if (!(rc = node_peers_set_locked(n, &s, err)))
		rc = node_peers_rule_locked(n, &s, &n->rule, err);
	mutex_unlock(&n->lock);
	arena_release(&a);
	if (rc)
		return rc;
	if ((rc = assignment_node_read(n, &fresh, &why)) && rc != ERR_NOT_FOUND)
		log_warn("cluster", "the assignment of shards cannot be read", LOG_E(&why));
	n->good_ns = rc ? 0 : began;
	n->answered_ns = began;
	atomic_store(&n->looked_ns, began);
	return ERR_OK;
}

enum err_code assignment_node_open(
	const struct assignment_node_options *o, struct assignment_node **out, struct err *err)
{
	struct assignment_node *n = calloc(1, sizeof(*n));
	enum err_code rc;

	if (!n)
		return err_nomem(err, "assignment");
	arena_init(&n->arena, 0);
	mutex_init(&n->lock);
	cond_init(&n->changed);
	if ((rc = assignment_node_begin(n, o, err))) {
		assignment_node_close(n);
		return rc;
	}
	*out = n;
	return ERR_OK;
}

enum err_code assignment_node_start(
	struct assignment_node *n, const struct assignment_node_user *user, struct err *err)
{
	n->user = *user;
	return thread_start(&n->thread, "assignment", assignment_node_run, n, err);
}

void assignment_node_end(struct assignment_node *n)
{
	mutex_lock(&n->lock);
	n->closing = true;
	cond_broadcast(&n->changed);
	mutex_unlock(&n->lock);
	bucket_cancel(n->o.bucket, clock_monotonic_ns());
	thread_join(&n->thread);
}

void assignment_node_close(struct assignment_node *n)
{
	if (!n)
		return;
	if (n->o.bucket)
		assignment_node_end(n);
	assignment_rule_unref(n->rule);
	free(n->peers);
	arena_release(&n->arena);
	cond_destroy(&n->changed);
	mutex_destroy(&n->lock);
	free(n);
}

/* ---- questions ---- */

struct assignment_rule *assignment_node_rule(struct assignment_node *n)
{
	struct assignment_rule *rule;

	mutex_lock(&n->lock);
	rule = assignment_rule_ref(n->rule);
	n->followed = assignment_rule_of(rule)->number;
	mutex_unlock(&n->lock);
	return rule;
}

uint64_t assignment_node_number(struct assignment_node *n)
{
	uint64_t number;

	mutex_lock(&n->lock);
	number = n->followed;
	mutex_unlock(&n->lock);
	return number;
}

void assignment_node_secret(struct assignment_node *n, char out[ASSIGNMENT_SECRET_LEN + 1])
{
	mutex_lock(&n->lock);
	memcpy(out, assignment_rule_of(n->rule)->secret, ASSIGNMENT_SECRET_LEN + 1);
	mutex_unlock(&n->lock);
}

/*
 * Until `follow` returns, profiles are stored by the old rule, and the manifest still has the old
 * number. Only after a pause this waits for a look. If the look found a new number, the scrape is
 * not stored. This must not wait for `follow`, which waits for what is being stored.
 */
enum err_code assignment_node_check(struct assignment_node *n, struct err *err)
{
	int64_t lease_ns = n->o.lease_ns, began = clock_running_ns(), until_ns;
	enum err_code rc = ERR_OK;
	uint64_t number;

	if (began - atomic_load(&n->looked_ns) < lease_ns)
		return ERR_OK;
	mutex_lock(&n->lock);
	until_ns = clock_monotonic_ns() + ASSIGNMENT_LOOK_NS;
	while (!n->closing && began - n->answered_ns >= lease_ns) {
		n->wanted = true;
		cond_broadcast(&n->changed);
		if (!cond_wait_until(&n->changed, &n->lock, until_ns))
			break;
	}
	number = assignment_rule_of(n->rule)->number;
	if (number != n->followed)
		rc = err_set(err, ERR_CANCELED,
			"not stored: the shards have assignment %" PRIu64 " since, this one followed %" PRIu64,
			number, n->followed);
	mutex_unlock(&n->lock);
	return rc;
}

static struct assignment_member assignment_node_member(
	struct assignment_node *n, const struct assignment *list, struct str name)
{
	const struct assignment_version *newest = assignment_newest(list);
	const struct node_peer *p = node_peers_find_locked(n, name);
	struct assignment_member m = { .name = name,
		.in = newest && assignment_version_has(newest, name),
		.drained = assignment_is_drained(list, name),
		.known = !p || p->known,
		.number = p ? p->floor : n->followed,
		.ended = p && p->ended };

	return m;
}

enum err_code assignment_node_status(
	struct assignment_node *n, struct arena *a, struct assignment_status *out, struct err *err)
{
	struct assignment_rule *rule;
	struct str *names;
	enum err_code rc;
	uint32_t names_n;

	mutex_lock(&n->lock);
	rule = n->rule;
	*out = (struct assignment_status){ .number = n->followed,
		.newest = assignment_rule_of(rule)->number,
		.looked_age_ns = n->good_ns ? clock_running_ns() - n->good_ns : -1 };
	if (!(rc = assignment_names(assignment_rule_of(rule), a, &names, &names_n, err)) &&
		!(out->members = arena_array(a, struct assignment_member, names_n + 1u)))
		rc = arena_fail(a, "assignment", err);
	for (uint32_t i = 0; !rc && i < names_n; i++) {
		struct assignment_member m = assignment_node_member(n, assignment_rule_of(rule), names[i]);

		if (!(m.name = str_dup(a, names[i])).ptr)
			rc = arena_fail(a, "assignment", err);
		else if (m.in || m.drained || !m.ended)
			out->members[out->members_n++] = m;
	}
	mutex_unlock(&n->lock);
	return rc;
}
