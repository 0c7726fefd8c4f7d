#include "scrape/config/patterns.h"

#include "base/quote.h"

/* Each alone: two wrong ones may be right together. */
static enum err_code patterns_check_each(
	const char *name, const struct str *s, size_t n, struct err *err)
{
	struct regex *re;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		if ((rc = regex_compile(s[i], REGEX_ANCHORED, &re, err)))
			return err_wrap(err, rc, "%s: %s", name, QUOTED(s[i]));
		regex_free(re);
	}
	return ERR_OK;
}

enum err_code patterns_compile(
	const char *name, const struct str *s, size_t n, struct regex **out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;

	*out = NULL;
	if (n > PATTERNS_MAX)
		return err_set(err, ERR_LIMIT, "more than %u %s", PATTERNS_MAX, name);
	if ((rc = patterns_check_each(name, s, n, err)) || !n)
		return rc;
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s(?:" STR_FMT ")", i ? "|" : "", STR_ARG(s[i]));
	rc = buf_failed(&b) ? err_nomem(err, "configuration") :
						  regex_compile(buf_str(&b), REGEX_ANCHORED, out, err);
	buf_release(&b);
	return rc;
}
