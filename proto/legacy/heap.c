/*
 * Heap profiles as text, of tcmalloc and Go (?debug=1), and of jemalloc.
 *
 *	heap profile: 3: 4096 [ 9: 8192] @ heap_v2/524288      in use [allocated] @ how sampled
 *	 2: 2048 [ 4: 4096] @ 0x401000 0x402000
 *
 *	heap_v2/524288
 *	  t*: 3: 4096 [0: 0]
 *	  t3: 3: 4096 [0: 0] name
 *	@ 0x401000 0x402000
 *	  t*: 3: 4096 [0: 0]
 *
 * Unsampling: with a mean of `rate` bytes between two samples, an object of S bytes is sampled
 * with the probability 1 - exp(-S / rate); count and size are divided by it. S is the mean of a
 * stack's objects.
 */
#include <math.h>

#include "proto/legacy/reader.h"

struct heap {
	bool has_alloc; /* four values, else two */
	bool scale;
	int64_t rate; /* bytes */
};

/* The four numbers "a: b [c: d]" of a line, as text. */
struct legacy_row {
	struct str n[4];
	size_t end; /* of the match */
};

static bool legacy_row_number(struct str s, size_t *i, bool sign, struct str *out)
{
	size_t minus = sign && legacy_at(s, *i) == '-', n = run_digits(s, *i + minus);

	*out = (struct str){ s.ptr + *i, minus + n };
	*i += minus + n;
	return n > 0;
}

static bool legacy_row_char(struct str s, size_t *i, char c)
{
	return legacy_at(s, *i) == c && *i < s.len && ++*i;
}

/* Numbers at s.ptr + i: "-1: -2 [3: 4 ]". */
static bool legacy_row_at(struct str s, size_t i, bool sign, struct legacy_row *row)
{
	if (!legacy_row_number(s, &i, sign, &row->n[0]) || !legacy_row_char(s, &i, ':'))
		return false;
	i += run_spaces(s, i);
	if (!legacy_row_number(s, &i, sign, &row->n[1]))
		return false;
	i += run_spaces(s, i);
	if (!legacy_row_char(s, &i, '['))
		return false;
	i += run_spaces(s, i);
	if (!legacy_row_number(s, &i, false, &row->n[2]) || !legacy_row_char(s, &i, ':'))
		return false;
	i += run_spaces(s, i);
	if (!legacy_row_number(s, &i, false, &row->n[3]))
		return false;
	i += run_spaces(s, i);
	row->end = i + 1;
	return legacy_row_char(s, &i, ']');
}

/* The first "a: b [c: d] @" of a line. A run of digits is tried once: its end decides. */
static bool sample_row(struct str line, struct legacy_row *row)
{
	for (size_t i = 0; i < line.len;) {
		size_t digits = run_digits(line, i), begin;

		if (!digits) {
			i++;
			continue;
		}
		begin = i && line.ptr[i - 1] == '-' ? i - 1 : i;
		if (legacy_row_at(line, begin, true, row) && legacy_at(line, row->end) == ' ' &&
			legacy_at(line, row->end + 1) == '@') {
			row->end += 2;
			return true;
		}
		i += digits;
	}
	return false;
}

static struct str legacy_rest_of(struct str s, size_t i)
{
	return (struct str){ s.ptr + i, s.len - i };
}

/* What the header says after its numbers: "@ heap_v2/524288". */
static bool legacy_read_sampling(struct str s, struct heap *h, int64_t *period)
{
	size_t i = run_spaces(s, 0), n = 0;
	struct str name, rate;

	if (!legacy_row_char(s, &i, '@'))
		return false;
	i += run_spaces(s, i);
	while (legacy_at(s, i + n) == '_' ||
		(legacy_at(s, i + n) >= 'a' && legacy_at(s, i + n) <= 'z') ||
		(legacy_at(s, i + n) >= '0' && legacy_at(s, i + n) <= '9'))
		n++;
	name = (struct str){ s.ptr + i, n };
	i += n;
	i += legacy_at(s, i) == '/';
	rate = (struct str){ s.ptr + i, run_digits(s, i) };
	*period = 0;
	if (rate.len && !number_i64(rate, period))
		return false;
	h->scale = true;
	if (str_is(name, "heap_v2") || str_is(name, "heapz_v2"))
		return true;
	if (str_is(name, "heap")) {
		*period /= 2;
		return true;
	}
	h->scale = false;
	*period = 1;
	return str_is(name, "heapprofile");
}

