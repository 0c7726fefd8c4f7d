/*
 * Segments, the inside: the layout of a frame.
 *
 * Source: tsdb/FORMAT.md, "Segments".
 */
#ifndef TSDB_SEGMENTS_SEGMENTS_INTERNAL_H
#define TSDB_SEGMENTS_SEGMENTS_INTERNAL_H

#include "tsdb/segments/segments.h"

#define SEGMENT_VERSION 1

#define FRAME_FLAGS_AT 4u /* behind the length of its records, be32 */
#define FRAME_FIRST_AT 5u
#define FRAME_LAST_AT 13u
#define FRAME_CRC_AT 21u
#define FRAME_HEAD_BYTES 25u
#define FRAME_MORE 1

/* CRC-32C of a whole frame but for its checksum. */
uint32_t segment_frame_crc(const char *frame, size_t bytes);

#endif
