/*
 * Functions that Prometheus adds to templates (template/template.go), and links to our page.
 */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unicase.h>
#include <unictype.h>

#include "base/clock.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "base/regex.h"
#include "promql/rules/template/internal.h"

/* ---- numbers ---- */

static enum err_code template_number_of(const struct tv *t, double *out, struct err *err)
{
	char text[512], *end;

	switch (t->kind) {
	case TV_FLOAT:
		*out = t->f;
		return ERR_OK;
	case TV_INT:
		*out = (double)t->i;
		return ERR_OK;
	case TV_STRING:
		snprintf(text, sizeof(text), STR_FMT, STR_ARG(t->s));
		*out = strtod(text, &end);
		if (end == text || *end || t->s.len >= sizeof(text) || strchr(" \t\n", text[0]) ||
			strchr(text, '('))
			return err_set(
				err, ERR_INVALID, "strconv.ParseFloat: parsing %s: invalid syntax", QUOTED(t->s));
		return ERR_OK;
	default:
		return err_set(err, ERR_INVALID, "can't convert %s to float", tv_type_name(t));
	}
}

static void template_add_g4(struct buf *b, double value)
{
	if (isnan(value))
		buf_add_cstr(b, "NaN");
	else if (isinf(value))
		buf_add_cstr(b, value < 0 ? "-Inf" : "+Inf");
	else
		buf_printf(b, "%.4g", value);
}

static const char *const large[] = { "k", "M", "G", "T", "P", "E", "Z", "Y" };
static const char *const small[] = { "m", "u", "n", "p", "f", "a", "z", "y" };
static const char *const binary[] = { "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi" };

static const char *template_scale_down(double *value, double base, const char *const prefixes[8])
{
	const char *prefix = "";

	for (int i = 0; i < 8 && fabs(*value) >= base; i++) {
		prefix = prefixes[i];
		*value /= base;
	}
	return prefix;
}

static const char *template_scale_up(double *value)
{
	const char *prefix = "";

	for (int i = 0; i < 8 && fabs(*value) < 1; i++) {
		prefix = small[i];
		*value *= 1000;
	}
	return prefix;
}

static void template_add_duration(struct buf *b, double value)
{
	const char *sign = value < 0 ? "-" : "", *prefix;
	long long whole, days, hours, minutes;

	if (value != 0 && fabs(value) < 1) {
		prefix = template_scale_up(&value);
		template_add_g4(b, value);
		buf_printf(b, "%ss", prefix);
		return;
	}
	value = fabs(value);
	/* beyond 64 bits Go's conversion gives the smallest integer, which is useless */
	whole = value < 9.2e18 ? (long long)value : INT64_MAX;
	days = whole / 86400;
	hours = whole / 3600 % 24;
	minutes = whole / 60 % 60;
	buf_add_cstr(b, sign);
	if (days)
		buf_printf(b, "%lldd %lldh %lldm %llds", days, hours, minutes, whole % 60);
	else if (hours)
		buf_printf(b, "%lldh %lldm %llds", hours, minutes, whole % 60);
	else if (minutes)
		buf_printf(b, "%lldm %llds", minutes, whole % 60);
	else
		buf_printf(b, "%.4gs", value);
}

enum humanizing { HUMANIZE, HUMANIZE_1024, HUMANIZE_DURATION, HUMANIZE_PERCENTAGE };

static enum err_code template_call_humanize(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct buf b = { 0 };
	const char *prefix = "";
	enum err_code rc;
	double v;

	if ((rc = template_number_of(&args[0], &v, err)))
		return rc;
	if (fn->variant == HUMANIZE_PERCENTAGE) {
		template_add_g4(&b, v * 100);
		buf_add_char(&b, '%');
		return tv_of_buf(r, &b, out, err);
	}
	if (fn->variant == HUMANIZE_DURATION && !isnan(v) && !isinf(v)) {
		template_add_duration(&b, v);
		return tv_of_buf(r, &b, out, err);
	}
	if (v != 0 && !isnan(v) && !isinf(v)) {
		if (fn->variant == HUMANIZE)
			prefix = fabs(v) >= 1 ? template_scale_down(&v, 1000, large) : template_scale_up(&v);
		else if (fabs(v) > 1)
			prefix = template_scale_down(&v, 1024, binary);
	}
	template_add_g4(&b, v);
	buf_add_cstr(&b, prefix);
	return tv_of_buf(r, &b, out, err);
}

/* Milliseconds are kept, as in Prometheus's times. */
static enum err_code template_time_of(double value, int64_t *ns, struct err *err)
{
	double t = value * 1e9;

