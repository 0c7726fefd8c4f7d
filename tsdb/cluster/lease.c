#include "tsdb/cluster/lease.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/self/starting.h"
#include "base/thread.h"

#define LOOKS 20 /* at the manifest of another owner, in the lease's time */
#define LOOK_MIN_NS (20 * NS_PER_MS)

struct lease {
	struct bucket *bucket;
	struct fs *fs;
	struct arena arena; /* of what follows */
	struct str shard, host, key;
	struct str address; /* empty: the shard joins no others */
	_Atomic uint64_t assignment;
	const char *what;
	char *owner_path; /* NULL: none */
	char owner[MANIFEST_TOKEN_LEN + 1], session[MANIFEST_TOKEN_LEN + 1];
	int64_t interval_ns, lease_ns;
	bool no_probe;
	struct starting *waiting;
	char seen[BUCKET_ETAG_BYTES_MAX]; /* "": nothing */
	char taker[MANIFEST_TOKEN_LEN + 1]; /* a caretaker repeats it; "": we take profiles */
	uint64_t taker_generation;

	char etag[BUCKET_ETAG_BYTES_MAX]; /* of the manifest that is there; "": there is none */
	bool uncertain; /* the last write failed, but may have been done */
	int64_t put_at_ns; /* monotonic, when the last write was confirmed; 0: it was not */
	uint64_t generation; /* of the last write, confirmed or not */
	uint64_t noted; /* generation in the directory's file; 0 while it is behind */
	bool behind; /* the directory is not what the manifest names yet */
	int64_t since_ns;
	_Atomic uint64_t confirmed, confirmed_bytes;
	_Atomic int64_t confirmed_at_ns; /* clock_running_ns, when that write began; 0: none */
	atomic_bool fenced;
	struct err why; /* it was fenced */

	struct mutex lock; /* guards canceled */
	struct cond changed;
	bool canceled;
};

/* ---- tokens ---- */

static bool lease_is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!s.ptr[i] || !strchr("0123456789abcdef", s.ptr[i]))
			return false;
	return s.len == MANIFEST_TOKEN_LEN;
}

/*
 * The file: the token, and the generation that we last tried to write. A restored backup has the
 * same token and an older generation, so it does not pass for the directory that wrote the
 * manifest. Nor does one that is not made of the manifest yet: its generation is 0.
 */
static enum err_code lease_note_owner(struct lease *l, struct err *err)
{
	uint64_t generation = l->behind ? 0 : l->generation;
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;

	buf_printf(&b, "%s %" PRIu64 "\n", l->owner, generation);
	if (l->owner_path)
		rc = buf_failed(&b) ? err_nomem(err, "lease") :
							  fs_write_file(l->fs, l->owner_path, buf_str(&b), err);
	if (!rc)
		l->noted = generation;
	buf_release(&b);
	return rc;
}

static bool lease_parse_owner(struct lease *l, struct str s)
{
	struct str token = { s.ptr, MANIFEST_TOKEN_LEN }, number;

	if (s.len < MANIFEST_TOKEN_LEN + 2 || s.ptr[MANIFEST_TOKEN_LEN] != ' ' ||
		!lease_is_token(token))
		return false;
	number = (struct str){ s.ptr + MANIFEST_TOKEN_LEN + 1, s.len - MANIFEST_TOKEN_LEN - 1 };
	if (!str_to_u64(number, &l->noted))
		return false;
	memcpy(l->owner, s.ptr, MANIFEST_TOKEN_LEN);
	return true;
}

/* The directory's token; a new one where it has none that can be read. */
static enum err_code lease_load_owner(struct lease *l, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	bool found = false;

	if (l->owner[0])
		return ERR_OK;
	if (l->owner_path && fs_exists(l->owner_path)) {
		rc = fs_read_file(l->owner_path, 256, &b, err);
		found = !rc && lease_parse_owner(l, str_trim(buf_str(&b)));
		if (!found && (!rc || rc == ERR_LIMIT)) {
			log_warn(
				"cluster", "token is damaged, a new one is made", LOG_S("path", l->owner_path));
			rc = ERR_OK;
		}
	}
	if (!rc && !found) {
		manifest_new_token(l->owner);
		if ((rc = lease_note_owner(l, err)))
			l->owner[0] = '\0';
	}
	buf_release(&b);
	return rc;
}

