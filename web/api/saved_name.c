#include "web/api/saved_name.h"

#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "promql/syntax/parse.h"
#include "promql/syntax/type_names.h"

/* Labels that name a service, the first that is there. */
/* clang-format off */
static const struct str services[] = {
	STR("service"), STR("service_name"), STR("job"), STR("app"),
};
/* clang-format on */
#define SERVICES (sizeof(services) / sizeof(services[0]))

/* ---- text ---- */

static bool api_is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whatever is not plain nor "-" becomes one "_". A part begins and ends plain. */
static void api_add_part(struct buf *out, struct str part)
{
	char text[SAVED_NAME_PART_MAX];
	size_t n = 0;

	for (size_t i = 0; i < part.len && n < sizeof(text); i++) {
		if (api_is_plain(part.ptr[i]) || (n > 0 && part.ptr[i] == '-'))
			text[n++] = part.ptr[i];
		else if (n > 0 && text[n - 1] != '_')
			text[n++] = '_';
	}
	while (n > 0 && !api_is_plain(text[n - 1]))
		n--;
	if (n > 0)
		buf_printf(out, "%s%.*s", out->len ? "-" : "", (int)n, text);
}

/* 1h30m: the two largest units. */
static void api_add_length(struct buf *out, int64_t seconds)
{
	static const struct {
		int64_t size;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	size_t i = 0;

	while (seconds < units[i].size)
		i++;
	buf_printf(out, "-%" PRId64 "%c", seconds / units[i].size, units[i].unit);
	seconds %= units[i].size;
	if (++i < 4 && seconds >= units[i].size)
		buf_printf(out, "%" PRId64 "%c", seconds / units[i].size, units[i].unit);
}

/* A short window has seconds in its name, since another one may begin in the same minute. */
static void api_add_window(struct buf *out, const struct saved_name *n)
{
	int64_t seconds = (n->end_ns - n->start_ns + NS_PER_S / 2) / NS_PER_S;
	time_t at = (time_t)(n->start_ns / NS_PER_S);
	bool is_short = seconds < 60;
	struct tm tm;
	char text[32];

	gmtime_r(&at, &tm); /* TIME_MAX_NS is far from its limits */
	if (is_short && tm.tm_sec)
		strftime(text, sizeof(text), "%Y-%m-%dT%H-%M-%SZ", &tm);
	else
		strftime(text, sizeof(text), "%Y-%m-%dT%H-%MZ", &tm);
	buf_printf(out, "%s%s", out->len ? "-" : "", text);
	if (seconds > 0)
		api_add_length(out, seconds);
}

void saved_name_print(struct buf *out, const struct saved_name *n, const char *suffix)
{
	struct buf name = { 0 };

	api_add_part(&name, n->service);
	api_add_part(&name, n->type);
	api_add_part(&name, n->sample_type);
	api_add_window(&name, n);
	buf_printf(out, STR_FMT ".%s", STR_ARG(buf_str(&name)), suffix);
	out->failed |= buf_failed(&name);
	buf_release(&name);
}

enum err_code saved_name_add(const struct saved_name *n, const char *kind, const char *suffix,
	struct arena *a, struct http_out *out, struct err *err)
{
	struct buf text = { 0 };
	char *copy;

	buf_printf(&text, "%s; filename=\"", kind);
	saved_name_print(&text, n, suffix);
	buf_printf(&text, "\"");
	copy = buf_failed(&text) ? NULL : arena_strndup(a, text.ptr, text.len);
	buf_release(&text);
	if (!copy)
		return arena_fail(a, "name of the file", err);
	http_add_header(out, "Content-Disposition", str_of(copy));
	return ERR_OK;
}

/* ---- what a result is about ---- */

static struct labels api_metric_of(const struct result *r, size_t i)
{
	switch (r->type) {
	case RESULT_PROFILES:
		return r->profiles[i].metric;
	case RESULT_TOP:
		return r->tops[i].metric;
	case RESULT_VECTOR:
		return r->vector[i].metric;
	case RESULT_MATRIX:
		return r->matrix[i].metric;
	default:
		return (struct labels){ 0 };
	}
}

/* The value that all elements have; empty: they have none, or several. */
static struct str api_common_value(const struct result *r, struct str label)
{
	struct str value = { 0 }, next;

	for (size_t i = 0; i < r->n; i++) {
		next = labels_get(api_metric_of(r, i), label);
		if (i > 0 && !str_eq(next, value))
			return (struct str){ 0 };
		value = next;
	}
	return value;
}

static struct str api_selected_value(const struct selector *s, struct str label)
{
	for (size_t i = 0; i < s->matchers_n; i++)
		if (s->matchers[i].op == MATCH_EQ && str_eq(s->matchers[i].name, label))
			return s->matchers[i].value;
	return (struct str){ 0 };
}

/* Matchers of frames have no name of profiles. */
static struct str api_profiles_of(const struct selector *s)
{
	return s->name.len ? s->name : api_selected_value(s, STR("__name__"));
}

/* The value that all selectors ask for; empty: they do not, or for several. */
static struct str api_asked_value(const struct parsed *query, struct str label)
{
	struct str value = { 0 }, next;
	bool found = false;

	for (const struct expr *e = query->selectors; e; e = e->selector.next) {
		if (!api_profiles_of(&e->selector).len)
			continue;
		next = api_selected_value(&e->selector, label);
		if (found && !str_eq(next, value))
			return (struct str){ 0 };
		value = next;
		found = true;
	}
	return value;
}

static void api_find_service(
	const struct result *r, const struct parsed *query, struct saved_name *out)
{
	for (size_t i = 0; i < SERVICES && !out->service.len; i++)
		out->service = api_common_value(r, services[i]);
	for (size_t i = 0; i < SERVICES && !out->service.len; i++)
		out->service = api_asked_value(query, services[i]);
}

/* The type and the window of all profiles, as far as they have one. */
static void api_find_type(const struct result *r, struct saved_name *out)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct profile_value *p = &r->profiles[i];
		struct str name, sample_type;

		type_short_name(&p->type, &name, &sample_type);
		if (i == 0) {
			*out = (struct saved_name){ .type = name,
				.sample_type = sample_type,
				.start_ns = p->start_ns,
				.end_ns = p->end_ns };
			continue;
		}
		if (!str_eq(out->type, name) || !str_eq(out->sample_type, sample_type))
			out->type = out->sample_type = (struct str){ 0 };
		if (p->start_ns < out->start_ns)
			out->start_ns = p->start_ns;
		if (p->end_ns > out->end_ns)
			out->end_ns = p->end_ns;
	}
}

