/*
 * The API server evaluates selectors. Here they are only parsed, as it would, so that a wrong one
 * fails when the configuration is loaded.
 */
#include <ctype.h>

#include "discovery/kubernetes/sd_config.h"

#define SHOWN(s) (int)((s).len < 200 ? (s).len : 200), ((s).len ? (s).ptr : "")

/* ---- fields: terms with =, == or != between commas; a backslash takes a comma's meaning ---- */

static bool kube_term_has_operator(struct str term)
{
	for (size_t i = 0; i < term.len; i++) {
		if (term.ptr[i] == '\\')
			i++;
		else if (term.ptr[i] == '=' ||
			(term.ptr[i] == '!' && i + 1 < term.len && term.ptr[i + 1] == '='))
			return true;
	}
	return false;
}

enum err_code kube_field_selector_check(struct str s, struct err *err)
{
	size_t begin = 0;
	struct str term;

	for (size_t i = 0; s.len && i <= s.len; i++) {
		if (i < s.len && s.ptr[i] == '\\') {
			i++;
			continue;
		}
		if (i < s.len && s.ptr[i] != ',')
			continue;
		term = (struct str){ s.ptr + begin, i - begin };
		if (term.len && !kube_term_has_operator(term))
			return err_set(err, ERR_INVALID, "invalid selector: '%.*s'; can't understand '%.*s'",
				SHOWN(s), SHOWN(term));
		begin = i + 1;
	}
	return ERR_OK;
}

/* ---- labels ---- */

enum token { END, WORD, COMMA, NOT, OPEN, CLOSE, OPERATOR };

struct kube_lexer {
	struct str s;
	size_t at;
	enum token token;
	struct str text;
};

static bool kube_is_special(char c)
{
	return c && strchr("=!(),<>", c);
}

static void kube_lexer_next(struct kube_lexer *k)
{
	size_t begin;
	char c;

	while (k->at < k->s.len && isspace((unsigned char)k->s.ptr[k->at]))
		k->at++;
	begin = k->at;
	if (begin == k->s.len) {
		k->token = END;
		k->text = STR("");
		return;
	}
	c = k->s.ptr[k->at++];
	if (kube_is_special(c)) {
		k->token = c == ',' ? COMMA : c == '(' ? OPEN : c == ')' ? CLOSE : OPERATOR;
		if ((c == '=' || c == '!') && k->at < k->s.len && k->s.ptr[k->at] == '=')
			k->at++;
		else if (c == '!')
			k->token = NOT;
	} else {
		while (k->at < k->s.len && !kube_is_special(k->s.ptr[k->at]) &&
			!isspace((unsigned char)k->s.ptr[k->at]))
			k->at++;
		k->token = WORD;
	}
	k->text = (struct str){ k->s.ptr + begin, k->at - begin };
	if (str_is(k->text, "in") || str_is(k->text, "notin"))
		k->token = OPERATOR;
}

static enum err_code kube_lexer_expected(
	const struct kube_lexer *k, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, "unable to parse requirement: found '%.*s', expected: %s",
		SHOWN(k->text), what);
}

/* (a, b, c). Operators are values here. */
static enum err_code kube_lexer_values(struct kube_lexer *k, struct err *err)
{
	if (k->token != OPEN)
		return err_set(err, ERR_INVALID, "unable to parse requirement: found '%.*s' expected: '('",
			SHOWN(k->text));
	for (;;) {
		kube_lexer_next(k);
		if (k->token == WORD || k->token == OPERATOR)
			kube_lexer_next(k);
		if (k->token == CLOSE)
			break;
		if (k->token != COMMA)
			return kube_lexer_expected(k, "',' or ')'", err);
	}
	kube_lexer_next(k);
	return ERR_OK;
}

static enum err_code kube_lexer_requirement(struct kube_lexer *k, struct err *err)
{
	bool absent = k->token == NOT, list;

	if (absent)
		kube_lexer_next(k);
	if (k->token != WORD)
		return kube_lexer_expected(k, "identifier", err);
	kube_lexer_next(k);
	if (k->token == END || k->token == COMMA)
		return ERR_OK;
	if (k->token != OPERATOR || absent)
		return kube_lexer_expected(
			k, absent ? "',' or 'end of string'" : "in, notin, =, ==, !=, gt, lt", err);
	list = isalpha((unsigned char)k->text.ptr[0]);
	kube_lexer_next(k);
	if (list)
		return kube_lexer_values(k, err);
	if (k->token == WORD || k->token == OPERATOR)
		kube_lexer_next(k); /* none is the empty value */
	return ERR_OK;
}

enum err_code kube_label_selector_check(struct str s, struct err *err)
{
	struct kube_lexer x = { .s = s };
	enum err_code rc;

	kube_lexer_next(&x);
	while (x.token != END) {
		if (x.token != WORD && x.token != NOT)
			return err_set(err, ERR_INVALID,
				"unable to parse requirement: found '%.*s', expected: !, identifier, or 'end of "
				"string'",
				SHOWN(x.text));
		if ((rc = kube_lexer_requirement(&x, err)))
			return rc;
		if (x.token == END)
			break;
		if (x.token != COMMA)
			return kube_lexer_expected(&x, "',' or 'end of string'", err);
		kube_lexer_next(&x);
		if (x.token != WORD && x.token != NOT)
			return kube_lexer_expected(&x, "identifier after ','", err);
	}
	return ERR_OK;
}
