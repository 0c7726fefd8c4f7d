/*
 * For tests of discovery: a running discovery, a temporary directory, and the delivered groups as
 * text. Include it after tests/check.h.
 */
#ifndef TESTS_DISCOVERY_SD_FIXTURE_H
#define TESTS_DISCOVERY_SD_FIXTURE_H

#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "discovery/discovery.h"
#include "tests/check.h"
#include "tests/wait.h"

struct fixture {
	char dir[64];
	struct discovery *d;
	struct arena arena;
	struct mutex lock;
	struct cond changed;
	/* guarded by lock */
	struct buf last[2]; /* per job (user is its index): addresses and labels, as text */
	int updates;
	int costs_us; /* of a processor, that a delivery takes */
};

static inline void on_update(void *ctx, void *user, struct groups *g)
{
	struct fixture *f = ctx;
	struct buf *out = &f->last[(uintptr_t)user];
	const struct target_group *v;
	struct groups_cursor all;

	mutex_lock(&f->lock);
	buf_clear(out);
	groups_begin(&all, g);
	while ((v = groups_next(&all))) {
		buf_add_str(out, v->source);
		buf_add_char(out, ' ');
		labels_print(out, v->labels);
		for (size_t k = 0; k < v->targets_n; k++) {
			buf_add_char(out, ' ');
			buf_add_str(out, labels_get(v->targets[k], STR("__address__")));
		}
		buf_add_char(out, '\n');
	}
	f->updates++;
	cond_broadcast(&f->changed);
	mutex_unlock(&f->lock);
	for (int64_t end = clock_thread_ns() + f->costs_us * NS_PER_US; clock_thread_ns() < end;)
		;
}

static inline void fixture_open(struct fixture *f, const char *dns_servers, int64_t answer_ns)
{
	struct discovery_options o = {
		.update = on_update, .ctx = f, .answer_ns = answer_ns, .dns_servers = dns_servers
	};
	struct err err;

	*f = (struct fixture){ .dir = "/tmp/epimetheus-sd-XXXXXX" };
	mutex_init(&f->lock);
	cond_init(&f->changed);
	arena_init(&f->arena, 0);
	if (!mkdtemp(f->dir) || discovery_open(&o, &f->d, &err))
		CHECK_FAIL("no fixture");
}

static inline void fixture_init(struct fixture *f)
{
	fixture_open(f, NULL, NS_PER_HOUR);
}

static inline void fixture_release(struct fixture *f)
{
	struct err err;

	discovery_close(f->d);
	CHECK_OK(fs_remove_tree(&fs_posix, f->dir, &err), &err);
	buf_release(&f->last[0]);
	buf_release(&f->last[1]);
	arena_release(&f->arena);
	mutex_destroy(&f->lock);
	cond_destroy(&f->changed);
}

static inline const char *in_dir(struct fixture *f, const char *name)
{
	return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static inline void put(struct fixture *f, const char *name, const char *text)
{
	FILE *out = fopen(in_dir(f, name), "w");

	if (!out || fputs(text, out) < 0 || fclose(out))
		CHECK_FAIL("cannot write %s", name);
}

/* sd from YAML: {static_configs: ..., file_sd_configs: ...} */
static inline enum err_code sd_of(
	struct fixture *f, const char *text, struct sd_configs *sd, struct err *err)
{
	static const struct yaml_field fields[] = { SD_CONFIG_FIELDS(0) };
	static const struct yaml_schema schema = {
		.name = "job",
		.size = sizeof(*sd),
		.fields = fields,
		.fields_n = sizeof(fields) / sizeof(fields[0]),
	};
	struct yaml_ctx ctx = { .arena = &f->arena, .dir = str_of(f->dir) };
	struct yaml_node *root;
	enum err_code rc;

	if ((rc = yaml_parse(&f->arena, "c.yml", str_of(text), &root, err)))
		return rc;
	return yaml_decode(&ctx, &schema, root, sd, err);
}

static inline void apply(struct fixture *f, const char *first, const char *second)
{
	const char *texts[2] = { first, second };
	struct sd_configs sd[2];
	struct sd_job jobs[2];
	struct err err;
	size_t n = 0;

	for (; n < 2 && texts[n]; n++) {
		CHECK_OK(sd_of(f, texts[n], &sd[n], &err), &err);
		jobs[n] = (struct sd_job){ n ? STR("second") : STR("first"), &sd[n], (void *)(uintptr_t)n };
	}
	CHECK_OK(discovery_apply(f->d, jobs, n, &err), &err);
}

static inline void expect(struct fixture *f, size_t job, const char *want)
{
	int64_t deadline = clock_monotonic_ns() + WAIT_NS;

	mutex_lock(&f->lock);
	while (!str_eq(buf_str(&f->last[job]), str_of(want)) &&
		cond_wait_until(&f->changed, &f->lock, deadline))
		;
	CHECK_STR(buf_str(&f->last[job]), want);
	mutex_unlock(&f->lock);
}

/* Checks that nothing else is delivered for a while. */
static inline void expect_still(struct fixture *f, size_t job, const char *want, int64_t ns)
{
	int64_t deadline = clock_monotonic_ns() + ns;

	mutex_lock(&f->lock);
	while (str_eq(buf_str(&f->last[job]), str_of(want)) &&
		cond_wait_until(&f->changed, &f->lock, deadline))
		;
	CHECK_STR(buf_str(&f->last[job]), want);
	mutex_unlock(&f->lock);
}

static inline int updates(struct fixture *f)
{
	int n;

	mutex_lock(&f->lock);
	n = f->updates;
	mutex_unlock(&f->lock);
	return n;
}

/* A metric as it is shown; name with its labels. */
static inline double metric_shown(const char *name)
{
	struct buf b = { 0 };
	size_t n = strlen(name);
	const char *at;
	double v = 0;

	metrics_print(&b);
	buf_add_char(&b, '\0');
	for (at = b.ptr; (at = strstr(at, name)); at++)
		if (at[n] == ' ' && (at == b.ptr || at[-1] == '\n')) {
			v = strtod(at + n, NULL);
			break;
		}
	buf_release(&b);
	return v;
}

#endif
