#include "promql/rules/report.h"

#include <string.h>

#include "base/map.h"
#include "promql/rules/report_format.h"

/* ---- rules ---- */

static void report_add_int(struct buf *out, int64_t value)
{
	buf_add_varint(out, str_zigzag(value));
}

static void report_add_texts(struct buf *out, const struct rule_text *texts, size_t n)
{
	buf_add_varint(out, n);
	for (size_t i = 0; i < n; i++) {
		buf_add_lenstr(out, texts[i].name);
		buf_add_lenstr(out, texts[i].text);
	}
}

static void report_add_rule(struct buf *out, const struct rule *r)
{
	buf_add_char(out, (char)r->kind);
	buf_add_lenstr(out, r->name);
	buf_add_lenstr(out, r->expr);
	buf_add_lenstr(out, r->expr_pretty);
	report_add_int(out, r->for_ns);
	report_add_int(out, r->keep_firing_for_ns);
	report_add_texts(out, r->labels, r->labels_n);
	report_add_texts(out, r->annotations, r->annotations_n);
}

static void report_add_group(struct buf *out, const struct rule_group *g, struct str file)
{
	buf_add_lenstr(out, file);
	buf_add_lenstr(out, g->name);
	report_add_int(out, g->interval_ns);
	report_add_int(out, g->query_offset_ns);
	buf_add_varint(out, g->limit);
	labels_encode(out, g->labels);
}

/* ---- states ---- */

struct report_writer {
	struct buf *out;
	size_t rule_alerts_max; /* more alerts of a rule are cut */
	bool states_only; /* nothing that changes with each evaluation */
	uint64_t alerts_cut;
};

static void report_add_alert(struct report_writer *w, const struct alert_info *a)
{
	uint64_t value;

	labels_encode(w->out, a->labels);
	buf_add_char(w->out, (char)a->phase);
	report_add_int(w->out, a->active_at_ns);
	report_add_int(w->out, a->keep_firing_since_ns);
	if (w->states_only)
		return;
	labels_encode(w->out, a->annotations);
	memcpy(&value, &a->value, sizeof(value));
	buf_add_u64be(w->out, value);
}

/* Those that fire first; all in their order if none is cut. */
static void report_add_alerts(struct report_writer *w, const struct rule_info *r)
{
	size_t n = r->alerts_n < w->rule_alerts_max ? r->alerts_n : w->rule_alerts_max, left = n;
	bool cuts = n < r->alerts_n;

	buf_add_varint(w->out, n);
	w->alerts_cut += r->alerts_n - n;
	for (int pass = 0; pass < 2 && left; pass++)
		for (size_t i = 0; i < r->alerts_n && left; i++) {
			if (cuts && (r->alerts[i].phase == ALERT_FIRING) != (pass == 0))
				continue;
			report_add_alert(w, &r->alerts[i]);
			left--;
		}
}

static void report_add_rule_info(struct report_writer *w, const struct rule_info *r)
{
	buf_add_char(w->out, (char)r->health);
	buf_add_lenstr(w->out, r->last_error);
	buf_add_char(w->out, (char)r->phase);
	if (!w->states_only) {
		report_add_int(w->out, r->last_evaluation_ns);
		report_add_int(w->out, r->evaluation_ns);
	}
	report_add_alerts(w, r);
}

static void report_add_group_info(struct report_writer *w, const struct group_info *g)
{
	if (!w->states_only) {
		report_add_int(w->out, g->last_evaluation_ns);
		report_add_int(w->out, g->evaluation_ns);
		buf_add_varint(w->out, g->iterations);
		buf_add_varint(w->out, g->missed);
	}
	buf_add_varint(w->out, g->rules_n);
	for (size_t i = 0; i < g->rules_n; i++) {
		report_add_rule(w->out, g->rules[i].rule);
		report_add_rule_info(w, &g->rules[i]);
	}
}

/* As many groups as there is room for. */
static size_t report_add_groups(
	struct report_writer *w, const struct rules_snapshot *s, size_t bytes_max)
{
	size_t n = 0;

