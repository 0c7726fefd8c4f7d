/*
 * A version of the saved rules as a rule file:
 *
 *   # Rules that users saved. ...
 *   # saved-rules 1 checksum=HEX version=N time=MS by=USER change=WHAT
 *   groups:
 *   # group time=MS by=USER name=NAME
 *   - name: "NAME"
 *     ...
 *
 * Values in comments are percent-encoded. The checksum is of all bytes behind it, so a person's
 * edit counts as damage, as a torn write does. Texts of rules are in JSON's quotes, which YAML
 * reads too: no text of a rule can make a line that begins with "#".
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "base/net/percent.h"
#include "promql/rules/rules.h"
#include "promql/rules/saved/saved_rules.h"

#define TITLE \
	"# Rules that users saved. Edits of this file count as damage: change rules on the page.\n"
#define FORMAT "# saved-rules "
#define HEAD FORMAT "1 checksum="
#define CHECKSUM_BYTES 16u
#define GROUP "# group"
#define UNSET_NS 1 /* no duration in a file is so short */

/* ---- a group as YAML ---- */

static void saved_text_quote(struct buf *out, const char *before, struct str s)
{
	struct json j;

	buf_add_cstr(out, before);
	json_init(&j, out);
	json_str(&j, s);
	buf_add_char(out, '\n');
}

static void saved_text_duration(struct buf *out, const char *before, int64_t ns)
{
	buf_add_cstr(out, before);
	duration_print(out, ns);
	buf_add_char(out, '\n');
}

static void saved_text_pairs(
	struct buf *out, const char *title, const struct rule_text *pairs, size_t n)
{
	struct json j;

	if (n)
		buf_add_cstr(out, title);
	for (size_t i = 0; i < n; i++) {
		buf_add_cstr(out, "      ");
		json_init(&j, out);
		json_str(&j, pairs[i].name);
		saved_text_quote(out, ": ", pairs[i].text);
	}
}

/* Labels are those of the rule and of its group. */
static void saved_text_rule(struct buf *out, const struct rule *r)
{
	saved_text_quote(out, r->kind == RULE_ALERT ? "  - alert: " : "  - record: ", r->name);
	saved_text_quote(out, "    expr: ", r->expr);
	if (r->for_ns)
		saved_text_duration(out, "    for: ", r->for_ns);
	if (r->keep_firing_for_ns)
		saved_text_duration(out, "    keep_firing_for: ", r->keep_firing_for_ns);
	saved_text_pairs(out, "    labels:\n", r->labels, r->labels_n);
	saved_text_pairs(out, "    annotations:\n", r->annotations, r->annotations_n);
}

static void saved_text_group(struct buf *out, const struct rule_group *g)
{
	saved_text_quote(out, "- name: ", g->name);
	if (g->interval_ns != UNSET_NS)
		saved_text_duration(out, "  interval: ", g->interval_ns);
	if (g->query_offset_ns != UNSET_NS)
		saved_text_duration(out, "  query_offset: ", g->query_offset_ns);
	if (g->limit)
		buf_printf(out, "  limit: %zu\n", g->limit);
	buf_add_cstr(out, "  rules:\n");
	for (size_t i = 0; i < g->rules_n; i++)
		saved_text_rule(out, &g->rules[i]);
}

enum err_code saved_group_read(
	struct str sent, struct arena *a, struct saved_group *out, struct err *err)
{
	const struct rules_load l = { .interval_ns = UNSET_NS, .query_offset_ns = UNSET_NS };
	struct buf text = { 0 };
	struct rule_set *set;
	enum err_code rc;

	if (sent.len > SAVED_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the rule is longer than %u bytes", SAVED_BYTES_MAX);
	if ((rc = rule_set_load_text("rule", sent, &l, &set, err)))
		return rc;
	if (set->groups_n != 1 || !set->groups[0].rules_n) {
		rc = err_set(err, ERR_INVALID, "%zu groups with %zu rules: send one group with its rules",
			set->groups_n, set->rules_n);
		goto end;
	}
	saved_text_group(&text, &set->groups[0]);
	*out = (struct saved_group){ .name = str_dup(a, set->groups[0].name),
		.text = str_dup(a, buf_str(&text)) };
	if (buf_failed(&text) || !out->name.ptr || !out->text.ptr)
		rc = err_nomem(err, "saved rules");
end:
	buf_release(&text);
	rule_set_unref(set);
	return rc;
}

/* ---- printing a version ---- */

static void saved_text_who(struct buf *out, int64_t changed_ns, struct str user)
{
	buf_printf(out, " time=%" PRId64 " by=", changed_ns / NS_PER_MS);
	percent_encode(out, user, PERCENT_PATH);
}

static void saved_text_body(const struct saved_version *v, struct buf *out)
{
	buf_printf(out, " version=%" PRIu64, v->version);
	saved_text_who(out, v->changed_ns, v->user);
	buf_add_cstr(out, " change=");
	percent_encode(out, v->change, PERCENT_PATH);
	buf_add_cstr(out, v->groups_n ? "\ngroups:\n" : "\ngroups: []\n");
	for (size_t i = 0; i < v->groups_n; i++) {
		buf_add_cstr(out, GROUP);
		saved_text_who(out, v->groups[i].changed_ns, v->groups[i].user);
		buf_add_cstr(out, " name=");
		percent_encode(out, v->groups[i].name, PERCENT_PATH);
		buf_add_char(out, '\n');
		buf_add_str(out, v->groups[i].text);
	}
}

void saved_version_print(const struct saved_version *v, struct buf *out)
{
	struct buf body = { 0 };

	saved_text_body(v, &body);
	buf_printf(out, TITLE HEAD "%016" PRIx64, hash_bytes(body.ptr, body.len, 0));
	buf_add_str(out, buf_str(&body));
	out->failed |= buf_failed(&body);
	buf_release(&body);
}

/* ---- parsing one ---- */

static bool saved_text_take(struct str *at, const char *text)
{
	struct str prefix = str_of(text);

	if (!str_has_prefix(*at, prefix))
		return false;
	*at = (struct str){ at->ptr + prefix.len, at->len - prefix.len };
	return true;
}

/* Up to the next space or the end. */
static struct str saved_text_word(struct str *at)
{
	const char *space = at->len ? memchr(at->ptr, ' ', at->len) : NULL;
	struct str word = { at->ptr, space ? (size_t)(space - at->ptr) : at->len };

