#include "scrape/targets.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/quote.h"
#include "scrape/url.h"

#define SET_BYTES_MAX ((size_t)1 << 30)
#define SECONDS_MAX 86400
#define KEPT 256

#define ADDRESS STR("__address__")
#define SCHEME STR("__scheme__")
#define PATH STR("__profile_path__")
#define INTERVAL STR("__scrape_interval__")
#define TIMEOUT STR("__scrape_timeout__")
#define PARAM STR("__param_")
#define PARAM_SECONDS STR("__param_seconds")
#define META STR("__meta_")
#define NAME STR(LABEL_NAME)

struct expansion {
	struct target_set *set;
	struct labels_builder b;
	struct buf scratch;
	struct arena one;      /* what one target needs until it is made */
	struct str kept[KEPT]; /* strings of the set by hash: most targets have the same ones */
	size_t cap; /* of set->v */
	size_t errors, targets; /* targets: of the groups, with at least one profile kept */
};

/* ---- labels before relabelling ---- */

static void set_default(struct expansion *x, struct str name, struct str value)
{
	if (labels_builder_get(&x->b, name).len == 0)
		labels_builder_set(&x->b, name, value);
}

/* What is in scratch, kept in the set. */
static struct str keep_scratch(struct expansion *x)
{
	struct str s = { NULL, 0 };

	if (!buf_failed(&x->scratch))
		s = str_dup(&x->set->arena, buf_str(&x->scratch));
	buf_clear(&x->scratch);
	if (!s.ptr)
		x->b.failed = true;
	return s;
}

/* The same for what many targets say. */
static struct str share_scratch(struct expansion *x)
{
	struct str *kept = &x->kept[hash_bytes(x->scratch.ptr, x->scratch.len, 0) % KEPT];

	if (buf_failed(&x->scratch) || !kept->ptr || !str_eq(*kept, buf_str(&x->scratch)))
		*kept = keep_scratch(x);
	return *kept;
}

static struct str duration_text(struct expansion *x, int64_t ns)
{
	buf_clear(&x->scratch);
	duration_print(&x->scratch, ns);
	return share_scratch(x);
}

static struct str param_label(struct expansion *x, struct str name)
{
	buf_clear(&x->scratch);
	buf_add_str(&x->scratch, PARAM);
	buf_add_str(&x->scratch, name);
	return share_scratch(x);
}

static void set_params(struct expansion *x, const struct params_config *params)
{
	for (size_t i = 0; i < params->n; i++)
		if (params->v[i].values_n)
			set_default(x, param_label(x, params->v[i].name), params->v[i].values[0]);
}

/* One second is left for the answer to travel before the next begins. */
static int64_t auto_seconds(int64_t interval_ns)
{
	int64_t s = interval_ns / NS_PER_S - 1;

	return s < 1 ? 1 : s;
}

static struct str seconds_text(struct expansion *x, int64_t seconds)
{
	buf_clear(&x->scratch);
	buf_add_i64(&x->scratch, seconds);
	return share_scratch(x);
}

static int64_t interval_label(const struct expansion *x)
{
	int64_t ns;

	return duration_parse(labels_builder_get(&x->b, INTERVAL), &ns, NULL) ? 0 : ns;
}

static struct str profile_path(struct expansion *x, struct str prefix, struct str path)
{
	buf_clear(&x->scratch);
	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (prefix.len && prefix.ptr[0] != '/')
		buf_add_char(&x->scratch, '/');
	buf_add_str(&x->scratch, prefix);
	if (path.len == 0 || path.ptr[0] != '/')
		buf_add_char(&x->scratch, '/');
	buf_add_str(&x->scratch, path);
	return share_scratch(x);
}

/*
 * Target labels > group labels > the job's and profile's defaults. *auto_text: `seconds` if we
 * chose them.
 */
