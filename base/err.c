#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[ERR_CODES] = {
	[ERR_OK] = "ok",
	[ERR_NOMEM] = "out of memory",
	[ERR_IO] = "i/o error",
	[ERR_CORRUPT] = "corrupt data",
	[ERR_INVALID] = "invalid input",
	[ERR_LIMIT] = "limit exceeded",
	[ERR_NOT_FOUND] = "not found",
	[ERR_EXISTS] = "exists already",
	[ERR_TIMEOUT] = "timed out",
	[ERR_CANCELED] = "canceled",
	[ERR_UNAVAILABLE] = "unavailable",
	[ERR_UNSUPPORTED] = "unsupported",
};

enum err_code err_nomem(struct err *err, const char *what)
{
	return err_set(err, ERR_NOMEM, "%s: out of memory", what);
}

enum err_code err_copy(struct err *err, const struct err *from)
{
	if (err)
		*err = *from;
	return from->code;
}

const char *err_code_name(enum err_code code)
{
	return (unsigned)code < ERR_CODES ? code_names[code] : "unknown error";
}

/* A cut message says so: its last three characters become dots. */
static void err_mark_cut(struct err *err, size_t wanted)
{
	if (wanted >= sizeof(err->msg))
		memcpy(err->msg + sizeof(err->msg) - 4, "...", 4);
}

enum err_code err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!err)
		return code;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	err->code = code;
	err_mark_cut(err, n < 0 ? 0 : (size_t)n);
	return code;
}

enum err_code err_wrap(struct err *err, enum err_code code, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	size_t n;
	va_list ap;
	int rc;

	if (!err)
		return code;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	rc = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = rc < 0 ? 0 : (size_t)rc;
	if (n < sizeof(err->msg)) {
		rc = snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", inner);
		n += rc < 0 ? 0 : (size_t)rc;
	}
	err_mark_cut(err, n);
	err->code = code;
	return code;
}

static enum err_code err_code_of_errno(int error)
{
	switch (error) {
	case ENOMEM:
		return ERR_NOMEM;
	case ENOENT:
		return ERR_NOT_FOUND;
	case EEXIST:
		return ERR_EXISTS;
	case ETIMEDOUT:
		return ERR_TIMEOUT;
	default:
		return ERR_IO;
	}
}

enum err_code err_errno(struct err *err, int errno_value, const char *fmt, ...)
{
	enum err_code code = err_code_of_errno(errno_value);
	va_list ap;
	int rc;
	size_t n;

	if (!err)
		return code;
	va_start(ap, fmt);
	rc = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = rc < 0 ? 0 : (size_t)rc;
	if (n < sizeof(err->msg)) {
		rc = snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(errno_value));
		n += rc < 0 ? 0 : (size_t)rc;
	}
	err_mark_cut(err, n);
	err->code = code;
	return code;
}
