#include "base/net/aws_profile.h"

static struct str aws_profile_next_line(struct str *text)
{
	const char *end = memchr(text->ptr, '\n', text->len);
	struct str line = { text->ptr, end ? (size_t)(end - text->ptr) : text->len };
	size_t used = line.len + (end != NULL);

	text->ptr += used;
	text->len -= used;
	return line;
}

/* "[NAME]" or "[profile NAME]"; ptr NULL: none. */
static struct str aws_profile_section_of(struct str line)
{
	const char *end = memchr(line.ptr, ']', line.len);
	struct str name;

	if (!line.len || line.ptr[0] != '[' || !end)
		return (struct str){ NULL, 0 };
	name = str_trim((struct str){ line.ptr + 1, (size_t)(end - line.ptr) - 1 });
	if (str_has_prefix(name, STR("profile ")))
		name = str_trim((struct str){ name.ptr + 8, name.len - 8 });
	return name;
}

static void aws_profile_set(struct aws_profile *p, struct str name, struct str value)
{
	/* clang-format off */
	const struct {
		struct str name;
		struct str *at;
	} known[] = {
		{ STR("aws_access_key_id"), &p->keys.access_key },
		{ STR("aws_secret_access_key"), &p->keys.secret_key },
		{ STR("aws_session_token"), &p->keys.session_token },
		{ STR("region"), &p->region },
	};
	/* clang-format on */
	static const char *const others[] = { "role_arn", "credential_process", "sso_session",
		"sso_start_url", "web_identity_token_file" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq_nocase(name, known[i].name))
			*known[i].at = value;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (str_eq_nocase(name, str_of(others[i])))
			p->elsewhere = str_of(others[i]);
}

void aws_profile_read(struct str text, struct str profile, struct aws_profile *p)
{
	struct aws_profile here = { 0 };
	struct sigv4_credentials *to = &p->keys;
	struct str name, line;
	const char *equals;
	bool inside = false;

	while (text.len) {
		line = aws_profile_next_line(&text);
		if (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
			continue; /* of a nested setting */
		line = str_trim(line);
		if (!line.len || line.ptr[0] == '#' || line.ptr[0] == ';')
			continue;
		name = aws_profile_section_of(line);
		if (name.ptr) {
			inside = str_eq(name, profile);
			here.found |= inside;
			continue;
		}
		equals = memchr(line.ptr, '=', line.len);
		if (inside && equals)
			aws_profile_set(&here, str_trim((struct str){ line.ptr, (size_t)(equals - line.ptr) }),
				str_trim((struct str){ equals + 1, line.len - (size_t)(equals - line.ptr) - 1 }));
	}
	p->found |= here.found;
	if (!to->access_key.len && !to->secret_key.len) /* keys of two files are no pair */
		*to = here.keys;
	if (!p->region.len)
		p->region = here.region;
	if (!p->elsewhere.len)
		p->elsewhere = here.elsewhere;
}

enum err_code aws_profile_keys(struct arena *a, const struct aws_profile *p, struct str profile,
	struct sigv4_credentials *out, struct err *err)
{
	if (!p->found)
		return err_set(err, ERR_INVALID, "it has no profile [" STR_FMT "]", STR_ARG(profile));
	if (!p->keys.access_key.len || !p->keys.secret_key.len)
		return err_set(err, ERR_INVALID,
			"profile [" STR_FMT "] has no aws_access_key_id or no aws_secret_access_key",
			STR_ARG(profile));
	out->access_key = str_dup(a, p->keys.access_key);
	out->secret_key = str_dup(a, p->keys.secret_key);
	out->session_token = str_dup(a, p->keys.session_token);
	if (!out->access_key.ptr || !out->secret_key.ptr || !out->session_token.ptr)
		return arena_fail(a, "credentials", err);
	return ERR_OK;
}
