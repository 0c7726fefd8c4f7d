/*
 * Values as text, as Go's fmt prints them.
 */
#include "promql/rules/template/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/quote.h"

#define FIELD_MAX 100000 /* width and precision, as in fmt 1e6; longer ones are refused */

const char *tv_type_name(const struct tv *t)
{
	static const char *const names[] = { "<nil>", "bool", "int", "float64", "string",
		"map[string]string", "map[string]interface {}", "template.queryResult", "*template.sample",
		"template.data", "*time.Time" };

	return names[t->kind];
}

bool tv_truth(const struct tv *t)
{
	switch (t->kind) {
	case TV_NIL:
		return false;
	case TV_BOOL:
		return t->b;
	case TV_INT:
		return t->i != 0;
	case TV_FLOAT:
		return t->f != 0;
	case TV_STRING:
		return t->s.len != 0;
	case TV_LABELS:
		return t->labels.n != 0;
	case TV_ARGS:
	case TV_SAMPLES:
		return t->n != 0;
	default:
		return true;
	}
}

struct tv tv_arg(const struct tv *t, struct str name)
{
	const struct str prefix = STR("arg");
	struct str digits;
	uint64_t i;

	assert(t->kind == TV_ARGS);
	if (!str_has_prefix(name, prefix))
		return (struct tv){ TV_NIL };
	digits = (struct str){ name.ptr + prefix.len, name.len - prefix.len };
	if ((digits.len > 1 && digits.ptr[0] == '0') || !str_to_u64(digits, &i) || i >= t->n)
		return (struct tv){ TV_NIL };
	return t->args[i];
}

/* ---- numbers ---- */

static bool template_add_special(struct buf *out, double value, bool plus)
{
	if (isnan(value))
		buf_add_cstr(out, plus ? "+NaN" : "NaN");
	else if (isinf(value))
		buf_add_cstr(out, value < 0 ? "-Inf" : plus ? "+Inf" : "+Inf");
	else
		return false;
	return true;
}

/* The fewest digits that read back the same; %e below 1e-4 and from 1e6 on, as Go has it. */
void tv_float_print(struct buf *out, double value)
{
	char text[40];
	int precision = 0, exponent;

	if (template_add_special(out, value, false))
		return;
	do
		snprintf(text, sizeof(text), "%.*e", precision, value);
	while (strtod(text, NULL) != value && ++precision < 17);
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent >= 6)
		buf_add_cstr(out, text);
	else
		buf_printf(out, "%.*f", precision > exponent ? precision - exponent : 0, value);
}

static void template_civil(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	unsigned doe = (unsigned)(z - era * 146097);
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = (int64_t)yoe + era * 400 + (*month <= 2);
}

/* 2009-11-10 23:00:00.5 +0000 UTC */
void tv_time_print(struct buf *out, int64_t ns)
{
	const int64_t second = 1000000000;
	int64_t s = ns / second, rest = ns % second, days, y;
	char fraction[16];
	unsigned m, d;
	size_t n;

	if (rest < 0) {
		rest += second;
		s--;
	}
	days = (s >= 0 ? s : s - 86399) / 86400;
	template_civil(days, &y, &m, &d);
	s -= days * 86400;
	buf_printf(out, "%04lld-%02u-%02u %02d:%02d:%02d", (long long)y, m, d, (int)(s / 3600),
		(int)(s / 60 % 60), (int)(s % 60));
	if (rest) {
		snprintf(fraction, sizeof(fraction), "%09lld", (long long)rest);
		for (n = 9; fraction[n - 1] == '0';)
			fraction[--n] = '\0';
		buf_printf(out, ".%s", fraction);
	}
	buf_add_cstr(out, " +0000 UTC");
}

/* ---- %v ---- */

static void template_print_labels(struct buf *out, struct labels ls)
{
	buf_add_cstr(out, "map[");
	for (size_t i = 0; i < ls.n; i++)
		buf_printf(out, "%s" STR_FMT ":" STR_FMT, i ? " " : "", STR_ARG(ls.v[i].name),
			STR_ARG(ls.v[i].value));
	buf_add_char(out, ']');
}

static void template_print_sample(struct buf *out, const struct template_sample *s)
{
	buf_add_char(out, '{');
	template_print_labels(out, s->labels);
	buf_add_char(out, ' ');
	tv_float_print(out, s->value);
	buf_add_char(out, '}');
}

