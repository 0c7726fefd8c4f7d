/* Texts of stacks, and which format a request has. */
#include "proto/folded/folded.h"

#include <inttypes.h>

#include "proto/folded/calls.h"

enum folded_format folded_format_of(struct str format, struct str content_type)
{
	if (str_is(format, "trie") || str_is(content_type, "binary/octet-stream+trie"))
		return FOLDED_TRIE;
	if (str_is(format, "tree") || str_is(content_type, "binary/octet-stream+tree"))
		return FOLDED_TREE;
	if (str_is(format, "lines"))
		return FOLDED_LINES;
	return str_is(format, "speedscope") ? FOLDED_SPEEDSCOPE : FOLDED_STACKS;
}

/* Cuts the next line off, without its end. */
static struct str folded_next_line(struct str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);
	size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
	struct str line = { rest->ptr, n };

	n += end != NULL;
	*rest = (struct str){ rest->ptr + n, rest->len - n };
	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

static bool folded_is_space(char c)
{
	return c == ' ' || c == '\t';
}

static enum err_code folded_stack_line(struct calls *c, struct str line)
{
	size_t space = line.len, end;
	uint64_t value;
	uint32_t node;
	enum err_code rc;

	while (space > 0 && !folded_is_space(line.ptr[space - 1]))
		space--;
	if (!space)
		return err_set(c->err, ERR_INVALID, "expected \"frame;frame value\"");
	if (!str_to_u64((struct str){ line.ptr + space, line.len - space }, &value) ||
		value > INT64_MAX)
		return err_set(c->err, ERR_INVALID, "expected a whole number after the last space or tab");
	if (!value)
		return ERR_OK;
	for (end = space; end > 0 && folded_is_space(line.ptr[end - 1]);)
		end--;
	if ((rc = calls_path(c, CALLS_ROOT, (struct str){ line.ptr, end }, &node)))
		return rc;
	return calls_add(c, node, (int64_t)value, c->meaning->scale);
}

static enum err_code folded_plain_line(struct calls *c, struct str line)
{
	uint32_t node;
	enum err_code rc;

	if ((rc = calls_path(c, CALLS_ROOT, line, &node)))
		return rc;
	return calls_add(c, node, 1, c->meaning->scale);
}

static enum err_code folded_each_line(
	struct calls *c, struct str raw, enum err_code (*read)(struct calls *c, struct str line))
{
	enum err_code rc;

	for (uint64_t n = 1; raw.len; n++) {
		struct str line = folded_next_line(&raw);

		if (line.len && (rc = read(c, line)))
			return err_wrap(c->err, rc, "line %" PRIu64, n);
	}
	return ERR_OK;
}

enum err_code folded_stacks(struct calls *c, struct str raw)
{
	return folded_each_line(c, raw, folded_stack_line);
}

enum err_code folded_lines(struct calls *c, struct str raw)
{
	return folded_each_line(c, raw, folded_plain_line);
}

static enum err_code folded_decode_one(struct arena *a, enum folded_format format, struct str raw,
	const struct folded_meaning *meaning, const struct pprof_limits *limits, struct pprof **out,
	struct err *err)
{
	static enum err_code (*const read[])(struct calls * c, struct str raw) = {
		[FOLDED_STACKS] = folded_stacks,
		[FOLDED_LINES] = folded_lines,
		[FOLDED_TRIE] = folded_trie,
		[FOLDED_TREE] = folded_tree,
	};
	static const char *const names[] = { "folded stacks", "lines of stacks", "trie", "tree" };
	struct calls c;
	enum err_code rc;

	if (!(rc = calls_open(&c, a, meaning, limits, err)) && !(rc = read[format](&c, raw)))
		rc = calls_finish(&c, out);
	calls_close(&c);
	return rc ? err_wrap(err, rc, "%s", names[format]) : ERR_OK;
}

bool speedscope_recognized(struct str raw)
{
	return foreign_is_text(raw) && str_has_prefix(str_trim(str_without_bom(raw)), STR("{"));
}

enum err_code folded_decode(struct arena *a, enum folded_format format, struct str raw,
	const struct folded_meaning *meaning, const struct pprof_limits *limits,
	struct folded_profile **out, uint32_t *n, struct err *err)
{
	struct folded_profile *one;
	enum err_code rc;

	if (raw.len > limits->raw_bytes_max)
		return err_set(err, ERR_LIMIT, "profile is %zu bytes inflated, limit %zu", raw.len,
			limits->raw_bytes_max);
	if (format != FOLDED_TRIE && format != FOLDED_TREE)
		raw = str_without_bom(raw);
	if (format == FOLDED_SPEEDSCOPE) {
		if ((rc = speedscope_decode(a, raw, meaning, limits, out, n, err)))
			return err_wrap(err, rc, "speedscope");
		return ERR_OK;
	}
	if (!(one = arena_new(a, struct folded_profile)))
		return arena_fail(a, "profile", err);
	if ((rc = folded_decode_one(a, format, raw, meaning, limits, &one->profile, err)))
		return rc;
	*out = one;
	*n = 1;
	return ERR_OK;
}