/* ---- opening ---- */

int64_t lease_time_ns(int64_t interval_ns, int64_t lease_ns)
{
	if (lease_ns)
		return lease_ns;
	return 3 * interval_ns < LEASE_MIN_NS ? LEASE_MIN_NS : 3 * interval_ns;
}

static enum err_code lease_copy_options(
	struct lease *l, const struct lease_options *o, struct err *err)
{
	struct manifest_key key = manifest_key_of(o->shard);
	char host[MANIFEST_HOST_BYTES_MAX + 1] = "unknown";

	if (!o->host)
		(void)!gethostname(host, sizeof(host) - 1);
	else
		snprintf(host, sizeof(host), "%s", o->host);
	if (!str_is_utf8(str_of(host)))
		snprintf(host, sizeof(host), "unknown");
	l->bucket = o->bucket;
	l->fs = o->fs ? o->fs : &fs_posix;
	l->what = o->what ? o->what : "shard";
	l->no_probe = o->no_probe;
	l->waiting = o->waiting;
	if (o->seen)
		snprintf(l->seen, sizeof(l->seen), "%s", o->seen);
	l->interval_ns = o->interval_ns;
	l->lease_ns = lease_time_ns(o->interval_ns, o->lease_ns);
	l->shard = str_dup(&l->arena, o->shard);
	l->host = str_dup(&l->arena, str_of(host));
	l->key = str_dup(&l->arena, o->key ? str_of(o->key) : manifest_key_str(&key));
	l->address = str_dup(&l->arena, str_of(o->address ? o->address : ""));
	if (o->dir)
		l->owner_path = path_join(&l->arena, str_of(o->dir), STR(LEASE_OWNER_FILE));
	if (!l->shard.ptr || !l->host.ptr || !l->address.ptr || !l->key.ptr ||
		(o->dir && !l->owner_path))
		return err_nomem(err, "lease");
	return ERR_OK;
}

enum err_code lease_open(const struct lease_options *o, struct lease **out, struct err *err)
{
	struct lease *l;
	enum err_code rc;

	if ((rc = manifest_check_shard(o->shard, err)))
		return rc;
	if (o->interval_ns <= 0)
		return err_set(err, ERR_INVALID, "the segment interval must be more than 0");
	if (!(l = calloc(1, sizeof(*l))))
		return err_nomem(err, "lease");
	arena_init(&l->arena, 0);
	mutex_init(&l->lock);
	cond_init(&l->changed);
	manifest_new_token(l->session);
	if ((rc = lease_copy_options(l, o, err))) {
		lease_close(l);
		return rc;
	}
	*out = l;
	return ERR_OK;
}

void lease_close(struct lease *l)
{
	if (!l)
		return;
	mutex_destroy(&l->lock);
	cond_destroy(&l->changed);
	arena_release(&l->arena);
	free(l);
}

/* ---- who has it ---- */

static bool lease_is_ours(const struct lease *l, const struct manifest *m)
{
	return str_is(m->session, l->session);
}

static enum err_code lease_say_who(
	const struct lease *l, const struct manifest *m, bool fenced, struct err *err)
{
	struct buf when = { 0 };

	time_print_rfc3339(&when, m->since_ns);
	err_set(err, ERR_EXISTS,
		fenced ? "%s " STR_FMT " was taken over by " STR_FMT " at " STR_FMT :
				 "%s " STR_FMT " is in use by " STR_FMT " since " STR_FMT,
		l->what, STR_ARG(l->shard), STR_ARG(m->host), STR_ARG(buf_str(&when)));
	buf_release(&when);
	return ERR_EXISTS;
}

static enum err_code lease_fence(struct lease *l, const struct manifest *by, struct err *err)
{
	lease_say_who(l, by, true, &l->why);
	atomic_store(&l->fenced, true);
	return err_copy(err, &l->why);
}

/* ---- writing ---- */

