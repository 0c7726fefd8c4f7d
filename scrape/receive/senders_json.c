#include <jansson.h>

#include "base/clock.h"
#include "scrape/receive/senders.h"

/* ---- written ---- */

static void sender_write_text(struct json *j, const char *key, struct str text)
{
	if (!text.len)
		return;
	json_key(j, key);
	json_str(j, text);
}

static void sender_write_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	if (ns)
		time_print_rfc3339(&text, ns);
	sender_write_text(j, key, buf_str(&text));
	buf_release(&text);
}

static void sender_write_count(struct json *j, const char *key, uint64_t n)
{
	json_key(j, key);
	json_u64(j, n);
}

static void sender_write_types(struct json *j, struct str types)
{
	struct str type;

	json_key(j, "types");
	json_array(j);
	while (sender_next_type(&types, &type))
		json_str(j, type);
	json_array_end(j);
}

static void sender_write_refused(struct json *j, const struct sender_info *i)
{
	uint64_t all = 0;

	for (unsigned r = 0; r < REFUSAL_REASONS; r++)
		all += i->refused[r];
	sender_write_count(j, "refusedProfiles", all);
	if (!all)
		return;
	json_key(j, "refused");
	json_object(j);
	for (unsigned r = 0; r < REFUSAL_REASONS; r++)
		if (i->refused[r])
			sender_write_count(j, refusal_reason_name(r), i->refused[r]);
	json_object_end(j);
}

static void sender_write_error(struct json *j, const struct sender_info *i)
{
	if (!i->error_ns)
		return;
	json_key(j, "lastError");
	json_object(j);
	sender_write_time(j, "time", i->error_ns);
	json_key(j, "reason");
	json_cstr(j, refusal_reason_name(i->reason));
	json_key(j, "message");
	json_str(j, i->error);
	json_object_end(j);
}

static void sender_write(struct json *j, const struct sender_info *i, int64_t now_ns)
{
	json_object(j);
	sender_write_text(j, "shard", i->shard);
	sender_write_text(j, "address", i->name.address);
	sender_write_text(j, "user", i->name.user);
	sender_write_text(j, "path", i->name.path);
	sender_write_text(j, "job", i->name.job);
	sender_write_text(j, "client", i->name.client);
	sender_write_types(j, i->types);
	json_key(j, "state");
	json_cstr(j, sender_state(i, now_ns));
	sender_write_time(j, "firstSeen", i->first_ns);
	sender_write_time(j, "lastSeen", i->last_ns);
	sender_write_time(j, "firstStored", i->first_stored_ns);
	sender_write_time(j, "lastStored", i->stored_ns);
	if (i->interval_ns) {
		json_key(j, "intervalSeconds");
		json_double(j, (double)i->interval_ns / NS_PER_S);
	}
	sender_write_count(j, "requests", i->requests);
	sender_write_count(j, "profiles", i->profiles);
	sender_write_count(j, "dropped", i->dropped);
	sender_write_count(j, "samples", i->samples);
	sender_write_count(j, "bytes", i->bytes);
	sender_write_refused(j, i);
	sender_write_error(j, i);
	json_object_end(j);
}

void sender_list_write(struct json *j, const struct sender_list *l, int64_t now_ns)
{
	json_object(j);
	sender_write_time(j, "since", l->since_ns);
	sender_write_count(j, "max", SENDERS_MAX);
	sender_write_count(j, "forgotten", l->forgotten);
	json_key(j, "senders");
	json_array(j);
	for (size_t i = 0; i < l->n; i++)
		sender_write(j, &l->v[i], now_ns);
	json_array_end(j);
	json_object_end(j);
}

/* ---- read ---- */

static struct str sender_read_text(struct arena *a, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);
	size_t n = json_string_length(v);
	char *copy = n ? arena_strndup(a, json_string_value(v), n) : NULL;

	return copy ? (struct str){ copy, n } : STR("");
}

