#include "tsdb/debuginfo/shared/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/net/sigv4.h"
#include "base/thread.h"

METRIC_COUNTER(shared_total, "epimetheus_symbols_shared_total",
	"Indexes of symbols that went to or came from the bucket: put, taken, merged, damaged, failed.",
	"result");

#define PREFIX "symbols/"
#define SUFFIX ".idx"
#define KEY_BYTES_MAX (sizeof(PREFIX SUFFIX) + 2 * DEBUGINFO_ID_BYTES_MAX + 8)
#define REST_NS (10 * NS_PER_S) /* after the bucket failed; no longer than list_ns */

struct shared_key {
	struct debuginfo_id id;
	char etag[BUCKET_ETAG_BYTES_MAX]; /* of the object, as it was last seen; "": there is none */
	uint64_t bytes; /* of it */
	uint32_t round; /* of the list that it was last in */
	bool damaged; /* this object is; or it is too large */
	/* What is here and the object said the same: its ETag, and the version of what was here. */
	char agreed[BUCKET_ETAG_BYTES_MAX];
	uint64_t version; /* 0: never */
};

struct shared_symbols {
	struct shared_symbols_options o;
	struct debuginfo_store *store;
	struct thread thread;
	struct mutex busy; /* all below but closing; held while the bucket is waited for */
	struct shared_key *v; /* ascending by id */
	size_t n, room;
	uint32_t round;
	uint64_t generation; /* of the store, when it was last compared */
	bool compared;
	int64_t listed_ns; /* monotonic; 0: never */
	int64_t rest_ns; /* the bucket is left alone until then */
	bool failing; /* it was logged */
	struct mutex lock; /* closing */
	struct cond changed;
	bool closing;
};

/* ---- the table ---- */

