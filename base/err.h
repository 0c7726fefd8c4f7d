/*
 * Errors: a code for programs, a message for people.
 *
 * A function that can fail returns enum err_code and takes struct err * last; NULL is allowed there
 * and only drops the message. The function that fails writes the message; its callers put context
 * in front of it: "open block 01AB: meta.json:3: bad ulid".
 *
 * Threads: an err belongs to one thread at a time.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

enum err_code {
	ERR_OK = 0,
	ERR_NOMEM, /* out of memory */
	ERR_IO, /* a system call on a file or socket failed */
	ERR_CORRUPT, /* stored bytes are not what was written */
	ERR_INVALID, /* input from outside does not follow its format */
	ERR_LIMIT, /* a named limit was passed */
	ERR_NOT_FOUND, /* the thing asked for does not exist */
	ERR_EXISTS, /* the thing to create exists already */
	ERR_TIMEOUT, /* a deadline passed */
	ERR_CANCELED, /* the caller or its client gave up */
	ERR_UNAVAILABLE, /* cannot be done now, may be later */
	ERR_UNSUPPORTED, /* well formed, but not something this program does */
	ERR_CODES
};

struct err {
	enum err_code code;
	char msg[1024]; /* cut with "..." where longer */
};

/* Sets *err and returns code, so that `return err_set(...)` is the whole failure path. */
enum err_code err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts context in front of the message: "<context>: <message>". Returns code unchanged. */
enum err_code err_wrap(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* err_set with ERR_IO or a closer code, and the text of errno_value: "<context>: No such file". */
enum err_code err_errno(struct err *err, int errno_value, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* "<what>: out of memory", ERR_NOMEM. */
enum err_code err_nomem(struct err *err, const char *what);

/* Copies an error of another thread or attempt into *err, and returns its code. */
enum err_code err_copy(struct err *err, const struct err *from);

/* "not found", "i/o error", ... for logs and metrics. */
const char *err_code_name(enum err_code code);

#endif
