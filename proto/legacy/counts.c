/*
 * Texts that count stacks: Go's ?debug=1 of goroutine, threadcreate and others; threads;
 * contentions.
 *
 *	goroutine profile: total 12
 *	3 @ 0x401000 0x402000
 *
 *	--- threadz 1 ---
 *	--- Thread 7eff063d9940 (name: main/25376) stack: ---
 *	  PC: 0x40b688 0x4d5f51
 *	--- Thread ...
 *	  [same as previous thread]
 *
 *	--- contentionz 1 ---
 *	cycles/second = 3201000000
 *	sampling period = 100
 *	ms since reset = 16502830
 *	19490304 27 @ 0xbccc97 0xc61202         cycles, contentions
 */
#include <math.h>

#include "proto/legacy/reader.h"

/* The period's type and the sample's are one. */
static void legacy_set_type(struct legacy_reader *r, struct str type)
{
	pprof_builder_type(r->b, type, STR("count"));
	r->p->period_type = r->p->types_n ? r->p->types[0] : (struct pprof_type){ 0 };
	r->p->period = 1;
}

/* ------------------------------------------------------------------------------------------------
 * Counts. */

/* "goroutine profile: total 12": the word before, or none. */
static struct str legacy_count_name(struct str line)
{
	static const struct str middle = { " profile: total ", 16 };
	ptrdiff_t found = str_find(line, middle);
	size_t n = found > 0 ? (size_t)found : 0, digits = run_digits(line, n + middle.len);

	for (size_t i = 0; i < n; i++)
		if (line.ptr[i] == ' ' || (line.ptr[i] >= '\t' && line.ptr[i] <= '\r'))
			n = 0;
	return n && digits && n + middle.len + digits == line.len ? (struct str){ line.ptr, n } :
																STR("");
}

/* "3 @ 0x401000 0x402000", and nothing else. */
static enum err_code count_line(struct legacy_reader *r)
{
	static const char *const expected = "expected \"n @ addresses\"";
	struct str line = r->line;
	size_t i = run_digits(line, 0), n;
	int64_t count;
	enum err_code rc;

	if (!i || i + 2 >= line.len || line.ptr[i] != ' ' || line.ptr[i + 1] != '@')
		return reader_bad_line(r, expected);
	if (!number_any_base((struct str){ line.ptr, i }, &count))
		return reader_bad_line(r, "a number has more than 64 bits");
	sample_begin(r);
	for (i += 2; i < line.len; i += 3 + n) {
		for (n = 0; i + 3 + n < line.len && line.ptr[i + 3 + n] != ' '; n++)
			if (line.ptr[i + 3 + n] >= 'A' && line.ptr[i + 3 + n] <= 'F')
				return reader_bad_line(r, expected);
		if (!n || memcmp(line.ptr + i, " 0x", 3) != 0 ||
			run_hex((struct str){ line.ptr + i + 3, n }, 0) != n)
			return reader_bad_line(r, expected);
		if ((rc = sample_addresses(r, (struct str){ line.ptr + i, 3 + n }, 1, 1)))
			return rc;
	}
	return sample_end(r, &count, 0);
}

enum err_code legacy_counts(struct legacy_reader *r, bool *is)
{
	struct str name;
	enum err_code rc;

	r->name = "profile of counts (text)";
	while (!r->ended && line_is_blank(r->line))
		reader_next(r);
	name = legacy_count_name(r->line);
	if (!(*is = name.len > 0))
		return ERR_OK;
	legacy_set_type(r, name);
	while (reader_next(r)) {
		if (line_is_blank(r->line))
			continue;
		if (line_has_prefix(r->line, "---"))
			break;
		if ((rc = count_line(r)))
			return rc;
	}
	return reader_sections(r);
}

/* ------------------------------------------------------------------------------------------------
 * Threads. */

