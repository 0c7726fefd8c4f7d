#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/quote.h"

#define VALUE_MAX 4096u /* bytes of one value; longer ones are cut with "..." */

static const char *const level_names[] = { "debug", "info", "warn", "error" };
static const char *const format_names[] = { "logfmt", "json" };

static _Atomic int level_now = LOG_INFO, format_now = LOG_LOGFMT;

void log_set(enum log_level level, enum log_format format)
{
	atomic_store(&level_now, (int)level);
	atomic_store(&format_now, (int)format);
}

bool log_enabled(enum log_level level)
{
	return (int)level >= atomic_load_explicit(&level_now, memory_order_relaxed);
}

static enum err_code log_name_parse(
	struct str s, const char *what, const char *const *names, size_t n, int *out, struct err *err)
{
	struct buf all = { 0 };
	size_t i;

	for (i = 0; i < n; i++) {
		if (str_is(s, names[i])) {
			*out = (int)i;
			buf_release(&all);
			return ERR_OK;
		}
		buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	err_set(err, ERR_INVALID, "unrecognized log %s %s, want one of " STR_FMT, what, QUOTED(s),
		STR_ARG(buf_str(&all)));
	buf_release(&all);
	return ERR_INVALID;
}

enum err_code log_level_parse(struct str s, enum log_level *out, struct err *err)
{
	int i;
	enum err_code rc = log_name_parse(s, "level", level_names, 4, &i, err);

	if (!rc)
		*out = (enum log_level)i;
	return rc;
}

enum err_code log_format_parse(struct str s, enum log_format *out, struct err *err)
{
	int i;
	enum err_code rc = log_name_parse(s, "format", format_names, 2, &i, err);

	if (!rc)
		*out = (enum log_format)i;
	return rc;
}

/* value / unit with the digits behind the point that are not zero: 1.5, 20, 0.25 */
static void log_add_scaled(struct buf *b, uint64_t value, uint64_t unit, const char *name)
{
	uint64_t part = value % unit;

	buf_add_u64(b, value / unit);
	if (part) {
		buf_add_char(b, '.');
		for (; part; part = part * 10 % unit)
			buf_add_char(b, (char)('0' + part * 10 / unit));
	}
	buf_add_cstr(b, name);
}

/* As Go prints a duration, to the microsecond: 350ns, 1.5ms, 20ms, 1.5s, 1h0m0.5s. */
static void log_add_duration(struct buf *b, int64_t ns)
{
	uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	if (v >= (uint64_t)NS_PER_MS)
		v -= v % (uint64_t)NS_PER_US;
	if (ns < 0)
		buf_add_char(b, '-');
	if (v == 0) {
		buf_add_cstr(b, "0s");
	} else if (v < (uint64_t)NS_PER_US) {
		log_add_scaled(b, v, 1, "ns");
	} else if (v < (uint64_t)NS_PER_MS) {
		log_add_scaled(b, v, (uint64_t)NS_PER_US, "us");
	} else if (v < (uint64_t)NS_PER_S) {
		log_add_scaled(b, v, (uint64_t)NS_PER_MS, "ms");
	} else {
		if (v >= (uint64_t)NS_PER_HOUR)
			buf_printf(b, "%dh", (int)(v / (uint64_t)NS_PER_HOUR));
		if (v >= (uint64_t)NS_PER_MIN)
			buf_printf(b, "%dm", (int)(v / (uint64_t)NS_PER_MIN % 60));
		log_add_scaled(b, v % (uint64_t)NS_PER_MIN, (uint64_t)NS_PER_S, "s");
	}
}

/* The value as plain text, cut to VALUE_MAX at the end of a code point. */
static void log_field_text(struct buf *b, const struct log_field *f)
{
	struct str s = f->s;

	switch (f->kind) {
	case LOG_KIND_INT:
		buf_add_i64(b, f->i);
		return;
	case LOG_KIND_DURATION:
		log_add_duration(b, f->i);
		return;
	case LOG_KIND_ERR:
		s = str_of(f->err ? f->err->msg : "");
		break;
	case LOG_KIND_STR:
		break;
	}
	if (s.len <= VALUE_MAX) {
		buf_add_str(b, s);
		return;
	}
	for (s.len = VALUE_MAX; s.len > VALUE_MAX - 4 && (s.ptr[s.len] & 0xc0) == 0x80; s.len--)
		;
	buf_add_str(b, s);
	buf_add_cstr(b, "...");
}

static bool log_needs_quotes(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c <= ' ' || c >= 0x7f || c == '=' || c == '"' || c == '\\')
			return true;
	}
	return s.len == 0;
}

static void log_add_pair(struct buf *b, const char *key, struct str value)
{
	if (b->len)
		buf_add_char(b, ' ');
	buf_add_cstr(b, key);
	buf_add_char(b, '=');
	if (log_needs_quotes(value))
		buf_add_quoted(b, value);
	else
		buf_add_str(b, value);
}

struct log_event {
	struct str time;
	const char *level, *component, *msg;
	const struct log_field *f;
	size_t n;
};

static void log_print_logfmt(struct buf *b, const struct log_event *e)
{
	struct buf text = { 0 };
	size_t i;

	log_add_pair(b, "time", e->time);
	log_add_pair(b, "level", str_of(e->level));
	log_add_pair(b, "component", str_of(e->component));
	log_add_pair(b, "msg", str_of(e->msg));
	for (i = 0; i < e->n; i++) {
		buf_clear(&text);
		log_field_text(&text, &e->f[i]);
		log_add_pair(b, e->f[i].key, buf_str(&text));
	}
	buf_release(&text);
}

static void log_print_json(struct buf *b, const struct log_event *e)
{
	struct buf text = { 0 };
	struct json j;
	size_t i;

	json_init(&j, b);
	json_object(&j);
	json_key(&j, "time");
	json_str(&j, e->time);
	json_key(&j, "level");
	json_cstr(&j, e->level);
	json_key(&j, "component");
	json_cstr(&j, e->component);
	json_key(&j, "msg");
	json_cstr(&j, e->msg);
	for (i = 0; i < e->n; i++) {
		json_key(&j, e->f[i].key);
		if (e->f[i].kind == LOG_KIND_INT) {
			json_i64(&j, e->f[i].i);
			continue;
		}
		buf_clear(&text);
		log_field_text(&text, &e->f[i]);
		json_str(&j, buf_str(&text));
	}
	json_object_end(&j);
	buf_release(&text);
}

/* The program goes on even when standard error does not take the line. */
static void log_write_line(struct str line)
{
	ssize_t n;

	while (line.len) {
		n = write(STDERR_FILENO, line.ptr, line.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line.ptr += n;
		line.len -= (size_t)n;
	}
}

void log_write(enum log_level level, const char *component, const char *msg,
	const struct log_field *f, size_t n)
{
	struct log_event e = {
		.level = level_names[level], .component = component, .msg = msg, .f = f, .n = n
	};
	struct buf line = { 0 }, time = { 0 };
	int64_t now = clock_system_ns();
	int saved = errno; /* a caller may log before it looks at errno */

	if (!log_enabled(level))
		return;
	time_print_rfc3339(&time, now - now % NS_PER_MS);
	e.time = buf_str(&time);
	if (atomic_load_explicit(&format_now, memory_order_relaxed) == LOG_JSON)
		log_print_json(&line, &e);
	else
		log_print_logfmt(&line, &e);
	buf_add_char(&line, '\n');
	log_write_line(buf_failed(&line) ? STR("level=error component=log msg=\"out of memory\"\n") :
									   buf_str(&line));
	buf_release(&time);
	buf_release(&line);
	errno = saved;
}
