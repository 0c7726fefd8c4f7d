/* Which classes and fields we read, by their names. All else is skipped. */
#include "proto/jfr/decoder.h"

#define SPANS "contextId", "spanId", "spanName", "traceIdHi", "traceIdLo"
#define PLAIN "stackTrace", NULL, SPANS
#define SAMPLED "stackTrace", "state", SPANS

/* The fields are in the order of the enums in decoder.h. */
/* clang-format off */
static const struct {
	const char *class;
	enum jfr_role role;
	const char *fields[SLOTS];
} known[] = {
	{ "java.lang.String",                 ROLE_STRING,       { NULL } },
	{ "jdk.types.Symbol",                 ROLE_TEXT,         { "string" } },
	{ "jdk.types.FrameType",              ROLE_TEXT,         { "description" } },
	{ "jdk.types.ThreadState",            ROLE_TEXT,         { "name" } },
	{ "java.lang.Class",                  ROLE_TEXT,         { "name" } },
	{ "jdk.types.Method",                 ROLE_METHOD,       { "type", "name" } },
	{ "jdk.types.StackTrace",             ROLE_TRACE,        { "truncated", "frames" } },
	{ "jdk.types.StackFrame",             ROLE_FRAME,        { "method", "lineNumber", "type" } },
	{ "jdk.ActiveSetting",                ROLE_SETTING,      { "id", "name", "value" } },
	{ "jdk.ExecutionSample",              ROLE_EXECUTION,    { SAMPLED } },
	{ "jdk.CPUTimeSample",                ROLE_CPU_TIME,     { PLAIN, "samplingPeriod" } },
	{ "jdk.CPUTimeSamplesLost",           ROLE_CPU_LOST,     { PLAIN, "lostSamples" } },
	{ "profiler.WallClockSample",         ROLE_WALL,         { SAMPLED, "samples" } },
	{ "jdk.ObjectAllocationInNewTLAB",    ROLE_IN_TLAB,      { PLAIN, "tlabSize" } },
	{ "jdk.ObjectAllocationOutsideTLAB",  ROLE_OUT_TLAB,     { PLAIN, "allocationSize" } },
	{ "jdk.ObjectAllocationSample",       ROLE_ALLOC_SAMPLE, { PLAIN, "weight" } },
	{ "jdk.JavaMonitorEnter",             ROLE_MONITOR,      { PLAIN, "duration" } },
	{ "jdk.ThreadPark",                   ROLE_PARK,         { PLAIN, "duration" } },
	{ "profiler.LiveObject",              ROLE_LIVE,         { PLAIN, "allocationSize" } },
	{ "jdk.OldObjectSample",              ROLE_OLD,          { PLAIN, "objectSize", "startTime" } },
	{ "profiler.Malloc",                  ROLE_MALLOC,       { PLAIN, "size" } },
};
/* clang-format on */

static void jfr_bind(struct jfr_chunk *c, struct jfr_class *class, const char *const *fields)
{
	for (uint32_t i = class->field_first; i < class->field_first + class->field_n; i++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			if (fields[slot] && class->field_of[slot] == JFR_NONE &&
				str_is(c->fields[i].name, fields[slot])) {
				class->field_of[slot] = i;
				c->slots[i] = (unsigned char)slot;
			}
}

enum err_code jfr_roles(struct jfr_chunk *c)
{
	c->string_class = JFR_NONE;
	if (!(c->slots = arena_alloc(&c->d->chunk_arena, c->fields_n ? c->fields_n : 1)))
		return arena_fail(&c->d->chunk_arena, "fields", c->d->err);
	memset(c->slots, SLOTS, c->fields_n);
	for (uint32_t i = 0; i < c->classes_n; i++) {
		struct jfr_class *class = &c->classes[i];

		for (unsigned slot = 0; slot < SLOTS; slot++)
			class->field_of[slot] = JFR_NONE;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++) {
			if (!str_is(class->name, known[k].class))
				continue;
			if (known[k].role == ROLE_STRING && class->field_n)
				continue; /* a string has an encoding, no fields */
			class->role = known[k].role;
			jfr_bind(c, class, known[k].fields);
			if (class->role == ROLE_STRING && c->string_class == JFR_NONE)
				c->string_class = i;
		}
	}
	return ERR_OK;
}