/* "--- Thread 7eff (name: main/12) stack: ---", anywhere in the line. */
static bool legacy_is_thread(struct str line)
{
	static const struct str opening = { "--- Thread ", 11 }, name = { " (name: ", 8 };
	static const struct str closing = { ") stack: ---", 12 };
	struct str s = line;

	for (ptrdiff_t found; (found = str_find(s, opening)) >= 0;) {
		size_t digits;

		s = (struct str){ s.ptr + found + opening.len, s.len - (size_t)found - opening.len };
		digits = run_hex(s, 0);
		if (!digits || !str_has_prefix((struct str){ s.ptr + digits, s.len - digits }, name))
			continue;
		/* Any name will do, so what follows the first opening decides. */
		s = (struct str){ s.ptr + digits + name.len, s.len - digits - name.len };
		for (struct str rest = s; (found = str_find(rest, closing)) >= 0;) {
			size_t end = (size_t)(rest.ptr - s.ptr) + (size_t)found, i = end;

			while (i > 0 && s.ptr[i - 1] >= '0' && s.ptr[i - 1] <= '9')
				i--;
			if (i < end && i > 0 && s.ptr[i - 1] == '/')
				return true;
			rest = (struct str){ s.ptr + end + 1, s.len - end - 1 };
		}
		return false;
	}
	return false;
}

/* "--- threadz 1 ---", anywhere in the line. */
static bool legacy_is_threadz(struct str line)
{
	static const struct str opening = { "--- threadz ", 12 };

	for (ptrdiff_t found; (found = str_find(line, opening)) >= 0;) {
		size_t n;

		line = (struct str){ line.ptr + found + opening.len,
			line.len - (size_t)found - opening.len };
		n = run_digits(line, 0);
		if (n && str_has_prefix((struct str){ line.ptr + n, line.len - n }, STR(" ---")))
			return true;
	}
	return false;
}

/*
 * Reads the lines of one thread, and leaves the line after them in *line. A thread without
 * addresses, or said to be the same as the one before, counts for that one.
 */
static enum err_code legacy_thread(struct legacy_reader *r, struct str *line)
{
	static const int64_t one = 1;
	bool same = false;
	enum err_code rc;

	sample_begin(r);
	*line = STR("");
	while (reader_next(r)) {
		*line = str_trim(r->line);
		if (!line->len)
			continue;
		if (line_has_prefix(*line, "---"))
			break;
		if (str_find(*line, STR("same as previous thread")) >= 0)
			same = true;
		else if ((rc = sample_addresses(r, *line, r->stack_n > 0, 1)))
			return rc;
	}
	if (same || !r->stack_n) {
		if (r->p->samples_n)
			r->p->values[r->p->samples_n - 1]++;
		return ERR_OK;
	}
	return sample_end(r, &one, 0);
}

enum err_code legacy_threads(struct legacy_reader *r, bool *is)
{
	struct str line;
	enum err_code rc;

	r->name = "thread profile (text)";
	while (!r->ended && line_is_blank(r->line))
		reader_next(r);
	line = r->line;
	*is = legacy_is_threadz(line) || legacy_is_thread(line);
	if (!*is)
		return ERR_OK;
	if (legacy_is_threadz(line))
		while (reader_next(r)) {
			line = r->line;
			if (line_is_maps(line) || line_has_prefix(line, "-"))
				break;
		}
	legacy_set_type(r, STR("thread"));
	while (!line_is_maps(line) && !line_has_prefix(line, "---- no stack trace for")) {
		if (!legacy_is_thread(line))
			return reader_bad_line(
				r, r->ended ? "the profile ends before its memory map" : "expected a thread");
		if ((rc = legacy_thread(r, &line)))
			return rc;
	}
	if ((rc = reader_sections(r)))
		return rc;
	reader_drop_repeated_leaves(r);
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Contentions. */

/* "cycles cycles" before " @": the first run of digits may give its last digit to the second. */
static bool legacy_contention_row(struct str s, struct str n[2], size_t *end)
{
	for (size_t i = 0; i < s.len;) {
		size_t first = run_digits(s, i), spaces, second;

		if (!first) {
			i++;
			continue;
		}
		spaces = run_spaces(s, i + first);
		second = run_digits(s, i + first + spaces);
		if (!second && first > 1) {
			first--;
			spaces = 0;
			second = 1;
		}
		*end = i + first + spaces + second;
		if (second && legacy_at(s, *end) == ' ' && legacy_at(s, *end + 1) == '@') {
			n[0] = (struct str){ s.ptr + i, first };
			n[1] = (struct str){ s.ptr + i + first + spaces, second };
			*end += 2;
			return true;
		}
		i += run_digits(s, i);
	}
	return false;
}

/* Delay and count are of one contention in `period`; cycles become nanoseconds. */
static enum err_code legacy_contention_line(struct legacy_reader *r, int64_t hz)
{
	struct str line = str_trim(r->line), n[2];
	int64_t period = r->p->period, values[2]; /* contentions, delay */
	size_t end, len = 0;
	enum err_code rc;
	double delay;