static size_t shared_symbols_place(const struct shared_symbols *s, const struct debuginfo_id *id)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memcmp(&s->v[middle].id, id, sizeof(*id)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct shared_key *shared_symbols_find(
	const struct shared_symbols *s, const struct debuginfo_id *id)
{
	size_t at = shared_symbols_place(s, id);

	return at < s->n && debuginfo_id_eq(&s->v[at].id, id) ? &s->v[at] : NULL;
}

/* NULL: there are too many, or no memory. */
static struct shared_key *shared_symbols_make(
	struct shared_symbols *s, const struct debuginfo_id *id)
{
	struct shared_key *k = shared_symbols_find(s, id), *grown;
	size_t at, room = s->room ? 2 * s->room : 64;

	mutex_assert_held(&s->busy);
	if (k || s->n >= SHARED_SYMBOLS_KEYS_MAX)
		return k;
	if (s->n == s->room) {
		if (!(grown = reallocarray(s->v, room, sizeof(*grown))))
			return NULL;
		s->v = grown;
		s->room = room;
	}
	at = shared_symbols_place(s, id);
	memmove(&s->v[at + 1], &s->v[at], (s->n - at) * sizeof(*s->v));
	s->v[at] = (struct shared_key){ .id = *id };
	s->n++;
	return &s->v[at];
}

static struct str shared_key_name(const struct debuginfo_id *id, char text[KEY_BYTES_MAX])
{
	struct buf b = { 0 };

	debuginfo_id_stem(id, &b);
	snprintf(text, KEY_BYTES_MAX, PREFIX STR_FMT SUFFIX, STR_ARG(buf_str(&b)));
	buf_release(&b);
	return str_of(text);
}

/* Another index of a key has another version. It may be 0 only by chance, which costs a look. */
static uint64_t shared_version(const struct debuginfo_info *i)
{
	const uint64_t is[] = { i->index_bytes, i->source_bytes, (uint64_t)i->added_s, i->kind,
		i->quality, i->origin };

	return hash_bytes(is, sizeof(is), 0);
}

static uint64_t shared_symbols_version(struct shared_symbols *s, const struct debuginfo_id *id)
{
	struct debuginfo_info i;

	return debuginfo_find(s->store, id, &i) && i.present ? shared_version(&i) : 0;
}

static void shared_key_set_etag(struct shared_key *k, const char *etag)
{
	if (strcmp(k->etag, etag) != 0)
		k->damaged = false;
	snprintf(k->etag, sizeof(k->etag), "%s", etag);
}

static void shared_key_agree(struct shared_symbols *s, struct shared_key *k)
{
	memcpy(k->agreed, k->etag, sizeof(k->agreed));
	k->version = shared_symbols_version(s, &k->id);
}

/* ---- the bucket's errors ---- */

static bool shared_symbols_is_closing(struct shared_symbols *s)
{
	bool closing;

	mutex_lock(&s->lock);
	closing = s->closing;
	mutex_unlock(&s->lock);
	return closing;
}

/* One line when it begins to fail, and one when it works again. */
static void shared_symbols_note(struct shared_symbols *s, enum err_code rc, const struct err *err)
{
	bool answered = !rc || rc == ERR_EXISTS || rc == ERR_NOT_FOUND;

	if (rc == ERR_CANCELED)
		return;
	if (!answered) {
		metric_add(&shared_total, "failed", 1);
		s->rest_ns = clock_monotonic_ns() + (s->o.list_ns < REST_NS ? s->o.list_ns : REST_NS);
	}
	if (!answered && !s->failing)
		log_warn("debuginfo", "symbols of the bucket are not reached", LOG_E(err));
	if (answered && s->failing)
		log_info("debuginfo", "symbols of the bucket are reached again");
	s->failing = !answered;
}

static void shared_symbols_refuse(struct shared_key *k, const char *why, const struct err *err)
{
	if (!k->damaged) {
		metric_add(&shared_total, "damaged", 1);
		log_warn("debuginfo", why, LOG_STR("id", debuginfo_id_text(&k->id)), LOG_E(err));
	}
	k->damaged = true;
}

/* ---- one key ---- */

/* Puts what is here. ERR_EXISTS: another member was faster. */
static enum err_code shared_symbols_put(
	struct shared_symbols *s, struct shared_key *k, struct err *err)
{
	char key[KEY_BYTES_MAX], etag[BUCKET_ETAG_BYTES_MAX] = "";
	struct debuginfo_index *own;
	struct str file;
	enum err_code rc;

	if (debuginfo_peek(s->store, &k->id, &own, err))
		return ERR_OK; /* it is gone meanwhile */
	file = debuginfo_index_file(own);
	if (file.len > SHARED_SYMBOLS_FILE_BYTES_MAX) {
		err_set(err, ERR_LIMIT, "%zu bytes, limit %llu", file.len,
			(unsigned long long)SHARED_SYMBOLS_FILE_BYTES_MAX);
		shared_symbols_refuse(k, "symbols are too large for the bucket", err);
		debuginfo_index_close(own);
		return ERR_OK;
	}
	rc = bucket_put(s->o.bucket, shared_key_name(&k->id, key), file,
		k->etag[0] ? BUCKET_IF_ETAG : BUCKET_IF_ABSENT, k->etag[0] ? k->etag : NULL, etag, err);
	debuginfo_index_close(own);
	shared_symbols_note(s, rc, err);
	if (rc)
		return rc;
	metric_add(&shared_total, "put", 1);
	shared_key_set_etag(k, etag);
	k->bytes = file.len;
	k->damaged = false;
	shared_key_agree(s, k);
	return ERR_OK;
}

/* After a start: the object has the very bytes that are here. */
static bool shared_symbols_is_same(struct shared_symbols *s, const struct shared_key *k)
{
	char key[KEY_BYTES_MAX], hash[SIGV4_HASH_LEN + 1] = "";
	struct bucket_info info = { 0 };
	struct debuginfo_index *own;
	struct err err;

	if (debuginfo_peek(s->store, &k->id, &own, &err))
		return false;
	if (debuginfo_index_file(own).len == k->bytes &&
		!bucket_head(s->o.bucket, shared_key_name(&k->id, key), &info, &err))
		sigv4_hash(debuginfo_index_file(own), hash);
	debuginfo_index_close(own);
	return hash[0] && !strcmp(hash, info.hash) && !strcmp(k->etag, info.etag);
}

static enum err_code shared_symbols_get(
	struct shared_symbols *s, struct shared_key *k, struct buf *out, struct err *err)
{
	char key[KEY_BYTES_MAX];
	struct bucket_info info = { 0 };
	enum err_code rc = bucket_get(s->o.bucket, shared_key_name(&k->id, key), 0,
		SHARED_SYMBOLS_FILE_BYTES_MAX + 1, out, &info, err);

	if (rc == ERR_CORRUPT || (!rc && out->len > SHARED_SYMBOLS_FILE_BYTES_MAX)) {
		shared_symbols_note(s, ERR_OK, NULL);
		if (!rc)
			rc = err_set(err, ERR_LIMIT, "%llu bytes", (unsigned long long)info.bytes);
		shared_symbols_refuse(k, "symbols in the bucket are damaged or too large", err);
		return ERR_CORRUPT;
	}
	shared_symbols_note(s, rc, err);
	if (!rc || rc == ERR_NOT_FOUND)
		shared_key_set_etag(k, rc ? "" : info.etag);
	return rc;
}

/* Takes what is there; puts what is here if that says more then. */
static enum err_code shared_symbols_take(
	struct shared_symbols *s, struct shared_key *k, struct err *err)
{
	bool whole = k->version && k->version == shared_symbols_version(s, &k->id), more = false;
	struct buf file = { 0 };
	enum err_code rc;

	if (!k->version && shared_symbols_is_same(s, k)) {
		shared_key_agree(s, k);
		return ERR_OK;
	}
	if (!(rc = shared_symbols_get(s, k, &file, err))) {
		rc = debuginfo_import(s->o.debuginfo, &k->id, buf_str(&file), whole, &more, err);
		if (rc == ERR_CORRUPT || rc == ERR_INVALID)
			shared_symbols_refuse(k, "symbols in the bucket are damaged", err);
		else if (!rc || rc == ERR_EXISTS)
			shared_key_agree(s, k);
		if (!rc)
			metric_add(&shared_total, more ? "merged" : "taken", 1);
		rc = rc == ERR_EXISTS ? ERR_OK : rc;
	}
	buf_release(&file);
	if (k->damaged && shared_symbols_version(s, &k->id))
		return shared_symbols_put(s, k, err); /* what is here is sound */
	return more ? shared_symbols_put(s, k, err) : rc;
}

/* There is one here. */
static void shared_symbols_compare(struct shared_symbols *s, const struct debuginfo_info *here)
{
	struct shared_key *k = shared_symbols_make(s, &here->id);
	bool changed, changed_there;
	enum err_code rc = ERR_OK;
	struct err err;

	if (!k)
		return;
	changed = k->version != shared_version(here);
	changed_there = k->etag[0] && strcmp(k->etag, k->agreed) != 0;
	if (k->etag[0] && !changed && !changed_there)
		return;
	if (k->damaged && !changed)
		return;
	if (!changed_there)
		rc = shared_symbols_put(s, k, &err);
	/* Another member was faster, or was there before. */
	for (int i = 0; i < 3 && (changed_there || rc == ERR_EXISTS); i++) {
		changed_there = false;
		rc = shared_symbols_take(s, k, &err);
	}
}

/* ---- rounds ---- */

static enum err_code shared_symbols_note_object(
	void *ctx, const struct bucket_object *o, struct err *err)
{
	struct shared_symbols *s = ctx;
	struct str stem = { o->key.ptr + strlen(PREFIX), o->key.len - strlen(PREFIX) };
	struct debuginfo_id id;
	struct shared_key *k;

	if (shared_symbols_is_closing(s))
		return err_set(err, ERR_CANCELED, "the server ends");
	if (o->is_prefix || !str_has_suffix(stem, STR(SUFFIX)))
		return ERR_OK;
	stem.len -= strlen(SUFFIX);
	if (!debuginfo_id_of_stem(stem, &id) || !(k = shared_symbols_make(s, &id)))
		return ERR_OK;
	shared_key_set_etag(k, o->info.etag);
	k->bytes = o->info.bytes;
	k->round = s->round;
	return ERR_OK;
}

static void shared_symbols_list(struct shared_symbols *s)
{
	struct err err = { .code = ERR_OK };
	enum err_code rc;

	s->round++;
	rc = bucket_list(
		s->o.bucket, STR(PREFIX), STR(""), STR(""), shared_symbols_note_object, s, &err);
	shared_symbols_note(s, rc, &err);
	if (rc)
		return;
	s->listed_ns = clock_monotonic_ns();
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].round != s->round)
			shared_key_set_etag(&s->v[i], "");
}

