extern "C" {
#include "base/regex.h"
}

#include <algorithm>
#include <cassert>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <re2/re2.h>

#define PROGRAM_MAX (8 << 20) /* bytes RE2 may use for program and caches of one pattern */

struct regex {
	std::unique_ptr<re2::RE2> re; /* none: the literals say it all */
	re2::RE2::Anchor anchor;
	/*
	 * When the pattern is an anchored alternation of literals, as most matchers of dashboards are
	 * (job=~"a|b|c"), the literals, sorted, each once; matching is then a look-up.
	 */
	bool literal;
	std::vector<std::string> literals;
};

static re2::StringPiece regex_piece(struct str s)
{
	return re2::StringPiece(s.len ? s.ptr : "", s.len);
}

static bool regex_is_meta(char c)
{
	return memchr("\\.+*?()|[]{}^$", c, 14) != nullptr;
}

/*
 * Splits a pattern of literal alternatives, "a|b\\.c" or the same in one pair of parentheses.
 * False: it has anything else, or RE2 could refuse it.
 */
static bool regex_split_literals(struct str s, std::vector<std::string> *out)
{
	std::string one;

	if (!str_is_utf8(s))
		return false;
	if (s.len >= 2 && s.ptr[0] == '(' && s.ptr[s.len - 1] == ')')
		s = (struct str){ s.ptr + 1, s.len - 2 };
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '|') {
			out->push_back(one);
			one.clear();
			continue;
		}
		if (c == '\\') { /* a backslash before punctuation takes its meaning away */
			if (i + 1 == s.len || !memchr("\\.+*?()|[]{}^$-/:", s.ptr[i + 1], 17))
				return false;
			c = s.ptr[++i];
		} else if (regex_is_meta(c)) {
			return false;
		}
		one.push_back(c);
	}
	out->push_back(one);
	std::sort(out->begin(), out->end());
	out->erase(std::unique(out->begin(), out->end()), out->end());
	return true;
}

/*
 * \C, any single byte, exists in RE2 only: our syntax is Go's, which does not have it. Between \Q
 * and \E it is text.
 */
static bool regex_has_byte_class(struct str s)
{
	bool quoted = false;

	for (size_t i = 0; i + 1 < s.len; i++) {
		if (s.ptr[i] != '\\')
			continue;
		char c = s.ptr[i + 1];

		if (!quoted && c == 'C')
			return true;
		quoted = quoted ? c != 'E' : c == 'Q';
		i += !quoted || c == 'Q';
	}
	return false;
}

static enum err_code regex_make_program(
	struct regex *re, struct str pattern, bool anchored, struct err *err)
{
	re2::RE2::Options options(re2::RE2::Quiet);

	options.set_max_mem(PROGRAM_MAX);
	/* The match is anchored by an option, not by text around the pattern: "a)(b" stays an error. */
	options.set_dot_nl(anchored);
	re->re.reset(new (std::nothrow) re2::RE2(regex_piece(pattern), options));
	if (!re->re)
		return err_nomem(err, "regular expression");
	if (re->re->ok())
		return ERR_OK;
	if (re->re->error_code() == re2::RE2::ErrorPatternTooLarge)
		return err_set(err, ERR_LIMIT,
			"regular expression needs more than its limit of %d bytes of memory", PROGRAM_MAX);
	return err_set(err, ERR_INVALID, "error parsing regexp: %s", re->re->error().c_str());
}

extern "C" enum err_code regex_compile(
	struct str pattern, unsigned flags, struct regex **out, struct err *err)
{
	bool anchored = flags & REGEX_ANCHORED;
	struct regex *re;
	enum err_code rc;

	if (regex_has_byte_class(pattern))
		return err_set(err, ERR_INVALID, "error parsing regexp: invalid escape sequence: \\C");
	if (pattern.len > REGEX_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "regular expression is %zu bytes, limit %u", pattern.len,
			REGEX_BYTES_MAX);
	if (!(re = new (std::nothrow) regex()))
		return err_nomem(err, "regular expression");
	re->anchor = anchored ? re2::RE2::ANCHOR_BOTH : re2::RE2::UNANCHORED;
	re->literal = anchored && regex_split_literals(pattern, &re->literals);
	if ((!re->literal || (flags & REGEX_GROUPS)) &&
		(rc = regex_make_program(re, pattern, anchored, err))) {
		delete re;
		return rc;
	}
	*out = re;
	return ERR_OK;
}

