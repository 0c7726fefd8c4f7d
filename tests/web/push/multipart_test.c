/* Parts of multipart/form-data bodies, cut at every byte too. */
#include "web/push/multipart.h"

#include "tests/check.h"

#define TYPE STR("multipart/form-data; boundary=\"x y\"")
#define BODY \
	"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"p.pb\"\r\n" \
	"Content-Type: application/octet-stream\r\n\r\nab\r\n--x\r\n\0c\r\n--x y\r\n" \
	"content-disposition: form-data; name=sample_type_config\r\n\r\n\r\n--x y--\r\nepilogue"

TEST(parts_are_found_where_they_stand)
{
	struct multipart m;
	struct err err;

	REQUIRE_OK(multipart_parse(TYPE, STR(BODY), &m, &err), &err);
	CHECK_INT(m.n, 2);
	REQUIRE(multipart_get(&m, "profile") && multipart_get(&m, "sample_type_config"));
	CHECK(str_eq(*multipart_get(&m, "profile"), STR("ab\r\n--x\r\n\0c")));
	CHECK_INT(multipart_get(&m, "sample_type_config")->len, 0);
	CHECK_STR(m.v[0].file_name, "p.pb");
	CHECK_STR(m.v[1].file_name, "");
	CHECK(!multipart_get(&m, "jfr"));
	REQUIRE_OK(multipart_parse(STR("multipart/form-data;boundary=b"),
		STR("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--"), &m, &err),
		&err);
	CHECK_INT(m.n, 1);
	CHECK(str_is(m.v[0].body, "1"));
}

TEST(what_is_cut_or_wrong_is_refused)
{
	const struct str whole = STR(BODY);
	const size_t end = whole.len - strlen("--\r\nepilogue");
	struct multipart m;
	struct buf many = { 0 };
	struct err err;

	for (size_t n = 0; n < end + 2; n++)
		CHECK_INT(multipart_parse(TYPE, (struct str){ whole.ptr, n }, &m, &err), ERR_INVALID);
	CHECK_ERR(multipart_parse(STR("multipart/form-data"), whole, &m, &err), &err, ERR_INVALID,
		"multipart: Content-Type has no boundary of 1 to 70 bytes");
	CHECK_ERR(multipart_parse(
		STR("multipart/form-data; boundary=b"), STR("--b\r\n\r\n1\r\n--b--"), &m, &err), &err,
		ERR_INVALID, "multipart: part 0 has no name");
	for (int i = 0; i < 257; i++)
		buf_add_cstr(&many, "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n");
	buf_add_cstr(&many, "--b--");
	CHECK_ERR(multipart_parse(STR("multipart/form-data; boundary=b"), buf_str(&many), &m, &err),
		&err, ERR_LIMIT, "multipart: more than 256 parts");
	buf_release(&many);
}
