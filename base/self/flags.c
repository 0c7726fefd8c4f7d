#include "base/self/flags.h"

#include <assert.h>

#include "base/clock.h"
#include "base/quote.h"

#define HELP_COLUMN 33 /* where the text of a flag begins */
#define HELP_WIDTH 80

static enum err_code flags_uint_parse(struct str s, uint64_t *out, struct err *err)
{
	if (!str_to_u64(s, out))
		return err_set(err, ERR_INVALID, "not a valid number: %s", QUOTED(s));
	return ERR_OK;
}

static enum err_code flags_bool_parse(struct str s, bool *out, struct err *err)
{
	if (!str_is(s, "true") && !str_is(s, "false"))
		return err_set(err, ERR_INVALID, "not true or false: %s", QUOTED(s));
	*out = str_is(s, "true");
	return ERR_OK;
}

static enum err_code flag_value_set(struct flag *f, const char *text, struct err *err)
{
	struct str s = str_of(text);
	struct flag_list *list;

	switch (f->kind) {
	case FLAG_BOOL:
		return flags_bool_parse(s, f->value, err);
	case FLAG_STRING:
		*(const char **)f->value = text;
		return ERR_OK;
	case FLAG_DURATION:
		return duration_parse(s, f->value, err);
	case FLAG_BYTES:
		return bytes_parse(s, f->value, err);
	case FLAG_UINT:
		return flags_uint_parse(s, f->value, err);
	case FLAG_LIST:
		list = f->value;
		if (list->n == FLAG_LIST_MAX)
			return err_set(err, ERR_LIMIT, "given more than %d times", FLAG_LIST_MAX);
		list->v[list->n++] = text;
		return ERR_OK;
	}
	return ERR_OK;
}

/* A value from the command line: once only, unless the flag is a list. */
static enum err_code flag_value_given(struct flag *f, const char *text, struct err *err)
{
	enum err_code rc;

	if (f->set && f->kind != FLAG_LIST)
		return err_set(err, ERR_INVALID, "flag '%s' cannot be repeated", f->name);
	if (!f->set && f->kind == FLAG_LIST)
		((struct flag_list *)f->value)->n = 0; /* replaces the default */
	f->set = true;
	rc = flag_value_set(f, text, err);
	return rc ? err_wrap(err, rc, "invalid value for flag '--%s'", f->name) : ERR_OK;
}

static struct flag *flag_find_long(struct flag *flags, size_t n, struct str name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (str_is(name, flags[i].name))
			return &flags[i];
	return NULL;
}

static struct flag *flag_find_short(struct flag *flags, size_t n, char name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (name && flags[i].short_name == name)
			return &flags[i];
	return NULL;
}

struct command_line {
	int argc, at; /* at: the argument being read */
	char **argv;
};

/* The value behind the flag: `attached` when there is one, else the next argument. */
static enum err_code flag_value_take(
	struct flag *f, const char *attached, struct command_line *c, struct err *err)
{
	if (!attached) {
		if (c->at + 1 >= c->argc)
			return err_set(err, ERR_INVALID, "expected argument for flag '--%s'", f->name);
		attached = c->argv[++c->at];
	}
	return flag_value_given(f, attached, err);
}

static enum err_code flag_unknown(
	const struct flag *flags, size_t n, struct str name, struct err *err)
{
	struct nearest near = nearest_to(name);

	for (size_t i = 0; i < n; i++)
		nearest_try(&near, str_of(flags[i].name));
	if (!near.name.len)
		return err_set(err, ERR_INVALID, "unknown long flag '--" STR_FMT "'", STR_ARG(name));
	return err_set(err, ERR_INVALID,
		"unknown long flag '--" STR_FMT "'; did you mean '--" STR_FMT "'?", STR_ARG(name),
		STR_ARG(near.name));
}

static enum err_code flag_parse_long(
	struct flag *flags, size_t n, struct command_line *c, struct err *err)
{
	const char *arg = c->argv[c->at] + 2, *equals = strchr(arg, '=');
	struct str name = { arg, equals ? (size_t)(equals - arg) : strlen(arg) };
	struct flag *f = flag_find_long(flags, n, name);
	bool negated = false;

	if (!f && str_has_prefix(name, STR("no-"))) {
		f = flag_find_long(flags, n, (struct str){ name.ptr + 3, name.len - 3 });
		negated = f != NULL;
		if (f && f->kind != FLAG_BOOL)
			f = NULL;
	}
	if (!f)
		return flag_unknown(flags, n, name, err);
	if (f->kind != FLAG_BOOL)
		return flag_value_take(f, equals ? equals + 1 : NULL, c, err);
	if (negated && equals)
		return err_set(err, ERR_INVALID, "unexpected value %s for flag '--" STR_FMT "'",
			QUOTED(str_of(equals + 1)), STR_ARG(name));
	return flag_value_given(f, equals ? equals + 1 : negated ? "false" : "true", err);
}

/* -x VALUE, -xVALUE, and -abc for three bools. */
static enum err_code flag_parse_short(
	struct flag *flags, size_t n, struct command_line *c, bool *help, struct err *err)
{
	const char *p;
	enum err_code rc;
	struct flag *f;

