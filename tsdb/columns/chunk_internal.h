/*
 * Chunk, inside: what its bytes are, shared by writing and reading. chunk_encode.c says why.
 *
 * Threads: as in chunk.h.
 * Source:  tsdb/FORMAT.md, "Chunks".
 */
#ifndef TSDB_COLUMNS_CHUNK_INTERNAL_H
#define TSDB_COLUMNS_CHUNK_INTERNAL_H

#include <zstd.h>

#include "tsdb/columns/chunk.h"
#include "tsdb/columns/chunk_bits.h"

#define CHUNK_VERSION 2
#define CHUNK_VERSION_ONE_STREAM 1 /* and of chunks of few keys */
#define CHUNK_STREAMS_KEYS 128u /* fewer are read as fast from one stream */
#define CHUNK_LABELS 1u
#define CHUNK_ANEW 2u

/* The most samples of all rows per byte of the chunk that a reader accepts. */
#define CHUNK_SAMPLES_PER_BYTE 2048u
/* zstd makes at most this of a byte. */
#define CHUNK_INFLATION_MAX 32768u

/* A column's coding (coding.h) is a byte: one of these, with flags. */
enum column_kind { COLUMN_ZERO, COLUMN_MULTIPLE, COLUMN_COUNTED, COLUMN_PLAIN, COLUMN_LIKE };
#define COLUMN_SCALED 0x08u /* cells are numbers, each key's times its unit, cut */
#define COLUMN_LEVELS 0x10u /* cells are differences to the row before; plain */
#define COLUMN_SHARED 0x20u /* the places are those of an earlier column */
#define COLUMN_SUMS 0x40u /* plain: sums of the keys are stored too */
#define COLUMN_SIGNED 0x80u /* plain: zigzag */

/* Sections of a column, in this order; those that its coding has no use for are left out. */
enum column_section {
	SECTION_TOKENS, /* a byte per key: class of the number, class of the rest of the sum */
	SECTION_EXTRA, /* bits that the classes leave open */
	SECTION_PLACES, /* bits: the rows of each key */
	SECTION_VALUES, /* bits (counted) or varints (plain) */
	SECTION_SUMS, /* plain: varints of each key that has cells: sum, zigzag if signed */
	SECTION_UNITS, /* scaled: varints of each key that has cells */
	SECTION_PHASES, /* scaled: bits of each that has a unit */
	COLUMN_SECTIONS
};

#define SECTION_BIT(s) (1u << (s))

/* Classes of numbers: exact up to 7, then ranges of doubling width. The last: bits, then as many.
 */
#define TOKEN_CLASSES 16u
#define TOKEN_OPEN 15u
#define TOKEN_OPEN_BITS 6u
extern const uint16_t token_base[TOKEN_CLASSES];
extern const uint8_t token_bits[TOKEN_CLASSES];
#define TOKENS_OPEN \
	UINT64_C(0x8888888888888888) /* of eight tokens: classes that have bits elsewhere */

/* The number of a class. */
static inline uint64_t chunk_token_take(struct bit_in *extra, unsigned class)
{
	if (class < 8)
		return class;
	if (class < TOKEN_OPEN)
		return token_base[class] + bits_take(extra, token_bits[class]);
	return bits_take_long(extra, (unsigned)bits_take(extra, TOKEN_OPEN_BITS));
}

struct chunk_section {
	const unsigned char *at; /* as stored */
	size_t stored, raw; /* bytes; equal: not compressed */
};

struct coding;

struct chunk_column {
	const struct coding *coding;
	unsigned flags; /* the coding's byte as stored */
	uint32_t base; /* whose cells these are: itself, or the column it is a multiple of */
	uint32_t places; /* whose places these are: itself, or an earlier one */
	uint32_t like; /* whose numbers these are: itself, or an earlier one */
	uint64_t factor;
	struct chunk_section sections[COLUMN_SECTIONS];
	int64_t *totals;
	bool known;
};

/* Memory that is kept between chunks. */
struct room {
	void *at;
	size_t cap;
};

