/*
 * Profiles a target now. The request waits until the profile is stored; the answer is a query that
 * shows it, or the profile itself.
 *
 * Needs --web.enable-admin-api, since it costs the target a CPU profile and stores data.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "promql/syntax/parse.h"
#include "promql/syntax/type_names.h"
#include "scrape/manager.h"
#include "web/api/handlers.h"
#include "web/api/saved_name.h"
#include "web/router/envelope.h"

#define PROFILING_MAX 16u /* at once: each holds a worker until it is done */

static bool api_enter(struct web *w)
{
	bool entered;

	mutex_lock(&w->lock);
	entered = w->profiling < PROFILING_MAX && !w->closing;
	w->profiling += entered;
	mutex_unlock(&w->lock);
	return entered;
}

static void api_leave(struct web *w)
{
	mutex_lock(&w->lock);
	assert(w->profiling);
	w->profiling--;
	mutex_unlock(&w->lock);
}

/* The selector's name is a profile's, or an alias such as `cpu` and `heap`. */
static enum err_code api_read_matchers(
	struct arena *a, const struct selector *s, struct profile_now *p, struct err *err)
{
	struct matcher *m = arena_array(a, struct matcher, s->matchers_n + 1);
	struct type_pattern pattern;
	struct str name = s->name;

	if (!m)
		return arena_fail(a, "matchers", err);
	for (size_t i = 0; i < s->matchers_n; i++)
		m[p->matchers_n++] = s->matchers[i];
	if (name.len && type_pattern_parse(name, &pattern))
		name = pattern.name;
	if (name.len)
		m[p->matchers_n++] = (struct matcher){ .op = MATCH_EQ,
			.name = STR(LABEL_NAME), .value = name };
	p->matchers = m;
	return ERR_OK;
}

static enum err_code api_read_request(
	struct http_in *in, struct profile_now *p, struct parsed **match, struct err *err)
{
	struct str seconds = http_param(in, "seconds"), text = http_param(in, "match[]");
	enum err_code rc;

	*p = (struct profile_now){
		.pool = http_param(in, "scrapePool"),
		.url = http_param(in, "scrapeUrl"),
		.unix_path = http_param(in, "scrapeUnixSocket"),
		.wants_profile = str_is(http_param(in, "format"), "pprof"),
	};
	if (!p->wants_profile && http_param(in, "format").len &&
		!str_is(http_param(in, "format"), "json"))
		return err_set(
			err, ERR_INVALID, "invalid parameter \"format\": must be \"json\" or \"pprof\"");
	if (seconds.len && (!str_to_i64(seconds, &p->seconds) || p->seconds < 1))
		return err_set(err, ERR_INVALID, "invalid parameter \"seconds\": a number from 1 to %d",
			PROFILE_NOW_SECONDS_MAX);
	if (!text.len)
		return ERR_OK;
	if ((rc = parse_selector(&in->arena, text, match, NULL, err)))
		return err_wrap(err, rc, "invalid parameter \"match[]\"");
	return api_read_matchers(&in->arena, &(*match)->root->selector, p, err);
}

/* ---- the answer ---- */

/* The end of the profile, rounded up to milliseconds, so that a query at this time sees it. */
static int64_t api_shown_ms(const struct profile_now_result *p)
{
	return (p->ts_ns + NS_PER_MS - 1) / NS_PER_MS;
}

static void api_write_query(struct json *j, const struct profile_now_result *p)
{
	struct buf text = { 0 };

	labels_print(&text, p->labels);
	buf_printf(&text, " @ %" PRId64 ".%03d", api_shown_ms(p) / 1000, (int)(api_shown_ms(p) % 1000));
	json_str(j, buf_str(&text));
	if (buf_failed(&text))
		j->out->failed = true;
	buf_release(&text);
}

static void api_write_profile(struct http_out *out, const struct profile_now_result *p)
{
	struct json j;

	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "labels");
	labels_write_json(&j, p->labels);
	json_key(&j, "scrapeUrl");
	json_str(&j, p->url);
	json_key(&j, "time");
	json_double(&j, (double)api_shown_ms(p) / 1000);
	json_key(&j, "samples");
	json_u64(&j, p->samples);
	json_key(&j, "bytes");
	json_u64(&j, p->bytes);
	json_key(&j, "query");
	api_write_query(&j, p);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

static enum err_code api_send_profile(
	struct http_in *in, struct http_out *out, const struct profile_now_result *p, struct err *err)
{
	struct saved_name name = saved_name_of_profile(p->labels, p->ts_ns);

	buf_add_str(&out->body, p->profile);
	out->content_type = "application/octet-stream";
	out->encoded = true;
	return saved_name_add(&name, "attachment", "pb.gz", &in->arena, out, err);
}

static void api_profile_answer(struct web *w, struct http_in *in, struct http_out *out)
{
	struct parsed *match = NULL;
	struct profile_now_result p;
	struct profile_now o;
	struct err err;
	enum err_code rc = api_read_request(in, &o, &match, &err);

	if (!rc)
		rc = scrape_manager_profile_now(w->o.manager, &o, &in->canceled, &in->arena, &p, &err);
	if (!rc && o.wants_profile)
		rc = api_send_profile(in, out, &p, &err);
	else if (!rc)
		api_write_profile(out, &p);
	if (rc)
		api_fail(out, rc, &err);
	parsed_release(match);
}

void api_targets_profile(struct web *w, struct http_in *in, struct http_out *out)
{
	if (!api_enter(w)) {
		api_error(out, 503, "unavailable", "%u targets are being profiled: try again later",
			PROFILING_MAX);
		return;
	}
	api_profile_answer(w, in, out);
	api_leave(w);
}