	*at = (struct str){ at->ptr + word.len, at->len - word.len };
	return word;
}

/* False at the end of the text; a line without its end is none. */
static bool saved_text_line(struct str *at, struct str *line)
{
	const char *end = at->len ? memchr(at->ptr, '\n', at->len) : NULL;

	if (!end)
		return false;
	*line = (struct str){ at->ptr, (size_t)(end - at->ptr) };
	*at = (struct str){ end + 1, at->len - line->len - 1 };
	return true;
}

static bool saved_text_decode(struct str word, struct arena *a, struct str *out)
{
	char *text = arena_strndup(a, word.ptr, word.len);

	if (!text)
		return false;
	*out = (struct str){ text, percent_decode(text, word) };
	return true;
}

static bool saved_text_take_who(struct str *at, struct arena *a, int64_t *ns, struct str *user)
{
	int64_t ms;

	if (!saved_text_take(at, " time=") || !str_to_i64(saved_text_word(at), &ms) || ms < 0 ||
		ms > TIME_MAX_NS / NS_PER_MS || !saved_text_take(at, " by=") ||
		!saved_text_decode(saved_text_word(at), a, user))
		return false;
	*ns = ms * NS_PER_MS;
	return true;
}

static bool saved_text_take_checksum(struct str *at, uint64_t *out)
{
	char digits[CHECKSUM_BYTES + 1];
	char *end;

	if (!saved_text_take(at, TITLE HEAD) || at->len < CHECKSUM_BYTES)
		return false;
	memcpy(digits, at->ptr, CHECKSUM_BYTES);
	digits[CHECKSUM_BYTES] = '\0';
	*at = (struct str){ at->ptr + CHECKSUM_BYTES, at->len - CHECKSUM_BYTES };
	*out = strtoull(digits, &end, 16);
	return !*end && strspn(digits, "0123456789abcdef") == CHECKSUM_BYTES;
}

/* The second line names a format that this program does not know. */
static bool saved_text_is_newer(struct str text)
{
	struct str line, format;
	uint64_t number;

	if (!saved_text_line(&text, &line) || !saved_text_line(&text, &line) ||
		!saved_text_take(&line, FORMAT))
		return false;
	format = saved_text_word(&line);
	return str_to_u64(format, &number) && number > 1;
}

static bool saved_text_take_head(struct str *at, struct arena *a, struct saved_version *out)
{
	struct str line;

	return saved_text_line(at, &line) && saved_text_take(&line, " version=") &&
		str_to_u64(saved_text_word(&line), &out->version) &&
		saved_text_take_who(&line, a, &out->changed_ns, &out->user) &&
		saved_text_take(&line, " change=") && saved_text_decode(line, a, &out->change) &&
		saved_text_line(at, &line) && (str_is(line, "groups:") || str_is(line, "groups: []"));
}

static bool saved_text_take_group(struct str *at, struct arena *a, struct saved_group *out)
{
	struct str line, rest;

	*out = (struct saved_group){ 0 };
	if (!saved_text_line(at, &line) || !saved_text_take(&line, GROUP) ||
		!saved_text_take_who(&line, a, &out->changed_ns, &out->user) ||
		!saved_text_take(&line, " name=") || !saved_text_decode(line, a, &out->name))
		return false;
	out->text = (struct str){ at->ptr, 0 };
	for (rest = *at; rest.len && rest.ptr[0] != '#'; *at = rest) {
		if (!saved_text_line(&rest, &line))
			return false;
		out->text.len += line.len + 1;
	}
	return out->text.len > 0;
}

enum err_code saved_version_parse(
	struct str text, struct arena *a, struct saved_version *out, struct err *err)
{
	uint64_t checksum;
	size_t cap = 0;

	*out = (struct saved_version){ 0 };
	if (saved_text_is_newer(text))
		return err_set(err, ERR_UNSUPPORTED, "a newer version of Epimetheus wrote it");
	if (!saved_text_take_checksum(&text, &checksum))
		return err_set(err, ERR_CORRUPT, "it is no file of saved rules");
	if (hash_bytes(text.ptr, text.len, 0) != checksum)
		return err_set(err, ERR_CORRUPT, "its checksum is wrong");
	if (!saved_text_take_head(&text, a, out))
		return err_set(err, ERR_CORRUPT, "its head cannot be read");
	while (text.len) {
		if (out->groups_n == SAVED_GROUPS_MAX)
			return err_set(err, ERR_CORRUPT, "more than %u groups", SAVED_GROUPS_MAX);
		if (!arena_array_room(a, &out->groups, out->groups_n, 1, &cap))
			return arena_fail(a, "saved rules", err);
		if (!saved_text_take_group(&text, a, &out->groups[out->groups_n]))
			return err_set(err, ERR_CORRUPT, "group %zu cannot be read", out->groups_n + 1);
		out->groups_n++;
	}
	return ERR_OK;
}
