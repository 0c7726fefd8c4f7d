#include "tsdb/catalog/members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tsdb/catalog/state.h"

/* The databases of a union, ascending by name. */

static size_t members_place_of(const struct db *d, const char *name, bool *found)
{
	size_t i = 0;
	int c = 1;

	mutex_assert_held(&d->lock);
	while (i < d->members_n && (c = strcmp(d->members[i]->name, name)) < 0)
		i++;
	*found = i < d->members_n && c == 0;
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
	struct db *d, const char *name, struct db *db, db_member_fn tell, void *ctx, struct err *err)
{
	struct member *m = member_new(name, db, tell, ctx);
	enum err_code rc = ERR_OK;
	bool found;
	size_t at;

	assert(d->is_union);
	if (!m)
		return err_nomem(err, "member");
	mutex_lock(&d->lock);
	at = members_place_of(d, name, &found);
	if (found)
		rc = err_set(err, ERR_EXISTS, "there is a shard %s already", name);
	else if (!array_room(&d->members, d->members_n, 1, &d->members_cap))
		rc = err_nomem(err, "member");
	if (!rc) {
		memmove(d->members + at + 1, d->members + at, (d->members_n - at) * sizeof(*d->members));
		d->members[at] = m;
		d->members_n++;
	}
	mutex_unlock(&d->lock);
	if (rc)
		member_free(m);
	return rc;
}

struct db *members_remove(struct db *d, const char *name)
{
	struct member *m = NULL;
	struct db *db;
	bool found;
	size_t at;

	mutex_lock(&d->lock);
	at = members_place_of(d, name, &found);
	if (found) {
		m = d->members[at];
		d->members_n--;
		memmove(d->members + at, d->members + at + 1, (d->members_n - at) * sizeof(*d->members));
	}
	while (m && m->pins)
		cond_wait(&d->changed, &d->lock);
	mutex_unlock(&d->lock);
	db = m ? m->db : NULL;
	member_free(m);
	return db;
}

enum err_code members_pin(struct db *d, struct member ***out, size_t *n, struct err *err)
{
	struct member **v;

	mutex_lock(&d->lock);
	if ((v = malloc((d->members_n + 1) * sizeof(*v)))) {
		for (size_t i = 0; i < d->members_n; i++) {
			v[i] = d->members[i];
			v[i]->pins++;
		}
		*n = d->members_n;
	}
	mutex_unlock(&d->lock);
	*out = v;
	return v ? ERR_OK : err_nomem(err, "members");
}

void members_unpin(struct db *d, struct member **m, size_t n)
{
	mutex_lock(&d->lock);
	for (size_t i = 0; i < n; i++) {
		assert(m[i]->pins > 0);
		m[i]->pins--;
	}
	cond_broadcast(&d->changed);
	mutex_unlock(&d->lock);
	free(m);
}

enum err_code members_refuse(const struct db *db, const char *what, struct err *err)
{
	return db->is_union ?
		err_set(err, ERR_UNSUPPORTED,
			"%s: this server only answers queries: send the request to the shard", what) :
		ERR_OK;
}
