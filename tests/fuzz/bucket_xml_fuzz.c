/*
 * fuzz: tsdb/bucket
 * An answer of any bytes. Its tree has names, and no more than twice as many elements and bytes of
 * text as the answer has bytes (ISO-8859-1 becomes UTF-8); written again, it gives the same tree.
 * As an error of a store it gives one line of ASCII. As a file of credentials it gives some, or
 * says why not.
 */
#include "base/net/aws_profile.h"
#include "base/xml/xml.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/bucket/internal.h"

/*
 * Names are ASCII when written again. ISO-8859-1 has letters that Expat takes in a name, but not
 * if they come as UTF-8. Behind a prefix, a name may begin with a digit.
 */
static char ascii(char c)
{
	return c & 0x80 ? 'x' : c;
}

static void print_name(struct buf *out, struct str name)
{
	buf_add_cstr(out, "n:");
	for (size_t i = 0; i < name.len; i++)
		buf_add_char(out, ascii(name.ptr[i]));
}

static bool same_name(struct str a, struct str b)
{
	for (size_t i = 0; i < a.len && a.len == b.len; i++)
		if (ascii(a.ptr[i]) != b.ptr[i])
			return false;
	return a.len == b.len;
}

static void print(struct buf *out, const struct xml_node *n)
{
	for (; n; n = n->next) {
		require(n->name.len);
		buf_add_char(out, '<');
		print_name(out, n->name);
		buf_add_char(out, '>');
		require(!n->child || !n->text.len);
		for (size_t i = 0; i < n->text.len; i++)
			buf_printf(out, n->text.ptr[i] & 0x80 ? "%c" : "&#%u;", (unsigned char)n->text.ptr[i]);
		if (n->child) /* a depth of XML_DEPTH_MAX at most */
			print(out, n->child);
		buf_add_cstr(out, "</");
		print_name(out, n->name);
		buf_add_char(out, '>');
	}
}

static bool same(const struct xml_node *a, const struct xml_node *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (!same_name(a->name, b->name) || !str_eq(a->text, b->text) || !same(a->child, b->child))
			return false;
	return !a && !b;
}

static size_t bytes(const struct xml_node *n)
{
	size_t sum = 0;

	for (; n; n = n->next)
		sum += 1 + n->text.len + bytes(n->child);
	return sum;
}

static void check_error(struct str text)
{
	struct bucket b = { .c.region = STR("r") };
	struct bucket_call c = { .operation = "get", .right = "s3:GetObject", .answer.status = 400 };
	struct bucket_verdict v;
	struct err err;

	v = answer_judge_error(&b, &c, text, &err);
	require(v.rc && err.msg[0] && strlen(c.code) < sizeof(c.code));
	for (const char *p = err.msg; *p; p++)
		require(*p >= ' ' && *p <= '~');
}

static void check_credentials(struct str text)
{
	struct sigv4_credentials keys;
	struct aws_profile p = { 0 };
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	aws_profile_read(text, STR("default"), &p);
	if (aws_profile_keys(&arena, &p, STR("default"), &keys, &err))
		require(err.msg[0] != '\0');
	else
		require(keys.access_key.len && keys.secret_key.len);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct xml_node *root, *again;
	struct buf printed = { 0 };
	struct arena arena;
	struct err err;

	check_error(text);
	check_credentials(text);
	arena_init(&arena, 0);
	if (xml_parse(&arena, text, &root, &err)) {
		require(err.msg[0] != '\0');
	} else {
		require(!root->next && bytes(root) <= 2 * size);
		print(&printed, root);
		require(!xml_parse(&arena, buf_str(&printed), &again, &err));
		require(same(root, again));
	}
	buf_release(&printed);
	arena_release(&arena);
	return 0;
}