/* "@ growth", "@ growthz", "@ fragmentation": each object counts once. */
static bool legacy_is_plain(struct str s)
{
	return line_has_prefix(s, " @ growth") || line_has_prefix(s, " @ fragmentation");
}

static bool legacy_read_header(struct legacy_reader *r, struct heap *h)
{
	static const struct str opening = { "heap profile:", 13 };
	struct str line = r->line;
	struct legacy_row row;

	for (ptrdiff_t found; (found = str_find(line, opening)) >= 0;) {
		struct str s = legacy_rest_of(line, (size_t)found + opening.len);

		line = s;
		if (!legacy_row_at(s, run_spaces(s, 0), false, &row))
			continue;
		s = legacy_rest_of(s, row.end);
		if (legacy_read_sampling(s, h, &r->p->period)) {
			h->has_alloc = (!str_eq(row.n[2], row.n[0]) && !str_is(row.n[2], "0")) ||
				(!str_eq(row.n[3], row.n[1]) && !str_is(row.n[3], "0"));
			return true;
		}
		if (legacy_is_plain(s)) {
			r->p->period = 1;
			h->scale = false;
			return true;
		}
	}
	return false;
}

static bool legacy_scaled(int64_t *count, int64_t *size, int64_t rate)
{
	double scale, n, bytes;

	if (*count == 0 || *size == 0) {
		*count = *size = 0;
		return true;
	}
	if (rate <= 1)
		return true;
	scale = 1 / (1 - exp(-((double)*size / (double)*count) / (double)rate));
	n = (double)*count * scale;
	bytes = (double)*size * scale;
	if (!(fabs(n) < 0x1p63) || !(fabs(bytes) < 0x1p63))
		return false;
	*count = (int64_t)n;
	*size = (int64_t)bytes;
	return true;
}

/* One pair of count and size. *object: the bytes of one. */
static enum err_code legacy_pair(struct legacy_reader *r, const struct heap *h, const struct str *n,
	int64_t values[2], int64_t *object)
{
	if (!number_i64(n[0], &values[0]) || !number_i64(n[1], &values[1]))
		return reader_bad_line(r, "a number has more than 64 bits");
	if (!values[0] && values[1])
		return reader_bad_line(r, "bytes of no object");
	if (!values[0])
		return ERR_OK;
	if (values[0] == -1 && values[1] == INT64_MIN)
		return reader_bad_line(r, "a number has more than 64 bits");
	*object = values[1] / values[0];
	if (h->scale && !legacy_scaled(&values[0], &values[1], h->rate))
		return reader_bad_line(r, "a number has more than 64 bits when it is scaled up");
	return ERR_OK;
}

static enum err_code legacy_values_of(struct legacy_reader *r, const struct heap *h,
	const struct legacy_row *row, int64_t values[4], int64_t *object)
{
	enum err_code rc;

	*object = 0;
	if (!h->has_alloc)
		return legacy_pair(r, h, row->n, values, object);
	if ((rc = legacy_pair(r, h, row->n + 2, values, object)))
		return rc;
	return legacy_pair(r, h, row->n, values + 2, object);
}

static void legacy_set_types(
	struct legacy_reader *r, const struct heap *h, struct str objects, struct str space)
{
	if (h->has_alloc) {
		pprof_builder_type(r->b, STR("alloc_objects"), STR("count"));
		pprof_builder_type(r->b, STR("alloc_space"), STR("bytes"));
		objects = STR("inuse_objects");
		space = STR("inuse_space");
	}
	pprof_builder_type(r->b, objects, STR("count"));
	pprof_builder_type(r->b, space, STR("bytes"));
	r->p->period_type.type = pprof_builder_string(r->b, STR("space"));
	r->p->period_type.unit = pprof_builder_string(r->b, STR("bytes"));
}

/* The run of characters that may be addresses. */
static struct str legacy_address_text(struct str line, size_t i)
{
	size_t n = 0;

	while (i + n < line.len &&
		(line.ptr[i + n] == ' ' || line.ptr[i + n] == 'x' ||
			(line.ptr[i + n] >= '0' && line.ptr[i + n] <= '9') ||
			(line.ptr[i + n] >= 'a' && line.ptr[i + n] <= 'f')))
		n++;
	return (struct str){ line.ptr + i, n };
}

static enum err_code legacy_sample(struct legacy_reader *r, const struct heap *h)
{
	struct legacy_row row;
	int64_t values[4], object;
	enum err_code rc;

