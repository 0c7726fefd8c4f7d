#include "cmd/epitool/times.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/quote.h"

enum err_code time_arg_parse(struct str s, int64_t now_ns, int64_t *out_ns, struct err *err)
{
	struct str rest = s;
	int64_t span_ns;

	if (str_has_prefix(rest, STR("now"))) {
		rest.ptr += 3;
		rest.len -= 3;
		if (!rest.len) {
			*out_ns = now_ns;
			return ERR_OK;
		}
	}
	/* "-90" alone is a unix time: a duration has a unit. */
	if (rest.len > 1 && (rest.ptr[0] == '-' || (rest.ptr[0] == '+' && rest.ptr != s.ptr))) {
		struct str span = { rest.ptr + 1, rest.len - 1 };

		if (!duration_parse(span, &span_ns, NULL) && span_ns <= now_ns) {
			*out_ns = rest.ptr[0] == '-' ? now_ns - span_ns : now_ns + span_ns;
			return ERR_OK;
		}
	}
	if (rest.ptr == s.ptr && !time_parse(s, out_ns, NULL))
		return ERR_OK;
	return err_set(err, ERR_INVALID,
		"cannot parse %s to a time: RFC 3339, unix seconds, now, now-1h or -1h", QUOTED(s));
}

void time_arg_print(struct buf *out, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	buf_printf(out, "%s%llu.%09llu", ns < 0 ? "-" : "", (unsigned long long)(size / 1000000000),
		(unsigned long long)(size % 1000000000));
}
