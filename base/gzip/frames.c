#include "base/gzip/frames.h"

#define FIRST_BYTES 65536u

static enum err_code frames_inflate_all(const struct frames_coding *c, void *context,
	struct str body, const char *what, size_t raw_max, struct buf *out, struct err *err)
{
	size_t left = 1;

	/* One byte more than allowed tells a body that is just as long from a longer one. */
	while (body.len || left) {
		size_t made = out->len < FIRST_BYTES ? FIRST_BYTES : out->len, taken;
		const char *wrong;

		if (made > raw_max + 1 - out->len)
			made = raw_max + 1 - out->len;
		if (!buf_reserve(out, made))
			return err_nomem(err, what);
		if ((wrong = c->step(context, body, &taken, out->ptr + out->len, &made, &left)))
			return err_set(err, ERR_INVALID, "%s: %s: %s", c->name, what, wrong);
		body = (struct str){ body.ptr + taken, body.len - taken };
		out->len += made;
		if (out->len > raw_max)
			return err_set(
				err, ERR_LIMIT, "%s: %s inflates to more than %zu bytes", c->name, what, raw_max);
		if (!taken && !made && left)
			return err_set(err, ERR_INVALID, "%s: %s is cut short", c->name, what);
	}
	return ERR_OK;
}

enum err_code frames_inflate(const struct frames_coding *c, void *context, struct arena *a,
	struct str body, const char *what, size_t raw_max, struct str *out, struct err *err)
{
	struct buf raw = { 0 };
	struct str copy;
	enum err_code rc = frames_inflate_all(c, context, body, what, raw_max, &raw, err);

	if (!rc) {
		copy = str_dup(a, buf_str(&raw));
		rc = copy.ptr ? ERR_OK : arena_fail(a, what, err);
	}
	if (!rc)
		*out = copy;
	buf_release(&raw);
	return rc;
}