static bool shared_symbols_may_go_on(struct shared_symbols *s)
{
	return clock_monotonic_ns() >= s->rest_ns && !shared_symbols_is_closing(s);
}

static void shared_symbols_compare_all(struct shared_symbols *s)
{
	uint64_t generation = debuginfo_generation(s->store);
	struct debuginfo_info *here;
	struct arena a;
	struct err err;
	size_t n, i = 0;

	arena_init(&a, 0);
	if (debuginfo_list(s->store, &a, &here, &n, &err))
		n = 0;
	for (; i < n && shared_symbols_may_go_on(s); i++)
		if (here[i].present)
			shared_symbols_compare(s, &here[i]);
	s->compared = i == n;
	s->generation = generation;
	arena_release(&a);
}

/* What somebody wants and another member has put since. */
static void shared_symbols_take_wanted(struct shared_symbols *s)
{
	struct err err;

	for (size_t i = 0; i < s->n && shared_symbols_may_go_on(s); i++) {
		struct shared_key *k = &s->v[i];

		if (k->etag[0] && !k->damaged && !shared_symbols_version(s, &k->id) &&
			debuginfo_is_wanted(s->o.debuginfo, &k->id))
			(void)!shared_symbols_take(s, k, &err);
	}
}

static void shared_symbols_round(struct shared_symbols *s)
{
	int64_t now_ns = clock_monotonic_ns();
	bool list = !s->listed_ns || now_ns - s->listed_ns >= s->o.list_ns;

	mutex_assert_held(&s->busy);
	if (!shared_symbols_may_go_on(s))
		return;
	if (list)
		shared_symbols_list(s);
	if (s->listed_ns && (list || !s->compared || s->generation != debuginfo_generation(s->store)))
		shared_symbols_compare_all(s);
	if (list)
		shared_symbols_take_wanted(s);
}

