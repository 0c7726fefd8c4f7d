#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "scrape/target_lines.h"

#define NEVER "0001-01-01T00:00:00Z" /* Go's zero time */
#define LABELS_MAX 1024u /* of one target */

/* ---- one target ---- */

static void target_lines_write_labels(struct json *j, const char *key, struct labels ls)
{
	json_key(j, key);
	labels_write_json(j, ls);
}

static void target_lines_write_text(struct json *j, const char *key, struct str text)
{
	json_key(j, key);
	json_str(j, text);
}

static void target_lines_write_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	if (ns)
		time_print_rfc3339(&text, ns);
	else
		buf_add_cstr(&text, NEVER);
	target_lines_write_text(j, key, buf_str(&text));
	buf_release(&text);
}

static void target_lines_write_duration(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	duration_print(&text, ns);
	target_lines_write_text(j, key, buf_str(&text));
	buf_release(&text);
}

static void target_lines_write_counts(struct json *j, const struct target_info *t)
{
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{ "scrapes", t->scrapes },
		{ "failures", t->failures },
		{ "skipped", t->skipped },
		{ "lastSamples", t->last_samples },
		{ "lastBytes", t->last_bytes },
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_key(j, counts[i].key);
		json_u64(j, counts[i].value);
	}
}

void target_lines_write_target(struct json *j, const struct target_info *t)
{
	json_object(j);
	if (t->shard.len)
		target_lines_write_text(j, "shard", t->shard);
	target_lines_write_labels(j, "discoveredLabels", t->discovered);
	target_lines_write_labels(j, "labels", t->labels);
	target_lines_write_text(j, "profile", t->profile);
	target_lines_write_text(j, "scrapePool", t->pool);
	target_lines_write_text(j, "scrapeUrl", t->scrape_url);
	target_lines_write_text(j, "globalUrl", t->global_url);
	target_lines_write_text(j, "lastError", t->last_error);
	if (t->unix_path.len) /* our own */
		target_lines_write_text(j, "scrapeUnixSocket", t->unix_path);
	target_lines_write_time(j, "lastScrape", t->last_scrape_ns);
	json_key(j, "lastScrapeDuration");
	json_double(j, (double)t->last_duration_ns / 1e9);
	if (t->next_profile_ns)
		target_lines_write_time(j, "nextProfile", t->next_profile_ns);
	target_lines_write_text(j, "health", str_of(target_health_name(t->health)));
	if (t->warning.len)
		target_lines_write_text(j, "warning", t->warning);
	if (t->sharing != SHARING_ALONE)
		target_lines_write_text(j, "profilerShared", str_of(sharing_mode_name(t->sharing)));
	target_lines_write_duration(j, "scrapeInterval", t->interval_ns);
	target_lines_write_duration(j, "scrapeTimeout", t->timeout_ns);
	target_lines_write_counts(j, t);
	json_object_end(j);
}

void target_lines_write_dropped(struct json *j, const struct dropped_target *d)
{
	json_object(j);
	target_lines_write_labels(j, "discoveredLabels", d->discovered);
	target_lines_write_text(j, "scrapePool", d->pool);
	if (d->reason.len) /* our own: another shard */
		target_lines_write_text(j, "reason", d->reason);
	json_object_end(j);
}

/* ---- a list is printed ---- */

struct target_printer {
	struct buf body;
	size_t bytes_max;
	bool full;
	uint64_t left_out;
};

/* Takes back a line that is too much. */
static bool target_printer_end_line(struct target_printer *p, size_t start)
{
	buf_add_char(&p->body, '\n');
	p->full |= p->body.len > p->bytes_max;
	if (p->full && !buf_failed(&p->body))
		p->body.len = start;
	return !p->full;
}

static void target_printer_add_targets(
	struct target_printer *p, const struct scrape_snapshot *s, bool up)
{
	for (size_t i = 0; i < s->active_n; i++) {
		size_t start = p->body.len;
		struct json j;

		if ((s->active[i].health == TARGET_UP) != up)
			continue;
		if (!p->full) {
			json_init(&j, &p->body);
			target_lines_write_target(&j, &s->active[i]);
			target_printer_end_line(p, start);
		}
		p->left_out += p->full;
	}
}

static void target_printer_add_dropped(struct target_printer *p, const struct scrape_snapshot *s)
{
	for (size_t i = 0; i < s->dropped_n && !p->full; i++) {
		size_t start = p->body.len;
		struct json j;

		if (s->dropped[i].reason.len)
			continue;
		json_init(&j, &p->body);
		target_lines_write_dropped(&j, &s->dropped[i]);
		target_printer_end_line(p, start);
	}
}

