/* XML of object stores: what is read, what is refused, limits. */
#include "base/xml/xml.h"

#include "tests/check.h"

static struct arena arena;
static struct err err;
static struct xml_node *root;

static const char list[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
	"  <IsTruncated>false</IsTruncated>\n"
	"  <Contents><Key>a&amp;b</Key><ETag>&quot;e&#34;</ETag><Size>1</Size></Contents>\n"
	"  <Contents><Key>&#xe9;&#x1F600;</Key></Contents>\n"
	"  <CommonPrefixes><Prefix/></CommonPrefixes>\n"
	"</ListBucketResult>\n<!-- end -->\n";

TEST(list_of_objects)
{
	const struct xml_node *c;

	arena_init(&arena, 0);
	REQUIRE_OK(xml_parse(&arena, str_of(list), &root, &err), &err);
	CHECK_STR(root->name, "ListBucketResult");
	CHECK_STR(root->text, "");
	CHECK_STR(xml_text(root, "IsTruncated"), "false");
	c = xml_child(root, "Contents");
	CHECK_STR(xml_text(c, "Key"), "a&b");
	CHECK_STR(xml_text(c, "ETag"), "\"e\"");
	c = xml_next(c);
	CHECK_STR(xml_text(c, "Key"), "\xc3\xa9\xf0\x9f\x98\x80");
	CHECK_STR(xml_text(c, "Size"), "");
	CHECK(xml_next(c) == NULL);
	CHECK_STR(xml_text(xml_child(root, "CommonPrefixes"), "Prefix"), "");
	CHECK_STR(xml_text(xml_child(root, "NotThere"), "Prefix"), "");
	arena_release(&arena);
}

TEST(forms_of_text)
{
	static const struct {
		const char *text, *name, *want;
	} rows[] = {
		{ "<a>x</a>", "a", "x" },
		{ "\xef\xbb\xbf<a>x</a>", "a", "x" },
		{ "<n:a xmlns:n='u'>x</n:a >", "a", "x" },
		{ "<a><![CDATA[<&]]>]&lt;<!-- c -->d</a>", "a", "<&]<d" },
		{ "<a b=\"1>\" c = '2' />", "a", "" },
		{ "<a> x\n</a>", "a", " x\n" },
		{ "<a>&#1;</a>", "a", "\001" },
		{ "<a b='&#1;'>&#x1F;&lt;&#011;<![CDATA[&#1;]]>&#31;\n</a>", "a", "\x1f<\x0b&#1;\x1f\n" },
		{ "<a>&#9;&#xA;&#13;\r\n</a>", "a", "\t\n\r\n" },
		{ "\r\n <?xml version='1.0'?>\n<a>x</a> \n", "a", "x" },
		{ "<?xml version='1.0' encoding='iso-8859-1'?><\xe9>\xff&#1;</\xe9>", "\xc3\xa9",
			"\xc3\xbf\001" },
		{ "<?p?><a>&apos;&gt;&#x10FFFF;</a><?q?>", "a", "'>\xf4\x8f\xbf\xbf" },
		{ "<a>dropped<b>x</b>dropped</a>", "a", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&arena, 0);
		CHECK_OK(xml_parse(&arena, str_of(rows[i].text), &root, &err), &err);
		CHECK_STR(root->name, rows[i].name);
		CHECK_STR(root->text, rows[i].want);
		arena_release(&arena);
	}
}

TEST(what_is_refused)
{
	static const struct {
		const char *text;
		enum err_code rc;
		const char *msg;
	} rows[] = {
		{ "", ERR_INVALID, "XML: 1:1: no element found" },
		{ "not XML", ERR_INVALID, "XML: 1:1: syntax error" },
		{ "<a>", ERR_INVALID, "XML: 1:4: the document ends within an element" },
		{ "<a>x\n<b/>\n", ERR_INVALID, "XML: 3:1: the document ends within an element" },
		{ "<a", ERR_INVALID, "XML: 1:1: unclosed token" },
		{ "<a></b>", ERR_INVALID, "XML: 1:6: mismatched tag" },
		{ "<n:a></m:a>", ERR_INVALID, "XML: 1:8: mismatched tag" },
		{ "<a>\n<b>\xc3\xa9</c></a>", ERR_INVALID, "XML: 2:7: mismatched tag" },
		{ "</a>", ERR_INVALID, "XML: 1:2: not well-formed (invalid token)" },
		{ "<a/><b/>", ERR_INVALID, "XML: 1:5: junk after document element" },
		{ "<a/>x", ERR_INVALID, "XML: 1:5: junk after document element" },
		{ "<a b></a>", ERR_INVALID, "XML: 1:5: not well-formed (invalid token)" },
		{ "<a b=c></a>", ERR_INVALID, "XML: 1:6: not well-formed (invalid token)" },
		{ "<a b=\"c></a>", ERR_INVALID, "XML: 1:9: not well-formed (invalid token)" },
		{ "<a b='' b=''/>", ERR_INVALID, "XML: 1:9: duplicate attribute" },
		{ "<a>\xff</a>", ERR_INVALID, "XML: 1:4: not well-formed (invalid token)" },
		{ "<a>\001</a>", ERR_INVALID, "XML: 1:4: not well-formed (invalid token)" },
		{ "<a>&x;</a>", ERR_INVALID, "XML: 1:4: undefined entity" },
		{ "<a>&#1;&_1;</a>", ERR_INVALID, "XML: 1:8: undefined entity" },
		{ "<a>&#0;</a>", ERR_INVALID, "XML: 1:4: reference to invalid character number" },
		{ "<a>&#xD800;</a>", ERR_INVALID, "XML: 1:4: reference to invalid character number" },
		{ "<a>&#x110000;</a>", ERR_INVALID, "XML: 1:4: reference to invalid character number" },
		{ "<a>&#4294967297;</a>", ERR_INVALID, "XML: 1:4: reference to invalid character number" },
		{ "<a>& </a>", ERR_INVALID, "XML: 1:5: not well-formed (invalid token)" },
		{ "<a>&", ERR_INVALID, "XML: 1:4: unclosed token" },
		{ "<a>&#1", ERR_INVALID, "XML: 1:4: unclosed token" },
		{ "<a><!-- </a>", ERR_INVALID, "XML: 1:4: unclosed token" },
		{ "<a><![CDATA[]]</a>", ERR_INVALID, "XML: 1:19: unclosed CDATA section" },
		{ "<?xml", ERR_INVALID, "XML: 1:1: unclosed token" },
		{ "<?xml version='1.0' encoding='x'?><a/>", ERR_INVALID, "XML: 1:31: unknown encoding" },
		{ "<>", ERR_INVALID, "XML: 1:2: not well-formed (invalid token)" },
		{ "<a>\n <b:/></a>", ERR_INVALID, "XML: 2:2: a name is missing" },
		{ "<!DOCTYPE html>", ERR_UNSUPPORTED, "XML: a document type declaration" },
		{ "<!DOCTYPE a SYSTEM 'x'><a/>", ERR_UNSUPPORTED, "XML: a document type declaration" },
		{ "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", ERR_UNSUPPORTED,
			"XML: a document type declaration" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&arena, 0);
		CHECK_ERR(
			xml_parse(&arena, str_of(rows[i].text), &root, &err), &err, rows[i].rc, rows[i].msg);
		arena_release(&arena);
	}
}

TEST(utf16)
{
	/* U+2326 and U+3B31 have the bytes of "&#1;" */
	static const char text[] = "\xff\xfe<\0a\0>\0\xe9\0\x26\x23\x31\x3b<\0/\0a\0>";

	arena_init(&arena, 0);
	REQUIRE_OK(xml_parse(&arena, (struct str){ text, sizeof(text) }, &root, &err), &err);
	CHECK_STR(root->name, "a");
	CHECK_STR(root->text, "\xc3\xa9\xe2\x8c\xa6\xe3\xac\xb1");
	arena_release(&arena);
}

static void check_many(const char *open, size_t n, enum err_code rc, const char *msg)
{
	struct buf text = { 0 };

	buf_add_cstr(&text, "<a>");
	for (size_t i = 0; i < n; i++)
		buf_add_cstr(&text, open);
	arena_init(&arena, 0);
	CHECK_ERR(xml_parse(&arena, buf_str(&text), &root, &err), &err, rc, msg);
	arena_release(&arena);
	buf_release(&text);
}

TEST(limits)
{
	check_many("<b>", 16, ERR_LIMIT, "XML: more than 16 elements in one another");
	check_many("<b/>", XML_ELEMENTS_MAX, ERR_LIMIT, "XML: more than 65536 elements");
	check_many("12345678", XML_BYTES_MAX / 8, ERR_LIMIT, "XML: 16777219 bytes, limit 16777216");
}

TEST(an_arena_over_its_budget)
{
	static const char *const rows[] = {
		"<a>%s</a>", /* the text */
		"<a><%s/></a>", /* a name */
		"<a>%s&#1;</a>", /* the copy without control characters */
	};
	char text[2048], x[1001] = { 0 };

	memset(x, 'x', 1000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), rows[i], x);
		arena_init(&arena, 1000);
		CHECK_ERR(xml_parse(&arena, str_of(text), &root, &err), &err, ERR_LIMIT,
			"XML needs more memory than its limit of 1000 bytes");
		arena_release(&arena);
	}
}
