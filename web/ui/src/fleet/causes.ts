// Why a scrape or a push failed, in words of what to look at: the likely cause of the server's error.

const hostIn = (url: string): { host: string; port: string; path: string; scheme: string } => {
	try {
		const u = new URL(url);
		const port = u.port || (u.protocol === "https:" ? "443" : "80");
		return { host: u.hostname, port, path: u.pathname, scheme: u.protocol.slice(0, -1) };
	} catch {
		return { host: "", port: "", path: "", scheme: "" };
	}
};

type At = ReturnType<typeof hostIn>;

const SELF = /self-signed|unable to get local issuer|unable to verify/i;

function ofTls(error: string, at: At): string {
	if (/wrong version number|unexpected eof|packet length/i.test(error))
		return `port ${at.port} speaks plain HTTP; remove "scheme: https"`;
	if (/hostname mismatch|not valid for|IP address mismatch/i.test(error))
		return `the certificate is for another name; set "tls_config: {server_name: ...}"`;
	if (/expired/i.test(error)) return "the certificate of the target has expired";
	if (SELF.test(error))
		return `the certificate's authority is unknown; set "tls_config: {ca_file: ...}"`;
	return "";
}

const STATUS: [RegExp, (at: At) => string][] = [
	[/^401/, () => 'credentials required; set "authorization" or "basic_auth"'],
	[/^403/, () => "access denied; check the rights of the credentials"],
	[
		/^404/,
		(at) => `no profile at ${at.path}; import net/http/pprof, or correct the path`,
	],
	[/^405/, () => "GET is not allowed; check the path"],
	[
		/^30\d.*follow_redirects: false/,
		() => 'redirect not followed; set the final address, or remove "follow_redirects: false"',
	],
	[/^30\d/, () => "redirect to another address; set that address"],
	[/^50[234]/, (at) => `the proxy at port ${at.port} does not reach the program`],
	[/^500.*already (in use|running|started)/, () => "another profiler profiles the process all the time; reduce its seconds"],
	[/^5/, () => "the program failed to make the profile; check for another profiler"],
];

const LOGIN = /log-?in|sign-?in|sso|oauth|\bauth\b/i;

/** Where redirects led to: the error of an answer there says little about the target itself. */
function ofRedirect(error: string): string {
	const to = /; the target redirected to (\S+)$/.exec(error)?.[1];
	if (to === undefined) return "";
	if (LOGIN.test(to)) return 'redirect to a login page; set "authorization" or "basic_auth"';
	if (/^stopped after/.test(error)) return "redirect loop";
	return `redirect to ${to}; set that address if correct`;
}

/** A socket that cannot be connected to. */
function ofSocket(path: string, why: string): string {
	if (/No such file/.test(why)) return `no socket at ${path}; is the program running?`;
	if (/Permission denied/.test(why)) return `the server's user has no write permission on ${path}`;
	if (/Connection refused/.test(why)) return `nothing listens on ${path}; is the program running?`;
	return "";
}

/** The likely cause of a scrape's error; "" if the error says all that is known. */
export function causeOf(error: string, url: string): string {
	const at = hostIn(url);
	if (/^another profiler has had/.test(error)) return "another server may scrape the process for its whole interval";
	if (/set "scheme: https"$/.test(error)) return `port ${at.port} speaks TLS; add "scheme: https" to the job`;
	const moved = ofRedirect(error);
	if (moved) return moved;
	const status = /server returned HTTP status (.*)/.exec(error)?.[1];
	if (status !== undefined) return STATUS.find(([re]) => re.test(status))?.[1](at) ?? "";
	const socket = /^connect unix:\/\/(.*): (.*)$/.exec(error);
	if (socket) return ofSocket(socket[1], socket[2]);
	if (/Connection refused/i.test(error)) return `nothing listens on ${at.port}`;
	if (/^tls /.test(error)) return ofTls(error, at);
	if (/^lookup .*(not found|no data|NXDOMAIN)/i.test(error))
		return `host name ${at.host} not found; check the spelling`;
	if (/^lookup /.test(error)) return "no answer from the name server";
	if (/No route to host|Network is unreachable/i.test(error))
		return `no route to ${at.host}; check the network and firewalls`;
	if (/deadline exceeded|timed? ?out/i.test(error))
		return "no answer in time; check the program, scrape_timeout and firewalls";
	if (/connection closed without an answer/.test(error) && at.scheme === "http")
		return `no answer to plain HTTP; if port ${at.port} speaks TLS, set "scheme: https"`;
	if (/Connection reset/i.test(error)) return "connection closed by the program; a restart, or HTTP/2 only";
	if (/answers a web page|text\/html/.test(error))
		return `another program, or a login page, answers at ${at.path}`;
	if (/body size limit|bytes, limit/.test(error)) return "profile too large; see body_size_limit";
	return "";
}