static enum err_code lease_put(struct lease *l, const struct manifest *contents, struct err *err)
{
	struct manifest copy = *contents, *m = &copy;
	int64_t began = clock_running_ns();
	char etag[BUCKET_ETAG_BYTES_MAX];
	struct buf text = { 0 };
	enum err_code rc;
	struct err why;

	m->shard = l->shard;
	m->owner = str_of(l->owner);
	m->session = str_of(l->session);
	m->host = l->host;
	m->since_ns = l->since_ns;
	m->interval_ns = l->interval_ns;
	m->lease_ns = l->lease_ns;
	m->taker = str_of(l->taker);
	m->taker_generation = l->taker_generation;
	m->address = l->address;
	m->assignment = l->address.len ? atomic_load(&l->assignment) : 0;
	m->written_ns = clock_now_ns();
	m->clock_ns = clock_monotonic_ns();
	m->confirmed_ns = l->put_at_ns;
	m->generation = ++l->generation;
	if (lease_note_owner(l, &why)) /* then the next start takes the directory for an older one */
		log_warn("cluster", "token not written", LOG_E(&why));
	manifest_print(&text, m);
	if (buf_failed(&text)) {
		rc = err_nomem(err, "manifest");
	} else if (text.len > MANIFEST_BYTES_MAX) {
		rc = err_set(err, ERR_LIMIT, "the manifest is %zu bytes, limit %u", text.len,
			(unsigned)MANIFEST_BYTES_MAX);
	} else {
		rc = bucket_put(l->bucket, l->key, buf_str(&text),
			l->etag[0] ? BUCKET_IF_ETAG : BUCKET_IF_ABSENT, l->etag, etag, err);
		l->uncertain = rc != ERR_OK;
		l->put_at_ns = rc ? 0 : clock_monotonic_ns();
	}
	if (!rc) {
		memcpy(l->etag, etag, sizeof(etag));
		atomic_store(&l->confirmed_bytes, text.len);
		atomic_store(&l->confirmed, m->generation);
		atomic_store(&l->confirmed_at_ns, began);
	}
	buf_release(&text);
	return rc;
}

/*
 * Reads the manifest after a write that failed or had no answer. ERR_OK: l->etag is what the next
 * write replaces.
 */
static enum err_code lease_look_again(struct lease *l, struct err *err)
{
	struct bucket_info info;
	struct manifest there;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	rc = manifest_get(l->bucket, l->key, &a, &there, l->etag, err);
	if (!rc) {
		if (!lease_is_ours(l, &there))
			rc = lease_fence(l, &there, err);
	} else if (rc == ERR_NOT_FOUND) {
		/* An owner after us would have written it: somebody removed it. We know what it said. */
		if (atomic_load(&l->confirmed))
			log_error(
				"cluster", "manifest was removed, and is written again", LOG_STR("key", l->key));
		l->etag[0] = '\0';
		rc = ERR_OK;
	} else if (rc == ERR_CORRUPT && !(rc = bucket_head(l->bucket, l->key, &info, err))) {
		log_error("cluster", "manifest was damaged, and is written again", LOG_STR("key", l->key));
		memcpy(l->etag, info.etag, sizeof(info.etag));
	}
	arena_release(&a);
	if (!rc)
		l->uncertain = false;
	return rc;
}

enum err_code lease_write(struct lease *l, const struct manifest *m, struct err *err)
{
	enum err_code rc;

	if (atomic_load(&l->fenced))
		return err_copy(err, &l->why);
	if (l->uncertain && (rc = lease_look_again(l, err)))
		return rc;
	rc = lease_put(l, m, err);
	/* An earlier write of ours was done after all, or another owner is there. */
	for (unsigned i = 0; i < 2 && rc == ERR_EXISTS; i++) {
		if ((rc = lease_look_again(l, err)))
			return rc;
		rc = lease_put(l, m, err);
	}
	if (rc == ERR_EXISTS) /* it changes under us, but not by another owner; look again later */
		rc = err_set(err, ERR_UNAVAILABLE, "the manifest " STR_FMT " changes at the same time",
			STR_ARG(l->key));
	return rc;
}

/* ---- taking it ---- */

