#include "tsdb/catalog/members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tsdb/catalog/state.h"

/* The databases of a union, ascending by name. */

static size_t members_place_of(const struct db *u, const char *name, bool *found)
{
	size_t i = 0;
	int c = 1;

	mutex_assert_held(&u->lock);
	while (i < u->members_n && (c = strcmp(u->members[i]->name, name)) < 0)
		i++;
	*found = i < u->members_n && c == 0;
	return i;
}

static void member_free(struct member *m)
{
	if (m)
		free(m->name);
	free(m);
}

static struct member *member_new(const char *name, struct db *db, db_member_fn tell, void *ctx)
{
	struct member *m = calloc(1, sizeof(*m));

	assert(!db->is_union);
	if (!m || !(m->name = strdup(name))) {
		member_free(m);
		return NULL;
	}
	m->db = db;
	m->tell = tell;
	m->ctx = ctx;
	return m;
}

enum err_code members_add(
	struct db *u, const char *name, struct db *db, db_member_fn tell, void *ctx, struct err *err)
{
	struct member *m = member_new(name, db, tell, ctx);
	enum err_code rc = ERR_OK;
	bool found;
	size_t at;

	assert(u->is_union);
	if (!m)
		return err_nomem(err, "member");
	mutex_lock(&u->lock);
	at = members_place_of(u, name, &found);
	if (found)
		rc = err_set(err, ERR_EXISTS, "there is a shard %s already", name);
	else if (!array_room(&u->members, u->members_n, 1, &u->members_cap))
		rc = err_nomem(err, "member");
	if (!rc) {
		memmove(u->members + at + 1, u->members + at, (u->members_n - at) * sizeof(*u->members));
		u->members[at] = m;
		u->members_n++;
	}
	mutex_unlock(&u->lock);
	if (rc)
		member_free(m);
	return rc;
}

enum err_code members_replace(
	struct db *u, const char *name, struct db *db, db_member_fn tell, void *ctx, struct err *err)
{
	struct member *m = member_new(name, db, tell, ctx), *old = m;
	bool found;
	size_t at;

	if (!m)
		return err_nomem(err, "member");
	mutex_lock(&u->lock);
	at = members_place_of(u, name, &found);
	if (found) {
		old = u->members[at];
		u->members[at] = m;
	}
	while (found && old->pins)
		cond_wait(&u->changed, &u->lock);
	mutex_unlock(&u->lock);
	member_free(old);
	return found ? ERR_OK : err_set(err, ERR_NOT_FOUND, "there is no shard %s", name);
}

struct db *members_remove(struct db *u, const char *name)
{
	struct member *m = NULL;
	struct db *db;
	bool found;
	size_t at;

	mutex_lock(&u->lock);
	at = members_place_of(u, name, &found);
	if (found) {
		m = u->members[at];
		u->members_n--;
		memmove(u->members + at, u->members + at + 1, (u->members_n - at) * sizeof(*u->members));
	}
	while (m && m->pins)
		cond_wait(&u->changed, &u->lock);
	mutex_unlock(&u->lock);
	db = m ? m->db : NULL;
	member_free(m);
	return db;
}

enum err_code members_pin(struct db *u, struct member ***out, size_t *n, struct err *err)
{
	struct member **v;

	mutex_lock(&u->lock);
	if ((v = malloc((u->members_n + 1) * sizeof(*v)))) {
		for (size_t i = 0; i < u->members_n; i++) {
			v[i] = u->members[i];
			v[i]->pins++;
		}
		*n = u->members_n;
	}
	mutex_unlock(&u->lock);
	*out = v;
	return v ? ERR_OK : err_nomem(err, "members");
}

void members_unpin(struct db *u, struct member **v, size_t n)
{
	mutex_lock(&u->lock);
	for (size_t i = 0; i < n; i++) {
		assert(v[i]->pins > 0);
		v[i]->pins--;
	}
	cond_broadcast(&u->changed);
	mutex_unlock(&u->lock);
	free(v);
}

enum err_code members_refuse(const struct db *db, const char *what, struct err *err)
{
	return db->is_union ?
		err_set(err, ERR_UNSUPPORTED, "%s: this server only answers queries; ask the shard", what) :
		ERR_OK;
}