	if (!legacy_contention_row(line, n, &end))
		return reader_bad_line(r, "expected \"cycles n @ addresses\"");
	if (!number_i64(n[0], &values[1]) || !number_i64(n[1], &values[0]))
		return reader_bad_line(r, "a number has more than 64 bits");
	if (period > 0) {
		delay = hz > 0 ? (double)values[1] * (double)period / ((double)hz / 1e9) : 0;
		if (!(fabs(delay) < 0x1p63) || __builtin_mul_overflow(values[0], period, &values[0]))
			return reader_bad_line(r, "a number has more than 64 bits when it is scaled up");
		if (hz > 0)
			values[1] = (int64_t)delay;
	}
	sample_begin(r);
	while (end + len < line.len && strchr(" x0123456789abcdef", line.ptr[end + len]) &&
		line.ptr[end + len])
		len++;
	if ((rc = sample_addresses(r, (struct str){ line.ptr + end, len }, 1, 1)))
		return rc;
	return sample_end(r, values, 0);
}

/* "name = value" */
static enum err_code legacy_attribute(
	struct legacy_reader *r, struct str name, struct str value, int64_t *hz)
{
	int64_t number;

	if (str_is(name, "discarded samples"))
		return ERR_OK;
	if (str_is(name, "format") || str_is(name, "resolution"))
		return err_set(
			r->err, ERR_UNSUPPORTED, "a contention profile of Java (text) is not supported");
	if (!number_any_base(value, &number))
		return reader_bad_line(r, "expected \"attribute = number\"");
	if (str_is(name, "cycles/second"))
		*hz = number;
	else if (str_is(name, "sampling period"))
		r->p->period = number;
	else if (!str_is(name, "ms since reset"))
		return reader_bad_line(r, "unknown attribute");
	else if (__builtin_mul_overflow(number, 1000000, &r->p->duration_nanos))
		return reader_bad_line(r, "a duration of more than 64 bits");
	return ERR_OK;
}

static enum err_code legacy_attributes(struct legacy_reader *r, int64_t *hz)
{
	enum err_code rc;

	while (reader_next(r)) {
		struct str line = str_trim(r->line);
		ptrdiff_t sign = str_find(line, STR("="));

		if (line_is_blank(line))
			continue;
		if (line_has_prefix(line, "---") || sign < 0)
			break;
		rc = legacy_attribute(r, str_trim((struct str){ line.ptr, (size_t)sign }),
			str_trim((struct str){ line.ptr + sign + 1, line.len - (size_t)sign - 1 }), hz);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

enum err_code legacy_contentions(struct legacy_reader *r, bool *is)
{
	int64_t hz = 0;
	enum err_code rc;

	r->name = "contention profile (text)";
	*is = line_has_prefix(r->line, "--- contentionz ") || line_has_prefix(r->line, "--- mutex:") ||
		line_has_prefix(r->line, "--- contention:") ||
		str_is(str_trim(r->line), "--- contention"); /* brpc's */
	if (!*is)
		return ERR_OK;
	pprof_builder_type(r->b, STR("contentions"), STR("count"));
	pprof_builder_type(r->b, STR("delay"), STR("nanoseconds"));
	r->p->period_type = r->p->types_n ? r->p->types[0] : (struct pprof_type){ 0 };
	r->p->period = 1;
	if ((rc = legacy_attributes(r, &hz)))
		return rc;
	for (; !r->ended; reader_next(r)) {
		if (line_has_prefix(str_trim(r->line), "---"))
			break;
		if (!line_is_blank(r->line) && (rc = legacy_contention_line(r, hz)))
			return rc;
	}
	return reader_sections(r);
}
