#include "web/debuginfo/uploads.h"

#include <assert.h>
#include <stdlib.h>

#include "base/thread.h"

struct debuginfo_uploads {
	struct mutex lock; /* guards the fields below */
	struct announced announced[UPLOADS_ANNOUNCED_MAX];
	struct http_sender running[UPLOADS_MAX];
	unsigned running_n;
};

enum err_code debuginfo_uploads_open(struct debuginfo_uploads **out, struct err *err)
{
	struct debuginfo_uploads *u = calloc(1, sizeof(*u));

	if (!u)
		return err_nomem(err, "uploads");
	mutex_init(&u->lock);
	*out = u;
	return ERR_OK;
}

void debuginfo_uploads_close(struct debuginfo_uploads *u)
{
	if (!u)
		return;
	assert(!u->running_n);
	mutex_destroy(&u->lock);
	free(u);
}

/* ---- announced ---- */

static struct announced *debuginfo_uploads_find(
	struct debuginfo_uploads *u, const struct debuginfo_id *id, int64_t now_ns)
{
	mutex_assert_held(&u->lock);
	for (size_t i = 0; i < UPLOADS_ANNOUNCED_MAX; i++) {
		struct announced *a = &u->announced[i];

		if (a->since_ns && now_ns - a->since_ns > UPLOADS_ANNOUNCED_NS)
			a->since_ns = 0;
		if (a->since_ns && debuginfo_id_eq(&a->id, id))
			return a;
	}
	return NULL;
}

/* A free place has the least time. */
static struct announced *debuginfo_uploads_oldest(struct debuginfo_uploads *u)
{
	struct announced *best = &u->announced[0];

	mutex_assert_held(&u->lock);
	for (size_t i = 1; i < UPLOADS_ANNOUNCED_MAX; i++)
		if (u->announced[i].since_ns < best->since_ns)
			best = &u->announced[i];
	return best;
}

bool uploads_announce(struct debuginfo_uploads *u, const struct debuginfo_id *id,
	enum debuginfo_kind kind, struct str path, struct http_sender client, int64_t now_ns)
{
	struct announced *a;
	bool own;

	if (path.len > DEBUGINFO_PATH_BYTES_MAX) {
		path.ptr += path.len - DEBUGINFO_PATH_BYTES_MAX;
		path.len = DEBUGINFO_PATH_BYTES_MAX;
	}
	mutex_lock(&u->lock);
	a = debuginfo_uploads_find(u, id, now_ns);
	own = !a || http_same_client(a->client, client) || a->kind < kind;
	if (own) {
		a = a ? a : debuginfo_uploads_oldest(u);
		*a = (struct announced){ .id = *id, .kind = kind, .client = client, .since_ns = now_ns };
		if (path.len)
			memcpy(a->path, path.ptr, path.len);
	}
	mutex_unlock(&u->lock);
	return own;
}

bool uploads_find(struct debuginfo_uploads *u, const struct debuginfo_id *id, int64_t now_ns,
	struct announced *out)
{
	struct announced *a;

	mutex_lock(&u->lock);
	a = debuginfo_uploads_find(u, id, now_ns);
	if (a)
		*out = *a;
	mutex_unlock(&u->lock);
	return a != NULL;
}

void uploads_forget(struct debuginfo_uploads *u, const struct debuginfo_id *id)
{
	mutex_lock(&u->lock);
	for (size_t i = 0; i < UPLOADS_ANNOUNCED_MAX; i++)
		if (u->announced[i].since_ns && debuginfo_id_eq(&u->announced[i].id, id))
			u->announced[i].since_ns = 0;
	mutex_unlock(&u->lock);
}

/* ---- under way ---- */

static enum err_code debuginfo_uploads_check(
	struct debuginfo_uploads *u, struct http_sender client, struct err *err)
{
	unsigned own = 0;

	mutex_assert_held(&u->lock);
	for (unsigned i = 0; i < u->running_n; i++)
		own += http_same_client(u->running[i], client);
	if (own >= UPLOADS_ADDRESS_MAX)
		return err_set(err, ERR_LIMIT,
			"%u uploads of this address are in progress, limit %u: try again later", own,
			UPLOADS_ADDRESS_MAX);
	if (u->running_n >= UPLOADS_MAX)
		return err_set(err, ERR_UNAVAILABLE,
			"%u uploads are in progress, limit %u: try again later", u->running_n, UPLOADS_MAX);
	return ERR_OK;
}

enum err_code uploads_check(struct debuginfo_uploads *u, struct http_sender client, struct err *err)
{
	enum err_code rc;

	mutex_lock(&u->lock);
	rc = debuginfo_uploads_check(u, client, err);
	mutex_unlock(&u->lock);
	return rc;
}

enum err_code uploads_enter(struct debuginfo_uploads *u, struct http_sender client, struct err *err)
{
	enum err_code rc;

	mutex_lock(&u->lock);
	rc = debuginfo_uploads_check(u, client, err);
	if (!rc)
		u->running[u->running_n++] = client;
	mutex_unlock(&u->lock);
	return rc;
}

void uploads_leave(struct debuginfo_uploads *u, struct http_sender client)
{
	unsigned i = 0;

	mutex_lock(&u->lock);
	while (i < u->running_n && !http_same_client(u->running[i], client))
		i++;
	assert(i < u->running_n);
	u->running[i] = u->running[--u->running_n];
	mutex_unlock(&u->lock);
}
