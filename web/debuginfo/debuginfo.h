/*
 * Debug data over HTTP: uploads in Pyroscope's protocol (Alloy) and by one plain request, and the
 * list of binaries with what is known of their symbols.
 *
 * The protocol: ShouldInitiateUpload asks; a yes announces the upload; Upload has the file as its
 * body; UploadFinished ends it. What was uploaded is durable when Upload is answered.
 *
 * Errors:  of the two calls: connect's JSON; of Upload: text; of the API's: its envelope. 404 where
 *          the server keeps no symbols, 409 not wanted, 412 not announced, 413, 429 and 503 with
 *          Retry-After.
 * Threads: handlers on workers; admissions on the receiving thread.
 * Source:  https://github.com/grafana/pyroscope, debuginfo.v1alpha1; proto/pyroscope.proto.
 */
#ifndef WEB_DEBUGINFO_DEBUGINFO_H
#define WEB_DEBUGINFO_DEBUGINFO_H

#include "web/router/router.h"

#define DEBUGINFO_SERVICE "/debuginfo.v1alpha1.DebuginfoService/"

route_fn debuginfo_should_upload, debuginfo_upload_finished; /* connect's unary calls */
route_fn debuginfo_upload; /* Upload/{gnu_build_id}; ROUTE_PIECES */
route_admit_fn debuginfo_admit_upload;
/*
 * /api/v1/symbols/upload?id=&kind=&content=&name=&force= with the file as its body; ROUTE_PIECES.
 * Without an id it is the file's.
 */
route_fn debuginfo_put;
route_admit_fn debuginfo_admit_put;
/*
 * /api/v1/symbols?start=&end=: binaries that profiles of that time name and that have locations
 * without lines, and those that have symbols. id=: this one alone, without what profiles say.
 */
route_fn debuginfo_symbols;

#endif