	if (!(t <= 9.2233720368547748e18 && t >= -9.2233720368547748e18))
		return err_set(err, ERR_INVALID,
			"%g cannot be represented as a nanoseconds timestamp since it overflows "
			"int64",
			value);
	*ns = (int64_t)t / NS_PER_MS * NS_PER_MS;
	return ERR_OK;
}

enum timing { TIME_TEXT, TIME_VALUE };

static enum err_code template_call_time(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct buf b = { 0 };
	int64_t ns = 0;
	enum err_code rc;
	double v;

	if ((rc = template_number_of(&args[0], &v, err)))
		return rc;
	if (isnan(v) || isinf(v)) {
		if (fn->variant == TIME_VALUE)
			return err_set(err, ERR_INVALID, "value is NaN or Inf");
		template_add_g4(&b, v);
		return tv_of_buf(r, &b, out, err);
	}
	if ((rc = template_time_of(v, &ns, err)))
		return rc;
	if (fn->variant == TIME_VALUE) {
		*out = (struct tv){ TV_TIME, .i = ns };
		return ERR_OK;
	}
	tv_time_print(&b, ns);
	return tv_of_buf(r, &b, out, err);
}

static enum err_code template_call_parse_duration(struct rendering *r,
	const struct template_function *fn, const struct tv *args, size_t n, struct tv *out,
	struct err *err)
{
	enum err_code rc;
	int64_t ns;

	if (!(rc = duration_parse(args[0].s, &ns, err)))
		*out = (struct tv){ TV_FLOAT, .f = (double)ns / 1e9 };
	return rc;
}

/* ---- text ---- */

enum casing { CASE_UPPER, CASE_LOWER, CASE_TITLE };

/* After a letter, digit or underscore no word begins, as in strings.Title. */
static bool template_is_inner(uint32_t code_point)
{
	return code_point == '_' || code_point == '\'' ||
		uc_is_general_category_withtable(
			code_point, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_Nd | UC_CATEGORY_MASK_Mn) ||
		(code_point < 128 && code_point >= '0' && code_point <= '9');
}

static enum err_code template_call_case(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct str s = args[0].s;
	struct buf b = { 0 };
	bool inner = false;
	uint32_t c;
	size_t len;

	for (; s.len; s.ptr += len, s.len -= len) {
		if (!(len = utf8_decode(s, &c))) {
			len = 1;
			c = 0xfffd;
		}
		if (fn->variant == CASE_TITLE) {
			buf_add_utf8(&b, inner ? c : uc_totitle(c));
			inner = template_is_inner(c);
		} else {
			buf_add_utf8(&b, fn->variant == CASE_UPPER ? uc_toupper(c) : uc_tolower(c));
		}
	}
	return tv_of_buf(r, &b, out, err);
}

static enum err_code template_call_match(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct regex *re;
	enum err_code rc;

	if ((rc = regex_compile(args[0].s, 0, &re, err)))
		return rc;
	*out = (struct tv){ TV_BOOL, .b = regex_match(re, args[1].s) };
	regex_free(re);
	return ERR_OK;
}

static enum err_code template_call_replace(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct str s = args[2].s, group[REGEX_GROUPS_MAX];
	const char *end = s.ptr + s.len, *at = s.ptr, *last_end = NULL;
	struct buf b = { 0 };
	struct regex *re;
	uint32_t code;
	enum err_code rc;

	if ((rc = regex_compile(args[0].s, REGEX_GROUPS, &re, err)))
		return rc;
	while (at <= end && regex_groups(re, (struct str){ at, (size_t)(end - at) }, group) &&
		b.len <= TEMPLATE_BYTES_MAX) {
		bool empty = group[0].len == 0;

		if (at == end)
			group[0].ptr = at; /* an empty text has no error */
		buf_add(&b, at, (size_t)(group[0].ptr - at));
		if (!empty || group[0].ptr != last_end)
			regex_expand(re, args[1].s, group, &b);
		at = last_end = group[0].ptr + group[0].len;
		if (empty) {
			size_t one = at < end ? utf8_decode((struct str){ at, (size_t)(end - at) }, &code) : 0;

			one = at < end && !one ? 1 : one;
			buf_add(&b, at, one);
			at += one ? one : 1;
		}
		if (args[0].s.len && args[0].s.ptr[0] == '^')
			break; /* the rest does not begin at the text's beginning */
	}
	if (at < end)
		buf_add(&b, at, (size_t)(end - at));
	regex_free(re);
	return tv_of_buf(r, &b, out, err);
}

