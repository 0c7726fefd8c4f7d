/*
 * Configurations as text, and those that are refused with exactly one message.
 */
#ifndef TESTS_SCRAPE_CONFIG_REFUSED_H
#define TESTS_SCRAPE_CONFIG_REFUSED_H

#include "scrape/config/config.h"
#include "tests/check.h"

static inline enum err_code load(const char *text, struct config **out, struct err *err)
{
	*out = NULL;
	return config_load_text("c.yml", STR("/etc/epimetheus"), str_of(text), out, err);
}

/* rows: a text, and the error's message. */
static inline void refuse_each(const char *const (*rows)[2], size_t n)
{
	struct config *c;
	struct err err;

	for (size_t i = 0; i < n; i++) {
		if (load(rows[i][0], &c, &err) == ERR_OK) {
			CHECK_FAIL("row %zu is accepted, want %s", i, rows[i][1]);
			config_unref(c);
		} else if (strcmp(err.msg, rows[i][1]) != 0) {
			CHECK_FAIL("row %zu: \"%s\", want \"%s\"", i, err.msg, rows[i][1]);
		}
	}
}

#endif
