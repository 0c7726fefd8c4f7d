/*
 * Names without what the JVM and installers make up anew in each run, which would be a new
 * function each time:
 *
 *	Work$$Lambda$669.0x0000000800fd7318            Work$$Lambda_
 *	a.b.C$$Lambda$72+0x00007fd544042338/1418334255 a/b/C$$Lambda_ (JDK 17, with dots)
 *	Work$$Lambda$14/1234567 (JDK 8)                Work$$Lambda_
 *	java/lang/invoke/LambdaForm$MH+0x00007f02e80   java/lang/invoke/LambdaForm$MH_
 *	jdk/internal/reflect/GeneratedMethodAccessor31 jdk/internal/reflect/GeneratedMethodAccessor_
 *	libzstd-jni-1.5.1-16931311898282279136.so      libzstd-jni-1.5.1-_.so
 */
#include "proto/jfr/decoder.h"

#define RUN_MIN 12 /* hexadecimal digits in a row that are no word and no version */

static bool jfr_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool jfr_is_hex(char c)
{
	return jfr_is_digit(c) || (c >= 'a' && c <= 'f');
}

static size_t jfr_hexes(struct str s, size_t i)
{
	while (i < s.len && jfr_is_hex(s.ptr[i]))
		i++;
	return i;
}

static bool jfr_is_mark(char c)
{
	return c == '.' || c == '/' || c == '+';
}

/* Where the JVM's number of a lambda's class begins; its length if it has none. */
static size_t jfr_lambda_end(struct str name)
{
	ptrdiff_t lambda = str_find(name, STR("$$Lambda"));
	size_t end, i;

	if (lambda < 0)
		return name.len;
	end = (size_t)lambda + strlen("$$Lambda");
	for (i = end; i < name.len; i++)
		if (!jfr_is_hex(name.ptr[i]) && !jfr_is_mark(name.ptr[i]) && name.ptr[i] != '$' &&
			name.ptr[i] != 'x')
			return name.len;
	return end;
}

/* Where the address of a hidden class begins. */
static size_t jfr_hidden_end(struct str name)
{
	for (size_t i = 0; i + 3 < name.len; i++) {
		size_t end;

		if (!jfr_is_mark(name.ptr[i]) || name.ptr[i + 1] != '0' || name.ptr[i + 2] != 'x')
			continue;
		end = jfr_hexes(name, i + 3);
		if (end < name.len && name.ptr[end] == '/')
			end = jfr_hexes(name, end + 1);
		if (end == name.len)
			return i;
	}
	return name.len;
}

static size_t jfr_accessor_end(struct str name)
{
	size_t end = name.len;

	if (!str_has_prefix(name, STR("jdk/internal/reflect/Generated")) &&
			!str_has_prefix(name, STR("sun/reflect/Generated")))
		return name.len;
	while (end > 0 && jfr_is_digit(name.ptr[end - 1]))
		end--;
	return str_has_suffix((struct str){ name.ptr, end }, STR("Accessor")) ? end : name.len;
}

/* Long runs of digits become "_", and so do the groups of a UUID. */
static void jfr_add_library(struct buf *out, struct str name)
{
	static const struct str uuid = STR("00000000-0000-0000-0000-000000000000");
	size_t i = 0;

	while (i < name.len) {
		size_t end = jfr_hexes(name, i), k = 0;

		while (k < uuid.len && i + k < name.len &&
			(uuid.ptr[k] == '-' ? name.ptr[i + k] == '-' : jfr_is_hex(name.ptr[i + k])))
			k++;
		if (k == uuid.len) {
			buf_add_char(out, '_');
			i += k;
		} else if (end - i >= RUN_MIN) {
			buf_add_char(out, '_');
			i = end;
		} else {
			end += end == i;
			buf_add(out, name.ptr + i, end - i);
			i = end;
		}
	}
}

void jfr_add_class_name(struct buf *out, struct str name)
{
	size_t end;

	if (str_find(name, STR(".so")) >= 0) {
		jfr_add_library(out, name);
		return;
	}
	end = jfr_lambda_end(name);
	if (end == name.len)
		end = jfr_hidden_end(name);
	if (end < name.len) {
		for (size_t i = 0; i < end; i++)
			buf_add_char(out, (char)(name.ptr[i] == '.' ? '/' : name.ptr[i]));
	} else {
		end = jfr_accessor_end(name);
		buf_add(out, name.ptr, end);
	}
	if (end < name.len)
		buf_add_char(out, '_');
}