static void shared_symbols_run(void *ctx)
{
	struct shared_symbols *s = ctx;
	bool closing = false;

	while (!closing) {
		mutex_lock(&s->busy);
		shared_symbols_round(s);
		mutex_unlock(&s->busy);
		mutex_lock(&s->lock);
		if (!s->closing)
			cond_wait_until(&s->changed, &s->lock, clock_monotonic_ns() + s->o.look_ns);
		closing = s->closing;
		mutex_unlock(&s->lock);
	}
}

bool shared_symbols_fetch(struct shared_symbols *s, const struct debuginfo_id *id)
{
	struct shared_key *k;
	struct err err;
	bool here;

	if (!mutex_try_lock(&s->busy)) /* a later list has it */
		return false;
	k = shared_symbols_find(s, id);
	if (k && k->etag[0] && !k->damaged && shared_symbols_may_go_on(s) &&
		!shared_symbols_version(s, id))
		(void)!shared_symbols_take(s, k, &err);
	here = !debuginfo_lacks(s->store, id);
	mutex_unlock(&s->busy);
	return here;
}

/* ---- opening ---- */

enum err_code shared_symbols_open(
	const struct shared_symbols_options *o, struct shared_symbols **out, struct err *err)
{
	struct shared_symbols *s = calloc(1, sizeof(*s));
	enum err_code rc;

	if (!s)
		return err_nomem(err, "symbols of the bucket");
	s->o = *o;
	if (!s->o.list_ns)
		s->o.list_ns = SHARED_SYMBOLS_LIST_NS;
	if (!s->o.look_ns)
		s->o.look_ns = SHARED_SYMBOLS_LOOK_NS;
	s->store = debuginfo_store(o->debuginfo);
	mutex_init(&s->busy);
	mutex_init(&s->lock);
	cond_init(&s->changed);
	if ((rc = thread_start(&s->thread, "shared-symbols", shared_symbols_run, s, err))) {
		shared_symbols_close(s);
		return rc;
	}
	*out = s;
	return ERR_OK;
}

void shared_symbols_close(struct shared_symbols *s)
{
	if (!s)
		return;
	mutex_lock(&s->lock);
	s->closing = true;
	cond_signal(&s->changed);
	mutex_unlock(&s->lock);
	thread_join(&s->thread);
	free(s->v);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
	mutex_destroy(&s->busy);
	free(s);
}
