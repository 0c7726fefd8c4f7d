/*
 * The metadata event: what classes there are, and their fields in order.
 *
 * It is a table of strings, and a tree whose elements have a name, attributes (key and value) and
 * children, all of them indexes of strings or counts:
 *
 *	root
 *		metadata
 *			class (id, name, superType, simpleType)
 *				field (name, class, constantPool, dimension)
 *					annotation (class, value ...)
 *		region (locale, gmtOffset)
 *
 * Elements and attributes that are not known are skipped.
 */
#include "base/array.h"
#include "proto/jfr/decoder.h"

#define TREE_DEPTH_MAX 16

enum word {
	WORD_NONE,
	WORD_CLASS,
	WORD_FIELD,
	WORD_ANNOTATION,
	WORD_ID,
	WORD_NAME,
	WORD_CONSTANT_POOL,
	WORD_DIMENSION,
	WORD_VALUE,
	WORDS
};

static const struct str words[] = { STR(""),
	STR("class"),
		STR("field"),
			STR("annotation"),
				STR("id"), STR("name"), STR("constantPool"), STR("dimension"), STR("value") };

struct annotation {
	uint32_t field;
	uint64_t class_id;
	struct str value;
};

struct jfr_metadata {
	struct jfr_chunk *c;
	unsigned char *word_of; /* of each string */
	struct annotation *annotations; /* that have a value: one of them may be the unit of time */
	uint32_t annotations_n, annotations_cap;
	enum err_code rc; /* of what is not a matter of bytes */
};

static enum err_code jfr_limit(struct jfr_chunk *c, const char *what)
{
	return err_set(c->d->err, ERR_LIMIT, "chunk %u: more than %u %s", c->number,
		c->d->limits->elements_max, what);
}

/* The place in an array in the chunk's arena for one more item. */
#define ADD(m, v, n, cap, what) \
	((m)->rc = (n) >= (m)->c->d->limits->elements_max ? \
			jfr_limit((m)->c, what) : \
			!arena_array_room(&(m)->c->d->chunk_arena, &(v), (n), 1, &(cap)) ? \
			arena_fail(&(m)->c->d->chunk_arena, what, (m)->c->d->err) : \
			ERR_OK)

static bool jfr_metadata_bad_number(
	struct jfr_metadata *m, const char *what, struct str of, struct str number)
{
	m->rc = err_set(m->c->d->err, ERR_INVALID,
		"chunk %u: metadata: %s " STR_FMT " has id '" STR_FMT "'", m->c->number, what, STR_ARG(of),
		STR_ARG(number));
	return false;
}

static bool jfr_metadata_add_class(struct jfr_metadata *m, const struct str *attributes)
{
	struct jfr_chunk *c = m->c;
	struct jfr_class *class;

	if (ADD(m, c->classes, c->classes_n, c->classes_cap, "classes"))
		return false;
	class = &c->classes[c->classes_n];
	*class = (struct jfr_class){ .name = attributes[WORD_NAME], .field_first = c->fields_n };
	if (!str_to_u64(attributes[WORD_ID], &class->id))
		return jfr_metadata_bad_number(m, "class", class->name, attributes[WORD_ID]);
	c->classes_n++;
	return true;
}

static bool jfr_metadata_add_field(struct jfr_metadata *m, const struct str *attributes)
{
	struct jfr_chunk *c = m->c;
	struct jfr_field *f;

	if (ADD(m, c->fields, c->fields_n, c->fields_cap, "fields"))
		return false;
	f = &c->fields[c->fields_n];
	*f = (struct jfr_field){ .name = attributes[WORD_NAME] };
	if (!str_to_u64(attributes[WORD_CLASS], &f->class_id))
		return jfr_metadata_bad_number(m, "the class of field", f->name, attributes[WORD_CLASS]);
	f->pool = str_is(attributes[WORD_CONSTANT_POOL], "true");
	f->array = attributes[WORD_DIMENSION].len && !str_is(attributes[WORD_DIMENSION], "0");
	c->fields_n++;
	c->classes[c->classes_n - 1].field_n++;
	return true;
}

static bool jfr_metadata_add_annotation(struct jfr_metadata *m, const struct str *attributes)
{
	struct annotation a = { .field = m->c->fields_n - 1, .value = attributes[WORD_VALUE] };

	if (!a.value.len || !str_to_u64(attributes[WORD_CLASS], &a.class_id))
		return true;
	if (ADD(m, m->annotations, m->annotations_n, m->annotations_cap, "annotations"))
		return false;
	m->annotations[m->annotations_n++] = a;
	return true;
}

static bool jfr_metadata_string_at(struct jfr_metadata *m, struct cursor *c, uint32_t *out)
{
	uint64_t i = jfr_varint(c);

	if (!c->bad && i < m->c->strings_n) {
		*out = (uint32_t)i;
		return true;
	}
	if (!c->bad)
		m->c->why = "names a string that is not there";
	c->bad = true;
	return false;
}

/* of: the element around it. */
static bool jfr_metadata_element(
	struct jfr_metadata *m, struct cursor *c, enum word of, unsigned depth)
{
	struct str attributes[WORDS] = { 0 };
	uint32_t name, key, value;
	enum word word;

