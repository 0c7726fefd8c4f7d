/* `source_links`: decoding, and the link of a file. */
#include "tests/scrape/config/refused.h"

/* Its source_links; a text that is refused ends the program. */
static struct config *loaded(const char *text)
{
	struct config *c;
	struct err err;

	if (load(text, &c, &err)) {
		CHECK_FAIL("%s: %s", text, err.msg);
		exit(1);
	}
	return c;
}

/* labels: "a=b c=d", ascending. want NULL: no link fits. */
static void links_to(const struct config *c, const char *path, const char *line, const char *labels,
	const char *want)
{
	struct label v[8];
	struct labels ls = { v, 0 };
	struct buf url = { 0 };
	char text[256], *rest = text, *pair, *is;
	bool found;

	snprintf(text, sizeof(text), "%s", labels);
	while ((pair = strsep(&rest, " ")) && *pair) {
		is = strchr(pair, '=');
		*is = '\0';
		v[ls.n++] = (struct label){ str_of(pair), str_of(is + 1) };
	}
	found = source_links_url(&c->source_links, str_of(path), str_of(line), ls, &url);
	CHECK_INT(found, want != NULL);
	CHECK_STR(buf_str(&url), want ? want : "");
	buf_release(&url);
}

TEST(there_are_none_by_default)
{
	struct config *c = loaded("{}");

	CHECK_INT(c->source_links.n + c->source_links.labels_n, 0);
	links_to(c, "/src/a.go", "1", "", NULL);
	config_unref(c);
	c = loaded("source_links: []");
	CHECK_INT(c->source_links.n, 0);
	config_unref(c);
}

#define SHOP \
	"source_links:\n" \
	"- path: /src/(?P<file>.+)\n" \
	"  labels: {service_repository: 'https://(?P<repo>git\\.example/.+?)(\\.git)?'}\n" \
	"  template: https://${repo}/blob/${service_git_ref}/${file}#L${line}\n" \
	"- path: '.*/pkg/mod/(?P<module>[^@]+)@(?P<version>[^/]+)/(?P<file>.*)'\n" \
	"  template: https://${module}/tree/${version}/${file}#L${line}\n" \
	"- labels: {team: b}\n" \
	"  template: https://search.example/?q=${path}\n"

TEST(the_first_link_that_fits)
{
	struct config *c = loaded(SHOP);

	REQUIRE(c->source_links.labels_n == 3);
	CHECK_STR(c->source_links.labels[0], "service_git_ref");
	CHECK_STR(c->source_links.labels[1], "service_repository");
	CHECK_STR(c->source_links.labels[2], "team");
	links_to(c, "/src/cmd/a.go", "7",
		"service_git_ref=1234abc service_repository=https://git.example/shop.git",
		"https://git.example/shop/blob/1234abc/cmd/a.go#L7");
	links_to(c, "/src/cmd/a.go", "", /* of any line */
		"service_git_ref=v1.2 service_repository=https://git.example/shop",
		"https://git.example/shop/blob/v1.2/cmd/a.go#L${line}");
	/* A label that the template names has no value; the expression fits no other host. */
	links_to(c, "/src/a.go", "7", "service_repository=https://git.example/shop", NULL);
	links_to(c, "/src/a.go", "7", "service_git_ref=x service_repository=https://evil.example/shop",
		NULL);
	links_to(c, "/src/a.go", "7", "service_repository=https://git.example/shop team=b",
		"https://search.example/?q=/src/a.go");
	/* Expressions match whole texts. */
	links_to(c, "/old/src/a.go", "7", "service_git_ref=x service_repository=https://git.example/s",
		NULL);
	links_to(c, "/root/go/pkg/mod/git.example/x@v1.2.3/y/z.go", "10", "",
		"https://git.example/x/tree/v1.2.3/y/z.go#L10");
	config_unref(c);
}

TEST(values_stay_in_their_place)
{
	struct config *c = loaded("source_links: [{template: 'https://h/${a}/${path}#L${line}'}]");

	links_to(c, "/x y?q=1&r#z%41\"<>'${line}", "3", "a=b+c=d;,$",
		"https://h/b%2Bc%3Dd%3B%2C%24//x%20y%3Fq%3D1%26r%23z%2541%22%3C%3E%27%24%7Bline%7D#L3");
	links_to(c, "/a@v1:2/~b-c_d.e", "3", "a=\xc3\xa4", "https://h/%C3%A4//a@v1:2/~b-c_d.e#L3");
	links_to(c, "/a/../../b", "3", "a=b", NULL);
	links_to(c, "/a/b", "3", "a=../c", NULL);
	links_to(c, "/a/b", "3", "a=c/..", NULL);
	links_to(c, "/a/..b/c..", "3", "a=..c", "https://h/..c//a/..b/c..#L3");
	config_unref(c);
}