void tv_print(struct buf *out, const struct tv *t)
{
	switch (t->kind) {
	case TV_NIL:
		buf_add_cstr(out, "<nil>");
		break;
	case TV_BOOL:
		buf_add_cstr(out, t->b ? "true" : "false");
		break;
	case TV_INT:
		buf_add_i64(out, t->i);
		break;
	case TV_FLOAT:
		tv_float_print(out, t->f);
		break;
	case TV_STRING:
		buf_add_str(out, t->s);
		break;
	case TV_LABELS:
		template_print_labels(out, t->labels);
		break;
	case TV_SAMPLE:
		template_print_sample(out, t->sample);
		break;
	case TV_TIME:
		tv_time_print(out, t->i);
		break;
	case TV_DATA:
		buf_add_cstr(out, "{}");
		break;
	case TV_ARGS:
		buf_add_cstr(out, "map[");
		for (size_t i = 0; i < t->n; i++) {
			buf_printf(out, "%sarg%zu:", i ? " " : "", i);
			tv_print(out, &t->args[i]);
		}
		buf_add_char(out, ']');
		break;
	case TV_SAMPLES:
		buf_add_char(out, '[');
		for (size_t i = 0; i < t->n; i++) {
			buf_add_cstr(out, i ? " " : "");
			template_print_sample(out, &t->samples[i]);
		}
		buf_add_char(out, ']');
		break;
	}
}

void tv_sprint(struct buf *out, const struct tv *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i && args[i].kind != TV_STRING && args[i - 1].kind != TV_STRING)
			buf_add_char(out, ' ');
		tv_print(out, &args[i]);
	}
}

void tv_sprintln(struct buf *out, const struct tv *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_add_cstr(out, i ? " " : "");
		tv_print(out, &args[i]);
	}
	buf_add_char(out, '\n');
}

/* ---- verbs ---- */

struct verb {
	char c;
	bool minus, plus, sharp, space, zero;
	bool has_width, has_precision;
	int width, precision;
};

static size_t template_runes(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
	return n;
}

static void template_pad(struct buf *out, const struct verb *v, struct str s)
{
	size_t have = template_runes(s),
		   fill = v->has_width && (size_t)v->width > have ? (size_t)v->width - have : 0;

	for (size_t i = 0; i < fill && !v->minus; i++)
		buf_add_char(out, v->zero ? '0' : ' ');
	buf_add_str(out, s);
	for (size_t i = 0; i < fill && v->minus; i++)
		buf_add_char(out, ' ');
}

/* The same flags for printf(3). */
static void template_c_format(char out[32], const struct verb *v, const char *length, char c)
{
	snprintf(out, 32, "%%%s%s%s%s%s*%s%s%c", v->minus ? "-" : "", v->plus ? "+" : "",
		v->sharp ? "#" : "", v->space ? " " : "", v->zero && !v->minus ? "0" : "",
		v->has_precision ? ".*" : "", length, c);
}

static void template_add_number(
	struct buf *out, const struct verb *v, const char *length, char c, double f, long long i)
{
	bool is_int = *length;
	char format[32], *text = NULL;
	int width = v->has_width ? v->width : 0, n;

	template_c_format(format, v, length, c);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (v->has_precision)
		n = is_int ? asprintf(&text, format, width, v->precision, i) :
					 asprintf(&text, format, width, v->precision, f);
	else
		n = is_int ? asprintf(&text, format, width, i) : asprintf(&text, format, width, f);
#pragma GCC diagnostic pop
	if (n < 0) {
		out->failed = true;
		return;
	}
	buf_add(out, text, (size_t)n);
	free(text);
}

static void template_print_float(struct buf *out, const struct verb *v, double f)
{
	struct buf text = { 0 };
	char c = v->c == 'F' ? 'f' : v->c;

	if (isnan(f) || isinf(f) || ((c == 'v' || c == 'g' || c == 'G') && !v->has_precision)) {
		if (!template_add_special(&text, f, v->plus)) {
			if (v->plus && !signbit(f))
				buf_add_char(&text, '+');
			else if (v->space && !signbit(f))
				buf_add_char(&text, ' ');
			tv_float_print(&text, f);
			if (v->zero && !v->minus && v->has_width && (size_t)v->width > text.len) {
				size_t sign = text.len && strchr("+- ", text.ptr[0]) ? 1 : 0;

				buf_add(out, text.ptr, sign);
				for (size_t n = text.len; n < (size_t)v->width; n++)
					buf_add_char(out, '0');
				buf_add(out, text.ptr + sign, text.len - sign);
				buf_release(&text);
				return;
			}
		}
		template_pad(out, v, buf_str(&text));
		buf_release(&text);
		return;
	}
	template_add_number(out, v, "", c == 'v' ? 'g' : c, f, 0);
}