static void target_lines_write_head(
	struct json *j, const struct scrape_snapshot *s, int64_t now_ns, uint64_t left_out)
{
	json_object(j);
	target_lines_write_time(j, "time", now_ns);
	json_key(j, "leftOut");
	json_u64(j, left_out);
	json_key(j, "pools");
	json_array(j);
	for (size_t i = 0; i < s->pools_n; i++) {
		json_object(j);
		target_lines_write_text(j, "name", s->pools[i].name);
		json_key(j, "active");
		json_u64(j, s->pools[i].active);
		json_key(j, "dropped");
		json_u64(j, s->pools[i].dropped - s->pools[i].elsewhere);
		if (s->pools[i].error.len)
			target_lines_write_text(j, "error", s->pools[i].error);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

enum err_code target_lines_print(const struct scrape_snapshot *s, int64_t now_ns, size_t bytes_max,
	struct buf *out, struct err *err)
{
	struct target_printer p = { .bytes_max = bytes_max };
	struct json j;

	target_printer_add_targets(&p, s, false);
	target_printer_add_targets(&p, s, true);
	target_printer_add_dropped(&p, s);
	json_init(&j, out);
	target_lines_write_head(&j, s, now_ns, p.left_out);
	buf_add_char(out, '\n');
	buf_add_str(out, buf_str(&p.body));
	if (buf_failed(&p.body))
		out->failed = true;
	buf_release(&p.body);
	return buf_failed(out) ? err_nomem(err, "list of targets") : ERR_OK;
}

/* ---- a list is read ---- */

struct target_reader {
	struct arena *a;
	struct listed_targets *out;
	size_t line;
	bool starved; /* the arena had no memory for a text */
	struct err *err;
};

static enum err_code target_reader_fail(const struct target_reader *r, const char *what)
{
	return err_set(r->err, ERR_CORRUPT, "targets: line %zu: %s", r->line, what);
}

static struct str target_reader_keep(struct target_reader *r, const char *text, size_t n)
{
	struct str copy = n ? str_dup(r->a, (struct str){ text, n }) : STR("");

	r->starved |= !copy.ptr;
	return copy.ptr ? copy : STR("");
}

static struct str target_read_text(struct target_reader *r, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	return target_reader_keep(r, json_string_value(v), json_string_length(v));
}

/* 0: it is not there, or is none. */
static int64_t target_read_time(const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);
	struct str text = { json_string_value(v), json_string_length(v) };
	int64_t ns = 0;

	return text.len && !time_parse(text, &ns, NULL) && ns > 0 ? ns : 0;
}

static int64_t target_read_duration(const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);
	struct str text = { json_string_value(v), json_string_length(v) };
	int64_t ns = 0;

	return text.len && !duration_parse(text, &ns, NULL) && ns > 0 ? ns : 0;
}

static uint64_t target_read_count(const json_t *from, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(from, key));

	return n > 0 ? (uint64_t)n : 0;
}

static bool target_read_labels(
	struct target_reader *r, json_t *from, const char *key, struct labels *out)
{
	json_t *object = json_object_get(from, key), *value;
	struct labels_builder b;
	const char *name;
	size_t n;

	if (!json_is_object(object) || json_object_size(object) > LABELS_MAX)
		return false;
	labels_builder_init(&b, r->a, (struct labels){ NULL, 0 });
	json_object_keylen_foreach(object, name, n, value)
	{
		if (!json_is_string(value))
			return false;
		labels_builder_set(&b, target_reader_keep(r, name, n),
			target_reader_keep(r, json_string_value(value), json_string_length(value)));
	}
	r->starved |= labels_builder_build(&b, out, NULL) != ERR_OK;
	return true;
}

static enum target_health target_read_health(const json_t *from)
{
	const json_t *v = json_object_get(from, "health");
	struct str text = { json_string_value(v), json_string_length(v) };

	return str_is(text, target_health_name(TARGET_UP)) ? TARGET_UP :
		str_is(text, target_health_name(TARGET_DOWN))  ? TARGET_DOWN :
														 TARGET_UNKNOWN;
}

static enum sharing_mode target_read_sharing(const json_t *from)
{
	const json_t *v = json_object_get(from, "profilerShared");
	struct str text = { json_string_value(v), json_string_length(v) };

	return str_is(text, sharing_mode_name(SHARING_HALVES)) ? SHARING_HALVES :
		str_is(text, sharing_mode_name(SHARING_TURNS))     ? SHARING_TURNS :
															 SHARING_ALONE;
}

static enum err_code target_reader_take_target(struct target_reader *r, json_t *from)
{
	struct target_info *t = &r->out->s.active[r->out->s.active_n];
	double took_s = json_number_value(json_object_get(from, "lastScrapeDuration"));