/* 0: it is not there, or is none. */
static int64_t sender_read_time(const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);
	struct str text = { json_string_value(v), json_string_length(v) };
	int64_t ns = 0;

	return text.len && !time_parse(text, &ns, NULL) && ns > 0 ? ns : 0;
}

static uint64_t sender_read_count(const json_t *from, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(from, key));

	return n > 0 ? (uint64_t)n : 0;
}

static struct str sender_read_types(struct arena *a, const json_t *from)
{
	const json_t *types = json_object_get(from, "types"), *type;
	struct buf all = { 0 };
	char *copy;
	size_t i;

	json_array_foreach (types, i, type) {
		if (all.len)
			buf_add_char(&all, ',');
		if (json_is_string(type))
			buf_add_cstr(&all, json_string_value(type));
	}
	copy = all.len && !buf_failed(&all) ? arena_strndup(a, all.ptr, all.len) : NULL;
	buf_release(&all);
	return copy ? str_of(copy) : STR("");
}

static void sender_read_refusals(struct arena *a, const json_t *from, struct sender_info *to)
{
	const json_t *counts = json_object_get(from, "refused"),
				 *last = json_object_get(from, "lastError");
	struct str reason = sender_read_text(a, last, "reason");

	for (unsigned r = 0; r < REFUSAL_REASONS; r++) {
		to->refused[r] = sender_read_count(counts, refusal_reason_name(r));
		if (str_is(reason, refusal_reason_name(r)))
			to->reason = r;
	}
	to->error_ns = sender_read_time(last, "time");
	to->error = sender_read_text(a, last, "message");
}

static void sender_read(struct arena *a, const json_t *from, struct sender_info *to)
{
	double interval_s = json_number_value(json_object_get(from, "intervalSeconds"));

	*to = (struct sender_info){
		.name = { .address = sender_read_text(a, from, "address"),
			.user = sender_read_text(a, from, "user"),
			.path = sender_read_text(a, from, "path"),
			.job = sender_read_text(a, from, "job"),
			.client = sender_read_text(a, from, "client") },
		.types = sender_read_types(a, from),
		.first_ns = sender_read_time(from, "firstSeen"),
		.last_ns = sender_read_time(from, "lastSeen"),
		.first_stored_ns = sender_read_time(from, "firstStored"),
		.stored_ns = sender_read_time(from, "lastStored"),
		.requests = sender_read_count(from, "requests"),
		.profiles = sender_read_count(from, "profiles"),
		.dropped = sender_read_count(from, "dropped"),
		.samples = sender_read_count(from, "samples"),
		.bytes = sender_read_count(from, "bytes"),
	};
	if (interval_s > 0 && interval_s < 1e9)
		to->interval_ns = (int64_t)(interval_s * NS_PER_S);
	sender_read_refusals(a, from, to);
}

enum err_code sender_list_read(
	struct str text, struct arena *a, struct sender_list *out, struct err *err)
{
	json_error_t why;
	json_t *all = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	const json_t *senders = json_object_get(all, "senders"), *one;
	enum err_code rc = ERR_OK;
	size_t i;

	*out = (struct sender_list){ .since_ns = sender_read_time(all, "since"),
		.forgotten = sender_read_count(all, "forgotten"),
		.n = json_array_size(senders) };
	if (!all)
		rc = err_set(err, ERR_CORRUPT, "senders: line %d: %s", why.line, why.text);
	else if (!json_is_array(senders) || out->n > SENDERS_MAX)
		rc = err_set(err, ERR_CORRUPT, "senders: not a list of at most %u senders", SENDERS_MAX);
	else if (!(out->v = arena_array(a, struct sender_info, out->n + 1)))
		rc = arena_fail(a, "senders", err);
	if (!rc)
		json_array_foreach (senders, i, one)
			sender_read(a, one, &out->v[i]);
	json_decref(all);
	return rc;
}
