#include "tsdb/debuginfo/store/id.h"

#define FILE_ID_DIGITS 32

static const struct {
	const char *name;
	bool hex;
	size_t min, max;
} kinds[DEBUGINFO_ID_KINDS] = {
	[DEBUGINFO_GNU] = { "gnu", true, 2, 40 },
	[DEBUGINFO_GO] = { "go", false, 1, DEBUGINFO_ID_BYTES_MAX },
	[DEBUGINFO_FILE] = { "file", true, FILE_ID_DIGITS, FILE_ID_DIGITS },
};

const char *debuginfo_id_kind_name(enum debuginfo_id_kind kind)
{
	return kinds[kind].name;
}

/* The value of a hexadecimal digit, or -1. */
static int id_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum err_code debuginfo_id_init(
	struct debuginfo_id *id, enum debuginfo_id_kind kind, struct str text, struct err *err)
{
	memset(id, 0, sizeof(*id));
	if (text.len < kinds[kind].min || text.len > kinds[kind].max)
		return err_set(err, ERR_INVALID, "%s build id has %zu characters, not %zu to %zu",
			kinds[kind].name, text.len, kinds[kind].min, kinds[kind].max);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (kinds[kind].hex ? id_digit(c) < 0 : c <= ' ' || c > '~')
			return err_set(err, ERR_INVALID, "%s build id: character %zu is not %s",
				kinds[kind].name, i + 1, kinds[kind].hex ? "hexadecimal" : "printable ASCII");
		id->text[i] = kinds[kind].hex ? "0123456789abcdef"[id_digit(c)] : c;
	}
	id->kind = (unsigned char)kind;
	id->len = (unsigned char)text.len;
	return ERR_OK;
}

bool debuginfo_id_eq(const struct debuginfo_id *a, const struct debuginfo_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void debuginfo_id_stem(const struct debuginfo_id *id, struct buf *out)
{
	buf_printf(out, "%s-", kinds[id->kind].name);
	for (size_t i = 0; i < id->len; i++)
		if (kinds[id->kind].hex)
			buf_add_char(out, id->text[i]);
		else
			buf_printf(out, "%02x", (unsigned char)id->text[i]);
}

bool debuginfo_id_of_stem(struct str stem, struct debuginfo_id *out)
{
	char text[DEBUGINFO_ID_BYTES_MAX];
	enum debuginfo_id_kind kind;
	struct buf same = { 0 };
	struct str rest = stem;
	bool ok;

	for (kind = 0; kind < DEBUGINFO_ID_KINDS; kind++) {
		struct str name = str_of(kinds[kind].name);

		if (str_has_prefix(stem, name) && stem.len > name.len && stem.ptr[name.len] == '-') {
			rest = (struct str){ stem.ptr + name.len + 1, stem.len - name.len - 1 };
			break;
		}
	}
	if (kind == DEBUGINFO_ID_KINDS)
		return false;
	if (!kinds[kind].hex) {
		if (rest.len % 2 || rest.len / 2 > sizeof(text))
			return false;
		for (size_t i = 0; i < rest.len / 2; i++) {
			int high = id_digit(rest.ptr[2 * i]), low = id_digit(rest.ptr[2 * i + 1]);

			if (high < 0 || low < 0)
				return false;
			text[i] = (char)(high << 4 | low);
		}
		rest = (struct str){ text, rest.len / 2 };
	}
	if (debuginfo_id_init(out, kind, rest, NULL))
		return false;
	debuginfo_id_stem(out, &same); /* one name for a key: no upper case */
	ok = !buf_failed(&same) && str_eq(buf_str(&same), stem);
	buf_release(&same);
	return ok;
}

bool debuginfo_id_of_bytes(struct debuginfo_id *id, enum debuginfo_id_kind kind, struct str bytes)
{
	static const char digits[] = "0123456789abcdef";
	char text[DEBUGINFO_ID_BYTES_MAX];

	*id = (struct debuginfo_id){ 0 };
	if (2 * bytes.len > sizeof(text))
		return false;
	for (size_t i = 0; i < bytes.len; i++) {
		text[2 * i] = digits[(unsigned char)bytes.ptr[i] >> 4];
		text[2 * i + 1] = digits[(unsigned char)bytes.ptr[i] & 15];
	}
	if (!debuginfo_id_init(id, kind, (struct str){ text, 2 * bytes.len }, NULL))
		return true;
	*id = (struct debuginfo_id){ 0 };
	return false;
}

bool debuginfo_id_guess(struct str text, struct debuginfo_id *out)
{
	bool go = text.len && memchr(text.ptr, '/', text.len);
	enum debuginfo_id_kind kind = go ? DEBUGINFO_GO :
		text.len == FILE_ID_DIGITS   ? DEBUGINFO_FILE :
									   DEBUGINFO_GNU;

	return text.len && debuginfo_id_init(out, kind, text, NULL) == ERR_OK;
}
