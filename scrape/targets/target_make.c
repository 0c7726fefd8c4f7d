#include "scrape/targets/target_make.h"

#include "base/clock.h"
#include "base/hidden.h"
#include "base/map.h"
#include "base/net/bare_ipv6.h"
#include "base/net/http_client.h"
#include "base/quote.h"
#include "scrape/targets/url.h"

#define SECONDS_MAX 86400
#define ONE_BYTES_MAX ((size_t)1 << 30)

#define ADDRESS STR("__address__")
#define SCHEME STR("__scheme__")
#define UNIX_SOCKET STR(JOB_UNIX_LABEL)
#define UNIX_SOCKET_PROPOSED STR(JOB_UNIX_LABEL_PROPOSED)
#define PATH STR("__profile_path__")
#define INTERVAL STR("__scrape_interval__")
#define TIMEOUT STR("__scrape_timeout__")
#define PARAM STR("__param_")
#define PARAM_SECONDS STR("__param_seconds")
#define META STR("__meta_")
#define NAME STR(LABEL_NAME)

void target_make_init(struct target_make *m, struct arena *a, struct target_texts *texts,
	const struct scrape_config *job)
{
	*m = (struct target_make){ .arena = a, .texts = texts, .job = job };
	labels_builder_init(&m->b, a, (struct labels){ 0 });
	arena_init(&m->one, ONE_BYTES_MAX);
}

void target_make_release(struct target_make *m)
{
	buf_release(&m->scratch);
	arena_release(&m->one);
}

/* ---- labels before relabelling ---- */

static void target_make_set_default(struct target_make *m, struct str name, struct str value)
{
	if (labels_builder_get(&m->b, name).len == 0)
		labels_builder_set(&m->b, name, value);
}

static struct str target_make_keep_scratch(struct target_make *m, struct arena *a)
{
	struct str s = { NULL, 0 };

	if (!buf_failed(&m->scratch))
		s = str_dup(a, buf_str(&m->scratch));
	buf_clear(&m->scratch);
	if (!s.ptr)
		m->b.failed = true;
	return s;
}

/* The same, with one copy for many targets. */
static struct str target_make_share_scratch(struct target_make *m)
{
	struct target_texts *t = m->texts;
	struct str *kept = &t->kept[hash_bytes(m->scratch.ptr, m->scratch.len, 0) % TARGET_KEPT];

	if (buf_failed(&m->scratch) || !kept->ptr || !str_eq(*kept, buf_str(&m->scratch)))
		*kept = target_make_keep_scratch(m, t->arena);
	return *kept;
}

static struct str target_make_duration_text(struct target_make *m, int64_t ns)
{
	buf_clear(&m->scratch);
	duration_print(&m->scratch, ns);
	return target_make_share_scratch(m);
}

static struct str target_make_param_label(struct target_make *m, struct str name)
{
	buf_clear(&m->scratch);
	buf_add_str(&m->scratch, PARAM);
	buf_add_str(&m->scratch, name);
	return target_make_share_scratch(m);
}

static void target_make_set_params(struct target_make *m, const struct params_config *params)
{
	for (size_t i = 0; i < params->n; i++)
		if (params->v[i].values_n)
			target_make_set_default(
				m, target_make_param_label(m, params->v[i].name), params->v[i].values[0]);
}

/* A second remains for the answer to arrive before the next scrape begins. */
int64_t target_auto_seconds(int64_t interval_ns)
{
	int64_t s = interval_ns / NS_PER_S - 1;

	return s < 1 ? 1 : s;
}

static struct str target_make_seconds_text(struct target_make *m, int64_t seconds)
{
	buf_clear(&m->scratch);
	buf_add_i64(&m->scratch, seconds);
	return target_make_share_scratch(m);
}

static int64_t target_make_interval_label(const struct target_make *m)
{
	int64_t ns;

	return duration_parse(labels_builder_get(&m->b, INTERVAL), &ns, NULL) ? 0 : ns;
}

static struct str target_make_profile_path(
	struct target_make *m, struct str prefix, struct str path)
{
	buf_clear(&m->scratch);
	url_add_path(&m->scratch, prefix, path);
	return target_make_share_scratch(m);
}

static void target_make_populate_profile(struct target_make *m, const struct profile_config *p)
{
	target_make_set_default(m, NAME, p->name);
	target_make_set_default(m, PATH, target_make_profile_path(m, m->job->path_prefix, p->path));
	if (p->seconds)
		target_make_set_default(m, PARAM_SECONDS, target_make_seconds_text(m, p->seconds));
	target_make_set_params(m, &p->params);
}

