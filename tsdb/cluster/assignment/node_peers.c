#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/assignment/node_internal.h"

#define ROUND_MAX_NS (3 * NS_PER_S) /* then the assignment is looked at before it goes on */

/* ---- who they are ---- */

static int node_peers_by_name(const void *key, const void *at)
{
	return str_cmp(*(const struct str *)key, str_of(((const struct node_peer *)at)->name));
}

struct node_peer *node_peers_find_locked(struct assignment_node *n, struct str name)
{
	return n->peers_n ?
		bsearch(&name, n->peers, n->peers_n, sizeof(*n->peers), node_peers_by_name) :
		NULL;
}

/*
 * A shard that is new to us has nothing by numbers below `settled`: all shards that lived followed
 * that number. One that is new, or was dead then, looked at the assignment before it scraped.
 */
static struct node_peer node_peers_make(const struct assignment_node *n, struct str name)
{
	struct node_peer p = { .known = n->settled > 0, .floor = n->settled };

	snprintf(p.name, sizeof(p.name), STR_FMT, STR_ARG(name));
	return p;
}

enum err_code node_peers_set_locked(
	struct assignment_node *n, const struct assignment *list, struct err *err)
{
	struct node_peer *peers, *had;
	struct str *names;
	enum err_code rc;
	struct arena a;
	uint32_t names_n;
	size_t peers_n = 0;

	mutex_assert_held(&n->lock);
	arena_init(&a, 0);
	rc = assignment_names(list, &a, &names, &names_n, err);
	if (!rc && !(peers = calloc(names_n + 1u, sizeof(*peers))))
		rc = err_nomem(err, "assignment");
	for (uint32_t i = 0; !rc && i < names_n; i++) {
		if (str_is(names[i], n->o.shard))
			continue;
		had = node_peers_find_locked(n, names[i]);
		peers[peers_n++] = had ? *had : node_peers_make(n, names[i]);
	}
	arena_release(&a);
	if (rc)
		return rc;
	free(n->peers);
	n->peers = peers;
	n->peers_n = peers_n;
	n->peers_at = 0;
	for (size_t i = 0; i < peers_n; i++)
		n->peers[i].same_since_ns = 0; /* we begin to look at a new number */
	return ERR_OK;
}

enum err_code node_peers_rule_locked(struct assignment_node *n, const struct assignment *list,
	struct assignment_rule **out, struct err *err)
{
	struct assignment_floor *floors = calloc(n->peers_n + 1, sizeof(*floors));
	enum err_code rc;

	mutex_assert_held(&n->lock);
	if (!floors)
		return err_nomem(err, "assignment");
	for (size_t i = 0; i < n->peers_n; i++)
		floors[i] = (struct assignment_floor){ str_of(n->peers[i].name), n->peers[i].known,
			n->peers[i].floor };
	rc = assignment_rule_new(list, str_of(n->o.shard), floors, n->peers_n, out, err);
	free(floors);
	return rc;
}

/* ---- looking ---- */

static void node_peer_ended(struct node_peer *p, uint64_t number)
{
	p->ended = p->known = true;
	p->floor = p->floor > number ? p->floor : number;
}

/*
 * A caretaker's manifest (taker) is of a shard that takes no profiles. One that joins and says no
 * number yet found no assignment when it took its lease, so it may follow any that came since.
 */
static void node_peer_read(
	struct node_peer *p, const struct manifest *m, uint64_t oldest, uint64_t number)
{
	p->says = m->assignment || !m->address.len ? m->assignment : oldest;
	p->lease_ns = change_lease_of(m);
	p->same_since_ns = clock_monotonic_ns();
	p->ended = false;
	snprintf(p->address, sizeof(p->address), STR_FMT, STR_ARG(m->address));
	p->gone = manifest_has_ended(m);
	if (p->gone)
		node_peer_ended(p, number);
	else if (!p->known || p->says > p->floor)
		p->floor = p->says;
	p->known = true;
}

static void node_peer_is_same(struct node_peer *p, uint64_t number)
{
	int64_t now = clock_monotonic_ns();

	if (!p->same_since_ns) {
		p->same_since_ns = now;
	} else if (now - p->same_since_ns >= p->lease_ns) {
		log_warn("cluster", "a shard is dead: its targets are free", LOG_S("shard", p->name),
			LOG_I("followed", p->says), LOG_I("assignment", number), LOG_D("after", p->lease_ns));
		node_peer_ended(p, number);
	}
}

/* Fills in a copy; nothing is changed by an error. */
static void node_peer_look(
	struct assignment_node *n, struct node_peer *p, uint64_t oldest, uint64_t number)
{
	struct manifest_key key = manifest_key_of(str_of(p->name));
	char etag[BUCKET_ETAG_BYTES_MAX];
	struct bucket_info info;
	struct manifest m;
	enum err_code rc;
	struct err err;
	struct arena a;

	rc = p->etag[0] ? bucket_head(n->o.bucket, manifest_key_str(&key), &info, &err) : ERR_OK;
	if (!rc && p->etag[0] && !strcmp(info.etag, p->etag)) {
		node_peer_is_same(p, number);
		return;
	}
	arena_init(&a, 0);
	if (!rc && !(rc = manifest_get(n->o.bucket, manifest_key_str(&key), &a, &m, etag, &err))) {
		memcpy(p->etag, etag, sizeof(etag));
		node_peer_read(p, &m, oldest, number);
	} else if (rc == ERR_NOT_FOUND) {
		p->etag[0] = p->address[0] = '\0';
		p->gone = true;
		node_peer_ended(p, number);
	}
	arena_release(&a);
}