enum chunk_room {
	ROOM_HEADS,
	ROOM_IDS,
	ROOM_SECTIONS, /* one per section */
	ROOM_REF = ROOM_SECTIONS + COLUMN_SECTIONS, /* tokens and extra of whose places are shared */
	ROOM_REF_VALUES = ROOM_REF + 2, /* numbers of whom it is like */
	ROOM_ROWS,
	ROOM_TOTALS,
	ROOM_STACKS,
	ROOM_SETS,
	ROOM_COUNTS,
	ROOM_REST,
	ROOM_UNITS,
	ROOM_UNITS_LAST,
	ROOM_SLOTS,
	ROOM_SLOTS_BY_SET,
	ROOM_PRESENT,
	ROOM_CHECKED,
	ROOM_UNPACKED,
	ROOM_UNPACKED_IDS,
	ROOM_UNPACKED_VALUES,
	ROOM_TAIL_STACKS,
	ROOM_TAIL_SETS,
	ROOM_TAIL_VALUES,
	ROOM_ORDER,
	ROOM_CLASSES,
	ROOM_STARTS,
	ROOM_CELL_PLACES,
	ROOM_CELL_VALUES,
	ROOM_BOUNDS,
	ROOM_SUMS,
	CHUNK_ROOMS
};

struct chunk {
	struct str bytes;
	unsigned flags;
	int64_t interval_ns;
	uint32_t rows_n, columns_n, keys_n, stack_max, set_max;
	uint32_t anew; /* row at which the process began anew; 0: at none */
	uint64_t samples_n;
	struct chunk_section heads, stacks, sets;
	struct chunk_column columns[ROW_COLUMNS_MAX + 1]; /* the last: entries that are all 0 */
	uint32_t order[ROW_COLUMNS_MAX + 1]; /* of columns, as they are stored */
	struct chunk_row *rows;
	uint8_t parameters[CHUNK_ROWS_MAX / 2 + 1]; /* by number, for as many rows as parameters_of */
	uint32_t parameters_of;
	bool streams; /* places and counted values are in streams */
	struct chunk_order key_order; /* of the streams in hand */
	bool ids_known, slots_known;
	const uint32_t *key_stacks, *key_sets; /* sets NULL: all 0 */
	struct room rooms[CHUNK_ROOMS];
	ZSTD_DCtx *zstd;
};

enum err_code chunk_corrupt(struct err *err, const char *what);
/* Reads the number of an earlier column, which must be neither zero nor a multiple; false: it is
 * another. */
bool chunk_take_reference(const struct chunk *c, struct cursor *in, uint32_t *out);
/* bytes of memory, what was in it is lost; NULL: out of memory */
void *chunk_room(struct chunk *c, unsigned room, size_t bytes);
/* A section's bytes, BITS_PAD more behind them. */
MUST_CHECK enum err_code chunk_section(struct chunk *c, const struct chunk_section *s,
	unsigned room, const unsigned char **out, struct err *err);
MUST_CHECK enum err_code chunk_ids(struct chunk *c, struct err *err);

/* Places of a column's cells, and numbers and rests of sums, for all keys. */
struct column_counts {
	const uint16_t *counts;
	const uint64_t *rests; /* counted: sum - number; levels: 1 if there in the first row */
};

MUST_CHECK enum err_code chunk_counts(
	struct chunk *c, uint32_t column, struct column_counts *out, struct err *err);

/*
 * Scaled: if s is the running sum of a key's numbers (of levels: the number that the level is), the
 * running sum of its cells is (phase + s x unit) >> UNIT_BITS. Programs that sample events scale
 * their counts in this way: Go's heap profile has events times the mean size that one represents,
 * cut to integers, and a total of many scrapes is cut only once. Where a process began anew its
 * counts do too: from that row on running sums (not levels) begin at 0, with no phase.
 */
#define UNIT_BITS 32u
#define UNIT_MAX (UINT64_C(1) << 62)
enum unit_code { UNIT_AS_BEFORE, UNIT_NONE, UNIT_SHIFTED }; /* and so many bits */

struct key_unit {
	uint64_t unit; /* 0: cells are not scaled */
	uint64_t phase; /* below 2^UNIT_BITS */
};

