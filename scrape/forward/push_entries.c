#include "scrape/forward/push_entries.h"

#include "base/clock.h"
#include "base/gzip/gzip.h"

#define VERSION 1
#define GZIP_LEVEL 1 /* the fastest: servers of a cluster are near each other */
#define LENGTH_BYTES 4u
#define LINK_BYTES 24u

enum entry_flags { ENTRY_AS_SENT = 1, ENTRY_FLAGS = 1 };
enum answer_flags { ANSWER_OVERFLOW = 1 };

_Static_assert(sizeof(struct pprof_link) == LINK_BYTES, "links are written as they are");

/*
 * What the sender's server may hand on: every profile that was made of a body or of several (an
 * arena of 256 MiB has them). Bytes bound the counts.
 */
static const struct pprof_limits entry_limits = {
	.body_bytes_max = PUSH_ENTRY_BYTES_MAX,
	.raw_bytes_max = 256u << 20,
	.samples_max = 16u << 20,
	.elements_max = 16u << 20,
	.stack_depth_max = 16u << 20, /* cut already */
	.arena_bytes_max = 1u << 30,
};

/* Codes on the wire, by their place; their numbers never change. */
static const enum err_code codes[] = { ERR_OK, ERR_NOMEM, ERR_IO, ERR_CORRUPT, ERR_INVALID,
	ERR_LIMIT, ERR_NOT_FOUND, ERR_EXISTS, ERR_TIMEOUT, ERR_CANCELED, ERR_UNAVAILABLE,
	ERR_UNSUPPORTED };
#define CODES (sizeof(codes) / sizeof(codes[0]))

/* ---- writing ---- */

static enum err_code push_entry_write_pprof(const struct pprof *p, struct buf *out, struct err *err)
{
	struct buf raw = { 0 }, gz = { 0 };
	enum err_code rc = pprof_encode(p, &raw, err);

	if (!rc && raw.len >= PUSH_COMPRESS_BYTES)
		rc = gzip_compress(buf_str(&raw), GZIP_LEVEL, &gz, err);
	if (!rc)
		buf_add_lenstr(out, gz.len ? buf_str(&gz) : buf_str(&raw));
	buf_release(&raw);
	buf_release(&gz);
	return rc;
}

static void push_entry_write_links(const struct pprof *p, struct buf *out)
{
	bool has_links = p->links_n && p->sample_links;

	buf_add_varint(out, p->stacks_cut);
	buf_add_varint(out, has_links ? p->links_n : 0);
	if (has_links)
		buf_add(out, p->links, (size_t)p->links_n * LINK_BYTES);
	buf_add_varint(out, has_links ? p->samples_n : 0);
	for (uint32_t i = 0; has_links && i < p->samples_n; i++)
		buf_add_varint(out, p->sample_links[i]);
}

enum err_code push_entry_write(
	const struct sink_profile *p, uint64_t assignment, struct buf *out, struct err *err)
{
	size_t from = out->len;
	enum err_code rc;

	buf_add_varint(out, assignment);
	labels_encode(out, p->labels);
	buf_add_varint(out, str_zigzag(p->ts_ns));
	buf_add_varint(out, str_zigzag(p->interval_ns));
	buf_add_varint(out, str_zigzag(p->gap_max_ns));
	buf_add_char(out, p->as_sent ? ENTRY_AS_SENT : 0);
	buf_add_varint(out, p->profile->types_n);
	for (uint32_t i = 0; i < p->profile->types_n; i++)
		buf_add_char(out, (char)p->kinds[i]);
	push_entry_write_links(p->profile, out);
	if ((rc = push_entry_write_pprof(p->profile, out, err)))
		return rc;
	if (buf_failed(out))
		return err_nomem(err, "profile");
	if (out->len - from > PUSH_ENTRY_BYTES_MAX)
		return err_set(err, ERR_LIMIT,
			"the profile is %zu bytes on its way to another shard, limit %u", out->len - from,
			PUSH_ENTRY_BYTES_MAX);
	return ERR_OK;
}

void push_body_begin(struct buf *out)
{
	buf_add_char(out, VERSION);
}

void push_body_add(struct buf *out, struct str entry)
{
	buf_add_u32be(out, (uint32_t)entry.len);
	buf_add_str(out, entry);
}

/* ---- reading ---- */

static enum err_code push_check_version(struct cursor *c, struct err *err)
{
	struct str version = cursor_bytes(c, 1);

	if (c->bad)
		return err_set(err, ERR_INVALID, "the body is empty");
	if (version.ptr[0] != VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"version %u of profiles between shards; this server has %u: upgrade all shards",
			(unsigned char)version.ptr[0], VERSION);
	return ERR_OK;
}