static bool node_peers_are_to_end(struct assignment_node *n, int64_t began)
{
	mutex_assert_held(&n->lock);
	return n->closing || n->wanted || clock_monotonic_ns() - began > ROUND_MAX_NS;
}

void node_peers_look(struct assignment_node *n, uint64_t number, bool *changed)
{
	int64_t began = clock_monotonic_ns();
	struct node_peer copy, *p;
	uint64_t floor, oldest;
	bool known;

	*changed = false;
	mutex_lock(&n->lock);
	for (size_t i = 0; i < n->peers_n && !node_peers_are_to_end(n, began); i++) {
		p = &n->peers[n->peers_at++ % n->peers_n];
		if (p->known && p->floor >= number)
			continue;
		copy = *p;
		oldest = assignment_rule_of(n->rule)->versions[0].number;
		known = p->known;
		floor = p->floor;
		mutex_unlock(&n->lock);
		node_peer_look(n, &copy, oldest, number);
		mutex_lock(&n->lock);
		if (!(p = node_peers_find_locked(n, str_of(copy.name))))
			break;
		*p = copy;
		*changed |= known != p->known || floor != p->floor;
	}
	n->peers_looked_ns = clock_monotonic_ns();
	mutex_unlock(&n->lock);
}

/* ---- where they are reached ---- */

/* It is known, or was asked for since the last look at the assignment. */
static bool node_peers_address_is_fresh(const struct assignment_node *n, const struct node_peer *p)
{
	return (p->address[0] && !p->gone) || p->address_look >= n->looks;
}

static enum err_code node_peers_read_address(
	struct assignment_node *n, struct str name, struct err *err)
{
	struct manifest_key key = manifest_key_of(name);
	struct node_peer *p;
	struct manifest m;
	enum err_code rc;
	struct arena a;
	bool gone;

	mutex_unlock(&n->lock);
	arena_init(&a, 0);
	rc = manifest_get(n->o.bucket, manifest_key_str(&key), &a, &m, NULL, err);
	mutex_lock(&n->lock);
	gone = rc == ERR_NOT_FOUND || (!rc && manifest_has_ended(&m));
	if ((p = node_peers_find_locked(n, name)) && (!rc || gone)) {
		p->gone = gone;
		snprintf(p->address, sizeof(p->address), STR_FMT, STR_ARG(rc ? STR("") : m.address));
	}
	if (p)
		p->address_look = n->looks;
	arena_release(&a);
	return gone ? ERR_OK : rc;
}

/* The shard's address; read from its manifest if it is not known. *gone: the shard has ended. */
static enum err_code node_peers_address(struct assignment_node *n, struct str name,
	struct assignment_owner *out, bool *gone, struct err *err)
{
	struct node_peer *p = node_peers_find_locked(n, name);
	enum err_code rc = ERR_OK;

	mutex_assert_held(&n->lock);
	if (p && !node_peers_address_is_fresh(n, p)) {
		rc = node_peers_read_address(n, name, err);
		p = node_peers_find_locked(n, name);
	}
	*gone = p && p->gone;
	if (p)
		memcpy(out->address, p->address, sizeof(out->address));
	return rc;
}

static enum err_code node_peers_find_owner(struct assignment_node *n,
	const struct assignment_version *v, uint64_t labels_hash, struct assignment_owner *out,
	bool *gone, struct err *err)
{
	struct str name = v->shards[assignment_owner(v, labels_hash)];

	*out = (struct assignment_owner){ .own = str_is(name, n->o.shard) };
	*gone = false;
	snprintf(out->name, sizeof(out->name), STR_FMT, STR_ARG(name));
	return out->own ? ERR_OK : node_peers_address(n, str_of(out->name), out, gone, err);
}

enum err_code assignment_push_owner(struct assignment_node *n, uint64_t labels_hash, int64_t ts_ns,
	struct assignment_owner *out, struct err *err)
{
	struct assignment_rule *rule;
	const struct assignment *s;
	enum err_code rc = ERR_OK;
	int64_t age;
	bool gone = false;

	mutex_lock(&n->lock);
	rule = assignment_rule_ref(n->rule); /* the lock is let go while the bucket is asked */
	s = assignment_rule_of(rule);
	age = n->good_ns ? clock_running_ns() - n->good_ns : INT64_MAX;
	if (!s->versions_n)
		rc = err_set(err, ERR_UNAVAILABLE, "the assignment of shards is not known yet");
	else if (age >= n->o.lease_ns)
		rc = err_set(err, ERR_UNAVAILABLE,
			"the assignment of shards was not read for the time of the lease: the bucket is away");
	if (!rc)
		rc = node_peers_find_owner(n, assignment_at(s, ts_ns), labels_hash, out, &gone, err);
	if (!rc && gone && !assignment_version_has(assignment_newest(s), str_of(out->name)))
		rc = node_peers_find_owner(n, assignment_newest(s), labels_hash, out, &gone, err);
	if (rc && rc != ERR_UNAVAILABLE)
		rc = err_set(err, ERR_UNAVAILABLE, "%s", err->msg);
	if (!rc && !out->own && !out->address[0])
		rc = err_set(err, ERR_UNAVAILABLE,
			gone ? "shard %s, which keeps these profiles, is not running" :
				   "shard %s, which keeps these profiles, has no address in its manifest",
			out->name);
	mutex_unlock(&n->lock);
	assignment_rule_unref(rule);
	return rc;
}

void assignment_forget_address(struct assignment_node *n, const char *name)
{
	struct node_peer *p;

	mutex_lock(&n->lock);
	if ((p = node_peers_find_locked(n, str_of(name))))
		p->address[0] = '\0';
	mutex_unlock(&n->lock);
}
