/*
 * The memory map at a profile's end: lines of /proc/PID/maps, or shorter ones.
 *
 *	START-END PERM OFFSET DEV:DEV INODE FILE
 *	0xSTART-0xEND: FILE (@OFFSET) BUILDID
 *
 * Before them may be ATTR=VALUE, which replaces $ATTR in the lines after it. Parts may be missing;
 * what matches neither form is skipped. Whatever google/pprof makes of a line, this makes of it.
 *
 * An address belongs to the first mapping that has it. That is a binary search as long as mappings
 * do not overlap; else each is tried, and the work is limited.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "proto/legacy/reader.h"

#define ATTRIBUTES_MAX 64u
#define DOLLARS_MAX 1000000u /* each is compared with all attributes */
#define LINE_BYTES_MAX 16384u /* after $ATTR was replaced */
#define LOOKS_MAX (UINT64_C(1) << 27) /* of addresses at mappings, one by one */

struct attribute {
	struct str name, value; /* name: with its '$' */
};

/* \s of a regular expression. */
static bool legacy_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

static size_t maps_run_white(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && legacy_is_space(s.ptr[i]))
		i++;
	return i - begin;
}

static size_t maps_run_perm(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && memchr("-rwxp", s.ptr[i], 5))
		i++;
	return i - begin;
}

static size_t maps_run_word(struct str s, size_t i)
{
	size_t begin = i;

	while (i < s.len && !legacy_is_space(s.ptr[i]))
		i++;
	return i - begin;
}

static struct str legacy_part(struct str s, size_t i, size_t n)
{
	return (struct str){ s.ptr + i, n };
}

/* Hex with "0x" or without. Returns the end, or i if there is none. */
static size_t legacy_hex_number(struct str s, size_t i, struct str *out)
{
	size_t skip = legacy_at(s, i) == '0' && legacy_at(s, i + 1) == 'x' && run_hex(s, i + 2) ? 2 : 0;
	size_t n = run_hex(s, i + skip);

	*out = legacy_part(s, i + skip, n);
	return n ? i + skip + n : i;
}

struct legacy_entry {
	struct str start, end, perm, offset, file, build_id;
};

/*
 * START and END. Anything may separate them, even nothing: without a second number the last digit
 * of the first one is END. Returns where the rest begins, or 0.
 */
static size_t legacy_range(struct str s, struct legacy_entry *e, bool split)
{
	size_t i = maps_run_white(s, 0), end, next;

	if ((end = legacy_hex_number(s, i, &e->start)) == i)
		return 0;
	if (split) {
		if (e->start.len < 2)
			return 0;
		e->start.len--;
		next = legacy_hex_number(s, end - 1, &e->end);
		return next + (legacy_at(s, next) == ':');
	}
	end += legacy_at(s, end) == '-' || legacy_is_space(legacy_at(s, end));
	end += maps_run_white(s, end);
	if ((next = legacy_hex_number(s, end, &e->end)) == end)
		return 0;
	return next + (legacy_at(s, next) == ':');
}

/* [ PERM][ OFFSET] DEV:DEV INODE[ FILE], with or without the first two. */
static bool legacy_proc_rest(
	struct str s, size_t i, bool with_perm, bool with_offset, struct legacy_entry *e)
{
	size_t white, n;

	e->perm = e->offset = e->file = e->build_id = STR("");
	if (with_perm) {
		if (!(white = maps_run_white(s, i)) || !(n = maps_run_perm(s, i + white)))
			return false;
		e->perm = legacy_part(s, i + white, n);
		i += white + n;
	}
	if (with_offset) {
		if (!(white = maps_run_white(s, i)) || !(n = run_hex(s, i + white)))
			return false;
		e->offset = legacy_part(s, i + white, n);
		i += white + n;
	}
	if (!(white = maps_run_white(s, i)) || !(n = run_hex(s, i + white)) ||
		legacy_at(s, i + white + n) != ':')
		return false;
	i += white + n + 1;
	if (!(n = run_hex(s, i)))
		return false;
	i += n;
	if (!(white = maps_run_white(s, i)) || !(n = run_digits(s, i + white)))
		return false;
	i += white + n;
	white = maps_run_white(s, i);
	if (white && (n = maps_run_word(s, i + white)))
		e->file = legacy_part(s, i + white, n);
	return true;
}

