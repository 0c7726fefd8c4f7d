/*
 * Segments: batches of a window's store, as they were committed, in a file or an object.
 *
 * A file grows by a batch at a time and may end in half of one; it is packed (compressed, with its
 * last batch in its head) before it is put elsewhere. A *snapshot* is a packed segment of batches 1
 * to last that has all records which the store had at the last one, each once.
 *
 * Units:     times in nanoseconds since 1970; sizes in bytes; batches are numbered from 1.
 * Errors:    ERR_CORRUPT (names the byte), ERR_UNSUPPORTED (a later version), ERR_LIMIT (names the
 *            limit), ERR_IO, ERR_NOT_FOUND (no such file), ERR_NOMEM.
 * Ownership: open functions hand *out to the caller; keys and records live until the next frame.
 * Threads:   one at a time each.
 * Source:    tsdb/FORMAT.md, "Segments".
 */
#ifndef TSDB_SEGMENTS_SEGMENTS_H
#define TSDB_SEGMENTS_SEGMENTS_H

#include "base/fs.h"

#define SEGMENT_KEY_MAX 16u
#define SEGMENT_RECORD_BYTES_MAX (256u << 20)
#define SEGMENT_FRAME_BYTES (1u << 20) /* a frame ends with the record that passes this */
/* Of a frame's records: a reader needs no more memory than a small multiple of it. */
#define SEGMENT_FRAME_BYTES_MAX (SEGMENT_FRAME_BYTES + SEGMENT_RECORD_BYTES_MAX + 64u)
#define SEGMENT_FILE ".segment." /* in the name of each file of a segment */
#define SEGMENT_HEAD_BYTES 54u

struct segment {
	int64_t start_ns, end_ns; /* of the window */
	uint64_t identity;
	uint64_t first, last; /* batches; last 0: a file that is not packed does not say */
	bool packed;
};

void segment_encode_head(const struct segment *s, struct buf *out);
MUST_CHECK enum err_code segment_parse_head(struct str bytes, struct segment *out, struct err *err);

/* ---- one batch, appended to a buffer as frames ---- */

struct segment_batch {
	struct buf *out;
	size_t at; /* where the frame begins that is being filled */
	uint64_t first, last;
};
/* A batch is first == last; a snapshot is one batch 1 to last. */
void segment_batch_begin(struct segment_batch *b, struct buf *out, uint64_t first, uint64_t last);
void segment_batch_add(struct segment_batch *b, struct str key, struct str record);
void segment_batch_end(struct segment_batch *b);

/* ---- reading ---- */

struct segment_reader;
/* Reads bytes that live as long, or a file; packed or not. */
MUST_CHECK enum err_code segment_reader_open(
	struct str bytes, struct segment_reader **out, struct err *err);
MUST_CHECK enum err_code segment_reader_open_file(
	const char *path, struct segment_reader **out, struct err *err);
void segment_reader_close(struct segment_reader *r); /* NULL is fine */
const struct segment *segment_reader_head(const struct segment_reader *r);

struct segment_frame {
	uint64_t first, last; /* batches that its records belong to */
	bool more; /* the next frame has more of the same */
	struct str bytes; /* the frame as it is stored */
	struct str records; /* for segment_record_next */
};
/* The next frame, its checksum compared and its records whole. ERR_NOT_FOUND behind the last. */
MUST_CHECK enum err_code segment_reader_next(
	struct segment_reader *r, struct segment_frame *out, struct err *err);
/* Takes a record off *records; false: there are no more. */
bool segment_record_next(struct str *records, struct str *key, struct str *record);

/* The last whole batch of a file that is not packed, up to last_max (0: none), and the bytes up to
 * its end. What follows may be torn or damaged. ERR_CORRUPT: its head is. */
struct segment_whole {
	struct segment head;
	uint64_t last, bytes;
};
MUST_CHECK enum err_code segment_find_whole(
	const char *path, uint64_t last_max, struct segment_whole *out, struct err *err);

/* ---- packed files ---- */

struct segment_writer;
/* Replaces the file. s->packed is not looked at. */
MUST_CHECK enum err_code segment_writer_open(struct fs *fs, const char *path,
	const struct segment *s, struct segment_writer **out, struct err *err);
/* Records of a snapshot; ascending by key, as a store has them. */
MUST_CHECK enum err_code segment_writer_add(
	struct segment_writer *w, struct str key, struct str record, struct err *err);
/* Ends the file, not synced; *bytes: its size. The writer is closed in any case. */
MUST_CHECK enum err_code segment_writer_end(
	struct segment_writer *w, uint64_t *bytes, struct err *err);
void segment_writer_close(struct segment_writer *w); /* gives up and removes the file; NULL is fine
													  */
/* Packs a file's batches up to `last`, which it must have, into another file, not synced. */
MUST_CHECK enum err_code segment_pack(struct fs *fs, const char *from, uint64_t last,
	const char *to, struct segment *head, uint64_t *bytes, struct err *err);

#endif