	for (p = c->argv[c->at] + 1; *p; p++) {
		f = flag_find_short(flags, n, *p);
		if (!f && *p == 'h') {
			*help = true;
			return ERR_OK;
		}
		if (!f)
			return err_set(err, ERR_INVALID, "unknown short flag '-%c'", *p);
		if (f->kind != FLAG_BOOL)
			return flag_value_take(f, p[1] ? p + 1 : NULL, c, err);
		if ((rc = flag_value_given(f, "true", err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code flag_set_defaults(struct flag *flags, size_t n, struct err *err)
{
	enum err_code rc;
	size_t i;

	for (i = 0; i < n; i++) {
		assert(flags[i].value && flag_find_long(flags, n, str_of(flags[i].name)) == &flags[i]);
		flags[i].set = false;
		if (flags[i].default_text && (rc = flag_value_set(&flags[i], flags[i].default_text, err)))
			return err_wrap(err, rc, "default of flag '--%s'", flags[i].name);
	}
	return ERR_OK;
}

enum err_code flags_parse(struct flag *flags, size_t n, int argc, char **argv, const char **args,
	size_t args_max, size_t *args_n, bool *help, bool *version, struct err *err)
{
	struct command_line c = { .argc = argc, .at = 1, .argv = argv };
	bool flags_end = false;
	enum err_code rc;

	*args_n = 0;
	*help = *version = false;
	if ((rc = flag_set_defaults(flags, n, err)))
		return rc;
	for (; c.at < argc && !*help && !*version; c.at++) {
		const char *arg = argv[c.at];

		rc = ERR_OK;
		if (flags_end || arg[0] != '-' || !arg[1]) {
			if (*args_n == args_max)
				return err_set(err, ERR_INVALID, "unexpected %s", arg);
			args[(*args_n)++] = arg;
		} else if (!strcmp(arg, "--")) {
			flags_end = true;
		} else if (!strcmp(arg, "--help")) {
			*help = true;
		} else if (!strcmp(arg, "--version")) {
			*version = true;
		} else if (arg[1] == '-') {
			rc = flag_parse_long(flags, n, &c, err);
		} else {
			rc = flag_parse_short(flags, n, &c, help, err);
		}
		if (rc)
			return rc;
	}
	return ERR_OK;
}

/*
 * Prints the words of `text` from HELP_COLUMN on, in lines of HELP_WIDTH. The cursor is at
 * `column`.
 */
static void flags_print_wrapped(struct buf *out, const char *text, size_t column)
{
	struct str rest = str_of(text);
	bool first = true;

	if (column + 2 > HELP_COLUMN) {
		buf_add_char(out, '\n');
		column = 0;
	}
	for (; column < HELP_COLUMN; column++)
		buf_add_char(out, ' ');
	while ((rest = str_trim(rest)).len) {
		const char *space = memchr(rest.ptr, ' ', rest.len);
		size_t n = space ? (size_t)(space - rest.ptr) : rest.len;

		if (!first && column + 1 + n > HELP_WIDTH) {
			buf_printf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (!first) {
			buf_add_char(out, ' ');
			column++;
		}
		first = false;
		buf_add(out, rest.ptr, n);
		column += n;
		rest.ptr += n;
		rest.len -= n;
	}
	buf_add_char(out, '\n');
}

static void flags_print_flag(struct buf *out, const struct flag *f)
{
	/* clang-format off */
	static const char *const kinds[] = {
		[FLAG_STRING] = "TEXT", [FLAG_DURATION] = "DURATION", [FLAG_BYTES] = "BYTES",
		[FLAG_UINT] = "N", [FLAG_LIST] = "TEXT",
	};
	/* clang-format on */
	bool has_default = f->default_text && f->default_text[0];
	size_t start = out->len;

	if (f->short_name)
		buf_printf(out, "  -%c, ", f->short_name);
	else
		buf_add_cstr(out, "      ");
	buf_printf(out, f->kind == FLAG_BOOL ? "--[no-]%s" : "--%s", f->name);
	if (f->kind == FLAG_BOOL)
		;
	else if (has_default && (f->kind == FLAG_STRING || f->kind == FLAG_LIST))
		buf_printf(out, "=\"%s\"", f->default_text);
	else if (has_default)
		buf_printf(out, "=%s", f->default_text);
	else
		buf_printf(out, "=%s", kinds[f->kind]);
	if (f->kind == FLAG_LIST)
		buf_add_cstr(out, " ...");
	flags_print_wrapped(out, f->help, out->len - start);
}

void flags_print_help(
	struct buf *out, const char *program, const char *about, const struct flag *flags, size_t n)
{
	static const char help[] = "  -h, --help", version[] = "      --version";
	size_t i;

	buf_printf(out, "usage: %s [<flags>]\n\n%s\n\nFlags:\n%s", program, about, help);
	flags_print_wrapped(out, "Show this help.", sizeof(help) - 1);
	buf_add_cstr(out, version);
	flags_print_wrapped(out, "Show the version.", sizeof(version) - 1);
	for (i = 0; i < n; i++)
		flags_print_flag(out, &flags[i]);
}

void flags_print_bytes(struct buf *out, uint64_t value)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	for (; value && value % 1024 == 0 && i < 6; i++)
		value /= 1024;
	buf_add_u64(out, value);
	buf_add_cstr(out, names[i]);
}

void flag_print_value(struct buf *out, const struct flag *f)
{
	const struct flag_list *list;
	const char *text;
	size_t i;

	switch (f->kind) {
	case FLAG_BOOL:
		buf_add_cstr(out, *(const bool *)f->value ? "true" : "false");
		break;
	case FLAG_STRING:
		text = *(const char *const *)f->value;
		buf_add_cstr(out, text ? text : "");
		break;
	case FLAG_DURATION:
		duration_print(out, *(const int64_t *)f->value);
		break;
	case FLAG_BYTES:
		flags_print_bytes(out, *(const uint64_t *)f->value);
		break;
	case FLAG_UINT:
		buf_add_u64(out, *(const uint64_t *)f->value);
		break;
	case FLAG_LIST:
		list = f->value;
		for (i = 0; i < list->n; i++) {
			if (i)
				buf_add_char(out, ',');
			buf_add_cstr(out, list->v[i]);
		}
		break;
	}
}
