/*
 * Filters for comparisons with `go tool pprof`: expressions drawn from a profile's names, files,
 * binaries and labels, and chains of filters as a query and as commands of the tool.
 */
#ifndef TESTS_PROMQL_EXPRESSIONS_H
#define TESTS_PROMQL_EXPRESSIONS_H

#include "base/quote.h"
#include "base/regex.h"
#include "tests/draw.h"

/* In the order in which the tool applies them. */
static const char *const filter_options[] = { "focus", "ignore", "hide", "show", "show_from",
	"tagfocus", "tagignore", "prune_from", "noinlines" };
#define FILTER_OPTIONS (sizeof(filter_options) / sizeof(filter_options[0]))

#define FILTERS_MAX 3

struct filter_chain {
	size_t n;
	size_t option[FILTERS_MAX]; /* places in filter_options, ascending */
	struct str text[FILTERS_MAX];
};

/* It has no expression; the tool's option is true or false. */
static inline bool is_noinlines(size_t option)
{
	return !strcmp(filter_options[option], "noinlines");
}

static inline bool is_tag_filter(size_t option)
{
	return !strncmp(filter_options[option], "tag", 3);
}

static inline struct str quote_meta(
	struct arena *a, const char *before, struct str s, const char *after)
{
	struct buf b = { 0 };
	struct str out;

	buf_add_cstr(&b, before);
	for (size_t i = 0; i < s.len; i++) {
		if (memchr("\\.+*?()|[]{}^$", s.ptr[i], 14))
			buf_add_char(&b, '\\');
		buf_add_char(&b, s.ptr[i]);
	}
	buf_add_cstr(&b, after);
	out = str_dup(a, buf_str(&b));
	buf_release(&b);
	return out;
}

static inline struct str any_name(const struct pprof *p, struct draw *d)
{
	return p->strings[p->functions[draw(d, p->functions_n)].name];
}

static inline struct str frame_expression(struct arena *a, const struct pprof *p, struct draw *d)
{
	static const char *const fixed[] = { ".", "nosuchframe", "^m|^r", "(?i)MAIN\\.", "gc|alloc",
		"\\.go$", "^$" };
	struct str s = any_name(p, d), more;
	size_t n = s.len;

	switch (draw(d, 8)) {
	case 0:
	case 1:
		return quote_meta(a, "^", s, "$");
	case 2: /* its package */
		while (n > 0 && s.ptr[n - 1] != '.')
			n--;
		return quote_meta(a, "^", (struct str){ s.ptr, n }, "");
	case 3:
		return quote_meta(a, "", p->strings[p->functions[draw(d, p->functions_n)].filename], "$");
	case 4:
		s = quote_meta(a, "", s, "");
		more = quote_meta(a, "|", any_name(p, d), "");
		return str_of(arena_printf(a, STR_FMT STR_FMT, STR_ARG(s), STR_ARG(more)));
	case 5:
		return p->mappings_n ?
			quote_meta(a, "", p->strings[p->mappings[draw(d, p->mappings_n)].filename], "") :
			STR("x");
	case 6:
		return quote_meta(a, "", (struct str){ s.ptr, n < 6 ? n : 6 }, "");
	default:
		return str_of(fixed[draw(d, sizeof(fixed) / sizeof(fixed[0]))]);
	}
}

static inline struct str tag_expression(struct arena *a, const struct pprof *p, struct draw *d)
{
	static const char *const fixed[] = { "bytes=16:", "bytes=1kb:", "bytes=:64", "bytes=16b:4kb",
		"bytes=512b", "32b:1mb", "nosuchkey=.", "nosuch", ".", "bytes:.", "key=a,b", "5:10kb",
		"request=1kb:", "n=5", "n=:5", "3ms:", "d=2us:1s", "d=-5ns:5ns", "a:x,b:y", "a=x,z", "a=^$",
		"a=", "=x", "bytes=64:b", "handler", "handler=.", "kind=." };
	const struct pprof_label *l;

	if (p->labels_n == 0 || draw(d, 2))
		return str_of(fixed[draw(d, sizeof(fixed) / sizeof(fixed[0]))]);
	l = &p->labels[draw(d, p->labels_n)];
	if (l->str)
		return draw(d, 2) ? str_of(arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(p->strings[l->key]),
								STR_ARG(p->strings[l->str]))) :
							p->strings[l->str];
	return str_of(arena_printf(a, STR_FMT "=%lld%s", STR_ARG(p->strings[l->key]), (long long)l->num,
		draw(d, 2) ? ":" : ""));
}

static inline struct str filter_expression(
	struct arena *a, const struct pprof *p, struct draw *d, size_t option)
{
	if (is_noinlines(option))
		return STR("true");
	return is_tag_filter(option) ? tag_expression(a, p, d) : frame_expression(a, p, d);
}

/* The tool labels the samples of a base; ours have no such label. */
static inline bool means_base(struct str text)
{
	struct regex *re = NULL;
	bool yes;

	if (str_find(text, STR("=")) > 0 || regex_compile(text, 0, &re, NULL))
		return false;
	yes = regex_match(re, STR("pprof::base:true"));
	regex_free(re);
	return yes;
}

static inline void chain_add(struct filter_chain *c, size_t option, struct str text)
{
	c->option[c->n] = option;
	c->text[c->n++] = text;
}

/* The commands that set the filters in the tool, and those that take them back. */
static inline void chain_set(struct buf *script, const struct filter_chain *c)
{
	for (size_t i = 0; i < c->n; i++)
		buf_printf(script, "%s=" STR_FMT "\n", filter_options[c->option[i]], STR_ARG(c->text[i]));
}

static inline void chain_unset(struct buf *script, const struct filter_chain *c)
{
	for (size_t i = 0; i < c->n; i++)
		buf_printf(script, "%s=%s\n", filter_options[c->option[i]],
			is_noinlines(c->option[i]) ? "false" : "");
}

/* A query: the filters around x. */
static inline void chain_query(struct buf *out, const struct filter_chain *c)
{
	for (size_t i = c->n; i-- > 0;)
		buf_printf(out, "%s(", filter_options[c->option[i]]);
	buf_add_char(out, 'x');
	for (size_t i = 0; i < c->n; i++) {
		if (!is_noinlines(c->option[i])) {
			buf_add_cstr(out, ", ");
			buf_add_quoted(out, c->text[i]);
		}
		buf_add_char(out, ')');
	}
}

#endif