enum err_code push_body_open(struct str body, struct cursor *entries, unsigned *n, struct err *err)
{
	struct cursor c = cursor_of(body);
	enum err_code rc = push_check_version(&c, err);

	if (rc)
		return rc;
	*entries = c;
	for (*n = 0; cursor_left(&c); (*n)++) {
		if (*n == PUSH_ENTRIES_MAX)
			return err_set(err, ERR_LIMIT, "more than %u profiles at once", PUSH_ENTRIES_MAX);
		(void)push_body_next(&c);
		if (c.bad)
			return err_set(err, ERR_INVALID, "profile %u is cut short", *n + 1);
	}
	return *n ? ERR_OK : err_set(err, ERR_INVALID, "the body has no profile");
}

struct str push_body_next(struct cursor *entries)
{
	uint32_t len = cursor_u32be(entries);

	return cursor_bytes(entries, len);
}

static enum err_code push_entry_check_labels(struct labels labels, struct err *err)
{
	if (!label_name_valid(labels_get(labels, STR(LABEL_NAME))))
		return err_set(err, ERR_INVALID, "labels: no name of a profile");
	for (size_t i = 0; i < labels.n; i++)
		if (!label_name_valid(labels.v[i].name) || !label_value_valid(labels.v[i].value))
			return err_set(err, ERR_INVALID, "labels: a name or a value is not valid");
	return ERR_OK;
}

static enum err_code push_entry_check_times(const struct sink_profile *p, struct err *err)
{
	if (p->ts_ns < 0 || p->ts_ns >= TIME_MAX_NS)
		return err_set(err, ERR_INVALID, "the profile's time is before 1970 or after 2116");
	if (p->interval_ns <= 0 || p->interval_ns > PUSH_INTERVAL_MAX_NS || p->gap_max_ns < 0 ||
		p->gap_max_ns >= TIME_MAX_NS)
		return err_set(err, ERR_INVALID, "the profile's interval is not valid");
	return ERR_OK;
}

static enum err_code push_entry_read_kinds(
	struct arena *a, struct cursor *c, struct sink_profile *p, uint32_t *n, struct err *err)
{
	struct str bytes = cursor_lenstr(c);
	enum value_kind *kinds;

	if (c->bad || bytes.len > UINT32_MAX)
		return err_set(err, ERR_INVALID, "kinds: cut short");
	if (!(kinds = arena_array(a, enum value_kind, bytes.len + 1)))
		return arena_fail(a, "profile", err);
	for (size_t i = 0; i < bytes.len; i++) {
		kinds[i] = (enum value_kind)(unsigned char)bytes.ptr[i];
		if ((unsigned char)bytes.ptr[i] > KIND_CUMULATIVE)
			return err_set(err, ERR_INVALID, "kinds: %u is none", (unsigned char)bytes.ptr[i]);
	}
	p->kinds = kinds;
	*n = (uint32_t)bytes.len;
	return ERR_OK;
}

/* What pprof has no field for. */
struct entry_extra {
	uint32_t stacks_cut, links_n, sample_links_n;
	const struct pprof_link *links;
	uint32_t *sample_links;
};

static enum err_code push_entry_read_links(
	struct arena *a, struct cursor *c, struct entry_extra *extra, struct err *err)
{
	struct pprof_link *links;
	struct str bytes;

	extra->stacks_cut = cursor_u32(c);
	extra->links_n = cursor_u32(c);
	if (c->bad || extra->links_n > cursor_left(c) / LINK_BYTES)
		return err_set(err, ERR_INVALID, "links: cut short");
	bytes = cursor_bytes(c, (size_t)extra->links_n * LINK_BYTES);
	extra->sample_links_n = cursor_u32(c);
	if (c->bad || extra->sample_links_n > cursor_left(c))
		return err_set(err, ERR_INVALID, "links of samples: cut short");
	if (!extra->links_n != !extra->sample_links_n)
		return err_set(err, ERR_INVALID, "links without samples, or samples without links");
	if (!extra->links_n)
		return ERR_OK;
	if (!(links = arena_array(a, struct pprof_link, extra->links_n)) ||
		!(extra->sample_links = arena_array(a, uint32_t, extra->sample_links_n)))
		return arena_fail(a, "links", err);
	memcpy(links, bytes.ptr, bytes.len);
	extra->links = links;
	for (uint32_t i = 0; i < extra->sample_links_n; i++) {
		extra->sample_links[i] = cursor_u32(c);
		if (c->bad || extra->sample_links[i] >= extra->links_n)
			return err_set(err, ERR_INVALID, "links of samples: sample %u has none of them", i);
	}
	return ERR_OK;
}