	if (!sample_row(r->line, &row))
		return reader_bad_line(r, "expected \"n: bytes [n: bytes] @ addresses\"");
	if ((rc = legacy_values_of(r, h, &row, values, &object)))
		return rc;
	sample_begin(r);
	if ((rc = sample_addresses(r, legacy_address_text(r->line, row.end), 1, 1)))
		return rc;
	return sample_end(r, values, object);
}

enum err_code legacy_heap(struct legacy_reader *r, bool *is)
{
	struct heap h = { 0 };
	enum err_code rc;

	r->name = "heap profile (text)";
	if (!(*is = legacy_read_header(r, &h)))
		return ERR_OK;
	h.rate = r->p->period;
	legacy_set_types(r, &h, STR("objects"), STR("space"));
	while (reader_next(r)) {
		if (line_is_blank(r->line))
			continue;
		if (line_is_maps(r->line))
			break;
		if ((rc = legacy_sample(r, &h)))
			return rc;
	}
	return reader_sections(r);
}

/* ------------------------------------------------------------------------------------------------
 * jemalloc. */

/* "t*: 1: 2 [3: 4]" of all threads, or "t3: 1: 2 [3: 4] name" of one. */
static enum err_code legacy_thread_row(
	struct legacy_reader *r, bool named, bool *all, struct legacy_row *row)
{
	struct str line = str_trim(r->line);
	size_t i = 1, digits = run_digits(line, 1);

	*all = legacy_at(line, 1) == '*';
	i += *all ? 1 : digits;
	if (legacy_at(line, 0) != 't' || i == 1 || !legacy_row_char(line, &i, ':') ||
		!legacy_row_char(line, &i, ' ') || !legacy_row_at(line, i, false, row) ||
		(row->end < line.len && (*all || !named)))
		return reader_bad_line(r, "expected \"t*: n: bytes [n: bytes]\"");
	return ERR_OK;
}

/* The row of all threads, which comes first; those of single threads are their parts. */
static enum err_code legacy_all_threads(
	struct legacy_reader *r, bool header, struct legacy_row *row)
{
	struct legacy_row one;
	enum err_code rc;
	bool all;

	if (!reader_next(r))
		return reader_bad_line(r, "the profile ends before its \"t*\"");
	if ((rc = legacy_thread_row(r, false, &all, row)))
		return rc;
	if (!all)
		return reader_bad_line(r, "expected \"t*\" before single threads");
	while (reader_next(r) && !line_is_blank(r->line) && str_trim(r->line).ptr[0] == 't') {
		if ((rc = legacy_thread_row(r, header, &all, &one)))
			return rc;
		if (all)
			return reader_bad_line(r, "a second \"t*\"");
	}
	return ERR_OK;
}

static enum err_code legacy_jemalloc_stack(struct legacy_reader *r, const struct heap *h)
{
	int64_t values[4], object;
	struct legacy_row row;
	enum err_code rc;

	sample_begin(r);
	if ((rc = sample_addresses(r, r->line, 1, 1)) || (rc = legacy_all_threads(r, false, &row)))
		return rc;
	if (!h->has_alloc && !(str_is(row.n[2], "0") && str_is(row.n[3], "0")))
		return reader_bad_line(r, "allocations that the header does not have");
	if ((rc = legacy_values_of(r, h, &row, values, &object)))
		return rc;
	return sample_end(r, values, object);
}

enum err_code legacy_jemalloc(struct legacy_reader *r, bool *is)
{
	static const struct str opening = { "heap_v2/", 8 };
	struct heap h = { .scale = true };
	struct legacy_row row;
	enum err_code rc;

	r->name = "heap profile of jemalloc";
	*is = str_has_prefix(r->line, opening) &&
		number_i64(legacy_rest_of(str_trim(r->line), opening.len), &r->p->period);
	if (!*is)
		return ERR_OK;
	h.rate = r->p->period;
	if ((rc = legacy_all_threads(r, true, &row)))
		return rc;
	h.has_alloc = !str_is(row.n[2], "0") || !str_is(row.n[3], "0");
	legacy_set_types(r, &h, STR("inuse_objects"), STR("inuse_space"));
	while (!r->ended && !line_is_maps(r->line)) {
		if (line_is_blank(r->line)) {
			reader_next(r);
			continue;
		}
		if (r->line.ptr[0] != '@')
			return reader_bad_line(r, "expected a stack, \"@ addresses\"");
		if ((rc = legacy_jemalloc_stack(r, &h)))
			return rc;
	}
	return reader_sections(r);
}
