/*
 * AWS's file of credentials: sections in brackets, one of them the profile, with lines NAME =
 * VALUE. The file of settings has the same form with "profile" before the name. Source:
 * "Configuration and credential file settings in the AWS CLI".
 */
#include "tsdb/bucket/internal.h"

static struct str next_line(struct str *text)
{
	const char *end = memchr(text->ptr, '\n', text->len);
	struct str line = { text->ptr, end ? (size_t)(end - text->ptr) : text->len };
	size_t used = line.len + (end != NULL);

	text->ptr += used;
	text->len -= used;
	return line;
}

/* "[NAME]" or "[profile NAME]"; ptr NULL: none. */
static struct str section_of(struct str line)
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

static void set(struct sigv4_credentials *c, struct str name, struct str value)
{
	if (str_eq_nocase(name, STR("aws_access_key_id")))
		c->access_key = value;
	else if (str_eq_nocase(name, STR("aws_secret_access_key")))
		c->secret_key = value;
	else if (str_eq_nocase(name, STR("aws_session_token")))
		c->session_token = value;
}

enum err_code credentials_parse(struct arena *a, struct str text, struct str profile,
	struct sigv4_credentials *out, struct err *err)
{
	struct sigv4_credentials c = { STR(""), STR(""), STR("") };
	bool inside = false, found = false;
	struct str name, line;
	const char *equals;

	while (text.len) {
		line = next_line(&text);
		if (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
			continue; /* of a nested setting */
		line = str_trim(line);
		if (!line.len || line.ptr[0] == '#' || line.ptr[0] == ';')
			continue;
		name = section_of(line);
		if (name.ptr) {
			inside = str_eq(name, profile);
			found |= inside;
			continue;
		}
		equals = memchr(line.ptr, '=', line.len);
		if (inside && equals)
			set(&c, str_trim((struct str){ line.ptr, (size_t)(equals - line.ptr) }),
				str_trim((struct str){ equals + 1, line.len - (size_t)(equals - line.ptr) - 1 }));
	}
	if (!found)
		return err_set(err, ERR_INVALID, "it has no profile [" STR_FMT "]", STR_ARG(profile));
	if (!c.access_key.len || !c.secret_key.len)
		return err_set(err, ERR_INVALID,
			"profile [" STR_FMT "] has no aws_access_key_id or no aws_secret_access_key",
			STR_ARG(profile));
	out->access_key = str_dup(a, c.access_key);
	out->secret_key = str_dup(a, c.secret_key);
	out->session_token = str_dup(a, c.session_token);
	if (!out->access_key.ptr || !out->secret_key.ptr || !out->session_token.ptr)
		return arena_fail(a, "credentials", err);
	return ERR_OK;
}
