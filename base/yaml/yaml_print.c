/* Prints nodes as text, in block style: the page shows the same layout for any way of writing. */
#include "base/hidden.h"
#include "base/yaml/yaml.h"

/* Text that reads back as the same scalar without quotes. */
static bool yaml_plain_safe(struct str s)
{
	size_t i;

	if (!s.len || strchr("-?:,[]{}#&*!|>'\"%@` ", s.ptr[0]) || s.ptr[s.len - 1] == ' ' ||
		s.ptr[s.len - 1] == ':' || !str_is_utf8(s) || str_has_prefix(s, STR("...")))
		return s.len > 1 && s.ptr[0] == '-' && s.ptr[1] > ' ' && s.ptr[1] != '-' &&
			s.ptr[1] < 0x7f && yaml_plain_safe((struct str){ s.ptr + 1, s.len - 1 });
	for (i = 0; i < s.len; i++) {
		if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f || (unsigned char)s.ptr[i] >= 0x80)
			return false;
		if (i &&
			((s.ptr[i] == ' ' && s.ptr[i - 1] == ':') || (s.ptr[i] == '#' && s.ptr[i - 1] == ' ')))
			return false;
	}
	return true;
}

/*
 * Length of the UTF-8 sequence at bytes when YAML text may not hold it: C1 controls, the line
 * separators (NEL, LS, PS), the byte order mark and the noncharacters U+FFFE and U+FFFF. 0: it may.
 */
static size_t yaml_special_sequence(const unsigned char *bytes, size_t n, unsigned *code)
{
	if (n >= 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) {
		*code = bytes[1];
		return 2;
	}
	if (n < 3 || (bytes[0] & 0xf0) != 0xe0)
		return 0;
	*code = (bytes[0] & 0xfu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
	return *code == 0x2028 || *code == 0x2029 || *code == 0xfeff || *code >= 0xfffe ? 3 : 0;
}

static void print_quoted(struct buf *out, struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t i, special;
	unsigned code;

	buf_add_char(out, '"');
	for (i = 0; i < s.len; i++) {
		unsigned char c = p[i];

		if ((special = yaml_special_sequence(p + i, s.len - i, &code))) {
			buf_printf(out, "\\u%04x", code);
			i += special - 1;
		} else if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c == '\n')
			buf_add_cstr(out, "\\n");
		else if (c == '\t')
			buf_add_cstr(out, "\\t");
		else if (c < ' ' || c == 0x7f)
			buf_printf(out, "\\x%02x", c);
		else
			buf_add_char(out, (char)c);
	}
	buf_add_char(out, '"');
}

/* Only the text of a key counts, so "", ~ and null are three keys; as values they are all null. */
static void print_scalar(struct buf *out, const struct yaml_node *n, bool is_key)
{
	struct yaml_node as_plain = *n;

	as_plain.plain = true;
	if (!is_key && yaml_is_null(n))
		buf_add_cstr(out, "null");
	else if (yaml_plain_safe(n->text) && (n->plain || strcmp(yaml_tag(&as_plain), "!!str") == 0))
		buf_add_str(out, n->text);
	else
		print_quoted(out, n->text);
}

static void yaml_print_url(struct buf *out, const struct yaml_node *n)
{
	struct yaml_node shown = *n;
	struct buf text = { 0 };

	hidden_print_url(&text, n->text);
	shown.text = buf_str(&text);
	out->failed |= buf_failed(&text);
	print_scalar(out, str_eq(shown.text, n->text) ? n : &shown, false);
	buf_release(&text);
}

/* A key before ":" may be 1,024 characters long; an escape makes four of one. */
#define SIMPLE_KEY_BYTES_MAX 200

static void yaml_indent(struct buf *out, unsigned levels)
{
	while (levels--)
		buf_add_cstr(out, "  ");
}

/*
 * The first line of a collection continues the line of its "- " (inline_first), the others are
 * indented. Recursion is at most YAML_DEPTH_MAX deep.
 */
static void print_node(struct buf *out, const struct yaml_node *n, unsigned level,
	bool inline_first, yaml_shown_fn shown, bool urls)
{
	const struct yaml_node *c;

	for (c = n->child; c; c = c->next) {
		enum yaml_shown how = urls ? YAML_URL : YAML_SHOWN;

		if (n->kind == YAML_MAPPING && shown)
			how = shown(n, c);

		if (c != n->child || !inline_first)
			yaml_indent(out, level);
		if (n->kind == YAML_SEQUENCE) {
			buf_add_cstr(out, "- ");
		} else {
			bool simple = c->key->text.len <= SIMPLE_KEY_BYTES_MAX;

			buf_add_cstr(out, simple ? "" : "? ");
			print_scalar(out, c->key, true);
			if (!simple) {
				buf_add_char(out, '\n');
				yaml_indent(out, level);
			}
			buf_add_char(out, ':');
		}
		if (how == YAML_HIDDEN && !yaml_is_null(c)) {
			buf_add_cstr(out, c->kind == YAML_SEQUENCE ? " [<secret>]\n" : " <secret>\n");
		} else if (c->kind != YAML_SCALAR && c->child) {
			if (n->kind == YAML_MAPPING)
				buf_add_char(out, '\n');
			/* a list under a key begins at the key's column, as Prometheus prints it */
			print_node(out, c,
				n->kind == YAML_MAPPING && c->kind == YAML_SEQUENCE ? level : level + 1,
				n->kind == YAML_SEQUENCE, shown, how == YAML_URL);
		} else {
			if (n->kind == YAML_MAPPING)
				buf_add_char(out, ' ');
			if (c->kind == YAML_SCALAR && how == YAML_URL)
				yaml_print_url(out, c);
			else if (c->kind == YAML_SCALAR)
				print_scalar(out, c, false);
			else
				buf_add_cstr(out, c->kind == YAML_SEQUENCE ? "[]" : "{}");
			buf_add_char(out, '\n');
		}
	}
}

void yaml_print(struct buf *out, const struct yaml_node *n, yaml_shown_fn shown)
{
	if (!n)
		return;
	if (n->kind != YAML_SCALAR && n->child) {
		print_node(out, n, 0, false, shown, false);
		return;
	}
	if (n->kind == YAML_SCALAR)
		print_scalar(out, n, false);
	else
		buf_add_cstr(out, n->kind == YAML_SEQUENCE ? "[]" : "{}");
	buf_add_char(out, '\n');
}