void lease_cancel(struct lease *l)
{
	mutex_lock(&l->lock);
	l->canceled = true;
	cond_broadcast(&l->changed);
	mutex_unlock(&l->lock);
}

static bool lease_pause_until(struct lease *l, int64_t until_ns)
{
	bool canceled;

	mutex_lock(&l->lock);
	canceled = cond_wait_flag(&l->changed, &l->lock, &l->canceled, until_ns);
	mutex_unlock(&l->lock);
	return !canceled;
}

/* For people who ask why the start takes so long. */
static void lease_say_wait(struct lease *l, const struct manifest *there, int64_t wait)
{
	struct buf when = { 0 };

	time_print_rfc3339(&when, there->since_ns);
	starting_say_time(l->waiting, wait,
		"waiting for the lease of %s " STR_FMT ", which " STR_FMT " had since " STR_FMT, l->what,
		STR_ARG(l->shard), STR_ARG(there->host), STR_ARG(buf_str(&when)));
	buf_release(&when);
}

/* Ours or the owner's, whichever is longer: until then it may acknowledge something. */
static int64_t lease_wait_ns(const struct lease *l, const struct manifest *there)
{
	int64_t theirs = there->lease_ns < LEASE_MAX_NS ? there->lease_ns : LEASE_MAX_NS;

	return theirs > l->lease_ns ? theirs : l->lease_ns;
}

/* Waits until the manifest has been the same for the lease's time; *there is read again where it
 * says that its owner ended. */
static enum err_code lease_wait_for_owner(
	struct lease *l, struct arena *a, struct manifest *there, struct err *err)
{
	int64_t since = clock_monotonic_ns(), wait = lease_wait_ns(l, there), step = wait / LOOKS;
	struct bucket_info info;
	enum err_code rc;
	struct err why;

	step = step < LOOK_MIN_NS ? LOOK_MIN_NS : step;
	log_info("cluster", "waiting for the lease", LOG_S("of", l->what), LOG_STR("name", l->shard),
		LOG_STR("owner", there->host), LOG_D("time", wait));
	lease_say_wait(l, there, wait);
	while (clock_monotonic_ns() - since < wait) { /* a look each step */
		if (!lease_pause_until(l, clock_monotonic_ns() + step))
			return err_set(err, ERR_CANCELED, "no longer waiting for the lease of %s " STR_FMT,
				l->what, STR_ARG(l->shard));
		/* Without an answer nothing is known; the conditional write decides. */
		rc = bucket_head(l->bucket, l->key, &info, &why);
		if (rc && rc != ERR_NOT_FOUND)
			continue;
		if (!rc && strcmp(info.etag, l->etag) == 0)
			continue;
		if (rc == ERR_NOT_FOUND ||
			(rc = manifest_get(l->bucket, l->key, a, there, l->etag, err)) == ERR_NOT_FOUND)
			return err_set(err, ERR_UNAVAILABLE, "the manifest " STR_FMT " was removed meanwhile",
				STR_ARG(l->key));
		if (rc)
			return rc;
		return there->stopped ? ERR_OK : lease_say_who(l, there, false, err);
	}
	return ERR_OK;
}

static enum err_code lease_claim(
	struct lease *l, bool idle, struct arena *a, struct manifest *m, struct err *err)
{
	struct manifest there;
	enum err_code rc;

	l->generation = m->generation;
	l->since_ns = clock_now_ns();
	m->stopped = false;
	m->complete &= idle;
	rc = lease_put(l, m, err);
	if (rc != ERR_EXISTS)
		return rc;
	if ((rc = manifest_get(l->bucket, l->key, a, &there, l->etag, err)))
		return rc;
	/* Another write was faster. It may be an earlier one of ours that had no answer. */
	return lease_is_ours(l, &there) ? lease_put(l, m, err) : lease_say_who(l, &there, false, err);
}

/*
 * The directory took profiles last, and is no older state of itself. It may have noted a write that
 * was not done, or the bucket may be an older copy: then it is ahead of the manifest.
 */
static bool lease_is_same(const struct lease *l, const struct manifest *m)
{
	if (m->taker.len)
		return str_is(m->taker, l->owner) && l->noted >= m->taker_generation;
	return str_is(m->owner, l->owner) && l->noted >= m->generation;
}

