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

static void kube_lexer_next(struct kube_lexer *x)
{
	size_t begin;
	char c;

	while (x->at < x->s.len && isspace((unsigned char)x->s.ptr[x->at]))
		x->at++;
	begin = x->at;
	if (begin == x->s.len) {
		x->token = END;
		x->text = STR("");
		return;
	}
	c = x->s.ptr[x->at++];
	if (kube_is_special(c)) {
		x->token = c == ',' ? COMMA : c == '(' ? OPEN : c == ')' ? CLOSE : OPERATOR;
		if ((c == '=' || c == '!') && x->at < x->s.len && x->s.ptr[x->at] == '=')
			x->at++;
		else if (c == '!')
			x->token = NOT;
	} else {
		while (x->at < x->s.len && !kube_is_special(x->s.ptr[x->at]) &&
			!isspace((unsigned char)x->s.ptr[x->at]))
			x->at++;
		x->token = WORD;
	}
	x->text = (struct str){ x->s.ptr + begin, x->at - begin };
	if (str_is(x->text, "in") || str_is(x->text, "notin"))
		x->token = OPERATOR;
}

static enum err_code kube_lexer_expected(
	const struct kube_lexer *x, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, "unable to parse requirement: found '%.*s', expected: %s",
		SHOWN(x->text), what);
}

/* (a, b, c). Operators are values here. */
static enum err_code kube_lexer_values(struct kube_lexer *x, struct err *err)
{
	if (x->token != OPEN)
		return err_set(err, ERR_INVALID, "unable to parse requirement: found '%.*s' expected: '('",
			SHOWN(x->text));
	for (;;) {
		kube_lexer_next(x);
		if (x->token == WORD || x->token == OPERATOR)
			kube_lexer_next(x);
		if (x->token == CLOSE)
			break;
		if (x->token != COMMA)
			return kube_lexer_expected(x, "',' or ')'", err);
	}
	kube_lexer_next(x);
	return ERR_OK;
}

static enum err_code kube_lexer_requirement(struct kube_lexer *x, struct err *err)
{
	bool absent = x->token == NOT, list;

	if (absent)
		kube_lexer_next(x);
	if (x->token != WORD)
		return kube_lexer_expected(x, "identifier", err);
	kube_lexer_next(x);
	if (x->token == END || x->token == COMMA)
		return ERR_OK;
	if (x->token != OPERATOR || absent)
		return kube_lexer_expected(
			x, absent ? "',' or 'end of string'" : "in, notin, =, ==, !=, gt, lt", err);
	list = isalpha((unsigned char)x->text.ptr[0]);
	kube_lexer_next(x);
	if (list)
		return kube_lexer_values(x, err);
	if (x->token == WORD || x->token == OPERATOR)
		kube_lexer_next(x); /* none is the empty value */
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