static enum err_code template_call_same(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = args[0];
	return ERR_OK;
}

/* ---- addresses ---- */

/* host:port, [host]:port, as net.SplitHostPort; false: it is none. */
static bool template_split_host_port(struct str s, struct str *host, struct str *port)
{
	const char *colon = s.len ? memrchr(s.ptr, ':', s.len) : NULL;

	if (!colon)
		return false;
	*host = (struct str){ s.ptr, (size_t)(colon - s.ptr) };
	*port = (struct str){ colon + 1, s.len - host->len - 1 };
	if (host->len && host->ptr[0] == '[') {
		if (host->ptr[host->len - 1] != ']')
			return false;
		*host = (struct str){ host->ptr + 1, host->len - 2 };
	} else if (host->len && memchr(host->ptr, ':', host->len)) {
		return false;
	}
	return !(host->len &&
			   (memchr(host->ptr, '[', host->len) || memchr(host->ptr, ']', host->len))) &&
		!(port->len && (memchr(port->ptr, '[', port->len) || memchr(port->ptr, ']', port->len)));
}

static bool template_is_address(struct str s)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char text[64];

	if (s.len >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), STR_FMT, STR_ARG(s));
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

enum stripping { STRIP_PORT, STRIP_DOMAIN };

static enum err_code template_call_strip(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct str whole = args[0].s, host = whole, port = { 0 };
	bool split = template_split_host_port(whole, &host, &port);
	struct buf b = { 0 };
	const char *dot;

	*out = (struct tv){ TV_STRING, .s = whole };
	if (fn->variant == STRIP_PORT) {
		if (split)
			out->s = host;
		return ERR_OK;
	}
	if (!split) {
		host = whole;
		port = (struct str){ 0 };
	}
	if (template_is_address(host))
		return ERR_OK;
	if (host.len && (dot = memchr(host.ptr, '.', host.len)))
		host.len = (size_t)(dot - host.ptr);
	if (port.len && host.len && memchr(host.ptr, ':', host.len))
		buf_printf(&b, "[" STR_FMT "]:" STR_FMT, STR_ARG(host), STR_ARG(port));
	else
		buf_printf(&b, STR_FMT "%s" STR_FMT, STR_ARG(host), port.len ? ":" : "", STR_ARG(port));
	return tv_of_buf(r, &b, out, err);
}

/* ---- links ---- */

void template_link_print(struct buf *out, struct str expr)
{
	buf_add_cstr(out, "/explore?query=");
	percent_encode(out, expr, PERCENT_FORM);
}

enum linking { LINK_GRAPH, LINK_TABLE, LINK_URL, LINK_PREFIX };

static enum err_code template_call_link(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct str url = r->data->external_url, path = { 0 };
	struct buf b = { 0 };
	ptrdiff_t host = str_find(url, STR("://"));
	const char *slash;

	if (fn->variant == LINK_GRAPH || fn->variant == LINK_TABLE) {
		template_link_print(&b, args[0].s);
		if (fn->variant == LINK_TABLE)
			buf_add_cstr(&b, "&view=table");
		return tv_of_buf(r, &b, out, err);
	}
	if (fn->variant == LINK_PREFIX) {
		path = host >= 0 ? (struct str){ url.ptr + host + 3, url.len - (size_t)host - 3 } : url;
		slash = path.len ? memchr(path.ptr, '/', path.len) : NULL;
		path = slash ? (struct str){ slash, path.len - (size_t)(slash - path.ptr) } :
					   (struct str){ 0 };
		url = path;
	}
	*out = (struct tv){ TV_STRING, .s = url };
	return ERR_OK;
}

/* ---- samples ---- */

static enum err_code template_call_query(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	const struct template_data *d = r->data;
	struct template_sample *v = NULL;
	size_t count = 0;
	struct err why;
	enum err_code rc;

	if (!d->query)
		return err_set(err, ERR_INVALID, "there is nothing to query here");
	if ((rc = d->query(d->ctx, &r->arena, args[0].s, &v, &count, &why)))
		return err_set(
			err, rc == ERR_NOMEM || rc == ERR_CANCELED ? rc : ERR_INVALID, "%s", why.msg);
	*out = (struct tv){ TV_SAMPLES, .samples = v, .n = count };
	return ERR_OK;
}

static enum err_code template_call_first(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	if (!args[0].n)
		return err_set(err, ERR_INVALID, "first() called on vector with no elements");
	*out = (struct tv){ TV_SAMPLE, .sample = args[0].samples };
	return ERR_OK;
}

