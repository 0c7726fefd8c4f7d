#include "cmd/epitool/source.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/quote.h"
#include "cmd/epitool/profile_file.h"
#include "cmd/epitool/run_labels.h"
#include "promql/syntax/parse.h"
#include "promql/syntax/type_names.h"

#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:.-"

bool source_is_like_file(const char *text)
{
	static const char *const endings[] = { ".pb", ".gz", ".pprof", ".prof", ".folded", ".collapsed",
		".txt", ".json", ".out", ".heap" };
	struct str s = str_of(text);

	if (!s.len || strpbrk(text, "(){}[]\"'`<>!=~ \t\n"))
		return false;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (str_has_suffix(s, str_of(endings[i])))
			return true;
	return strchr(text, '/') != NULL;
}

/* As typed by somebody who means a file or a run: one word, which is no well-known profile type. */
static bool source_is_like_name(const char *text)
{
	struct type_pattern pattern;

	if (!*text || text[strspn(text, WORD_CHARACTERS)])
		return false;
	return !type_pattern_parse(str_of(text), &pattern) || !type_pattern_known(&pattern);
}

/* ---- runs ---- */

enum err_code source_add_selector(
	const struct source_options *o, const char *text, struct buf *out, struct err *err)
{
	struct run_labels *labels = malloc(sizeof(*labels));
	enum err_code rc;

	if (!labels)
		return err_nomem(err, "runs");
	if (!(rc = run_labels_parse(text, labels, err))) {
		buf_printf(out, "%s{", o->profile);
		run_labels_print(labels, out);
		buf_printf(out, "%s}", o->match);
	}
	free(labels);
	return rc;
}

/* Of a run its profiles, merged. */
enum err_code source_add_query(
	const struct source_options *o, const char *text, struct buf *out, struct err *err)
{
	enum err_code rc;

	if (!run_labels_are(text)) {
		buf_add_cstr(out, text);
		return ERR_OK;
	}
	buf_add_cstr(out, "merge(");
	rc = source_add_selector(o, text, out, err);
	buf_add_char(out, ')');
	return rc;
}

/* ---- reading ---- */

static uint32_t tool_source_default_type(const struct pprof *p)
{
	for (uint32_t i = 0; i < p->types_n && p->default_sample_type; i++)
		if (str_eq(p->strings[p->types[i].type], p->strings[p->default_sample_type]))
			return i;
	return p->types_n - 1;
}

static enum err_code source_choose_type(struct source *s, const char *name, struct err *err)
{
	const struct pprof *p = s->profile;
	struct nearest near = nearest_to(str_of(name));

	if (!p->types_n)
		return err_set(err, ERR_INVALID, "%s: it has no sample types", s->text);
	s->type = tool_source_default_type(p);
	if (!name[0])
		return ERR_OK;
	for (s->type = 0; s->type < p->types_n; s->type++) {
		nearest_try(&near, p->strings[p->types[s->type].type]);
		if (str_is(p->strings[p->types[s->type].type], name))
			return ERR_OK;
	}
	return err_set(err, ERR_NOT_FOUND, "%s: it has no sample type \"%s\"%s", s->text, name,
		DID_YOU_MEAN(&near));
}

/* Whether a text that looks like a file can be asked for at all; a server need not be there. */
static enum err_code tool_source_check_parses(const char *text, struct err *err)
{
	struct parsed *q = NULL;
	struct arena a;
	struct err why;
	enum err_code rc;

	arena_init(&a, 16u << 20);
	rc = parse_query(&a, str_of(text), &q, NULL, &why);
	parsed_release(q);
	arena_release(&a);
	if (!rc)
		return ERR_OK;
	return err_set(err, ERR_NOT_FOUND, "%s: there is no file of that name, and it is no query: %s",
		text, why.msg);
}

