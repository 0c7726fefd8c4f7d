#include "cmd/epitool/convert/comments.h"

void comments_read(struct conversion *x)
{
	const char *p = x->source.ptr, *end = p + x->source.len, *stop;
	size_t n = 1;

	for (size_t i = 0; i < x->source.len; i++)
		n += x->source.ptr[i] == '\n';
	x->lines = arena_array(x->arena, struct source_line, n);
	x->failed |= !x->lines;
	for (x->lines_n = 0; x->lines && x->lines_n < n; p = stop + 1) {
		stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		stop = stop ? stop : end;
		x->lines[x->lines_n++].text = (struct str){ p, (size_t)(stop - p) };
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

void comments_above(struct conversion *x, uint32_t line, struct item *to)
{
	size_t first, last = line - 1; /* lines[last] is the node's own */
	struct str s;

	if (!x->lines || last >= x->lines_n)
		return;
	for (first = last; first > 0 && !x->lines[first - 1].taken; first--)
		if (str_trim(x->lines[first - 1].text).len && !comment_of(x->lines[first - 1].text).ptr)
			break;
	for (; first < last; first++) {
		x->lines[first].taken = true;
		s = comment_of(x->lines[first].text);
		if (s.ptr)
			item_comment(x, to, STR_FMT, STR_ARG(s));
	}
}

void comments_behind(struct conversion *x, uint32_t line, struct item *to)
{
	struct str s;
	char quote = 0;

	if (!x->lines || line == 0 || line > x->lines_n || x->lines[line - 1].taken)
		return;
	s = x->lines[line - 1].text;
	x->lines[line - 1].taken = true; /* also if it has none: a line is looked through once */
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