static void populate(struct expansion *x, const struct target_group *g, struct labels target,
	const struct profile_config *p, struct str *auto_text)
{
	const struct scrape_config *job = x->set->job;
	int64_t interval = p->interval_ns ? p->interval_ns : job->scrape_interval_ns;
	int64_t timeout = p->timeout_ns ? p->timeout_ns : job->scrape_timeout_ns;

	x->b.n = 0;
	x->b.failed = false;
	for (size_t i = 0; i < target.n; i++)
		labels_builder_set(&x->b, target.v[i].name, target.v[i].value);
	for (size_t i = 0; i < g->labels.n; i++)
		set_default(x, g->labels.v[i].name, g->labels.v[i].value);
	set_default(x, STR("job"), job->job_name);
	set_default(x, INTERVAL, duration_text(x, interval));
	set_default(x, TIMEOUT, duration_text(x, timeout < interval ? timeout : interval));
	set_default(x, SCHEME, job->scheme);
	set_default(x, NAME, p->name);
	set_default(x, PATH, profile_path(x, job->path_prefix, p->path));
	*auto_text = STR("");
	if (p->seconds)
		set_default(x, PARAM_SECONDS, seconds_text(x, p->seconds));
	set_params(x, &p->params);
	set_params(x, &job->params);
	if (p->delta && labels_builder_get(&x->b, PARAM_SECONDS).len == 0) {
		*auto_text = seconds_text(x, auto_seconds(interval_label(x)));
		set_default(x, PARAM_SECONDS, *auto_text);
	}
}

/* ---- after it ---- */

static enum err_code read_times(struct expansion *x, struct target *t, struct str auto_text,
	struct err *err)
{
	struct str interval = labels_builder_get(&x->b, INTERVAL);
	struct str timeout = labels_builder_get(&x->b, TIMEOUT);
	struct str seconds;
	enum err_code rc;

	if ((rc = duration_parse(interval, &t->interval_ns, err)))
		return err_wrap(err, rc, "error parsing scrape interval");
	if (t->interval_ns <= 0)
		return err_set(err, ERR_INVALID, "scrape interval cannot be 0");
	if ((rc = duration_parse(timeout, &t->timeout_ns, err)))
		return err_wrap(err, rc, "error parsing scrape timeout");
	if (t->timeout_ns <= 0)
		return err_set(err, ERR_INVALID, "scrape timeout cannot be 0");
	if (t->timeout_ns > t->interval_ns)
		return err_set(err, ERR_INVALID,
			"scrape timeout cannot be greater than scrape interval (%s > %s)",
			QUOTED(timeout), QUOTED(interval));
	/* A rule may have changed the interval: seconds that we chose follow it. */
	seconds = labels_builder_get(&x->b, PARAM_SECONDS);
	if (auto_text.len && str_eq(seconds, auto_text))
		labels_builder_set(&x->b, PARAM_SECONDS, seconds_text(x, auto_seconds(t->interval_ns)));
	if (!str_to_i64(labels_builder_get(&x->b, PARAM_SECONDS), &t->seconds) || t->seconds < 0)
		t->seconds = 0;
	if (t->seconds > SECONDS_MAX)
		return err_set(err, ERR_INVALID, "seconds cannot be greater than %d", SECONDS_MAX);
	t->timeout_ns += t->seconds * NS_PER_S;
	return ERR_OK;
}

/* The job's params with the profile's over them, and every __param_ label over both. */
static enum err_code make_url(struct expansion *x, struct target *t, struct err *err)
{
	const struct params_config *layers[] = { &x->set->job->params, &t->profile->params };
	struct url_query q = { .arena = &x->one };
	const struct label *l;
	enum err_code rc;

	arena_reset(&x->one);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < layers[k]->n; i++)
			url_query_set(&q, layers[k]->v[i].name, layers[k]->v[i].values,
				layers[k]->v[i].values_n);
	for (size_t i = 0; i < x->b.n; i++) {
		l = &x->b.v[i];
		if (str_has_prefix(l->name, PARAM))
			url_query_set_first(&q, (struct str){ l->name.ptr + PARAM.len,
				l->name.len - PARAM.len }, l->value);
	}
	buf_clear(&x->scratch);
	rc = url_print(&x->scratch, labels_builder_get(&x->b, SCHEME),
		labels_builder_get(&x->b, ADDRESS), labels_builder_get(&x->b, PATH), &q, err);
	if (rc)
		return rc;
	t->url = keep_scratch(x);
	return ERR_OK;
}

/* A Go process has one CPU profiler; through a proxy one address may lead to several processes. */
static void make_exclusive(struct expansion *x, struct target *t)
{
	struct str path = labels_builder_get(&x->b, PATH);

	t->exclusive = STR("");
	if (!str_is(t->name, "process_cpu") && !str_has_suffix(path, STR("/profile")))
		return;
	buf_clear(&x->scratch);
	buf_add_str(&x->scratch, labels_builder_get(&x->b, ADDRESS));
	buf_add_char(&x->scratch, ' ');
	buf_add_str(&x->scratch, path);
	t->exclusive = keep_scratch(x);
}

