/*
 * fuzz: web/debuginfo
 * What senders of debug data send. The first byte says which: a request of the protocol, as
 * protobuf or as JSON; or a file or the first bytes of one, whose key is one that can be a file
 * name, and the same when it is looked for again.
 */
#include "tests/fuzz/fuzz.h"
#include "web/debuginfo/binaries.h"
#include "web/debuginfo/file.h"
#include "web/pyroscope/pyroscope.h"

#define ARENA_BYTES (64u << 20)

static void check_key(const struct debuginfo_id *id)
{
	struct debuginfo_id again;
	struct buf stem = { 0 };

	require(id->len);
	debuginfo_id_stem(id, &stem);
	require(debuginfo_id_of_stem(buf_str(&stem), &again) && debuginfo_id_eq(id, &again));
	buf_release(&stem);
}

static void take_file(struct str head, bool goes_on)
{
	struct debuginfo_file_ids ids;
	struct debuginfo_id id;
	struct err err;

	if (debuginfo_file_ids(head, goes_on, &ids, &err)) {
		require(err.msg[0]);
		return;
	}
	require(!ids.is_likely || (goes_on && ids.gnu.len));
	if (debuginfo_file_key(head, goes_on, false, &id, &err)) {
		require(!ids.gnu.len && !ids.go.len);
		return;
	}
	check_key(&id);
	require(debuginfo_id_eq(&id, ids.gnu.len ? &ids.gnu : &ids.go));
	require(!debuginfo_file_key(head, goes_on, true, &id, &err));
}

static void take_request(struct str body, bool finished, bool json)
{
	const ProtobufCMessageDescriptor *d = finished ?
		&epimetheus__pyroscope__upload_finished_request__descriptor :
		&epimetheus__pyroscope__should_initiate_upload_request__descriptor;
	ProtobufCMessage *m;
	struct debuginfo_id id;
	struct arena a;
	struct err err;

	arena_init(&a, ARENA_BYTES);
	if (!pyroscope_decode(&a, d, json, body, &m, &err) && !finished) {
		const Epimetheus__Pyroscope__ShouldInitiateUploadRequest *r = (const void *)m;

		if (r->file && debuginfo_id_guess(str_of(r->file->gnu_build_id), &id))
			check_key(&id);
	}
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data + 1, size - 1 };

	if (size == 0)
		return 0;
	if (data[0] & 4)
		take_file(rest, data[0] & 8);
	else
		take_request(rest, data[0] & 1, data[0] & 2);
	return 0;
}