	while (n < s->groups_n) {
		size_t before = w->out->len;
		uint64_t cut = w->alerts_cut;

		report_add_group(w->out, s->groups[n].group, s->groups[n].group->file);
		report_add_group_info(w, &s->groups[n]);
		if (w->out->len > bytes_max) {
			w->out->len = before;
			w->alerts_cut = cut;
			break;
		}
		n++;
	}
	return n;
}

void rules_report_print(struct buf *out, const struct rules_snapshot *s, struct str host,
	int64_t now_ns, size_t bytes_max)
{
	static const size_t levels[] = { SIZE_MAX, 1000, 100, 10, 0 };
	struct buf groups = { 0 };
	struct report_writer w = { .out = &groups };
	size_t begin = out->len, n = 0, room = REPORT_HEAD_BYTES + host.len;

	room = bytes_max > room ? bytes_max - room : 0;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		buf_clear(&groups);
		w.rule_alerts_max = levels[i];
		w.alerts_cut = 0;
		if ((n = report_add_groups(&w, s, room)) == s->groups_n)
			break;
	}
	buf_add_str(out, STR(REPORT_MAGIC));
	buf_add_char(out, REPORT_VERSION);
	buf_add_lenstr(out, host);
	report_add_int(out, now_ns);
	buf_add_varint(out, w.alerts_cut);
	buf_add_varint(out, s->groups_n - n);
	buf_add_varint(out, n);
	buf_add_str(out, buf_str(&groups));
	if (buf_failed(&groups))
		out->failed = true;
	else if (!buf_failed(out))
		buf_add_u64be(out, hash_bytes(out->ptr + begin, out->len - begin, 0));
	buf_release(&groups);
}

/* ---- hashes ---- */

uint64_t rules_report_hash_states(const struct rules_snapshot *s)
{
	struct buf text = { 0 };
	struct report_writer w = { .out = &text, .rule_alerts_max = SIZE_MAX, .states_only = true };
	uint64_t hash;

	(void)report_add_groups(&w, s, SIZE_MAX);
	hash = hash_bytes(text.ptr, text.len, 0);
	buf_release(&text);
	return hash;
}

static struct str report_file_name(struct str path)
{
	for (size_t i = path.len; i; i--)
		if (path.ptr[i - 1] == '/')
			return (struct str){ path.ptr + i, path.len - i };
	return path;
}

/* Whether a rule records profiles may be a guess, which the kind is. */
static void report_add_definition(struct buf *out, const struct group_info *g)
{
	report_add_group(out, g->group, report_file_name(g->group->file));
	buf_add_varint(out, g->rules_n);
	for (size_t i = 0; i < g->rules_n; i++) {
		struct rule r = *g->rules[i].rule;

		r.kind = r.kind == RULE_ALERT ? RULE_ALERT : RULE_RECORD_COSTS;
		report_add_rule(out, &r);
	}
}

uint64_t rules_report_hash_rules(const struct rules_snapshot *s)
{
	struct buf text = { 0 };
	uint64_t hash = 0;

	/* A sum: the order of files is that of their whole paths. */
	for (size_t i = 0; i < s->groups_n; i++) {
		buf_clear(&text);
		report_add_definition(&text, &s->groups[i]);
		hash += hash_bytes(text.ptr, text.len, 0);
	}
	buf_release(&text);
	return hash;
}

static uint64_t report_hash_group(struct buf *text, const struct group_info *g)
{
	buf_clear(text);
	report_add_definition(text, g);
	return hash_bytes(text->ptr, text->len, 0);
}

void rules_report_fill(struct rules_snapshot *s, const struct rules_report *before)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < s->groups_n; i++) {
		struct group_info *g = &s->groups[i];

		if (g->last_evaluation_ns)
			continue;
		for (size_t k = 0; k < before->rules.groups_n; k++) {
			const struct group_info *b = &before->rules.groups[k];

			if (str_eq(b->group->name, g->group->name) &&
				report_hash_group(&text, b) == report_hash_group(&text, g)) {
				*g = *b;
				break;
			}
		}
	}
	buf_release(&text);
}