static enum err_code push_entry_read_pprof(struct arena *a, struct str bytes,
	const struct entry_extra *extra, struct pprof **out, struct err *err)
{
	struct str raw;
	enum err_code rc;

	if ((rc = pprof_inflate(a, bytes, &entry_limits, &raw, err)) ||
		(rc = pprof_decode(a, raw, &entry_limits, out, err)))
		return rc;
	if (extra->links_n && extra->sample_links_n != (*out)->samples_n)
		return err_set(err, ERR_INVALID, "links of %u samples, the profile has %u",
			extra->sample_links_n, (*out)->samples_n);
	(*out)->stacks_cut = extra->stacks_cut;
	(*out)->links = extra->links;
	(*out)->links_n = extra->links_n;
	(*out)->sample_links = extra->sample_links;
	return ERR_OK;
}

enum err_code push_entry_read(struct arena *a, struct str entry, struct sink_profile *out,
	uint64_t *assignment, struct err *err)
{
	struct cursor c = cursor_of(entry);
	struct entry_extra x = { 0 };
	struct pprof *profile;
	struct str flags, bytes;
	uint32_t kinds_n;
	enum err_code rc;

	*out = (struct sink_profile){ 0 };
	*assignment = cursor_varint(&c);
	if ((rc = labels_decode(a, &c, &out->labels, err)))
		return rc == ERR_CORRUPT ? ERR_INVALID : rc;
	out->ts_ns = str_unzigzag(cursor_varint(&c));
	out->interval_ns = str_unzigzag(cursor_varint(&c));
	out->gap_max_ns = str_unzigzag(cursor_varint(&c));
	flags = cursor_bytes(&c, 1);
	if (c.bad || (unsigned char)flags.ptr[0] & ~ENTRY_FLAGS)
		return err_set(err, ERR_INVALID, "times and flags: cut short, or not known");
	out->as_sent = flags.ptr[0] & ENTRY_AS_SENT;
	if ((rc = push_entry_check_labels(out->labels, err)) ||
		(rc = push_entry_check_times(out, err)) ||
		(rc = push_entry_read_kinds(a, &c, out, &kinds_n, err)) ||
		(rc = push_entry_read_links(a, &c, &x, err)))
		return rc;
	bytes = cursor_lenstr(&c);
	if (c.bad || cursor_left(&c))
		return err_set(err, ERR_INVALID, "the profile does not end where its entry ends");
	if ((rc = push_entry_read_pprof(a, bytes, &x, &profile, err)))
		return rc;
	if (profile->types_n != kinds_n)
		return err_set(err, ERR_INVALID, "%u kinds for %u sample types", kinds_n, profile->types_n);
	out->profile = profile;
	return ERR_OK;
}

/* ---- answers ---- */

void push_answers_begin(struct buf *out)
{
	buf_add_char(out, VERSION);
}

static unsigned char push_code_of(enum err_code rc)
{
	for (size_t i = 0; i < CODES; i++)
		if (codes[i] == rc)
			return (unsigned char)i;
	return (unsigned char)push_code_of(ERR_IO);
}

void push_answer_add(
	struct buf *out, enum err_code rc, const struct err *err, const struct sink_stored *stored)
{
	buf_add_char(out, (char)push_code_of(rc));
	if (rc) {
		buf_add_lenstr(out, str_of(err ? err->msg : err_code_name(rc)));
		return;
	}
	buf_add_varint(out, stored->samples);
	buf_add_char(out, stored->overflow ? ANSWER_OVERFLOW : 0);
	buf_add_varint(out, stored->links_dropped);
}

enum err_code push_answers_open(struct str body, struct cursor *c, struct err *err)
{
	*c = cursor_of(body);
	return push_check_version(c, err);
}

bool push_answer_next(
	struct cursor *c, enum err_code *rc, struct err *why, struct sink_stored *stored)
{
	struct str code = cursor_bytes(c, 1), rest;

	*stored = (struct sink_stored){ 0 };
	if (c->bad || (unsigned char)code.ptr[0] >= CODES)
		return false;
	*rc = codes[(unsigned char)code.ptr[0]];
	if (*rc) {
		rest = cursor_lenstr(c);
		err_set(why, *rc, STR_FMT, STR_ARG(rest));
		return !c->bad && rest.len < sizeof(why->msg);
	}
	stored->samples = cursor_u32(c);
	rest = cursor_bytes(c, 1);
	stored->overflow = !c->bad && rest.ptr[0] == ANSWER_OVERFLOW;
	stored->links_dropped = cursor_u32(c);
	return !c->bad;
}

bool push_answers_ended(const struct cursor *c)
{
	return !c->bad && !cursor_left(c);
}