/* The name of the first selector, as written. */
static void api_find_name(const struct parsed *query, struct saved_name *out)
{
	for (const struct expr *e = query->selectors; e && !out->type.len; e = e->selector.next)
		out->type = api_profiles_of(&e->selector);
}

enum err_code saved_name_of(const struct result *r, struct str query, struct arena *a,
	struct saved_name *out, struct err *err)
{
	struct parsed *parsed;
	enum err_code rc = parse_query(a, query, &parsed, NULL, err);

	if (rc)
		return rc;
	*out = (struct saved_name){ .start_ns = r->t_ns, .end_ns = r->t_ns };
	if (r->type == RESULT_PROFILES && r->n)
		api_find_type(r, out);
	else
		api_find_name(parsed, out);
	if (!out->end_ns)
		out->start_ns = out->end_ns = r->t_ns;
	api_find_service(r, parsed, out);
	parsed_release(parsed);
	return ERR_OK;
}

struct saved_name saved_name_of_profile(struct labels ls, int64_t t_ns)
{
	struct profile_type type = { .name = labels_get(ls, STR("__name__")) };
	struct saved_name n = { .start_ns = t_ns, .end_ns = t_ns };
	struct str all_types;

	for (size_t i = 0; i < SERVICES && !n.service.len; i++)
		n.service = labels_get(ls, services[i]);
	type_short_name(&type, &n.type, &all_types);
	return n;
}
