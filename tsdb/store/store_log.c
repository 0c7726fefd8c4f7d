#include "tsdb/store/store_log.h"

#include "base/arena.h"
#include "base/log.h"
#include "tsdb/store/store_crc.h"

/*
 * A log is pages of 32 KiB; a record in it one piece, or several where it crosses pages. A piece is
 * a checksum (CRC-32C of what follows the length, masked), a length, a type, and its bytes; none
 * begins in the last 6 bytes of a page.
 */
#define PAGE_BYTES 32768u
#define HEADER_BYTES 7u
/* A log ends with the batch that fills the write buffer; what is larger is not ours. */
#define LOG_BYTES_MAX (256u << 20)

enum piece { FULL = 1, FIRST, MIDDLE, LAST };

static size_t store_log_page_end(size_t at, size_t n)
{
	size_t end = (at / PAGE_BYTES + 1) * PAGE_BYTES;

	return end < n ? end : n;
}

/* The type of the piece at `at`, 0: there is no valid one; *next: what follows it. */
static int piece_at(struct str log, size_t at, size_t *next)
{
	const unsigned char *p = (const unsigned char *)log.ptr + at;
	size_t room = store_log_page_end(at, log.len) - at, len;
	uint32_t crc;

	if (room < HEADER_BYTES || p[6] < FULL || p[6] > LAST)
		return 0;
	len = p[4] | (size_t)p[5] << 8;
	if (len > room - HEADER_BYTES)
		return 0;
	crc = store_crc32c(0, p + 6, len + 1);
	crc = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
	if (crc != (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24))
		return 0;
	*next = at + HEADER_BYTES + len;
	return p[6];
}

/* Lengths may be bad as well, so each byte is checked. */
static bool store_log_record_begins_behind(struct str log, size_t at)
{
	size_t next;

	for (; at + HEADER_BYTES <= log.len; at++)
		if ((log.ptr[at + 6] == FULL || log.ptr[at + 6] == FIRST) && piece_at(log, at, &next))
			return true;
	return false;
}

size_t store_log_whole(struct str log)
{
	size_t at = 0, next = 0, record = 0;
	bool inside = false;

	for (; at < log.len; at = next) {
		int type;

		if (store_log_page_end(at, SIZE_MAX) - at < HEADER_BYTES) { /* filled up with zeros */
			next = store_log_page_end(at, log.len);
			continue;
		}
		type = piece_at(log, at, &next);
		if (!type || inside != (type == MIDDLE || type == LAST))
			break;
		if (!inside)
			record = at;
		inside = type == FIRST || type == MIDDLE;
	}
	if (at >= log.len && !inside)
		return log.len;
	if (!inside)
		record = at;
	return store_log_record_begins_behind(log, at < log.len && inside ? at : record + 1) ? log.len :
																						   record;
}

static enum err_code store_log_cut(struct fs *fs, const char *path, uint64_t *cut, struct err *err)
{
	struct buf log = { 0 };
	enum err_code rc;
	size_t whole;

	rc = fs_read_file(path, LOG_BYTES_MAX, &log, err);
	if (rc == ERR_LIMIT)
		rc = ERR_OK;
	else if (!rc && (whole = store_log_whole(buf_str(&log))) < log.len) {
		log_warn("tsdb", "the end of a log was never synced, and is cut off", LOG_S("log", path),
			LOG_I("bytes", (int64_t)(log.len - whole)));
		rc = fs_write_file(fs, path, (struct str){ log.ptr, whole }, err);
		*cut += log.len - whole;
	}
	buf_release(&log);
	return rc;
}

enum err_code store_cut_logs(struct fs *fs, const char *dir, uint64_t *cut, struct err *err)
{
	struct arena a;
	struct str *names;
	size_t n;
	enum err_code rc;

	*cut = 0;
	arena_init(&a, 0);
	rc = fs_list(dir, &a, &names, &n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		char *path = path_join(&a, str_of(dir), names[i]);

		if (!path)
			rc = arena_fail(&a, "store", err);
		else if (str_has_suffix(names[i], STR(".log")))
			rc = store_log_cut(fs, path, cut, err);
	}
	arena_release(&a);
	return rc;
}