TEST(a_link_that_is_too_long_is_none)
{
	struct config *c = loaded("source_links: [{template: 'https://h/${path}'}, "
							  "{template: 'https://h/short'}]");
	struct buf path = { 0 }, url = { 0 };

	while (path.len < SOURCE_LINK_URL_BYTES_MAX - strlen("https://h/"))
		buf_add_char(&path, 'a');
	CHECK(source_links_url(&c->source_links, buf_str(&path), STR(""), (struct labels){ 0 }, &url));
	CHECK(str_has_suffix(buf_str(&url), STR("aaaa")));
	CHECK_INT(url.len, SOURCE_LINK_URL_BYTES_MAX);
	buf_add(&path, "a", 2); /* and its NUL */
	links_to(c, path.ptr, "", "", "https://h/short");
	config_unref(c);
	buf_release(&path);
	buf_release(&url);
}

/* clang-format off */
static const char *const refused_rows[][2] = {
	{ "source_links: {}", "c.yml:1:15: expected a list" },
	{ "source_links: [~]", "c.yml:1:16: empty or null source_link section" },
	{ "source_links: [{}]", "c.yml:1:16: template is missing" },
	{ "source_links: [{template: 'javascript:alert(1)'}]",
	  "c.yml:1:27: template: must begin with http:// or https://" },
	{ "source_links: [{template: '${repo}/x'}]",
	  "c.yml:1:27: template: must begin with http:// or https://" },
	{ "source_links: [{template: 'https://h/ x'}]",
	  "c.yml:1:27: template: only printable ASCII without spaces is allowed" },
	{ "source_links: [{template: 'https://h/$path'}]",
	  "c.yml:1:27: template: a $ begins a name in braces, such as ${path}; one of the URL is %24" },
	{ "source_links: [{template: 'https://h/${path'}]",
	  "c.yml:1:27: template: a $ begins a name in braces, such as ${path}; one of the URL is %24" },
	{ "source_links: [{template: 'https://h/${a-b}'}]",
	  "c.yml:1:27: template: a $ begins a name in braces, such as ${path}; one of the URL is %24" },
	{ "source_links: [{template: 'https://h/$'}]",
	  "c.yml:1:27: template: a $ begins a name in braces, such as ${path}; one of the URL is %24" },
	{ "source_links: [{url: 'https://h/'}]",
	  "c.yml:1:17: field url not found in type source_link" },
	{ "source_links: [{path: '(', template: 'https://h/'}]",
	  "c.yml:1:23: path: \"(\": error parsing regexp: missing ): (" },
	{ "source_links: [{labels: {a: ')'}, template: 'https://h/'}]",
	  "c.yml:1:25: labels: \")\": error parsing regexp: unexpected ): )" },
	{ "source_links: [{labels: {a-b: c}, template: 'https://h/'}]",
	  "c.yml:1:25: \"a-b\" is not a valid label name: " LABEL_NAME_RULE },
	{ "source_links: [{path: '()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()', "
	  "template: 'https://h/'}]",
	  "c.yml:1:23: path: \"()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()\" has "
	  "more than 31 groups" },
};
/* clang-format on */

TEST(refusals_name_the_place)
{
	refuse_each(refused_rows, sizeof(refused_rows) / sizeof(refused_rows[0]));
}

TEST(there_are_limits)
{
	struct buf text = { 0 };
	struct config *c;
	struct err err;

	buf_add_cstr(&text, "source_links: [");
	for (unsigned i = 0; i <= SOURCE_LINKS_MAX; i++)
		buf_add_cstr(&text, "{template: 'https://h/'},");
	buf_add_cstr(&text, "]");
	buf_add_char(&text, '\0');
	CHECK_ERR(load(text.ptr, &c, &err), &err, ERR_LIMIT, "c.yml:1:15: more than 256 source_links");
	buf_clear(&text);
	buf_add_cstr(&text, "source_links: [{template: 'https://h/");
	for (unsigned i = 0; i < 33; i++)
		buf_add_cstr(&text, "a${path}");
	buf_add_cstr(&text, "'}]");
	buf_add_char(&text, '\0');
	CHECK_ERR(
		load(text.ptr, &c, &err), &err, ERR_LIMIT, "c.yml:1:27: template: more than 64 parts");
	buf_clear(&text);
	buf_add_cstr(&text, "source_links: [{template: 'https://h/', labels: {");
	for (unsigned i = 0; i <= SOURCE_LINK_LABELS_MAX; i++)
		buf_printf(&text, "a%u: b, ", i);
	buf_add_cstr(&text, "}}]");
	buf_add_char(&text, '\0');
	CHECK_ERR(load(text.ptr, &c, &err), &err, ERR_LIMIT, "c.yml:1:49: more than 16 labels");
	buf_release(&text);
}

/* A template is no secret: the page Configuration shows it whole. */
TEST(templates_are_shown)
{
	struct config *c = loaded(SHOP);
	struct buf out = { 0 };

	config_print(&out, c);
	CHECK(str_find(buf_str(&out), STR("https://${repo}/blob/${service_git_ref}/${file}#L${line}")) >
		0);
	config_unref(c);
	buf_release(&out);
}