	if (depth > TREE_DEPTH_MAX) {
		m->c->why = "its elements nest too deep";
		c->bad = true;
		return false;
	}
	if (!jfr_metadata_string_at(m, c, &name))
		return false;
	for (uint64_t n = jfr_varint(c); n && !c->bad; n--) {
		if (!jfr_metadata_string_at(m, c, &key) || !jfr_metadata_string_at(m, c, &value))
			return false;
		attributes[m->word_of[key]] = m->c->strings[value];
	}
	word = m->word_of[name];
	/* Fields of one class are neighbours, so a class is not within a class, nor a field anywhere.
	 */
	if (word == WORD_CLASS && of == WORD_NONE && !jfr_metadata_add_class(m, attributes))
		return false;
	else if (word == WORD_FIELD && of == WORD_CLASS && !jfr_metadata_add_field(m, attributes))
		return false;
	else if (word == WORD_ANNOTATION && of == WORD_FIELD &&
		!jfr_metadata_add_annotation(m, attributes))
		return false;
	if (!(of == WORD_NONE && (word == WORD_NONE || word == WORD_CLASS)) &&
		!(of == WORD_CLASS && word == WORD_FIELD))
		word = WORD_VALUE; /* nothing in it counts */
	for (uint64_t n = jfr_varint(c); n && !c->bad; n--)
		if (!jfr_metadata_element(m, c, word, depth + 1))
			return false;
	return !c->bad;
}

static enum err_code jfr_metadata_read_strings(struct jfr_metadata *m, struct cursor *cursor)
{
	struct jfr_chunk *c = m->c;
	uint64_t n = jfr_varint(cursor);

	if (cursor->bad || n > cursor_left(cursor)) {
		cursor->bad = true;
		return ERR_OK;
	}
	if (n > c->d->limits->elements_max)
		return jfr_limit(c, "strings in its metadata");
	c->strings = arena_array(&c->d->chunk_arena, struct str, (size_t)n);
	m->word_of = arena_array(&c->d->chunk_arena, unsigned char, (size_t)n);
	if (!c->strings || !m->word_of)
		return arena_fail(&c->d->chunk_arena, "metadata", c->d->err);
	for (c->strings_n = 0; c->strings_n < n && !cursor->bad; c->strings_n++) {
		struct jfr_value v;

		jfr_string(cursor, &v); /* those in Latin-1 or UTF-16 stay so: they are only compared */
		c->strings[c->strings_n] = v.bytes;
		for (unsigned w = WORD_CLASS; w < WORDS; w++)
			if (str_eq(v.bytes, words[w]))
				m->word_of[c->strings_n] = (unsigned char)w;
	}
	return ERR_OK;
}

static enum jfr_kind jfr_kind_of(const struct jfr_class *class)
{
	static const struct {
		const char *name;
		enum jfr_kind kind;
	} plain[] = { { "long", KIND_LONG }, { "int", KIND_INT }, { "short", KIND_SHORT },
		{ "char", KIND_CHAR }, { "byte", KIND_BYTE }, { "boolean", KIND_BOOLEAN },
		{ "float", KIND_FLOAT }, { "double", KIND_DOUBLE }, { "java.lang.String", KIND_STRING } };

	if (class->field_n)
		return KIND_STRUCT;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (str_is(class->name, plain[i].name))
			return plain[i].kind;
	return KIND_UNKNOWN;
}

static enum err_code jfr_metadata_resolve(struct jfr_metadata *m)
{
	struct jfr_chunk *c = m->c;
	enum err_code rc = jfr_index_init(
		&c->by_id, c->d, &c->d->chunk_arena, c->classes, sizeof(*c->classes), c->classes_n);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < c->fields_n; i++) {
		struct jfr_field *f = &c->fields[i];

		f->class = jfr_index_find(&c->by_id, f->class_id);
		if (f->pool)
			f->kind = KIND_REF;
		else if (f->class != JFR_NONE)
			f->kind = jfr_kind_of(&c->classes[f->class]);
	}
	for (uint32_t i = 0; i < c->classes_n; i++) {
		struct jfr_class *class = &c->classes[i];

		class->varints = true;
		for (uint32_t j = class->field_first; j < class->field_first + class->field_n; j++)
			class->varints &= !c->fields[j].array && c->fields[j].kind != KIND_UNKNOWN &&
				c->fields[j].kind <= KIND_REF;
	}
	for (uint32_t i = 0; i < m->annotations_n; i++) {
		const struct annotation *a = &m->annotations[i];
		uint32_t class = jfr_index_find(&c->by_id, a->class_id);

		if (class != JFR_NONE && str_is(c->classes[class].name, "jdk.jfr.Timespan"))
			c->fields[a->field].timespan = a->value;
	}
	return ERR_OK;
}

enum err_code jfr_metadata(struct jfr_chunk *c)
{
	struct jfr_metadata m = { .c = c };
	struct cursor r = jfr_cursor(c->d, c->metadata_at, c->end), whole = r;
	uint64_t size = jfr_varint(&r);

	if (r.bad || size > cursor_left(&whole))
		return jfr_value_fail(c, c->metadata_at, "metadata");
	r.end = whole.at + size;
	if (jfr_varint(&r) != 0) {
		c->why = "is another event";
		return jfr_value_fail(c, c->metadata_at, "metadata");
	}
	for (int i = 0; i < 3; i++) /* start, duration, id of the metadata */
		jfr_varint(&r);
	if ((m.rc = jfr_metadata_read_strings(&m, &r)))
		return m.rc;
	if (r.bad || !jfr_metadata_element(&m, &r, WORD_NONE, 0))
		return m.rc ? m.rc : jfr_value_fail(c, jfr_offset(c->d, &r), "metadata");
	return jfr_metadata_resolve(&m);
}