/* __meta_ and the other reserved labels go; instance is the address where nobody set it. */
static enum err_code make_labels(struct expansion *x, struct target *t, struct err *err)
{
	struct str address = labels_builder_get(&x->b, ADDRESS);
	struct str name;

	set_default(x, STR("instance"), address);
	for (size_t i = x->b.n; i-- > 0;) {
		name = x->b.v[i].name;
		if (!label_value_valid(x->b.v[i].value))
			return err_set(err, ERR_INVALID, "invalid label value for %s: %s", QUOTED(name),
				QUOTED(x->b.v[i].value));
		if (str_has_prefix(name, STR("__")) && !str_eq(name, NAME))
			labels_builder_del(&x->b, name);
	}
	return labels_builder_build(&x->b, &t->labels, err);
}

static enum err_code finish_target(struct expansion *x, struct target *t, struct str auto_text,
	struct err *err)
{
	struct str address = labels_builder_get(&x->b, ADDRESS);
	struct str scheme = labels_builder_get(&x->b, SCHEME);
	enum err_code rc;

	if (!address.len)
		return err_set(err, ERR_INVALID, "no address");
	if (!url_address_valid(address))
		return err_set(err, ERR_INVALID, "%s is not a valid hostname", QUOTED(address));
	if (!str_is(scheme, "http") && !str_is(scheme, "https"))
		return err_set(err, ERR_INVALID, "invalid scheme: %s", QUOTED(scheme));
	t->name = labels_builder_get(&x->b, NAME);
	if (!t->name.len)
		return err_set(err, ERR_INVALID, "no profile name");
	if ((rc = read_times(x, t, auto_text, err)) || (rc = make_url(x, t, err)))
		return rc;
	make_exclusive(x, t);
	t->home = hash_bytes(address.ptr, address.len, 0);
	if ((rc = make_labels(x, t, err)))
		return rc;
	t->hash = hash_bytes(t->url.ptr, t->url.len, labels_hash(t->labels));
	return x->b.failed ? arena_fail(&x->set->arena, "targets", err) : ERR_OK;
}

/* ---- the set ---- */

static enum err_code set_add(struct expansion *x, const struct target *t, struct err *err)
{
	struct target_set *s = x->set;
	size_t cap = x->cap ? x->cap * 2 : 64;
	struct target *v;

	if (s->n == x->cap) {
		v = cap <= SET_BYTES_MAX / sizeof(*v) ? realloc(s->v, cap * sizeof(*v)) : NULL;
		if (!v)
			return err_set(err, ERR_NOMEM, "out of memory for targets");
		s->v = v;
		x->cap = cap;
	}
	s->v[s->n++] = *t;
	return ERR_OK;
}

static enum err_code set_drop(struct expansion *x, struct labels discovered, struct err *err)
{
	struct target_set *s = x->set;
	size_t limit = s->job->keep_dropped_targets, cap = 64;
	struct labels *v;

	s->dropped_total++;
	if (limit && s->dropped_n >= limit)
		return ERR_OK;
	while (cap < s->dropped_n)
		cap *= 2;
	if (s->dropped_n == 0 || s->dropped_n == cap) {
		v = arena_alloc_raw(&s->arena, s->dropped_n ? cap * 2 : cap, sizeof(*v));
		if (!v)
			return arena_fail(&s->arena, "targets", err);
		if (s->dropped_n)
			memcpy(v, s->dropped, s->dropped_n * sizeof(*v));
		s->dropped = v;
	}
	s->dropped[s->dropped_n++] = discovered;
	return ERR_OK;
}

/* The first error is told, the others counted. */
static void set_error(struct expansion *x, const char *text)
{
	if (x->errors++ == 0) {
		x->set->error = str_of(arena_printf(&x->set->arena, "%s", text));
		if (!x->set->error.ptr)
			x->set->error = STR("");
	}
}

/* *kept: the profile is scraped. */
static enum err_code expand_one(struct expansion *x, const struct target_group *g, size_t i,
	const struct profile_config *p, bool *kept, struct err *err)
{
	struct target t = { .profile = p };
	struct str auto_text;
	enum err_code rc;
	bool keep;

	populate(x, g, g->targets[i], p, &auto_text);
	if ((rc = labels_builder_build(&x->b, &t.discovered, err)) ||
	    (rc = relabel_apply(&x->set->job->relabel, &x->b, &keep, NULL, err)))
		return rc;
	if (!keep)
		return set_drop(x, t.discovered, err);
	if ((rc = finish_target(x, &t, auto_text, err))) {
		if (rc != ERR_INVALID)
			return rc;
		err_wrap(err, rc, "instance %zu in group " STR_FMT, i, STR_ARG(g->source));
		set_error(x, err->msg);
		return ERR_OK;
	}
	*kept = true;
	return set_add(x, &t, err);
}

