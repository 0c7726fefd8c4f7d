#include "cmd/epimetheus/shard_targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "scrape/target_lines.h"

#define FIRST_NS (5 * NS_PER_S)
#define PERIOD_NS NS_PER_MIN
#define GZIP_LEVEL 1

struct shard_targets {
	struct shard_targets_options o;
	struct thread thread;
	uint64_t put_hash; /* of the list that is there, without its time; 0: none */
	struct mutex lock; /* closing */
	struct cond changed;
	bool closing;
};

static enum err_code shard_targets_print(
	struct shard_targets *t, struct buf *text, size_t *active, struct err *err)
{
	struct scrape_snapshot s;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	if (!(rc = scrape_manager_snapshot(t->o.manager, NULL, &a, &s, err))) {
		*active = s.active_n;
		rc = target_lines_print(&s, clock_now_ns(), TARGET_LINES_BYTES_MAX, text, err);
		scrape_snapshot_release(&s);
	}
	arena_release(&a);
	return rc;
}

/* The time is at the beginning: its digits are as many each time. */
static uint64_t shard_targets_hash(struct str text)
{
	const char *rest = memchr(text.ptr, ',', text.len);

	return rest ? hash_bytes(rest, text.len - (size_t)(rest - text.ptr), 0) : 0;
}

static void shard_targets_put(struct shard_targets *t)
{
	struct buf text = { 0 }, packed = { 0 };
	size_t active = 0;
	struct err err;
	enum err_code rc = shard_targets_print(t, &text, &active, &err);
	uint64_t hash = rc ? 0 : shard_targets_hash(buf_str(&text));

	if (!rc && (active || hash != t->put_hash)) {
		if (!(rc = gzip_compress(buf_str(&text), GZIP_LEVEL, &packed, &err)) &&
			!(rc = t->o.put(t->o.ctx, buf_str(&packed), &err)))
			t->put_hash = hash;
	}
	if (rc)
		log_warn("main", "the list of targets is not in the bucket", LOG_E(&err));
	buf_release(&text);
	buf_release(&packed);
}

/* The first scrapes of all targets are over within an interval: nobody waits a minute for them. */
static void shard_targets_run(void *ctx)
{
	struct shard_targets *t = ctx;
	int64_t wait_ns = FIRST_NS;

	while (!cond_sleep_unless(&t->changed, &t->lock, &t->closing, wait_ns)) {
		shard_targets_put(t);
		wait_ns = 3 * wait_ns < PERIOD_NS ? 3 * wait_ns : PERIOD_NS;
	}
}

enum err_code shard_targets_open(
	const struct shard_targets_options *o, struct shard_targets **out, struct err *err)
{
	struct shard_targets *t = calloc(1, sizeof(*t));
	enum err_code rc;

	if (!t)
		return err_nomem(err, "targets");
	t->o = *o;
	mutex_init(&t->lock);
	cond_init(&t->changed);
	if ((rc = thread_start(&t->thread, "shard-targets", shard_targets_run, t, err))) {
		cond_destroy(&t->changed);
		mutex_destroy(&t->lock);
		free(t);
		return rc;
	}
	*out = t;
	return ERR_OK;
}

void shard_targets_close(struct shard_targets *t)
{
	if (!t)
		return;
	mutex_lock(&t->lock);
	t->closing = true;
	cond_signal(&t->changed);
	mutex_unlock(&t->lock);
	thread_join(&t->thread);
	cond_destroy(&t->changed);
	mutex_destroy(&t->lock);
	free(t);
}
