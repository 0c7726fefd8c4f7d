#include "cmd/book/markdown.h"

#include <string.h>

static bool markdown_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

void markdown_code(struct buf *out, struct str text)
{
	const char *mark = text.len && memchr(text.ptr, '`', text.len) ? "`` " : "`";

	text = str_trim(text);
	buf_add_cstr(out, mark);
	for (size_t i = 0; i < text.len; i++) {
		if (markdown_is_blank(text.ptr[i])) {
			if (!markdown_is_blank(text.ptr[i - 1]))
				buf_add_char(out, ' ');
			continue;
		}
		if (text.ptr[i] == '|')
			buf_add_char(out, '\\');
		buf_add_char(out, text.ptr[i]);
	}
	buf_add_cstr(out, mark[1] ? " ``" : "`");
}

void markdown_text(struct buf *out, struct str text)
{
	text = str_trim(text);
	for (size_t i = 0; i < text.len; i++) {
		if (markdown_is_blank(text.ptr[i])) {
			buf_add_char(out, ' ');
			continue;
		}
		if (strchr("\\`*_[]<>|", text.ptr[i]))
			buf_add_char(out, '\\');
		buf_add_char(out, text.ptr[i]);
	}
}

void markdown_inline(struct buf *out, const char *markdown)
{
	for (; *markdown; markdown++) {
		if (*markdown == '|')
			buf_add_char(out, '\\');
		buf_add_char(out, *markdown == '\n' ? ' ' : *markdown);
	}
}

void markdown_table_begin(struct buf *out, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "| %s ", names[i]);
	buf_add_cstr(out, "|\n");
	for (size_t i = 0; i < n; i++)
		buf_add_cstr(out, "|---");
	buf_add_cstr(out, "|\n");
}