/* ---- pushes ---- */

/** The likely cause of a refused push, and what to do. */
export interface PushCause {
	cause: string;
	cure: string;
}

const WEB_CONFIG = "--web.config.file";

/**
 * By `REASON: MESSAGE`, the first that fits; `$1` is what the pattern found. A reason alone is the
 * last resort, at the end.
 */
const PUSHES: [pattern: RegExp, cause: string, cure: string][] = [
	// who sends
	[
		/no credentials/,
		"The sender has no password and no token",
		`set those of a user: basic_auth_users or token_file in ${WEB_CONFIG}`,
	],
	[/unknown token/, "Unknown token", `compare it with the user's token_file in ${WEB_CONFIG}`],
	[
		/unknown name or password/,
		"Wrong name or password",
		`compare them with basic_auth_users in ${WEB_CONFIG}`,
	],
	[
		/^unauthorized.*proxy/,
		"Untrusted proxy",
		`compare addresses and headers with trusted_proxy in ${WEB_CONFIG}`,
	],
	[
		/^unauthorized/,
		"Missing or wrong credentials",
		`compare them with basic_auth_users and the token_file of users in ${WEB_CONFIG}`,
	],
	[
		/user (".*") lacks the role (\w+)/,
		"User $1 may not push",
		`add the role $2 to that user in ${WEB_CONFIG}`,
	],
	[
		/client certificate/,
		"Client certificate missing or not accepted",
		`give the sender a certificate, or change client_auth_type in ${WEB_CONFIG}`,
	],
	[
		/another site's page/,
		"Sent by a browser from another site",
		"set --web.external-url to the URL of this server's pages",
	],
	[/^forbidden/, "This user may not push", `see the roles of users in ${WEB_CONFIG}`],
	// where to
	[/ingest is disabled (on|with) /, "This server takes no profiles in", "send to a shard"],
	[/ingest is disabled/, "Pushes are off", "start the server with --web.enable-ingest"],
	[
		/no profiles accepted at "[^"]*(?:\/v1\w*\/profiles|otlp)/i,
		"Wrong path, maybe of another OTLP version",
		"send OTLP to /v1development/profiles; in exporters, set only this server's address",
	],
	[
		/no profiles accepted at/,
		"Wrong path",
		"send to one of these paths; in SDKs and exporters, set only this server's address",
	],
	[
		/is not a name of this server/,
		"Unknown host name",
		"allow the name with --web.allowed-host",
	],
	[
		/stores no profiles|open for reading only/,
		"This server stores no profiles",
		"send to the address of a shard",
	],
	// what is sent
	[
		/Content-Type must be/,
		"The body is neither protobuf nor JSON",
		"send OTLP as application/x-protobuf or application/json",
	],
	[
		/Content-Encoding (\S+) is unknown/,
		"Unsupported compression: $1",
		"use gzip, zstd or none",
	],
	[
		/Content-Encoding is gzip, the body is not/,
		"The header says compressed, the body is not",
		"check proxies: one may unpack the body and keep the header",
	],
	[
		/OTLP before 1\.8/,
		"The sender's OTLP is older than 1.8",
		"update the profiler and the collector",
	],
	[
		/not a pprof profile: it begins with "\s*<(?:!doctype|html|\?xml|head|body)/i,
		"A web page was sent as a profile",
		"check the address that the sender reads, and whether a login page answers",
	],
	[
		/not a pprof profile: it begins with "\s*[{[]/,
		"JSON was sent as a profile",
		"send pprof, or another format of this path",
	],
	[
		/not a pprof profile: it begins with/,
		"A text was sent as a profile",
		"send pprof: /debug/pprof without debug=1; check the path that the sender reads",
	],
	[
		/not pprof, folded stacks, speedscope/,
		"Unknown profile format",
		"send pprof, or another format of this path",
	],
	[
		/(?:profile|body|raw_profile|file) is empty/,
		"The profile is empty",
		"check that the profiler ran and the file exists",
	],
	[
		/multipart/,
		"Not a request of Pyroscope's SDKs",
		"update the SDK; from scripts, send the profile to /api/v1/ingest",
	],
	// when
	[
		/older than the retention/,
		"Profiles older than the retention time",
		"set the sender's clock, or see --storage.tsdb.retention.time",
	],
	[
		/is too old:/,
		"Profiles too late",
		"set the sender's clock, or see --storage.tsdb.out-of-order-time-window",
	],
	[
		/ahead of this server's clock/,
		"The sender's clock is ahead",
		"synchronize both clocks by NTP",
	],
	[
		/before 1970 or after 2116|at most a day/,
		"Wrong unit of time",
		"use nanoseconds in pprof and OTLP, seconds in from and until",
	],
	[/ were deleted$/, "Data of this series and time was deleted", "nothing to do, unless newer profiles are refused too"],
	[
		/invalid parameter "([^"]*)"/,
		"Wrong parameter $1",
		"correct the parameter as the message says",
	],
	// how much
	[
		/profiles_per_second/,
		"Too many profiles per second",
		"send at longer intervals, or raise profiles_per_second of push_config",
	],
	[
		/requests of this sender are in progress/,
		"Too many requests at once from one sender",
		"send fewer at once; a gateway counts as one sender",
	],
	[
		/--web\.max-body-memory-per-address/,
		"Too many bodies at once from one address",
		"if this repeats, raise --web.max-body-memory-per-address",
	],
	[/--web\.max-body-memory/, "Too many bodies at once", "if this repeats, raise --web.max-body-memory"],
	[
		/\d labels, limit|label name .* longer|the value of label .* longer|labels of the series are|in attributes, the limit|more than \d+ labels/,
		"Too many or too long labels",
		"drop some with drop_labels or relabel_configs of push_config",
	],
	[
		/is not a label name|the value of label .* is not UTF-8|bad label name/,
		"Invalid label",
		"rename or drop the label with attributes, drop_labels or relabel_configs of push_config",
	],
	[
		/profiles in a request|(?:body|message) is (?:longer than|too large)|^limit\D*request (?:is|has) /,
		"Request too large",
		"send smaller batches; the limit is fixed",
	],
	[
		/^limit.*(?:bytes|limit|more than)/,
		"Profile too large",
		"shorten the interval, or drop sample labels; the limit is fixed",
	],
	[
		/stored already/,
		"Several processes send the same labels",
		"give each its own label, such as instance or pod",
	],
	// damaged, after all that says more
	[
		/^invalid.*(?:gzip: |zstd: |not well-formed|bad varint|truncated|cut (?:off|short)|unknown wire type)/,
		"Body damaged or cut",
		"check proxies, and whether the sender aborts",
	],
	// the server's own state
	[
		/disk is full/,
		"Disk full on this server",
		"free space, or lower --storage.tsdb.retention.size; senders that retry lose nothing",
	],
	[
		/shutting down|is closing|being reopened|a commit failed/,
		"The server was stopping or repairing its store",
		"nothing to do: senders retry",
	],
	[/^unavailable/, "Server busy", "nothing to do: senders retry"],
	[/^i\/o error/, "Disk failure on this server", "see the server's log; senders retry"],
	[/^out of memory/, "Out of memory on this server", "nothing to do: senders retry"],
];

/** The likely cause of a push's error; null if the error says all that is known. */
export function pushCause(reason: string, message: string): PushCause | null {
	const text = `${reason}: ${message}`;
	for (const [pattern, cause, cure] of PUSHES) {
		const m = pattern.exec(text);
		const filled = (s: string) => s.replace(/\$(\d)/g, (_, i) => m?.[Number(i)] ?? "");
		if (m) return { cause: filled(cause), cure: filled(cure) };
	}
	return null;
}