/* The directory, or the bucket, has all that was acknowledged under the name. */
static bool lease_has_all(const struct lease *l, const struct manifest *m)
{
	if (m->complete || !m->generation)
		return true;
	return !m->loss_due && lease_is_same(l, m);
}

/*
 * True: the directory goes on. Otherwise it is to be made of the manifest and gets a new token:
 * other copies of the old directory must not pass for the new one.
 */
static bool lease_judge_directory(struct lease *l, const struct manifest *m)
{
	bool same = lease_is_same(l, m) || (!m->windows_n && !m->blocks_n);

	if (!same)
		manifest_new_token(l->owner);
	l->behind = !same;
	return same;
}

/* For a caretaker: its manifests name the directory that took profiles last. */
static void lease_keep_taker(struct lease *l, const struct manifest *m)
{
	struct str taker = m->taker.len ? m->taker : m->owner;

	snprintf(l->taker, sizeof(l->taker), STR_FMT, STR_ARG(taker));
	l->taker_generation = m->taker.len ? m->taker_generation : m->generation;
}

enum err_code lease_take(
	struct lease *l, bool idle, struct arena *a, struct manifest *out, bool *same, struct err *err)
{
	enum err_code rc;

	*same = false;
	if (!l->no_probe && (rc = bucket_probe(l->bucket, err)))
		return rc;
	l->no_probe = true;
	if ((rc = lease_load_owner(l, err)))
		return rc;
	rc = manifest_get(l->bucket, l->key, a, out, l->etag, err);
	if (!rc && l->seen[0]) {
		if (strcmp(l->etag, l->seen))
			rc = lease_say_who(l, out, false, err);
	} else if (rc == ERR_NOT_FOUND && !l->seen[0]) {
		*out = (struct manifest){ .complete = true, /* nobody took anything yet */
			.windows = arena_new(a, struct manifest_window),
			.blocks = arena_new(a, struct manifest_block),
			.gone = arena_new(a, struct manifest_gone) };
		l->etag[0] = '\0';
		rc = out->windows && out->blocks && out->gone ? ERR_OK : err_nomem(err, "lease");
	} else if (!rc && !str_is(out->owner, l->owner) && !out->stopped && !lease_is_ours(l, out)) {
		rc = lease_wait_for_owner(l, a, out, err);
	}
	if (rc)
		return rc;
	lease_set_assignment(l, out->assignment);
	if (!l->seen[0]) {
		out->loss_due = !lease_has_all(l, out);
		*same = lease_judge_directory(l, out);
	} else {
		lease_keep_taker(l, out);
	}
	if ((rc = lease_claim(l, idle || l->behind, a, out, err)))
		return rc;
	log_info("cluster", "lease taken", LOG_S("of", l->what), LOG_STR("name", l->shard),
		LOG_I("generation", l->generation), LOG_I("blocks", out->blocks_n),
		LOG_I("windows", out->windows_n));
	return ERR_OK;
}

void lease_restored(struct lease *l)
{
	l->behind = false;
}

/* ---- state ---- */

void lease_set_assignment(struct lease *l, uint64_t number)
{
	uint64_t had = atomic_load(&l->assignment);

	while (had < number && !atomic_compare_exchange_weak(&l->assignment, &had, number))
		;
}

bool lease_is_fenced(const struct lease *l)
{
	return atomic_load(&l->fenced);
}

int64_t lease_age_ns(const struct lease *l)
{
	int64_t at = atomic_load(&l->confirmed_at_ns);

	return at ? clock_running_ns() - at : INT64_MAX;
}

bool lease_is_sure(const struct lease *l)
{
	return !lease_is_fenced(l) && lease_age_ns(l) < l->lease_ns;
}

int64_t lease_ns(const struct lease *l)
{
	return l->lease_ns;
}

uint64_t lease_generation(const struct lease *l)
{
	return atomic_load(&l->confirmed);
}

uint64_t lease_manifest_bytes(const struct lease *l)
{
	return atomic_load(&l->confirmed_bytes);
}