static inline uint64_t key_unit_times(const struct key_unit *u, uint64_t sum)
{
	return (uint64_t)((u->phase + (unsigned __int128)sum * u->unit) >> UNIT_BITS);
}

/* Keys share a unit by label set: the first key with the same set. NULL sets: each has its own.
 * by_set: room for slots_cap(n). */
size_t slots_cap(uint32_t n);
void chunk_slots_find(const uint32_t *sets, uint32_t n, uint32_t *by_set, uint32_t *slots);
/* Units of the keys that have cells by n; those of other keys are undefined. */
MUST_CHECK enum err_code chunk_units(struct chunk *c, uint32_t column,
	const struct column_counts *n, const struct key_unit **out, struct err *err);

/* Reads the cells of a column, key by key. */
struct column_reader {
	const struct coding *coding; /* of the column whose numbers they are */
	unsigned flags; /* of that one */
	bool like;
	const struct key_unit *units; /* NULL: not scaled */
	uint32_t rows_n; /* that places are among: of levels, one fewer */
	uint32_t anew; /* scaled, not levels: as of the chunk */
	const uint8_t *parameters; /* of subsets, by their number */
	struct column_counts n;
	struct bit_in places, bits;
	struct cursor values;
	struct cursor raw; /* like another, of keys without a unit */
	/* Of chunks with streams, instead of places and bits: */
	struct chunk *streams; /* the chunk; NULL: one without */
	struct chunk_streams places_streams, bits_streams;
	const uint16_t *taken_places; /* of the keys to come, one after the other */
	const int64_t *taken_values; /* the same, of those that have bits */
};

enum reading { READ_CELLS, READ_SUMS };
/* What is read then: cells of all keys in their order, or, of a counted column that is not scaled,
 * sums. */
MUST_CHECK enum err_code column_reader_open(
	struct chunk *c, uint32_t column, enum reading how, struct column_reader *out, struct err *err);
/* count places of the next key, ascending; false: corrupt */
bool column_reader_places(struct column_reader *r, uint32_t count, uint16_t *out);
/*
 * The cells of a key, its column's factor apart: n places and values; of levels the differences,
 * whose first has no place where n.rests says that the key is in the first row. False: corrupt.
 */
bool column_reader_cells(struct column_reader *r, uint32_t key, uint16_t *places, int64_t *values);
#define CHUNK_BATCH 1024u /* keys at a time */
/* Counted, not scaled: sums in the rows [from, to) of the next n keys, of a batch at most. False:
 * corrupt. Not of streams. */
bool column_reader_sums(
	struct column_reader *r, uint32_t key, uint32_t n, uint32_t from, uint32_t to, uint64_t *out);
/* The same of all keys, from streams, which are read to their ends. lanes: four keys at a time,
 * where chunk_lanes_are_there; the sums are the same. */
MUST_CHECK enum err_code column_reader_sums_all(struct column_reader *r, uint32_t from, uint32_t to,
	bool lanes, const uint64_t **out, struct err *err);
/* Rows, cells of a key, or sums of them: what is before a range, and before its end. */
struct bounds {
	uint32_t first, end;
};

/* A range that begins with the first row, or ends with the last, has one known bound. */
enum range { RANGE_HEAD, RANGE_TAIL, RANGE_INSIDE };

/* Cells of a key that are before the range, and before its end. */
struct part_cells {
	uint16_t first, end;
};

/* Sums of all keys in a range of rows, from streams (chunk_part.c, chunk_lanes.c). */
struct chunk_part {
	struct column_reader *r;
	struct bounds rows;
	struct part_cells *cells; /* of each key */
	uint64_t *sums; /* of each key */
};

#define QUICK_REST (1u << 16) /* rests below that are quick */

/* The bounds that are asked for: of a range at either end it is one, twice. */
static inline struct bounds chunk_part_asked(struct bounds of, enum range range)
{
	return (struct bounds){ range == RANGE_HEAD ? of.end : of.first, of.end };
}

static inline __attribute__((always_inline)) void chunk_part_put_cells(
	struct chunk_part *p, uint32_t key, uint32_t count, struct bounds cells, enum range range)
{
	uint32_t first = range == RANGE_HEAD ? 0 : cells.first;
	uint32_t end = range == RANGE_HEAD ? cells.first : range == RANGE_TAIL ? count : cells.end;