static enum err_code template_call_value(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = (struct tv){ TV_FLOAT, .f = args[0].sample->value };
	return ERR_OK;
}

static enum err_code template_call_label(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = (struct tv){ TV_STRING, .s = labels_get(args[1].sample->labels, args[0].s) };
	return ERR_OK;
}

static enum err_code template_call_strvalue(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = (struct tv){ TV_STRING, .s = labels_get(args[0].sample->labels, STR("__value__")) };
	return ERR_OK;
}

struct sorting {
	struct str value;
	size_t at;
};

static int template_by_value(const void *a, const void *b)
{
	const struct sorting *x = a, *y = b;
	int d = str_cmp(x->value, y->value);

	return d ? d : x->at < y->at ? -1 : x->at > y->at;
}

static enum err_code template_call_sort(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	size_t count = args[1].n;
	struct sorting *order = arena_array(&r->arena, struct sorting, count + 1);
	struct template_sample *sorted = arena_array(&r->arena, struct template_sample, count + 1);

	if (!order || !sorted)
		return arena_fail(&r->arena, "template", err);
	for (size_t i = 0; i < count; i++)
		order[i] = (struct sorting){ labels_get(args[1].samples[i].labels, args[0].s), i };
	qsort(order, count, sizeof(*order), template_by_value);
	for (size_t i = 0; i < count; i++)
		sorted[i] = args[1].samples[order[i].at];
	*out = (struct tv){ TV_SAMPLES, .samples = sorted, .n = count };
	return ERR_OK;
}

static enum err_code template_call_args(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = (struct tv){ TV_ARGS, .args = args, .n = n };
	return ERR_OK;
}

#define MANY TEMPLATE_ARGS_MAX
#define S PARAM_STRING
#define V PARAM_SAMPLE
#define VS PARAM_SAMPLES
/* clang-format off */
const struct template_function template_functions_prometheus[] = {
	{ "args", template_call_args, 0, MANY, { 0 }, 0 },
	{ "externalURL", template_call_link, 0, 0, { 0 }, LINK_URL },
	{ "first", template_call_first, 1, 1, { VS }, 0 },
	{ "graphLink", template_call_link, 1, 1, { S }, LINK_GRAPH },
	{ "humanize", template_call_humanize, 1, 1, { 0 }, HUMANIZE },
	{ "humanize1024", template_call_humanize, 1, 1, { 0 }, HUMANIZE_1024 },
	{ "humanizeDuration", template_call_humanize, 1, 1, { 0 }, HUMANIZE_DURATION },
	{ "humanizePercentage", template_call_humanize, 1, 1, { 0 }, HUMANIZE_PERCENTAGE },
	{ "humanizeTimestamp", template_call_time, 1, 1, { 0 }, TIME_TEXT },
	{ "label", template_call_label, 2, 2, { S, V }, 0 },
	{ "match", template_call_match, 2, 2, { S, S }, 0 },
	{ "parseDuration", template_call_parse_duration, 1, 1, { S }, 0 },
	{ "pathPrefix", template_call_link, 0, 0, { 0 }, LINK_PREFIX },
	{ "query", template_call_query, 1, 1, { S }, 0 },
	{ "reReplaceAll", template_call_replace, 3, 3, { S, S, S }, 0 },
	{ "safeHtml", template_call_same, 1, 1, { S }, 0 },
	{ "sortByLabel", template_call_sort, 2, 2, { S, VS }, 0 },
	{ "stripDomain", template_call_strip, 1, 1, { S }, STRIP_DOMAIN },
	{ "stripPort", template_call_strip, 1, 1, { S }, STRIP_PORT },
	{ "strvalue", template_call_strvalue, 1, 1, { V }, 0 },
	{ "tableLink", template_call_link, 1, 1, { S }, LINK_TABLE },
	{ "title", template_call_case, 1, 1, { S }, CASE_TITLE },
	{ "toLower", template_call_case, 1, 1, { S }, CASE_LOWER },
	{ "toTime", template_call_time, 1, 1, { 0 }, TIME_VALUE },
	{ "toUpper", template_call_case, 1, 1, { S }, CASE_UPPER },
	{ "value", template_call_value, 1, 1, { V }, 0 },
};
/* clang-format on */
const size_t template_functions_prometheus_n = sizeof(template_functions_prometheus) /
	sizeof(template_functions_prometheus[0]);

const char *template_function_name(size_t i)
{
	return i < template_functions_prometheus_n ? template_functions_prometheus[i].name : NULL;
}