static enum err_code expand_groups(struct expansion *x, struct err *err)
{
	const struct scrape_config *job = x->set->job;
	const struct target_group *g;
	enum err_code rc;
	bool kept;

	for (size_t i = 0; i < x->set->groups->n; i++) {
		g = &x->set->groups->v[i];
		for (size_t k = 0; k < g->targets_n; k++, x->targets += kept) {
			kept = false;
			for (size_t p = 0; p < job->profiles_n; p++) {
				if (!job->profiles[p].enabled)
					continue;
				if ((rc = expand_one(x, g, k, &job->profiles[p], &kept, err)))
					return rc;
			}
		}
	}
	return ERR_OK;
}

int target_cmp(const struct target *a, const struct target *b)
{
	int c = labels_cmp(a->labels, b->labels);

	return c ? c : str_cmp(a->url, b->url);
}

static int cmp(const void *a, const void *b)
{
	return target_cmp(a, b);
}

/*
 * Two targets of one label set would write one series: the first by URL is scraped, others are
 * told.
 */
static void deduplicate(struct expansion *x)
{
	struct target_set *s = x->set;
	struct buf b = { 0 };
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), cmp);
	for (size_t i = 0; i < s->n; i++) {
		if (n == 0 || !labels_eq(s->v[n - 1].labels, s->v[i].labels)) {
			s->v[n++] = s->v[i];
			continue;
		}
		if (str_eq(s->v[n - 1].url, s->v[i].url))
			continue;
		buf_clear(&b);
		buf_printf(&b, STR_FMT " is not scraped: " STR_FMT " has the same labels ",
			STR_ARG(s->v[i].url), STR_ARG(s->v[n - 1].url));
		labels_print(&b, s->v[i].labels);
		buf_add_char(&b, '\0');
		set_error(x, buf_failed(&b) ? "duplicate labels" : b.ptr);
	}
	s->n = n;
	buf_release(&b);
}

static void finish_set(struct expansion *x)
{
	struct target_set *s = x->set;
	struct target *v = s->n ? realloc(s->v, s->n * sizeof(*v)) : NULL;
	const char *text;

	if (v)
		s->v = v; /* without the room to grow */
	if (s->job->target_limit && x->targets > s->job->target_limit) {
		s->limit_exceeded = true;
		text = arena_printf(&s->arena, "target_limit exceeded (number of targets: %zu, limit: %zu)",
			x->targets, (size_t)s->job->target_limit);
	} else if (x->errors > 1) {
		text = arena_printf(&s->arena, STR_FMT " (and %zu more)", STR_ARG(s->error), x->errors - 1);
	} else {
		return;
	}
	s->error = text ? str_of(text) : STR("out of memory");
}

enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct groups *groups, struct target_set **out, struct err *err)
{
	struct target_set *s = calloc(1, sizeof(*s));
	struct expansion x = { .set = s };
	enum err_code rc;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory for targets");
	atomic_init(&s->refs, 1);
	arena_init(&s->arena, SET_BYTES_MAX);
	arena_init(&x.one, SET_BYTES_MAX);
	s->config = config_ref(config);
	s->groups = groups_ref(groups);
	s->job = job;
	s->error = STR("");
	labels_builder_init(&x.b, &s->arena, (struct labels){ 0 });
	rc = expand_groups(&x, err);
	buf_release(&x.scratch);
	arena_release(&x.one);
	if (rc) {
		target_set_unref(s);
		return rc;
	}
	deduplicate(&x);
	finish_set(&x);
	*out = s;
	return ERR_OK;
}

struct target_set *target_set_ref(struct target_set *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void target_set_unref(struct target_set *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	config_unref(s->config);
	groups_unref(s->groups);
	free(s->v);
	arena_release(&s->arena);
	free(s);
}

bool target_same(const struct target *a, const struct target *b)
{
	return a->hash == b->hash && a->interval_ns == b->interval_ns &&
		labels_eq(a->labels, b->labels) &&
		str_eq(a->url, b->url);
}