static void template_print_verb(struct buf *out, const struct verb *v, const struct tv *arg);

/* A verb that does not go with the value: it is shown as %v, with the same flags. */
static void template_print_bad(struct buf *out, const struct verb *v, const struct tv *arg)
{
	struct verb plain = *v;

	plain.c = 'v';
	buf_printf(out, "%%!%c(", v->c);
	if (arg->kind == TV_NIL) {
		buf_add_cstr(out, "<nil>");
	} else {
		buf_printf(out, "%s=", tv_type_name(arg));
		template_print_verb(out, &plain, arg);
	}
	buf_add_char(out, ')');
}

static void template_print_bits(struct buf *out, const struct verb *v, int64_t i)
{
	uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
	char text[72];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + (u & 1));
	while (u >>= 1);
	if (i < 0)
		text[--at] = '-';
	template_pad(out, v, (struct str){ text + at, sizeof(text) - at });
}

/* The sign, then the digits: printf(3) takes these for numbers without one. */
static void template_print_unsigned(struct buf *out, const struct verb *v, int64_t i)
{
	uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
	struct verb digits = *v, padded = *v;
	struct buf text = { 0 };
	bool sign = i < 0 || v->plus || v->space;

	padded.zero = false;
	if (sign)
		buf_add_char(&text, i < 0 ? '-' : v->plus ? '+' : ' ');
	digits.plus = digits.space = digits.minus = false;
	digits.has_width = v->zero && !v->minus && v->has_width && !v->has_precision;
	digits.width -= sign && digits.width > 0;
	template_add_number(&text, &digits, "ll", v->c, 0, (long long)u);
	template_pad(out, &padded, buf_str(&text));
	buf_release(&text);
}

static void template_print_int(struct buf *out, const struct verb *v, const struct tv *arg)
{
	struct buf text = { 0 };
	uint32_t code = arg->i < 0 || arg->i > 0x10ffff ? 0xfffd : (uint32_t)arg->i;

	switch (v->c) {
	case 'v':
	case 'd':
		template_add_number(out, v, "ll", 'd', 0, arg->i);
		return;
	case 'b':
		template_print_bits(out, v, arg->i);
		return;
	case 'o':
	case 'x':
	case 'X':
		template_print_unsigned(out, v, arg->i);
		return;
	case 'c':
	case 'q':
		buf_add_cstr(&text, v->c == 'q' ? "'" : "");
		buf_add_utf8(&text, code);
		buf_add_cstr(&text, v->c == 'q' ? "'" : "");
		template_pad(out, v, buf_str(&text));
		buf_release(&text);
		return;
	case 'U':
		buf_printf(&text, "U+%04llX", (long long)arg->i);
		template_pad(out, v, buf_str(&text));
		buf_release(&text);
		return;
	default:
		template_print_bad(out, v, arg);
	}
}

static void template_print_text(
	struct buf *out, const struct verb *v, struct str s, const struct tv *arg)
{
	struct buf text = { 0 };

	if (v->has_precision && (v->c == 's' || v->c == 'v' || v->c == 'q')) {
		size_t n = 0, end = 0;

		while (end < s.len &&
			(((unsigned char)s.ptr[end] & 0xc0) == 0x80 || n++ < (size_t)v->precision))
			end++;
		s.len = end;
	}
	if (v->c == 'q') {
		if (v->sharp && s.len && !memchr(s.ptr, '`', s.len))
			buf_printf(&text, "`" STR_FMT "`", STR_ARG(s));
		else
			buf_add_quoted(&text, s);
	} else if (v->c == 'x' || v->c == 'X') {
		size_t n = v->has_precision && (size_t)v->precision < s.len ? (size_t)v->precision : s.len;

		for (size_t i = 0; i < n; i++)
			buf_printf(&text, v->c == 'x' ? "%s%02x" : "%s%02X", i && v->space ? " " : "",
				(unsigned char)s.ptr[i]);
	} else if (v->c == 's' || v->c == 'v') {
		buf_add_str(&text, s);
	} else {
		template_print_bad(out, v, arg);
		buf_release(&text);
		return;
	}
	template_pad(out, v, buf_str(&text));
	buf_release(&text);
}

