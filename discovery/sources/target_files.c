#include "discovery/sources/target_files.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"

#define BUCKETS 1024u /* a power of two */
#define GROUPS_BYTES_MAX (512u << 20) /* of one document's groups in memory */
#define WATCH_EVENTS \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | \
		IN_MOVE_SELF)

METRIC_COUNTER(reads, "epimetheus_discovery_file_reads_total", "Target files read.", NULL);
METRIC_GAUGE(watches_failed, "epimetheus_discovery_file_unwatched_directories",
	"Directories of target files that inotify does not watch.", NULL);

struct target_files {
	LIST_HEAD(, target_file) files[BUCKETS]; /* by the path's hash */
	LIST_HEAD(, dir_watch) watches;
	int inotify; /* -1: the system gave none */
	struct event *notified;
};

/* ---- documents ---- */

enum err_code target_file_acquire(
	struct target_files *t, const char *path, struct target_file **out, struct err *err)
{
	uint64_t hash = hash_bytes(path, strlen(path), 0);
	struct target_file *f;

	LIST_FOREACH (f, &t->files[hash % BUCKETS], link)
		if (f->hash == hash && strcmp(f->path, path) == 0)
			break;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f || !(f->path = strdup(path))) {
			free(f);
			return err_nomem(err, "target files");
		}
		f->hash = hash;
		LIST_INSERT_HEAD(&t->files[hash % BUCKETS], f, link);
	}
	f->users++;
	*out = f;
	return ERR_OK;
}

void target_file_release(struct target_file *f)
{
	if (!f)
		return;
	assert(f->users > 0);
	if (--f->users)
		return;
	LIST_REMOVE(f, link);
	groups_unref(f->groups);
	free(f->path);
	free(f);
}

static enum err_code target_files_parse(struct arena *a, const char *path, struct str text,
	struct target_group **t, size_t *n, struct err *err)
{
	struct str p = str_of(path);

	if (str_has_suffix(p, STR(".json")) || str_has_suffix(p, STR(".JSON")))
		return target_groups_from_json(a, path, text, t, n, err);
	return target_groups_from_yaml(a, path, text, t, n, err);
}

/* Packs the groups, and frees the parser's tree with `scratch`. */
static enum err_code target_files_read_document(
	const char *path, struct groups **out, struct err *err)
{
	struct buf text = { 0 };
	struct target_group *v = NULL;
	struct arena scratch;
	enum err_code rc;
	size_t n = 0;

	arena_init(&scratch, GROUPS_BYTES_MAX);
	if (!(rc = fs_read_file(path, FILE_SD_FILE_BYTES_MAX, &text, err)) &&
		!(rc = target_files_parse(&scratch, path, buf_str(&text), &v, &n, err)) &&
		!(rc = target_groups_label(&scratch, v, n, STR("__meta_filepath"), str_of(path), err)))
		rc = groups_pack(v, n, out, err);
	arena_release(&scratch);
	buf_release(&text);
	return rc;
}

enum err_code target_file_read(struct target_file *f, struct err *err)
{
	struct groups *groups;
	enum err_code rc;

	if ((rc = target_files_read_document(f->path, &groups, err)))
		return rc;
	groups_unref(f->groups);
	f->groups = groups;
	metric_add(&reads, NULL, 1);
	return ERR_OK;
}

enum err_code target_file_check(const char *path, struct err *err)
{
	struct groups *groups;
	enum err_code rc;

	if ((rc = target_files_read_document(path, &groups, err)))
		return rc;
	groups_unref(groups);
	return ERR_OK;
}

/* ---- directories ---- */

static void target_files_show_unwatched(const struct target_files *t)
{
	const struct dir_watch *w;
	size_t n = 0;

	LIST_FOREACH (w, &t->watches, link)
		n += w->wd < 0;
	metric_set(&watches_failed, NULL, (double)n);
}

/* Watches of one directory have one number; the last of them gives it back. */
static void target_files_forget(struct target_files *t, int wd)
{
	const struct dir_watch *w;

	LIST_FOREACH (w, &t->watches, link)
		if (w->wd == wd)
			return;
	inotify_rm_watch(t->inotify, wd);
}

bool target_files_watch(struct target_files *t, struct dir_watch *w)
{
	assert(w->dir && w->changed);
	if (w->listed && w->wd >= 0)
		return true;
	if (!w->listed)
		LIST_INSERT_HEAD(&t->watches, w, link);
	w->listed = true;
	w->wd = t->inotify < 0 ? -1 : inotify_add_watch(t->inotify, w->dir, WATCH_EVENTS | IN_ONLYDIR);
	target_files_show_unwatched(t);
	return w->wd >= 0;
}

void target_files_unwatch(struct target_files *t, struct dir_watch *w)
{
	if (!w->listed)
		return;
	LIST_REMOVE(w, link);
	w->listed = false;
	if (w->wd >= 0)
		target_files_forget(t, w->wd);
	target_files_show_unwatched(t);
}

static void target_files_dispatch(struct target_files *t, const struct inotify_event *e)
{
	struct dir_watch *w;
	bool gone = e->mask & (IN_IGNORED | IN_MOVE_SELF);

	LIST_FOREACH (w, &t->watches, link) {
		if (e->mask & IN_Q_OVERFLOW) {
			w->changed(w, STR(""));
		} else if (w->wd == e->wd) {
			if (gone)
				w->wd = -1; /* the directory was removed, and may come back */
			w->changed(w, e->len ? str_of(e->name) : STR(""));
		}
	}
	if (e->mask & IN_MOVE_SELF)
		inotify_rm_watch(t->inotify, e->wd);
	if (gone)
		target_files_show_unwatched(t);
}

static void target_files_on_notified(evutil_socket_t fd, short what, void *ctx)
{
	_Alignas(struct inotify_event) char buf[16384];
	const struct inotify_event *e;
	ssize_t n = read(fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(const void *)(buf + at);
		target_files_dispatch(ctx, e);
	}
}

enum err_code target_files_open(struct event_base *base, struct target_files **out, struct err *err)
{
	struct target_files *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(err, "target files");
	t->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (t->inotify < 0)
		log_warn("discovery", "no inotify: files are read at their refresh_interval only",
			LOG_I("errno", errno));
	else
		t->notified = event_new(
			base, t->inotify, EV_READ | EV_PERSIST, target_files_on_notified, t);
	if (t->inotify >= 0 && (!t->notified || event_add(t->notified, NULL))) {
		target_files_close(t);
		return err_nomem(err, "target files");
	}
	*out = t;
	return ERR_OK;
}

void target_files_close(struct target_files *t)
{
	if (!t)
		return;
	assert(LIST_EMPTY(&t->watches));
	if (t->notified)
		event_free(t->notified);
	if (t->inotify >= 0)
		close(t->inotify);
	free(t);
}
