#include "cmd/dist/roff.h"

/* "-" is a hyphen in roff, and the quotes are typographic, unless one asks for what ASCII has. */
static void roff_add_char(struct buf *out, char c)
{
	static const struct {
		char c;
		const char *as;
	} escapes[] = {
		{ '\\', "\\e" },
		{ '-', "\\-" },
		{ '\'', "\\(aq" },
		{ '`', "\\(ga" },
		{ '^', "\\(ha" },
		{ '~', "\\(ti" },
		{ '"', "\\(dq" },
		{ '\n', " " },
	};

	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (c == escapes[i].c) {
			buf_add_cstr(out, escapes[i].as);
			return;
		}
	buf_add_char(out, c);
}

void roff_text(struct buf *out, struct str text)
{
	/* A line that begins with a dot is a request. */
	if (text.len && text.ptr[0] == '.' && (!out->len || out->ptr[out->len - 1] == '\n'))
		buf_add_cstr(out, "\\&");
	for (size_t i = 0; i < text.len; i++)
		roff_add_char(out, text.ptr[i]);
}

void roff_bold(struct buf *out, struct str text)
{
	buf_add_cstr(out, "\\fB");
	roff_text(out, text);
	buf_add_cstr(out, "\\fR");
}

void roff_lines(struct buf *out, struct str text)
{
	buf_add_cstr(out, ".nf\n");
	while (text.len) {
		ptrdiff_t end = str_find(text, STR("\n"));
		struct str line = { text.ptr, end < 0 ? text.len : (size_t)end };

		/* An empty line is a request here: it spaces alike on paper and on terminals. */
		if (!line.len)
			buf_add_cstr(out, ".sp");
		roff_text(out, line);
		buf_add_char(out, '\n');
		text.ptr += line.len + (end >= 0);
		text.len -= line.len + (end >= 0);
	}
	buf_add_cstr(out, ".fi\n");
}

void roff_section(struct buf *out, const char *name)
{
	buf_printf(out, ".SH %s\n", name);
}

void roff_subsection(struct buf *out, struct str name)
{
	buf_add_cstr(out, ".SS \"");
	roff_text(out, name);
	buf_add_cstr(out, "\"\n");
}
