/*
 * Reads a report. Its bytes come from outside: each count is compared with the bytes that are left
 * before anything is allocated, so that memory stays below some 20 times the bytes.
 */
#include <string.h>

#include "base/map.h"
#include "promql/rules/report.h"
#include "promql/rules/report_format.h"

#define REPORT_DURATION_MAX (INT64_MAX / 8) /* sums of some of them are no overflow */

struct report_reader {
	struct cursor in;
	struct arena *arena;
	struct err *err;
	size_t rules_n; /* of all groups */
};

static enum err_code report_wrong(struct report_reader *r, const char *what)
{
	return err_set(r->err, ERR_CORRUPT, "a report of rules: %s is wrong", what);
}

/* ---- parts ---- */

/* A count of things of at least bytes_min each, and their array in *out. */
static enum err_code report_read_array(
	struct report_reader *r, const char *what, size_t bytes_min, size_t size, void **out, size_t *n)
{
	uint64_t count = cursor_varint(&r->in);

	if (r->in.bad || count > cursor_left(&r->in) / bytes_min)
		return report_wrong(r, what);
	*n = (size_t)count;
	*out = arena_alloc(r->arena, (*n + 1) * size);
	if (!*out)
		return arena_fail(r->arena, "rules", r->err);
	memset(*out, 0, (*n + 1) * size);
	return ERR_OK;
}

/* A time or a duration: not negative. */
static int64_t report_read_int(struct report_reader *r, int64_t max)
{
	int64_t value = str_unzigzag(cursor_varint(&r->in));

	if (value < 0 || value > max)
		r->in.bad = true;
	return r->in.bad ? 0 : value;
}

static unsigned report_read_choice(struct report_reader *r, unsigned n)
{
	struct str byte = cursor_bytes(&r->in, 1);

	if (byte.len != 1 || (unsigned char)byte.ptr[0] >= n) {
		r->in.bad = true;
		return 0;
	}
	return (unsigned char)byte.ptr[0];
}

static enum err_code report_read_text(struct report_reader *r, const char *what, struct str *out)
{
	struct str s = cursor_lenstr(&r->in);

	if (r->in.bad)
		return report_wrong(r, what);
	*out = s.len ? str_dup(r->arena, s) : STR("");
	return out->ptr ? ERR_OK : arena_fail(r->arena, "rules", r->err);
}

static enum err_code report_read_texts(
	struct report_reader *r, const char *what, struct rule_text **out, size_t *n)
{
	void *v;
	enum err_code rc;

	if ((rc = report_read_array(r, what, REPORT_TEXT_BYTES_MIN, sizeof(**out), &v, n)))
		return rc;
	*out = v;
	for (size_t i = 0; i < *n && !rc; i++)
		if (!(rc = report_read_text(r, what, &(*out)[i].name)))
			rc = report_read_text(r, what, &(*out)[i].text);
	return rc;
}

/* ---- alerts ---- */

static enum err_code report_read_alert(struct report_reader *r, struct alert_info *a)
{
	enum err_code rc;
	uint64_t value;

	if ((rc = labels_decode(r->arena, &r->in, &a->labels, r->err)))
		return rc;
	a->phase = report_read_choice(r, ALERT_FIRING + 1);
	a->active_at_ns = report_read_int(r, INT64_MAX);
	a->keep_firing_since_ns = report_read_int(r, INT64_MAX);
	if ((rc = labels_decode(r->arena, &r->in, &a->annotations, r->err)))
		return rc;
	value = cursor_u64be(&r->in);
	memcpy(&a->value, &value, sizeof(value));
	return r->in.bad ? report_wrong(r, "an alert") : ERR_OK;
}

static enum err_code report_read_alerts(struct report_reader *r, struct rule_info *out)
{
	void *v;
	enum err_code rc = report_read_array(
		r, "a number of alerts", REPORT_ALERT_BYTES_MIN, sizeof(*out->alerts), &v, &out->alerts_n);

	if (rc)
		return rc;
	out->alerts = v;
	for (size_t i = 0; i < out->alerts_n && !rc; i++)
		rc = report_read_alert(r, &out->alerts[i]);
	if (!rc && out->alerts_n && out->rule->kind != RULE_ALERT)
		rc = report_wrong(r, "a recording rule's alert");
	return rc;
}

/* ---- rules ---- */

static enum err_code report_read_rule(struct report_reader *r, struct rule *out)
{
	enum err_code rc;

	out->kind = report_read_choice(r, RULE_RECORD_PROFILES + 1);
	if ((rc = report_read_text(r, "a rule's name", &out->name)) ||
		(rc = report_read_text(r, "an expression", &out->expr)) ||
		(rc = report_read_text(r, "an expression", &out->expr_pretty)))
		return rc;
	out->for_ns = report_read_int(r, REPORT_DURATION_MAX);
	out->keep_firing_for_ns = report_read_int(r, REPORT_DURATION_MAX);
	if ((rc = report_read_texts(r, "a label", &out->labels, &out->labels_n)))
		return rc;
	return report_read_texts(r, "an annotation", &out->annotations, &out->annotations_n);
}

static enum err_code report_read_rule_info(
	struct report_reader *r, const struct rule *rule, struct rule_info *out)
{
	enum err_code rc;