extern "C" void regex_free(struct regex *re)
{
	delete re;
}

static bool regex_has_literal(const struct regex *re, struct str text)
{
	re2::StringPiece want = regex_piece(text);
	auto at = std::lower_bound(re->literals.begin(), re->literals.end(), want,
		[](const std::string &a, const re2::StringPiece &b) { return re2::StringPiece(a) < b; });

	return at != re->literals.end() && re2::StringPiece(*at) == want;
}

extern "C" bool regex_match(const struct regex *re, struct str text)
{
	if (re->literal)
		return regex_has_literal(re, text);
	return re->re->Match(regex_piece(text), 0, text.len, re->anchor, nullptr, 0);
}

extern "C" bool regex_literal(const struct regex *re, size_t i, struct str *out)
{
	if (!re->literal || i >= re->literals.size())
		return false;
	*out = (struct str){ re->literals[i].data(), re->literals[i].size() };
	return true;
}

extern "C" bool regex_groups(
	const struct regex *re, struct str text, struct str group[REGEX_GROUPS_MAX])
{
	re2::StringPiece found[REGEX_GROUPS_MAX];

	assert(re->re); /* REGEX_GROUPS */
	int n = std::min(re->re->NumberOfCapturingGroups() + 1, REGEX_GROUPS_MAX);
	bool matched = re->re->Match(regex_piece(text), 0, text.len, re->anchor, found, n);

	for (int i = 0; i < REGEX_GROUPS_MAX; i++) {
		group[i].ptr = matched && i < n ? found[i].data() : nullptr;
		group[i].len = group[i].ptr ? found[i].size() : 0;
	}
	return matched;
}

extern "C" int regex_group_count(const struct regex *re)
{
	assert(re->re); /* REGEX_GROUPS */
	return re->re->NumberOfCapturingGroups();
}

extern "C" int regex_group_index(const struct regex *re, struct str name)
{
	assert(re->re); /* REGEX_GROUPS */
	const auto &names = re->re->NamedCapturingGroups();
	auto at = names.find(std::string(name.len ? name.ptr : "", name.len));

	return at == names.end() ? -1 : at->second;
}

static bool regex_is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		(unsigned char)c >= 0x80; /* letters of other alphabets belong to the name */
}

/* The group that a reference names, or -1. "1" and "12" are numbers, "01" and "1x" are names. */
static int regex_reference_index(const struct regex *re, struct str name)
{
	uint64_t v;

	if (str_to_u64(name, &v) && (name.len == 1 || name.ptr[0] != '0'))
		return v < REGEX_GROUPS_MAX ? (int)v : -1;
	return regex_group_index(re, name);
}

extern "C" void regex_expand(const struct regex *re, struct str replacement,
	const struct str group[REGEX_GROUPS_MAX], struct buf *out)
{
	struct str r = replacement, name;
	size_t i, brace, end;
	int at;

	for (i = 0; i < r.len;) {
		if (r.ptr[i] != '$') {
			buf_add_char(out, r.ptr[i++]);
			continue;
		}
		i++;
		if (i < r.len && r.ptr[i] == '$') {
			buf_add_char(out, '$');
			i++;
			continue;
		}
		brace = i < r.len && r.ptr[i] == '{';
		for (end = i + brace; end < r.len && regex_is_word(r.ptr[end]); end++)
			;
		name = (struct str){ r.ptr + i + brace, end - i - brace };
		if (name.len == 0 || (brace && (end == r.len || r.ptr[end] != '}'))) {
			buf_add_char(out, '$'); /* not a reference: a plain "$" */
			continue;
		}
		i = end + brace;
		at = regex_reference_index(re, name);
		if (at >= 0 && at < REGEX_GROUPS_MAX && group[at].ptr)
			buf_add_str(out, group[at]);
	}
}