void target_populate(struct target_make *m, struct labels group, struct labels target,
	const struct profile_config *p)
{
	const struct scrape_config *job = m->job;
	int64_t interval = p ? profile_interval_ns(job, p) : job->scrape_interval_ns;
	int64_t timeout = p && p->timeout_ns ? p->timeout_ns : job->scrape_timeout_ns;

	m->b.n = 0;
	m->b.failed = !m->b.v; /* its first allocation failed */
	m->auto_seconds = STR("");
	for (size_t i = 0; i < target.n; i++)
		labels_builder_set(&m->b, target.v[i].name, target.v[i].value);
	for (size_t i = 0; i < group.n; i++)
		target_make_set_default(m, group.v[i].name, group.v[i].value);
	target_make_set_default(m, STR("job"), job->job_name);
	target_make_set_default(m, INTERVAL, target_make_duration_text(m, interval));
	target_make_set_default(
		m, TIMEOUT, target_make_duration_text(m, timeout < interval ? timeout : interval));
	target_make_set_default(m, SCHEME, job->scheme);
	if (p)
		target_make_populate_profile(m, p);
	target_make_set_params(m, &job->params);
	if (p && p->delta && labels_builder_get(&m->b, PARAM_SECONDS).len == 0 &&
		!profile_path_since_last(labels_builder_get(&m->b, PATH))) {
		m->auto_seconds = target_make_seconds_text(
			m, target_auto_seconds(target_make_interval_label(m)));
		target_make_set_default(m, PARAM_SECONDS, m->auto_seconds);
	}
}

/* ---- after it ---- */

bool target_since_last(const struct target *t)
{
	ptrdiff_t mark = str_find(t->url, STR("?"));

	return profile_path_since_last(
		(struct str){ t->url.ptr, mark < 0 ? t->url.len : (size_t)mark });
}

static enum err_code target_make_read_times(
	struct target_make *m, struct target *t, struct err *err)
{
	struct str interval = labels_builder_get(&m->b, INTERVAL);
	struct str timeout = labels_builder_get(&m->b, TIMEOUT);
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
			"scrape timeout cannot be greater than scrape interval (%s > %s)", QUOTED(timeout),
			QUOTED(interval));
	/* A rule may have changed the interval: default seconds follow it. */
	seconds = labels_builder_get(&m->b, PARAM_SECONDS);
	if (m->auto_seconds.len && str_eq(seconds, m->auto_seconds))
		labels_builder_set(
			&m->b, PARAM_SECONDS, target_make_seconds_text(m, target_auto_seconds(t->interval_ns)));
	if (!str_to_i64(labels_builder_get(&m->b, PARAM_SECONDS), &t->seconds) || t->seconds < 0)
		t->seconds = 0;
	if (t->seconds > SECONDS_MAX)
		return err_set(err, ERR_INVALID, "seconds cannot be greater than %d", SECONDS_MAX);
	t->timeout_ns += t->seconds * NS_PER_S;
	return ERR_OK;
}

/* Profile's params win over the job's, and __param_ labels over both. */
static enum err_code target_make_url(struct target_make *m, struct target *t, struct err *err)
{
	const struct params_config *layers[] = { &m->job->params, &t->profile->params };
	struct url_query q = { .arena = &m->one };
	const struct label *l;
	enum err_code rc;

	arena_reset(&m->one);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < layers[k]->n; i++)
			url_query_set(
				&q, layers[k]->v[i].name, layers[k]->v[i].values, layers[k]->v[i].values_n);
	for (size_t i = 0; i < m->b.n; i++) {
		l = &m->b.v[i];
		if (str_has_prefix(l->name, PARAM))
			url_query_set_first(
				&q, (struct str){ l->name.ptr + PARAM.len, l->name.len - PARAM.len }, l->value);
	}
	buf_clear(&m->scratch);
	rc = url_print(&m->scratch, labels_builder_get(&m->b, SCHEME),
		labels_builder_get(&m->b, ADDRESS), labels_builder_get(&m->b, PATH), &q, err);
	if (rc)
		return rc;
	t->url = target_make_keep_scratch(m, m->arena);
	t->shown_url = hidden_url(m->arena, t->url);
	return t->shown_url.ptr ? ERR_OK : arena_fail(m->arena, "targets", err);
}