	p->cells[key] = (struct part_cells){ (uint16_t)first, (uint16_t)end };
	p->sums[key] = (end - first) * (count > 1 ? 1 : p->r->n.rests[key] + 1);
}

/* Sort the keys; and the cells of keys that are in all rows, or in none. */
void chunk_part_order_places(struct chunk_part *p);
void chunk_part_order_values(struct chunk_part *p);
/* The i-th key of the order; false: corrupt. */
bool chunk_part_find_key(struct chunk_part *p, struct chunk_streams *s, uint32_t i,
	struct bounds asked, enum range range);
bool chunk_part_sum_key(
	struct chunk_part *p, struct chunk_streams *s, uint32_t i, enum range range);

bool chunk_lanes_are_there(void);
bool chunk_lanes_sum(struct chunk_part *p); /* false: corrupt */

/* True if all was there and was read to its end. */
bool column_reader_done(const struct column_reader *r);

/* Plain columns. */
static inline int64_t column_reader_value(struct column_reader *r)
{
	uint64_t v = cursor_varint(&r->values);

	return r->flags & COLUMN_SIGNED ? str_unzigzag(v) : (int64_t)v;
}

/* One column of one chunk, before it is bytes (chunk_encode.c to chunk_encode_column.c). */
struct column_in {
	uint32_t rows_n, keys_n;
	const size_t *starts; /* of key k: cells starts[k] to starts[k + 1] */
	const uint16_t *rows; /* per cell, ascending within its key */
	const int64_t *values; /* per cell, divided by the factor; 0 is no cell */
	const int64_t *others; /* numbers of the column others_of, already written; or NULL */
	uint32_t others_of;
	bool levels_too; /* differences may be tried */
	uint32_t anew; /* row at which the process began anew; 0: at none */
	const uint32_t *slots; /* of keys */
	int64_t *numbers; /* out, per cell, where the coding is scaled */
};

/* A column that is written, for later columns that refer to it. */
struct column_done {
	uint16_t *counts;
	uint8_t *starts;
	struct buf places;
	const struct coding *coding;
};

/* Finds units (chunk_scale.c); one slot per key. False: there are none worth it. */
struct chunk_scale {
	struct key_unit *units;
	uint64_t *low, *high, *guess; /* by slot */
	struct buf codes;
	struct bit_out phases;
	int64_t sums[CHUNK_ROWS_MAX], numbers[CHUNK_ROWS_MAX]; /* of a key: points on its line */
	uint16_t rows[CHUNK_ROWS_MAX];
	uint32_t n, anew; /* points; the first one since the process began anew */
	uint32_t broken; /* row at which the lines of many keys end; 0: at none */
	bool clear; /* with it all lines go on */
};

/* s->broken says where the process may have begun anew: it is for the caller to try. */
bool scale_open(struct chunk_scale *s, uint32_t keys_n);
void scale_close(struct chunk_scale *s);
/* Numbers of cells go to in->numbers, where a key has no unit the values. */
bool scale_own(struct chunk_scale *s, const struct column_in *in, bool levels);
/* As multiples of in->others. */
bool scale_like(struct chunk_scale *s, const struct column_in *in, bool levels);

struct column_encoder;
struct column_encoder *column_encoder_open(uint32_t rows_n, uint32_t keys_n);
uint32_t column_encoder_broken(const struct column_encoder *e); /* scale's */
bool column_encoder_broken_clearly(const struct column_encoder *e);
void column_encoder_close(struct column_encoder *e);
bool column_encode(struct column_encoder *e, const struct column_in *in, bool compress,
	uint32_t column, uint64_t factor, struct column_done *done, struct buf *out);
/* How zstd takes a section: for bytes that repeat others, or numbers that are only small, which it
 * would take for repeated ones: matches of a few bytes cost more than their Huffman codes. */
enum packing { PACK_NOT, PACK_REPEATED, PACK_SMALL };
void section_put(ZSTD_CCtx *zstd, const struct buf *raw, enum packing how, struct buf *out);

#endif
