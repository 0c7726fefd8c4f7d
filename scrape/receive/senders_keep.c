#include "scrape/receive/senders_keep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"

#define PERIOD_NS NS_PER_MIN

struct senders_keeper {
	struct senders_keep_options o;
	struct thread thread;
	struct mutex lock; /* closing */
	struct cond changed;
	bool closing;
	uint64_t written, put; /* hashes of the lists that are there */
};

static void senders_keeper_read(struct senders_keeper *k)
{
	struct sender_list l;
	struct buf text = { 0 };
	struct arena a;
	struct err err;
	enum err_code rc;

	if (!k->o.path || !fs_exists(k->o.path))
		return;
	arena_init(&a, 0);
	if (!(rc = fs_read_file(k->o.path, SENDERS_BYTES_MAX, &text, &err)) &&
		!(rc = sender_list_read(buf_str(&text), &a, &l, &err)))
		senders_restore(k->o.senders, &l);
	if (rc)
		log_warn(
			"receive", "the list of senders begins anew", LOG_S("path", k->o.path), LOG_E(&err));
	arena_release(&a);
	buf_release(&text);
}

static enum err_code senders_keeper_print(
	struct senders_keeper *k, struct buf *out, struct err *err)
{
	struct sender_list l;
	struct arena a;
	struct json j;
	enum err_code rc;

	arena_init(&a, 0);
	if (!(rc = senders_list(k->o.senders, &a, &l, err))) {
		json_init(&j, out);
		sender_list_write(&j, &l, l.since_ns); /* a state is for its time, and is not read */
		if (buf_failed(out))
			rc = err_nomem(err, "senders");
	}
	arena_release(&a);
	return rc;
}

static void senders_keeper_write(struct senders_keeper *k)
{
	struct buf text = { 0 };
	struct err err;
	enum err_code rc;
	uint64_t hash;

	if ((rc = senders_keeper_print(k, &text, &err)))
		log_warn("receive", "the list of senders is not written", LOG_E(&err));
	hash = hash_bytes(text.ptr, text.len, 0);
	if (!rc && k->o.path && hash != k->written) {
		if (fs_write_file(&fs_posix, k->o.path, buf_str(&text), &err))
			log_warn("receive", "the list of senders is not written", LOG_E(&err));
		else
			k->written = hash;
	}
	if (!rc && k->o.put && hash != k->put) {
		if (k->o.put(k->o.ctx, buf_str(&text), &err))
			log_warn("receive", "the list of senders is not in the bucket", LOG_E(&err));
		else
			k->put = hash;
	}
	buf_release(&text);
}

static void senders_keeper_run(void *ctx)
{
	struct senders_keeper *k = ctx;
	bool closing = false;

	while (!closing) {
		mutex_lock(&k->lock);
		if (!k->closing)
			cond_wait_until(&k->changed, &k->lock, clock_monotonic_ns() + PERIOD_NS);
		closing = k->closing;
		mutex_unlock(&k->lock);
		senders_keeper_write(k);
	}
}

enum err_code senders_keep_open(
	const struct senders_keep_options *o, struct senders_keeper **out, struct err *err)
{
	struct senders_keeper *k = calloc(1, sizeof(*k));
	enum err_code rc;

	if (!k)
		return err_nomem(err, "senders");
	k->o = *o;
	mutex_init(&k->lock);
	cond_init(&k->changed);
	senders_keeper_read(k);
	if ((rc = thread_start(&k->thread, "senders", senders_keeper_run, k, err))) {
		cond_destroy(&k->changed);
		mutex_destroy(&k->lock);
		free(k);
		return rc;
	}
	*out = k;
	return ERR_OK;
}

void senders_keep_close(struct senders_keeper *k)
{
	if (!k)
		return;
	mutex_lock(&k->lock);
	k->closing = true;
	cond_signal(&k->changed);
	mutex_unlock(&k->lock);
	thread_join(&k->thread);
	cond_destroy(&k->changed);
	mutex_destroy(&k->lock);
	free(k);
}