/* What the target's requests connect to. */
static struct str target_make_place(const struct target_make *m, const struct target *t)
{
	return t->unix_path ? target_unix_path(t) : labels_builder_get(&m->b, ADDRESS);
}

/* A Go process has one CPU profiler. The path counts: a proxy may serve several processes. */
static void make_exclusive(struct target_make *m, struct target *t)
{
	struct str path = labels_builder_get(&m->b, PATH);

	t->exclusive = STR("");
	if (!str_is(t->name, "process_cpu") && !str_has_suffix(path, STR("/profile")))
		return;
	buf_clear(&m->scratch);
	buf_add_str(&m->scratch, target_make_place(m, t));
	buf_add_char(&m->scratch, ' ');
	buf_add_str(&m->scratch, path);
	t->exclusive = target_make_keep_scratch(m, m->arena);
}

/* Drops __meta_ and other reserved labels. The default of `instance` is the address. */
static enum err_code target_make_labels(struct target_make *m, struct target *t, struct err *err)
{
	struct str address = labels_builder_get(&m->b, ADDRESS);
	struct str name;

	target_make_set_default(m, STR("instance"), address);
	for (size_t i = m->b.n; i-- > 0;) {
		name = m->b.v[i].name;
		if (!label_value_valid(m->b.v[i].value))
			return err_set(err, ERR_INVALID, "invalid label value for %s: %s", QUOTED(name),
				QUOTED(hidden_label(m->arena, name, m->b.v[i].value)));
		if (str_has_prefix(name, STR("__")) && !str_eq(name, NAME))
			labels_builder_del(&m->b, name);
	}
	return labels_builder_build(&m->b, &t->labels, err);
}

/* The socket that a label names. The address is then the Host header's alone. */
static enum err_code target_make_socket(struct target_make *m, struct target *t, struct err *err)
{
	struct str path = labels_builder_get(&m->b, UNIX_SOCKET);
	enum err_code rc;

	if (!path.len)
		path = labels_builder_get(&m->b, UNIX_SOCKET_PROPOSED);
	if (!path.len)
		return ERR_OK;
	if ((rc = http_unix_path_check(path, err)))
		return rc;
	target_make_set_default(m, ADDRESS, STR("localhost"));
	t->unix_path = str_dup(m->arena, path).ptr;
	return t->unix_path ? ERR_OK : arena_fail(m->arena, "targets", err);
}

static enum err_code target_make_check_address(struct target_make *m, struct err *err)
{
	struct str address = labels_builder_get(&m->b, ADDRESS);

	if (!address.len)
		return err_set(err, ERR_INVALID, "no address");
	if (!url_address_valid(address))
		return err_set(
			err, ERR_INVALID, "%s is not a valid hostname", QUOTED(hidden_url(m->arena, address)));
	buf_clear(&m->scratch);
	if (bare_ipv6(address, &m->scratch))
		return err_set(err, ERR_INVALID, "%s is IPv6 without brackets: write " STR_FMT,
			QUOTED(address), STR_ARG(buf_str(&m->scratch)));
	return ERR_OK;
}

enum err_code target_finish(struct target_make *m, struct target *t, struct err *err)
{
	struct str scheme = labels_builder_get(&m->b, SCHEME), place;
	enum err_code rc;

	if ((rc = target_make_socket(m, t, err)) || (rc = target_make_check_address(m, err)))
		return rc;
	if (!str_is(scheme, "http") && !str_is(scheme, "https"))
		return err_set(err, ERR_INVALID, "invalid scheme: %s", QUOTED(scheme));
	t->name = labels_builder_get(&m->b, NAME);
	if (!t->name.len)
		return err_set(err, ERR_INVALID, "no profile name");
	if ((rc = target_make_read_times(m, t, err)) || (rc = target_make_url(m, t, err)))
		return rc;
	make_exclusive(m, t);
	place = target_make_place(m, t);
	t->home = hash_bytes(place.ptr, place.len, 0);
	if ((rc = target_make_labels(m, t, err)))
		return rc;
	t->labels_hash = labels_hash(t->labels);
	t->hash = hash_bytes(t->url.ptr, t->url.len, t->labels_hash);
	if (t->unix_path)
		t->hash = hash_bytes(place.ptr, place.len, t->hash);
	return m->b.failed ? arena_fail(m->arena, "targets", err) : ERR_OK;
}