	out->rule = rule;
	out->health = report_read_choice(r, RULE_ERR + 1);
	if ((rc = report_read_text(r, "an error", &out->last_error)))
		return rc;
	out->phase = report_read_choice(r, ALERT_FIRING + 1);
	out->last_evaluation_ns = report_read_int(r, INT64_MAX);
	out->evaluation_ns = report_read_int(r, REPORT_DURATION_MAX);
	if (r->in.bad)
		return report_wrong(r, "a rule");
	return report_read_alerts(r, out);
}

static enum err_code report_read_rules(
	struct report_reader *r, struct rule_group *g, struct group_info *out)
{
	void *rules;
	enum err_code rc = report_read_array(
		r, "a number of rules", REPORT_RULE_BYTES_MIN, sizeof(*g->rules), &rules, &g->rules_n);

	if (rc)
		return rc;
	g->rules = rules;
	out->rules_n = g->rules_n;
	if ((r->rules_n += g->rules_n) > RULES_MAX)
		return report_wrong(r, "a number of rules");
	if (!(out->rules = arena_array(r->arena, struct rule_info, g->rules_n + 1)))
		return arena_fail(r->arena, "rules", r->err);
	for (size_t i = 0; i < g->rules_n && !rc; i++) {
		g->rules[i].group = g;
		if (!(rc = report_read_rule(r, &g->rules[i])))
			rc = report_read_rule_info(r, &g->rules[i], &out->rules[i]);
	}
	return rc;
}

static enum err_code report_read_group(
	struct report_reader *r, struct rule_group *g, struct group_info *out)
{
	enum err_code rc;

	out->group = g;
	if ((rc = report_read_text(r, "a file", &g->file)) ||
		(rc = report_read_text(r, "a group's name", &g->name)))
		return rc;
	g->interval_ns = report_read_int(r, REPORT_DURATION_MAX);
	g->query_offset_ns = report_read_int(r, REPORT_DURATION_MAX);
	g->limit = (size_t)cursor_varint(&r->in);
	if ((rc = labels_decode(r->arena, &r->in, &g->labels, r->err)))
		return rc;
	out->last_evaluation_ns = report_read_int(r, INT64_MAX);
	out->evaluation_ns = report_read_int(r, REPORT_DURATION_MAX);
	out->iterations = cursor_varint(&r->in);
	out->missed = cursor_varint(&r->in);
	if (r->in.bad || g->interval_ns <= 0)
		return report_wrong(r, "a group");
	return report_read_rules(r, g, out);
}

/* ---- the whole ---- */

static enum err_code report_check(struct report_reader *r, struct str bytes)
{
	struct str body = { bytes.ptr, bytes.len - REPORT_HASH_BYTES };
	struct cursor hash;

	if (bytes.len > RULES_REPORT_BYTES_MAX)
		return err_set(r->err, ERR_LIMIT, "a report of rules: %zu bytes, limit %zu", bytes.len,
			RULES_REPORT_BYTES_MAX);
	if (bytes.len <= sizeof(REPORT_MAGIC) + REPORT_HASH_BYTES ||
		!str_has_prefix(bytes, STR(REPORT_MAGIC)))
		return report_wrong(r, "the beginning");
	if (bytes.ptr[sizeof(REPORT_MAGIC) - 1] != REPORT_VERSION)
		return err_set(r->err, ERR_UNSUPPORTED, "a report of rules: of another version");
	hash = cursor_of((struct str){ bytes.ptr + body.len, REPORT_HASH_BYTES });
	if (cursor_u64be(&hash) != hash_bytes(body.ptr, body.len, 0))
		return report_wrong(r, "the checksum");
	r->in = cursor_of(
		(struct str){ body.ptr + sizeof(REPORT_MAGIC), body.len - sizeof(REPORT_MAGIC) });
	return ERR_OK;
}

static enum err_code report_read_groups(struct report_reader *r, struct rules_snapshot *out)
{
	struct rule_group *groups;
	void *infos;
	enum err_code rc = report_read_array(r, "a number of groups", REPORT_GROUP_BYTES_MIN,
		sizeof(*out->groups), &infos, &out->groups_n);

	if (rc)
		return rc;
	out->groups = infos;
	if (!(groups = arena_array(r->arena, struct rule_group, out->groups_n + 1)))
		return arena_fail(r->arena, "rules", r->err);
	for (size_t i = 0; i < out->groups_n && !rc; i++)
		rc = report_read_group(r, &groups[i], &out->groups[i]);
	return rc;
}

enum err_code rules_report_read(
	struct str bytes, struct arena *a, struct rules_report *out, struct err *err)
{
	struct report_reader r = { .arena = a, .err = err };
	enum err_code rc = report_check(&r, bytes);

	*out = (struct rules_report){ .written_ns = 0 };
	if (rc || (rc = report_read_text(&r, "the host", &out->host)))
		return rc;
	out->written_ns = report_read_int(&r, INT64_MAX);
	out->alerts_cut = cursor_varint(&r.in);
	out->groups_cut = cursor_varint(&r.in);
	if (!(rc = report_read_groups(&r, &out->rules)) && cursor_left(&r.in))
		rc = report_wrong(&r, "the end");
	return rc;
}