/* [ PERM][ FILE][ (@OFFSET)][ BUILDID] */
static void legacy_brief_rest(struct str s, size_t i, struct legacy_entry *e)
{
	size_t white, n;

	e->perm = e->offset = e->file = e->build_id = STR("");
	if ((white = maps_run_white(s, i)) && (n = maps_run_perm(s, i + white))) {
		e->perm = legacy_part(s, i + white, n);
		i += white + n;
	}
	if ((white = maps_run_white(s, i)) && (n = maps_run_word(s, i + white))) {
		e->file = legacy_part(s, i + white, n);
		i += white + n;
	}
	if ((white = maps_run_white(s, i)) && legacy_at(s, i + white) == '(' &&
		legacy_at(s, i + white + 1) == '@' && (n = run_hex(s, i + white + 2)) &&
		legacy_at(s, i + white + 2 + n) == ')') {
		e->offset = legacy_part(s, i + white + 2, n);
		i += white + 2 + n + 1;
	}
	if ((white = maps_run_white(s, i)) && (n = run_hex(s, i + white)))
		e->build_id = legacy_part(s, i + white, n);
}

/* The first way that fits, in the order in which google/pprof tries them. */
static bool legacy_entry_of(struct str line, struct legacy_entry *e)
{
	size_t i;

	for (unsigned split = 0; split < 2; split++)
		if ((i = legacy_range(line, e, split)))
			for (unsigned form = 0; form < 4; form++)
				if (legacy_proc_rest(line, i, !(form & 2), !(form & 1), e))
					return true;
	if (!(i = legacy_range(line, e, false)) && !(i = legacy_range(line, e, true)))
		return false;
	legacy_brief_rest(line, i, e);
	return true;
}

/* False: the line is none, and may be an attribute. A mapping that cannot be executed is left out.
 */
static bool legacy_add_entry(struct legacy_reader *r, struct str line, enum err_code *rc)
{
	struct pprof_mapping m = { 0 };
	struct legacy_entry e;

	if (!legacy_entry_of(line, &e))
		return false;
	if (e.perm.len && !memchr(e.perm.ptr, 'x', e.perm.len))
		return true;
	if (!number_hex(e.start, &m.start) || !number_hex(e.end, &m.limit) ||
		(e.offset.len && !number_hex(e.offset, &m.offset)))
		return false;
	m.filename = pprof_builder_string(r->b, e.file);
	m.build_id = pprof_builder_string(r->b, e.build_id);
	if (r->maps_n >= r->limits->elements_max)
		*rc = reader_limit(r, "mappings", r->limits->elements_max);
	else if (!arena_array_room(r->a, &r->maps, r->maps_n, 1, &r->maps_cap))
		*rc = arena_fail(r->a, "profile", r->err);
	else
		r->maps[r->maps_n++] = m;
	return true;
}

/* Cuts what a logger put in front: "W1220 15:07:15.2 8272 file.cc:12] ". */
static struct str legacy_without_log(struct str line)
{
	size_t end = 0, colon;

	while (end < line.len && line.ptr[end] != '[' && line.ptr[end] != ']')
		end++;
	if (legacy_at(line, end) != ']' || !legacy_is_space(legacy_at(line, end + 1)))
		return line;
	for (colon = end; colon > 0 && line.ptr[colon - 1] >= '0' && line.ptr[colon - 1] <= '9';)
		colon--;
	if (colon == end || colon < 2 || line.ptr[colon - 1] != ':')
		return line;
	return legacy_part(line, end + 2, line.len - end - 2);
}

/* Replaces each $ATTR; of several that fit the first one given counts. */
static enum err_code legacy_replace(struct legacy_reader *r, const struct attribute *attributes,
	uint32_t n, struct str *line, struct buf *out)
{
	if (!n || !line->len || !memchr(line->ptr, '$', line->len))
		return ERR_OK;
	buf_clear(out);
	for (size_t i = 0; i < line->len;) {
		struct str rest = legacy_part(*line, i, line->len - i);
		uint32_t k = 0;

		if (rest.ptr[0] == '$' && r->dollars_n++ >= DOLLARS_MAX)
			return reader_limit(r, "'$' in the memory map", DOLLARS_MAX);
		while (rest.ptr[0] == '$' && k < n && !str_has_prefix(rest, attributes[k].name))
			k++;
		if (rest.ptr[0] == '$' && k < n) {
			buf_add_str(out, attributes[k].value);
			i += attributes[k].name.len;
		} else {
			buf_add_char(out, line->ptr[i++]);
		}
		if (out->len > LINE_BYTES_MAX)
			return err_set(r->err, ERR_LIMIT,
				"%s: line %" PRIu64 " has more than %u bytes, the limit", r->name, r->line_n,
				LINE_BYTES_MAX);
	}
	if (buf_failed(out))
		return err_nomem(r->err, "profile");
	*line = out->len ? buf_str(out) : STR("");
	return ERR_OK;
}

static enum err_code legacy_add_attribute(
	struct legacy_reader *r, struct str line, struct attribute *attributes, uint32_t *n)
{
	ptrdiff_t sign = str_find(line, STR("="));
	struct attribute *a;
	struct str name;
	char *text;

