/* AWS's files of credentials and settings. */
#include "base/net/aws_profile.h"

#include "tests/check.h"

TEST(files_of_credentials)
{
	static const struct {
		const char *text, *profile, *want, *msg;
	} rows[] = {
		{ "[default]\naws_access_key_id = A\naws_secret_access_key=B=c/+ \r\n", "default",
			"A|B=c/+|", NULL },
		{ "# c\n[other]\naws_access_key_id=X\n\n[ p ] ; c\n AWS_ACCESS_KEY_ID=nested\n"
		  "Aws_Access_Key_Id=A\n;x\naws_secret_access_key = B\naws_session_token=T\n[q]\n"
		  "aws_access_key_id=Y",
			"p", "A|B|T", NULL },
		{ "[profile p]\naws_access_key_id=A\naws_secret_access_key=B", "p", "A|B|", NULL },
		{ "", "p", NULL, "it has no profile [p]" },
		{ "[a]\n[p", "p", NULL, "it has no profile [p]" },
		{ "[p]\naws_access_key_id=A\n", "p", NULL,
			"profile [p] has no aws_access_key_id or no aws_secret_access_key" },
	};
	struct sigv4_credentials c;
	struct arena arena;
	struct err err;
	struct buf got = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str profile = str_of(rows[i].profile);
		struct aws_profile p = { 0 };

		arena_init(&arena, 0);
		aws_profile_read(str_of(rows[i].text), profile, &p);
		if (rows[i].msg) {
			CHECK_ERR(
				aws_profile_keys(&arena, &p, profile, &c, &err), &err, ERR_INVALID, rows[i].msg);
		} else {
			CHECK_OK(aws_profile_keys(&arena, &p, profile, &c, &err), &err);
			buf_clear(&got);
			buf_printf(&got, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(c.access_key),
				STR_ARG(c.secret_key), STR_ARG(c.session_token));
			CHECK_STR(buf_str(&got), rows[i].want);
		}
		arena_release(&arena);
	}
	buf_release(&got);
}

TEST(two_files_of_one_profile)
{
	struct aws_profile p = { 0 };

	aws_profile_read(STR("[p]\naws_access_key_id=A\naws_secret_access_key=B\n"), STR("p"), &p);
	CHECK(p.found && !p.region.len && !p.elsewhere.len);
	aws_profile_read(STR("[profile p]\nregion = eu-west-2\naws_access_key_id=C\nRole_Arn=r\n"
						 "[profile q]\nregion=x\nsso_session=y"),
		STR("p"), &p);
	CHECK_STR(p.keys.access_key, "A");
	CHECK_STR(p.keys.secret_key, "B");
	CHECK_STR(p.region, "eu-west-2");
	CHECK_STR(p.elsewhere, "role_arn");
	aws_profile_read(STR("[p]\nregion = other\n"), STR("p"), &p);
	CHECK_STR(p.region, "eu-west-2");
	p = (struct aws_profile){ 0 };
	aws_profile_read(STR("[a]\nregion = other\n"), STR("p"), &p);
	CHECK(!p.found && !p.region.len);
}