static void template_print_verb(struct buf *out, const struct verb *v, const struct tv *arg)
{
	struct buf text = { 0 };

	if (v->c == 'T') {
		struct verb s = *v;

		s.c = 's';
		template_print_text(out, &s, str_of(tv_type_name(arg)), arg);
		return;
	}
	switch (arg->kind) {
	case TV_NIL:
		if (v->c == 'v')
			template_pad(out, v, STR("<nil>"));
		else
			template_print_bad(out, v, arg);
		return;
	case TV_BOOL:
		if (v->c == 't' || v->c == 'v')
			template_pad(out, v, arg->b ? STR("true") : STR("false"));
		else
			template_print_bad(out, v, arg);
		return;
	case TV_FLOAT:
		if (v->c && strchr("vgGeEfF", v->c)) /* a NUL is found in every string */
			template_print_float(out, v, arg->f);
		else
			template_print_bad(out, v, arg);
		return;
	case TV_INT:
		template_print_int(out, v, arg);
		return;
	case TV_STRING:
		template_print_text(out, v, arg->s, arg);
		return;
	default:
		tv_print(&text, arg);
		template_print_text(out, v, buf_str(&text), arg);
		buf_release(&text);
	}
}

/* ---- formats ---- */

struct formatting {
	struct buf *out;
	struct str f;
	size_t at;
	const struct tv *args;
	size_t n, used;
};

/* A number, or * for an argument. *bad: it is too large or no integer. */
static bool template_take_field(struct formatting *f, int *out, bool *bad)
{
	bool digits = false;

	*bad = false;
	*out = 0;
	if (f->at < f->f.len && f->f.ptr[f->at] == '*') {
		f->at++;
		*bad = f->used >= f->n || f->args[f->used].kind != TV_INT ||
			f->args[f->used].i > FIELD_MAX || f->args[f->used].i < -FIELD_MAX;
		if (!*bad)
			*out = (int)f->args[f->used].i;
		f->used += f->used < f->n;
		return true;
	}
	for (; f->at < f->f.len && f->f.ptr[f->at] >= '0' && f->f.ptr[f->at] <= '9'; f->at++) {
		digits = true;
		if (*out <= FIELD_MAX)
			*out = *out * 10 + (f->f.ptr[f->at] - '0');
	}
	*bad = *out > FIELD_MAX;
	return digits;
}

static void template_take_flags(struct formatting *f, struct verb *v)
{
	for (; f->at < f->f.len; f->at++)
		switch (f->f.ptr[f->at]) {
		case '-':
			v->minus = true;
			break;
		case '+':
			v->plus = true;
			break;
		case '#':
			v->sharp = true;
			break;
		case ' ':
			v->space = true;
			break;
		case '0':
			v->zero = true;
			break;
		default:
			return;
		}
}

/* Called after a per cent sign. */
static void template_take_verb(struct formatting *f)
{
	struct verb v = { 0 };
	bool bad;

	template_take_flags(f, &v);
	v.has_width = template_take_field(f, &v.width, &bad);
	if (bad) {
		buf_add_cstr(f->out, "%!(BADWIDTH)");
		v.has_width = false;
	}
	if (v.width < 0) {
		v.minus = true;
		v.width = -v.width;
	}
	if (f->at < f->f.len && f->f.ptr[f->at] == '.') {
		f->at++;
		template_take_field(f, &v.precision, &bad);
		v.has_precision = v.precision >= 0 && !bad;
		if (bad || v.precision < 0)
			buf_add_cstr(f->out, "%!(BADPREC)");
	}
	if (f->at >= f->f.len) {
		buf_add_cstr(f->out, "%!(NOVERB)");
		return;
	}
	v.c = f->f.ptr[f->at++];
	v.plus &= v.c != 'v'; /* it asks for names of fields there */
	if (v.c == '%') {
		buf_add_char(f->out, '%');
	} else if (f->used >= f->n) {
		buf_printf(f->out, "%%!%c(MISSING)", v.c);
	} else {
		template_print_verb(f->out, &v, &f->args[f->used++]);
	}
}

void tv_printf(struct buf *out, struct str format, const struct tv *args, size_t n)
{
	struct formatting x = { .out = out, .f = format, .args = args, .n = n };

	while (x.at < format.len) {
		if (format.ptr[x.at] != '%') {
			buf_add_char(out, format.ptr[x.at++]);
			continue;
		}
		x.at++;
		template_take_verb(&x);
	}
	if (x.used >= n)
		return;
	buf_add_cstr(out, "%!(EXTRA ");
	for (size_t i = x.used; i < n; i++) {
		buf_add_cstr(out, i > x.used ? ", " : "");
		if (args[i].kind == TV_NIL) {
			buf_add_cstr(out, "<nil>");
			continue;
		}
		buf_printf(out, "%s=", tv_type_name(&args[i]));
		tv_print(out, &args[i]);
	}
	buf_add_char(out, ')');
}
