#include "tsdb/debuginfo/service/debuginfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/service/inspect.h"
#include "tsdb/debuginfo/service/wanted.h"
#include "tsdb/debuginfo/store/extractor.h"

METRIC_GAUGE(
	bytes, "epimetheus_symbols_bytes", "Bytes of the indexes of native symbols on disk.", NULL);
METRIC_GAUGE(indexes, "epimetheus_symbols_indexes", "Binaries whose symbols are there.", NULL);
METRIC_GAUGE(uploads_bytes, "epimetheus_symbols_uploads_bytes",
	"Bytes of debug data that is being received, or waits for its extraction.", NULL);
METRIC_GAUGE(wanted_n, "epimetheus_symbols_wanted",
	"Binaries that queries met and that have no symbols.", NULL);

#define TICK_NS (30 * NS_PER_S) /* for uploads without progress, and those put off */
#define MISSING_S (24 * 3600)

struct debuginfo {
	struct debuginfo_store *store;
	struct extractor *extractor;
	int64_t (*now_ns)(void);
	struct thread thread;
	struct mutex lock; /* guards the rest; the store's lock may be taken under it */
	struct cond changed; /* stopped, uploads_due, wanted */
	bool stopped, uploads_due;
	struct wanted wanted;
};

/* ---- one file ---- */

static void debuginfo_say(const struct debuginfo_job *j, enum debuginfo_quality q, int64_t took_ns,
	enum err_code rc, const struct err *err)
{
	struct str id = debuginfo_id_text(&j->id), path = str_of(j->path);

	if (!rc)
		log_info("debuginfo", "symbols extracted", LOG_STR("id", id), LOG_STR("path", path),
			LOG_S("from", debuginfo_origins[j->origin]), LOG_S("quality", debuginfo_qualities[q]),
			LOG_I("bytes", (int64_t)j->source_bytes), LOG_D("elapsed", took_ns));
	else if (rc == ERR_EXISTS)
		log_info("debuginfo", "symbols are there already", LOG_STR("id", id), LOG_STR("path", path),
			LOG_S("from", debuginfo_origins[j->origin]), LOG_D("elapsed", took_ns), LOG_E(err));
	else if (rc == ERR_CANCELED)
		log_info("debuginfo", "extraction put off: the server ends", LOG_STR("id", id));
	else
		log_warn("debuginfo", "no symbols extracted", LOG_STR("id", id), LOG_STR("path", path),
			LOG_S("from", debuginfo_origins[j->origin]), LOG_I("bytes", (int64_t)j->source_bytes),
			LOG_D("elapsed", took_ns), LOG_E(err));
}

/* Ends the job. */
static enum err_code debuginfo_service_extract(
	struct debuginfo *d, struct debuginfo_job *j, struct err *err)
{
	struct debuginfo_job was = *j; /* for the log: the store frees it */
	struct debuginfo_found found = { .quality = DEBUGINFO_NOTHING };
	struct extraction_files files;
	struct err left_out = { .code = ERR_OK }, why = { .code = ERR_OK };
	int64_t start_ns = clock_monotonic_ns(), took_ns;
	enum err_code rc;

	inspect_older(j);
	files = (struct extraction_files){ j->in_fd, j->older_fd, j->older_bytes, j->out_fd };
	if ((rc = extractor_run(d->extractor, &files, &left_out)))
		why = left_out;
	else
		rc = inspect_job(j, &found, &why);
	took_ns = clock_monotonic_ns() - start_ns;
	if (rc) {
		why.code = rc;
		debuginfo_job_fail(j, &why);
	} else {
		rc = debuginfo_job_publish(j, &found, &why);
	}
	debuginfo_say(&was, found.quality, took_ns, rc, &why);
	if (!rc && left_out.msg[0])
		log_info("debuginfo", "a part of the file has no symbols",
			LOG_STR("id", debuginfo_id_text(&was.id)), LOG_S("path", was.path), LOG_E(&left_out));
	if (!rc) {
		mutex_lock(&d->lock);
		wanted_remove(&d->wanted, &was.id);
		mutex_unlock(&d->lock);
	}
	return rc ? err_set(err, rc, "%s", why.msg) : ERR_OK;
}

/* The system refused; another time it may be different. */
static bool debuginfo_passes(enum err_code rc)
{
	return rc == ERR_IO || rc == ERR_NOMEM || rc == ERR_UNAVAILABLE || rc == ERR_CANCELED;
}

enum err_code debuginfo_extract_file(struct debuginfo *d, const struct debuginfo_id *id,
	enum debuginfo_origin origin, int in_fd, struct err *err)
{
	char path[DEBUGINFO_PATH_BYTES_MAX + 1] = "";
	struct debuginfo_offer offer = { .kind = DEBUGINFO_FULL, .origin = origin };
	const struct debuginfo_want *want;
	struct debuginfo_job *j;
	enum err_code rc;
	int fd;