	*t = (struct target_info){
		.profile = target_read_text(r, from, "profile"),
		.pool = target_read_text(r, from, "scrapePool"),
		.scrape_url = target_read_text(r, from, "scrapeUrl"),
		.global_url = target_read_text(r, from, "globalUrl"),
		.unix_path = target_read_text(r, from, "scrapeUnixSocket"),
		.last_error = target_read_text(r, from, "lastError"),
		.warning = target_read_text(r, from, "warning"),
		.last_scrape_ns = target_read_time(from, "lastScrape"),
		.next_profile_ns = target_read_time(from, "nextProfile"),
		.interval_ns = target_read_duration(from, "scrapeInterval"),
		.timeout_ns = target_read_duration(from, "scrapeTimeout"),
		.health = target_read_health(from),
		.sharing = target_read_sharing(from),
		.scrapes = target_read_count(from, "scrapes"),
		.failures = target_read_count(from, "failures"),
		.skipped = target_read_count(from, "skipped"),
		.last_samples = target_read_count(from, "lastSamples"),
		.last_bytes = target_read_count(from, "lastBytes"),
	};
	if (took_s > 0 && took_s < 1e9)
		t->last_duration_ns = (int64_t)(took_s * NS_PER_S + 0.5);
	if (!target_read_labels(r, from, "labels", &t->labels) ||
		!target_read_labels(r, from, "discoveredLabels", &t->discovered))
		return target_reader_fail(r, "labels are no object of strings");
	r->out->s.active_n++;
	return ERR_OK;
}

static enum err_code target_reader_take_dropped(struct target_reader *r, json_t *from)
{
	struct dropped_target *d = &r->out->s.dropped[r->out->s.dropped_n];

	*d = (struct dropped_target){ .pool = target_read_text(r, from, "scrapePool"),
		.reason = STR("") };
	if (!target_read_labels(r, from, "discoveredLabels", &d->discovered))
		return target_reader_fail(r, "labels are no object of strings");
	r->out->s.dropped_n++;
	return ERR_OK;
}

static enum err_code target_reader_take_head(struct target_reader *r, const json_t *from)
{
	const json_t *pools = json_object_get(from, "pools"), *one;
	struct scrape_snapshot *s = &r->out->s;
	size_t i;

	r->out->time_ns = target_read_time(from, "time");
	r->out->left_out = target_read_count(from, "leftOut");
	if (!r->out->time_ns || !json_is_array(pools))
		return target_reader_fail(r, "not the head of a list");
	if (!(s->pools = arena_array(r->a, struct pool_info, json_array_size(pools) + 1)))
		return arena_fail(r->a, "targets", r->err);
	json_array_foreach (pools, i, one)
		s->pools[s->pools_n++] = (struct pool_info){
			.name = target_read_text(r, one, "name"),
			.active = target_read_count(one, "active"),
			.dropped = target_read_count(one, "dropped"),
			.error = target_read_text(r, one, "error"),
		};
	return ERR_OK;
}

static enum err_code target_reader_take_line(struct target_reader *r, struct str line)
{
	json_error_t why;
	json_t *one = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	enum err_code rc;

	r->line++;
	if (!json_is_object(one))
		rc = target_reader_fail(r, one ? "not an object" : why.text);
	else if (r->line == 1)
		rc = target_reader_take_head(r, one);
	else if (json_object_get(one, "labels"))
		rc = target_reader_take_target(r, one);
	else
		rc = target_reader_take_dropped(r, one);
	json_decref(one);
	return rc;
}

static size_t target_lines_count(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '\n';
	return n;
}

enum err_code target_lines_read(
	struct str text, struct arena *a, struct listed_targets *out, struct err *err)
{
	struct target_reader r = { .a = a, .out = out, .err = err };
	size_t lines = target_lines_count(text);
	enum err_code rc = ERR_OK;

	*out = (struct listed_targets){ 0 };
	if (!lines || text.ptr[text.len - 1] != '\n')
		return err_set(err, ERR_CORRUPT, "targets: the list has no end");
	if (lines > TARGET_LINES_MAX)
		return err_set(err, ERR_LIMIT, "targets: more than %u lines", TARGET_LINES_MAX);
	out->s.active = arena_array(a, struct target_info, lines);
	out->s.dropped = arena_array(a, struct dropped_target, lines);
	if (!out->s.active || !out->s.dropped)
		return arena_fail(a, "targets", err);
	while (!rc && text.len) {
		size_t n = (size_t)((const char *)memchr(text.ptr, '\n', text.len) - text.ptr);

		rc = target_reader_take_line(&r, (struct str){ text.ptr, n });
		text = (struct str){ text.ptr + n + 1, text.len - n - 1 };
	}
	if (!rc && r.starved)
		rc = arena_fail(a, "targets", err);
	return rc;
}