	if (sign < 0)
		return ERR_OK;
	if (*n >= ATTRIBUTES_MAX)
		return reader_limit(r, "attributes of the memory map", ATTRIBUTES_MAX);
	a = &attributes[*n];
	name = str_trim(legacy_part(line, 0, (size_t)sign));
	text = arena_alloc(r->a, name.len + 1);
	a->value = str_dup(
		r->a, str_trim(legacy_part(line, (size_t)sign + 1, line.len - (size_t)sign - 1)));
	if (!text || !a->value.ptr)
		return arena_fail(r->a, "profile", r->err);
	text[0] = '$';
	memcpy(text + 1, name.ptr, name.len);
	a->name = (struct str){ text, name.len + 1 };
	++*n;
	return ERR_OK;
}

static enum err_code legacy_read_maps(struct legacy_reader *r)
{
	struct attribute attributes[ATTRIBUTES_MAX];
	struct buf replaced = { 0 };
	enum err_code rc = ERR_OK;
	uint32_t n = 0;

	while (!rc && reader_next(r)) {
		struct str line = legacy_without_log(r->line);

		if ((rc = legacy_replace(r, attributes, n, &line, &replaced)))
			break;
		if (!legacy_add_entry(r, line, &rc))
			rc = legacy_add_attribute(r, line, attributes, &n);
	}
	buf_release(&replaced);
	return rc;
}

/* ------------------------------------------------------------------------------------------------
 * Mappings are joined and put in order. */

/* Two entries of one mapping that was split. */
static bool legacy_adjacent(const struct pprof_mapping *a, const struct pprof_mapping *b)
{
	if (a->filename && b->filename && a->filename != b->filename)
		return false;
	if (a->build_id && b->build_id && a->build_id != b->build_id)
		return false;
	if (a->limit != b->start)
		return false;
	return !a->offset || !b->offset || a->offset + (a->limit - a->start) == b->offset;
}

static void legacy_join_adjacent(struct legacy_reader *r)
{
	uint32_t to = 0;

	for (uint32_t i = 1; i < r->maps_n; i++) {
		const struct pprof_mapping *m = &r->maps[i];
		struct pprof_mapping *last = &r->maps[to];

		if (!legacy_adjacent(last, m)) {
			r->maps[++to] = *m;
			continue;
		}
		last->limit = m->limit;
		last->filename = m->filename ? m->filename : last->filename;
		last->build_id = m->build_id ? m->build_id : last->build_id;
	}
	r->maps_n = r->maps_n ? to + 1 : 0;
}

/* "libc.so", "libc.so.6", "libc.so_6" */
static bool legacy_is_library(struct str file)
{
	for (size_t i = 0; i + 3 <= file.len; i++) {
		if (memcmp(file.ptr + i, ".so", 3) != 0)
			continue;
		if (i + 3 == file.len ||
			((legacy_at(file, i + 3) == '.' || legacy_at(file, i + 3) == '_') &&
				run_digits(file, i + 4)))
			return true;
	}
	return false;
}

/* The name without "(deleted)"; of another line it would be another word. */
static struct str legacy_file_of(
	struct legacy_reader *r, const struct pprof_mapping *m, struct buf *out)
{
	static const struct str deleted = { "(deleted)", 9 };
	struct str file = r->p->strings[m->filename];

	if (str_find(file, deleted) < 0)
		return file;
	buf_clear(out);
	for (ptrdiff_t next; (next = str_find(file, deleted)) >= 0;) {
		buf_add(out, file.ptr, (size_t)next);
		file = legacy_part(file, (size_t)next + deleted.len, file.len - (size_t)next - deleted.len);
	}
	buf_add_str(out, file);
	return str_trim(buf_str(out));
}

/* The first file that is no library is taken for the main binary, which comes first. */
static void legacy_main_first(struct legacy_reader *r)
{
	struct buf name = { 0 };

	for (uint32_t i = 0; i < r->maps_n; i++) {
		struct str file = legacy_file_of(r, &r->maps[i], &name);
		struct pprof_mapping m = r->maps[i];

		if (!file.len || file.ptr[0] == '[' || legacy_is_library(file))
			continue;
		r->maps[i] = r->maps[0];
		r->maps[0] = m;
		break;
	}
	buf_release(&name);
}

/* Faults of some handlers: a remapped part of the main binary, a start that is not its first. */
static void legacy_mend_main(struct legacy_reader *r)
{
	struct pprof_mapping *m = r->maps;

	if (r->maps_n > 1 && m->limit == m[1].start &&
		str_has_prefix(r->p->strings[m->filename], STR("/anon_hugepage")))
		memmove(m, m + 1, --r->maps_n * sizeof(*m));
	if (r->maps_n && m->start - m->offset == 0x400000) {
		m->start = 0x400000;
		m->offset = 0;
	}
}

/* ------------------------------------------------------------------------------------------------
 * The mapping of each location. */

