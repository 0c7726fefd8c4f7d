/*
 * Log: events on standard error, as logfmt or JSON. The message is constant, variables are fields.
 *
 *	log_warn("scrape", "target failed", LOG_S("target", url), LOG_D("elapsed", took_ns),
 *		LOG_E(&err));
 *
 * Threads: any; a line is written with one write(2).
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"
#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };

enum log_kind { LOG_KIND_STR, LOG_KIND_INT, LOG_KIND_DURATION, LOG_KIND_ERR };

struct log_field {
	enum log_kind kind;
	const char *key;
	struct str s;
	int64_t i;
	const struct err *err;
};

#define LOG_S(k, v) ((struct log_field){ .kind = LOG_KIND_STR, .key = (k), .s = str_of(v) })
#define LOG_STR(k, v) ((struct log_field){ .kind = LOG_KIND_STR, .key = (k), .s = (v) })
#define LOG_I(k, v) ((struct log_field){ .kind = LOG_KIND_INT, .key = (k), .i = (int64_t)(v) })
/* Nanoseconds, printed as 1.5s, 20ms, ... */
#define LOG_D(k, ns) \
	((struct log_field){ .kind = LOG_KIND_DURATION, .key = (k), .i = (int64_t)(ns) })
#define LOG_E(e) ((struct log_field){ .kind = LOG_KIND_ERR, .key = "err", .err = (e) })

void log_set(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *component, const char *msg,
	const struct log_field *f, size_t n);
MUST_CHECK enum err_code log_level_parse(struct str s, enum log_level *out, struct err *err);
MUST_CHECK enum err_code log_format_parse(struct str s, enum log_format *out, struct err *err);

#define LOG_WRITE(level, component, msg, ...) \
	do { \
		const struct log_field log_fields_[] = { { .key = NULL }, ##__VA_ARGS__ }; \
		log_write((level), (component), (msg), log_fields_ + 1, \
			sizeof(log_fields_) / sizeof(log_fields_[0]) - 1); \
	} while (0)
#define log_debug(component, msg, ...) LOG_WRITE(LOG_DEBUG, component, msg, ##__VA_ARGS__)
#define log_info(component, msg, ...) LOG_WRITE(LOG_INFO, component, msg, ##__VA_ARGS__)
#define log_warn(component, msg, ...) LOG_WRITE(LOG_WARN, component, msg, ##__VA_ARGS__)
#define log_error(component, msg, ...) LOG_WRITE(LOG_ERROR, component, msg, ##__VA_ARGS__)

#endif