void source_explain_query(const char *text, struct err *err)
{
	struct err own = *err;

	if (fs_exists(text))
		(void)err_set(err, own.code,
			"%s is a file, which epitool top, flame and compare read; as a query: %s", text,
			own.msg);
	else if (source_is_like_file(text) && !tool_source_check_parses(text, err))
		(void)err_set(
			err, own.code, "%s: there is no file of that name; as a query: %s", text, own.msg);
}

static enum err_code source_explain_name(const char *text, enum err_code rc, struct err *err)
{
	struct err own = *err;

	return err_set(err, rc,
		"%s: there is no file of that name, and it is no label of runs such as run=1; as a query: "
		"%s",
		text, own.msg);
}

static enum err_code source_options_read_query(
	const struct source_options *o, struct source *s, struct err *err)
{
	bool is_run = run_labels_are(s->text), like_file = !is_run && source_is_like_file(s->text);
	enum err_code rc;

	if (like_file && (rc = tool_source_check_parses(s->text, err)))
		return rc;
	if ((rc = source_add_query(o, s->text, &s->query, err)))
		return rc;
	buf_add_char(&s->query, '\0');
	if (buf_failed(&s->query))
		return err_nomem(err, "query");
	if (!(rc = question_ask(o->question, s->query.ptr, &s->bytes, err)))
		return ERR_OK;
	if (like_file && rc != ERR_CANCELED)
		source_explain_query(s->text, err);
	else if (!is_run && rc != ERR_CANCELED && source_is_like_name(s->text))
		rc = source_explain_name(s->text, rc, err);
	else if (err->msg[0] < '0' || err->msg[0] > '9') /* others have a place, for a caret below */
		rc = err_wrap(err, rc, "%s", s->text);
	return rc;
}

static enum err_code source_decode_file(struct source *s, struct arena *a, struct err *err)
{
	struct any_file file;
	enum err_code rc = profile_file_decode(s->text, buf_str(&s->bytes), a, &file, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < file.notes_n; i++)
		fprintf(stderr, "epitool: warning: %s: " STR_FMT "\n", s->text, STR_ARG(file.notes[i]));
	s->profile = any_default(&file)->pprof;
	return ERR_OK;
}

/* pprof, which has no types where nothing was found. */
static enum err_code source_decode_answer(struct source *s, struct arena *a, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct pprof *p;
	struct str raw;
	enum err_code rc;

	limits.body_bytes_max = limits.raw_bytes_max;
	if ((rc = pprof_inflate(a, buf_str(&s->bytes), &limits, &raw, err)) ||
		(rc = pprof_decode(a, raw, &limits, &p, err)))
		return err_wrap(err, rc, "%s", s->text);
	s->profile = p;
	return ERR_OK;
}

bool source_is_file(const char *text)
{
	return !strcmp(text, "-") || fs_exists(text);
}

enum err_code source_fetch(
	const struct source_options *o, const char *text, struct source *out, struct err *err)
{
	*out = (struct source){ .text = text, .is_file = source_is_file(text) };
	return out->is_file ? profile_file_read(text, &out->bytes, err) :
						  source_options_read_query(o, out, err);
}

enum err_code source_read(const struct source_options *o, const char *text, struct arena *a,
	struct source *out, struct err *err)
{
	enum err_code rc = source_fetch(o, text, out, err);

	if (!rc)
		rc = out->is_file ? source_decode_file(out, a, err) : source_decode_answer(out, a, err);
	if (rc)
		return rc;
	if (!out->is_file && !out->profile->samples_n) {
		if (!source_is_like_name(text))
			return err_set(err, ERR_NOT_FOUND, "%s: nothing found", out->query.ptr);
		err_set(err, ERR_NOT_FOUND, "nothing found");
		return source_explain_name(text, ERR_NOT_FOUND, err);
	}
	return source_choose_type(out, out->is_file ? o->type : "", err);
}

void source_release(struct source *s)
{
	buf_release(&s->bytes);
	buf_release(&s->query);
}