	if (!d->extractor)
		return err_set(err, ERR_UNAVAILABLE, "nothing extracts symbols here");
	mutex_lock(&d->lock);
	if ((want = wanted_find(&d->wanted, id)))
		memcpy(path, want->path, sizeof(path));
	mutex_unlock(&d->lock);
	if ((fd = fcntl(in_fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_errno(err, errno, "file of symbols");
	offer.path = str_of(path);
	rc = debuginfo_job_begin(d->store, id, &offer, fd, &j, err);
	if (rc)
		return rc;
	rc = debuginfo_service_extract(d, j, err);
	/* The same file comes from there tomorrow, too. Directories may have another one. */
	if (rc && !debuginfo_passes(rc) && origin != DEBUGINFO_DIRECTORY)
		debuginfo_set_missing(d->store, id, d->now_ns() / NS_PER_S + MISSING_S);
	return rc;
}

/* ---- the thread ---- */

static void debuginfo_extract_queue(struct debuginfo *d)
{
	struct debuginfo_job *j;
	struct err err;
	enum err_code rc;

	while (!(rc = debuginfo_job_next(d->store, &j, &err)))
		if (debuginfo_service_extract(d, j, NULL) == ERR_CANCELED)
			return;
	if (rc != ERR_NOT_FOUND)
		log_warn("debuginfo", "upload is not extracted yet", LOG_E(&err));
}

static void debuginfo_run(void *ctx)
{
	struct debuginfo *d = ctx;
	int64_t tick_ns;
	bool stopped = false;

	while (!stopped) {
		debuginfo_store_tick(d->store);
		if (d->extractor)
			debuginfo_extract_queue(d);
		tick_ns = clock_monotonic_ns() + TICK_NS;
		mutex_lock(&d->lock);
		while (!d->stopped && !d->uploads_due)
			if (!cond_wait_until(&d->changed, &d->lock, tick_ns))
				break;
		d->uploads_due = false;
		stopped = d->stopped;
		mutex_unlock(&d->lock);
	}
}

static void debuginfo_set_metrics(void *ctx)
{
	struct debuginfo *d = ctx;
	struct debuginfo_totals t = debuginfo_totals(d->store);
	size_t n;

	mutex_lock(&d->lock);
	n = d->wanted.n;
	mutex_unlock(&d->lock);
	metric_set(&bytes, NULL, (double)t.bytes);
	metric_set(&indexes, NULL, (double)t.indexes);
	metric_set(&uploads_bytes, NULL, (double)t.uploads_bytes);
	metric_set(&wanted_n, NULL, (double)n);
}

enum err_code debuginfo_service_open(
	const struct debuginfo_service_options *o, struct debuginfo **out, struct err *err)
{
	struct debuginfo *d = calloc(1, sizeof(*d));
	enum err_code rc;

	if (!d)
		return err_nomem(err, "symbols");
	mutex_init(&d->lock);
	cond_init(&d->changed);
	wanted_init(&d->wanted);
	d->extractor = o->extractor;
	d->now_ns = o->store.now_ns ? o->store.now_ns : clock_now_ns;
	rc = debuginfo_store_open(o->fs, o->dir, &o->store, &d->store, err);
	if (!rc)
		metric_collector_add(debuginfo_set_metrics, d);
	if (!rc)
		rc = thread_start(&d->thread, "debuginfo", debuginfo_run, d, err);
	if (rc) {
		debuginfo_service_close(d);
		return rc;
	}
	*out = d;
	return ERR_OK;
}

void debuginfo_stop(struct debuginfo *d)
{
	mutex_lock(&d->lock);
	d->stopped = true;
	cond_broadcast(&d->changed);
	mutex_unlock(&d->lock);
	if (d->extractor)
		extractor_stop(d->extractor);
}

void debuginfo_service_close(struct debuginfo *d)
{
	if (!d)
		return;
	debuginfo_stop(d);
	thread_join(&d->thread);
	if (d->store)
		metric_collector_remove(debuginfo_set_metrics, d);
	debuginfo_store_close(d->store);
	wanted_release(&d->wanted);
	cond_destroy(&d->changed);
	mutex_destroy(&d->lock);
	free(d);
}

struct debuginfo_store *debuginfo_store(struct debuginfo *d)
{
	return d->store;
}

bool debuginfo_extracts(const struct debuginfo *d)
{
	return d->extractor;
}

void debuginfo_wake(struct debuginfo *d)
{
	mutex_lock(&d->lock);
	d->uploads_due = true;
	cond_broadcast(&d->changed);
	mutex_unlock(&d->lock);
}

/* ---- wanted ---- */

void debuginfo_want(struct debuginfo *d, const struct debuginfo_id *id, struct str path)
{
	bool known;

	mutex_lock(&d->lock);
	known = wanted_find(&d->wanted, id);
	if (!known && debuginfo_lacks(d->store, id)) {
		wanted_add(&d->wanted, id, path, clock_monotonic_ns());
		cond_broadcast(&d->changed);
	}
	mutex_unlock(&d->lock);
}

bool debuginfo_is_wanted(struct debuginfo *d, const struct debuginfo_id *id)
{
	bool wanted;

	mutex_lock(&d->lock);
	wanted = wanted_find(&d->wanted, id);
	mutex_unlock(&d->lock);
	return wanted || debuginfo_is_missing(d->store, id);
}

bool debuginfo_next_wanted(struct debuginfo *d, int64_t timeout_ns, struct debuginfo_want *out)
{
	int64_t now_ns = clock_monotonic_ns(), end_ns = now_ns + timeout_ns, due_ns = 0;
	const struct debuginfo_want *w;
	bool found = false;

	mutex_lock(&d->lock);
	while (!found && !d->stopped) {
		now_ns = clock_monotonic_ns();
		if ((w = wanted_next(&d->wanted, now_ns, &due_ns))) {
			*out = *w;
			if ((found = debuginfo_lacks(d->store, &out->id)))
				wanted_give(&d->wanted, &out->id, now_ns);
			else
				wanted_remove(&d->wanted, &out->id);
		} else if (now_ns >= end_ns) {
			break;
		} else {
			cond_wait_until(&d->changed, &d->lock, due_ns < end_ns ? due_ns : end_ns);
		}
	}
	mutex_unlock(&d->lock);
	return found;
}