struct legacy_lookup {
	struct legacy_reader *r;
	struct pprof_mapping *maps; /* the builder's */
	uint32_t n;
	uint32_t *sorted; /* by start, the empty ones left out; NULL: they overlap */
	uint32_t sorted_n;
	uint64_t looks;
};

static int legacy_by_start(const void *a, const void *b, void *maps)
{
	const struct pprof_mapping *m = maps;
	uint64_t x = m[*(const uint32_t *)a].start, y = m[*(const uint32_t *)b].start;

	return (x > y) - (x < y);
}

static enum err_code legacy_lookup_init(struct legacy_lookup *l)
{
	l->sorted_n = 0;
	if (!(l->sorted = arena_array(l->r->a, uint32_t, l->n + 1)))
		return arena_fail(l->r->a, "profile", l->r->err);
	for (uint32_t i = 0; i < l->n; i++)
		if (l->maps[i].start < l->maps[i].limit)
			l->sorted[l->sorted_n++] = i;
	qsort_r(l->sorted, l->sorted_n, sizeof(*l->sorted), legacy_by_start, l->maps);
	for (uint32_t i = 1; i < l->sorted_n; i++)
		if (l->maps[l->sorted[i]].start < l->maps[l->sorted[i - 1]].limit) {
			l->sorted = NULL;
			return ERR_OK;
		}
	return ERR_OK;
}

static uint32_t legacy_lookup_search(const struct legacy_lookup *l, uint64_t address)
{
	uint32_t low = 0, high = l->sorted_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->maps[l->sorted[middle]].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < l->maps[l->sorted[low - 1]].limit ? l->sorted[low - 1] : PPROF_NONE;
}

static uint32_t legacy_lookup_first_with(const struct legacy_lookup *l, uint64_t address)
{
	if (l->sorted)
		return legacy_lookup_search(l, address);
	for (uint32_t i = 0; i < l->n; i++)
		if (l->maps[i].start <= address && address < l->maps[i].limit)
			return i;
	return PPROF_NONE;
}

/* A handler may leave out the first part of a file: the mapping then begins earlier. */
static uint32_t legacy_lookup_widened_for(struct legacy_lookup *l, uint64_t address)
{
	for (uint32_t i = 0; i < l->n; i++) {
		struct pprof_mapping *m = &l->maps[i];

		if (m->offset && m->start - m->offset <= address && address < m->start) {
			m->start -= m->offset;
			m->offset = 0;
			l->sorted = NULL; /* it may overlap others now */
			return i;
		}
	}
	return PPROF_NONE;
}

static enum err_code map_locations(struct legacy_reader *r)
{
	struct legacy_lookup l = { .r = r, .maps = r->p->mappings, .n = r->maps_n };
	struct pprof_mapping fake_mapping = { .limit = UINT64_MAX };
	uint32_t fake = PPROF_NONE, m;
	enum err_code rc;

	if ((rc = legacy_lookup_init(&l)))
		return rc;
	for (uint32_t i = 0; i < r->p->locations_n; i++) {
		struct pprof_location *at_location = &r->p->locations[i];
		uint64_t address = at_location->address;

		if (!address)
			continue;
		m = legacy_lookup_first_with(&l, address);
		if (!l.sorted || m == PPROF_NONE) {
			l.looks += l.n;
			if (l.looks > LOOKS_MAX)
				return err_set(r->err, ERR_LIMIT,
					"%s: %" PRIu32 " locations and %" PRIu32 " mappings that overlap or lack them",
					r->name, r->p->locations_n, l.n);
		}
		if (m == PPROF_NONE && fake == PPROF_NONE)
			m = legacy_lookup_widened_for(&l, address);
		else if (m == PPROF_NONE)
			m = fake;
		at_location->mapping = m;
		if (m != PPROF_NONE)
			continue;
		/* All that no mapping has are in one that has everything. */
		fake = pprof_builder_mapping(r->b, &fake_mapping);
		if (r->p->mappings_n != l.n + 1)
			return arena_fail(r->a, "profile", r->err);
		l.maps = r->p->mappings;
		at_location->mapping = fake;
	}
	return ERR_OK;
}

enum err_code reader_maps(struct legacy_reader *r)
{
	enum err_code rc = legacy_read_maps(r);

	if (rc)
		return rc;
	legacy_join_adjacent(r);
	legacy_main_first(r);
	legacy_mend_main(r);
	for (uint32_t i = 0; i < r->maps_n; i++)
		pprof_builder_mapping(r->b, &r->maps[i]);
	if (r->p->mappings_n != r->maps_n)
		return arena_fail(r->a, "profile", r->err);
	return map_locations(r);
}

enum err_code reader_sections(struct legacy_reader *r)
{
	while (!r->ended && !line_is_maps(r->line))
		reader_next(r);
	return reader_maps(r);
}
