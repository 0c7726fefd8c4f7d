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
		{ "", ERR_INVALID, "XML: no element at byte 0" },
		{ "not XML", ERR_INVALID, "XML: text outside of the root element at byte 7" },
		{ "<a>", ERR_INVALID, "XML: the document ends within an element at byte 3" },
		{ "<a", ERR_INVALID, "XML: an element has no end at byte 2" },
		{ "<a></b>", ERR_INVALID, "XML: an end that belongs to no element at byte 6" },
		{ "</a>", ERR_INVALID, "XML: an end that belongs to no element at byte 3" },
		{ "<a/><b/>", ERR_INVALID, "XML: a second root element at byte 6" },
		{ "<a/>x", ERR_INVALID, "XML: text outside of the root element at byte 5" },
		{ "<a b></a>", ERR_INVALID, "XML: an attribute has no value at byte 4" },
		{ "<a b=c></a>", ERR_INVALID, "XML: an attribute's value is not quoted at byte 5" },
		{ "<a b=\"c></a>", ERR_INVALID, "XML: an attribute's value has no end at byte 6" },
		{ "<a>&x;</a>", ERR_INVALID, "XML: unknown entity at byte 3" },
		{ "<a>&#0;</a>", ERR_INVALID, "XML: unknown entity at byte 3" },
		{ "<a>&#xD800;</a>", ERR_INVALID, "XML: unknown entity at byte 3" },
		{ "<a>&#x110000;</a>", ERR_INVALID, "XML: unknown entity at byte 3" },
		{ "<a>&#4294967334;</a>", ERR_INVALID, "XML: unknown entity at byte 3" },
		{ "<a>& </a>", ERR_INVALID, "XML: \"&\" without an entity at byte 3" },
		{ "<a>&", ERR_INVALID, "XML: \"&\" without an entity at byte 3" },
		{ "<a><!-- </a>", ERR_INVALID, "XML: a comment has no end at byte 3" },
		{ "<a><![CDATA[]]</a>", ERR_INVALID, "XML: CDATA has no end at byte 12" },
		{ "<?xml", ERR_INVALID, "XML: a processing instruction has no end at byte 0" },
		{ "<>", ERR_INVALID, "XML: a name is missing at byte 1" },
		{ "<a:/>", ERR_INVALID, "XML: a name is missing at byte 3" },
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
