#include "cmd/epitool/convert/comments.h"

void comments_read(struct conversion *c)
{
	const char *p = c->source.ptr, *end = p + c->source.len, *stop;
	size_t n = 1;

	for (size_t i = 0; i < c->source.len; i++)
		n += c->source.ptr[i] == '\n';
	c->lines = arena_array(c->arena, struct source_line, n);
	c->failed |= !c->lines;
	for (c->lines_n = 0; c->lines && c->lines_n < n; p = stop + 1) {
		stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		stop = stop ? stop : end;
		c->lines[c->lines_n++].text = (struct str){ p, (size_t)(stop - p) };
		if (stop == end)
			break;
	}
}

/* Without '#' and one blank; ptr NULL: the line is no comment. */
static struct str comment_of(struct str line)
{
	struct str s = str_trim(line);

	if (!s.len || s.ptr[0] != '#')
		return (struct str){ 0 };
	s = (struct str){ s.ptr + 1, s.len - 1 };
	if (s.len && s.ptr[0] == ' ')
		s = (struct str){ s.ptr + 1, s.len - 1 };
	return s;
}

void comments_above(struct conversion *c, uint32_t line, struct item *to)
{
	size_t first, last = line - 1; /* lines[last] is the node's own */
	struct str s;

	if (!c->lines || last >= c->lines_n)
		return;
	for (first = last; first > 0 && !c->lines[first - 1].taken; first--)
		if (str_trim(c->lines[first - 1].text).len && !comment_of(c->lines[first - 1].text).ptr)
			break;
	for (; first < last; first++) {
		c->lines[first].taken = true;
		s = comment_of(c->lines[first].text);
		if (s.ptr)
			item_comment(c, to, STR_FMT, STR_ARG(s));
	}
}

void comments_behind(struct conversion *c, uint32_t line, struct item *to)
{
	struct str s;
	char quote = 0;

	if (!c->lines || line == 0 || line > c->lines_n || c->lines[line - 1].taken)
		return;
	s = c->lines[line - 1].text;
	c->lines[line - 1].taken = true; /* also if it has none: a line is looked through once */
	for (size_t i = 1; i < s.len; i++) {
		if (quote)
			quote = s.ptr[i] == quote ? 0 : quote;
		else if (s.ptr[i] == '"' || s.ptr[i] == '\'')
			quote = s.ptr[i];
		else if (s.ptr[i] == '#' && (s.ptr[i - 1] == ' ' || s.ptr[i - 1] == '\t')) {
			to->behind = comment_of((struct str){ s.ptr + i, s.len - i });
			return;
		}
	}
}
