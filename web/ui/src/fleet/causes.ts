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
		return `the certificate is of another name; set "tls_config: {server_name: ...}"`;
	if (/expired/i.test(error)) return "the certificate of the target has expired";
	if (SELF.test(error))
		return `no known authority signed the certificate; name its own in "tls_config: {ca_file: ...}"`;
	return "";
}

const STATUS: [RegExp, (at: At) => string][] = [
	[/^401/, () => 'it wants credentials; set "authorization" or "basic_auth"'],
	[/^403/, () => "it refuses this client; are the credentials those of a reader?"],
	[
		/^404/,
		(at) => `it does not serve ${at.path}; is net/http/pprof imported, is the path right?`,
	],
	[/^405/, () => "it does not take GET here; is the path that of a profile?"],
	[
		/^30\d.*follow_redirects: false/,
		() => 'name the address that it leads to, or remove "follow_redirects: false"',
	],
	[/^30\d/, () => "it redirects elsewhere; name the address that it redirects to"],
	[/^50[234]/, (at) => `the proxy at port ${at.port} does not reach the program`],
	[/^500.*already (in use|running|started)/, () => "another profiler has the process all the time; let it ask for fewer seconds"],
	[/^5/, () => "the program failed to make the profile; does another profiler run?"],
];

const LOGIN = /log-?in|sign-?in|sso|oauth|\bauth\b/i;

/** Where redirects led to: the error of an answer there says little about the target itself. */
function ofRedirect(error: string): string {
	const to = /; the target redirected to (\S+)$/.exec(error)?.[1];
	if (to === undefined) return "";
	if (LOGIN.test(to)) return 'it sends clients to a login page; set "authorization" or "basic_auth"';
	if (/^stopped after/.test(error)) return "its redirects go round in circles";
	return `it redirects elsewhere; is ${to} what you meant?`;
}

/** A socket that cannot be connected to. */
function ofSocket(path: string, why: string): string {
	if (/No such file/.test(why)) return `no socket is at ${path}; does the program run?`;
	if (/Permission denied/.test(why)) return `the server's user may not write to ${path}`;
	if (/Connection refused/.test(why)) return `nothing listens on ${path}; does the program run?`;
	return "";
}

/** The likely cause of a scrape's error; "" if the error says all that is known. */
export function causeOf(error: string, url: string): string {
	const at = hostIn(url);
	if (/^another profiler has had/.test(error)) return "does another server scrape it, for all of its interval?";
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
		return `no name server knows ${at.host}; is it spelled right?`;
	if (/^lookup /.test(error)) return "the name server does not answer";
	if (/No route to host|Network is unreachable/i.test(error))
		return `no way leads to ${at.host}; is the network up, is a firewall between?`;
	if (/deadline exceeded|timed? ?out/i.test(error))
		return "it does not answer in time; does the program hang, is scrape_timeout too short, is a firewall between?";
	if (/connection closed without an answer/.test(error) && at.scheme === "http")
		return `does port ${at.port} speak TLS? Then set "scheme: https"`;
	if (/Connection reset/i.test(error)) return "it ended the connection; did the program restart, does it speak only HTTP/2?";
	if (/answers a web page|text\/html/.test(error))
		return `another program, or a login page, answers at ${at.path}`;
	if (/body size limit|bytes, limit/.test(error)) return "the profile is larger than allowed; see body_size_limit";
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
		/it has no credentials/,
		"The sender has neither a password nor a token",
		`give it those of a user: basic_auth_users, or a token_file, in ${WEB_CONFIG}`,
	],
	[/token is nobody's/, "The token is not known", `compare it with the user's token_file in ${WEB_CONFIG}`],
	[
		/name and password are nobody's/,
		"The name or password is wrong",
		`compare them with basic_auth_users in ${WEB_CONFIG}`,
	],
	[
		/^unauthorized.*proxy/,
		"The headers of a proxy do not count",
		`compare addresses and headers with trusted_proxy in ${WEB_CONFIG}`,
	],
	[
		/^unauthorized/,
		"There was no password or token, or a wrong one",
		`compare it with basic_auth_users and the token_file of users in ${WEB_CONFIG}`,
	],
	[
		/user (".*") lacks the role (\w+)/,
		"User $1 may not push",
		`add the role $2 to that user in ${WEB_CONFIG}`,
	],
	[
		/client certificate/,
		"The client certificate is missing or not accepted",
		`give the sender one, or see client_auth_type in ${WEB_CONFIG}`,
	],
	[
		/page of another site/,
		"A browser sent it from a page of another site",
		"--web.external-url names the URL of this server's own pages",
	],
	[/^forbidden/, "This user may not push", `see the roles of users in ${WEB_CONFIG}`],
	// where to
	[/ingest is disabled/, "Pushes are off", "start the server with --web.enable-ingest"],
	[
		/nothing is taken at "[^"]*(?:\/v1\w*\/profiles|otlp)/i,
		"Wrong address, maybe that of another version of OTLP",
		"send OTLP to /v1development/profiles; an exporter's endpoint is this server's address alone",
	],
	[
		/nothing is taken at/,
		"Wrong address",
		"send to one of these paths; SDKs and exporters take this server's address alone",
	],
	[
		/is not a name of this server/,
		"The sender has a name that is not this server's",
		"add it by --web.allowed-host",
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
		/Content-Encoding (\S+) is not known/,
		"The sender compresses as $1, which is not read here",
		"choose gzip, zstd or none",
	],
	[
		/Content-Encoding is gzip, the body is not/,
		"The body is not compressed, as its header says",
		"does a proxy between unpack it and leave the header?",
	],
	[
		/OTLP before 1\.8/,
		"The sender's OTLP is older than 1.8",
		"update the profiler, and the collector between",
	],
	[
		/not a pprof profile: it begins with "\s*<(?:!doctype|html|\?xml|head|body)/i,
		"A web page was sent as a profile",
		"is the address right that the sender has it from, is there a login before it?",
	],
	[
		/not a pprof profile: it begins with "\s*[{[]/,
		"JSON was sent as a profile",
		"send pprof, or another form that the path takes",
	],
	[
		/not a pprof profile: it begins with/,
		"A text was sent as a profile",
		"send pprof, as of /debug/pprof without debug=1; is the path right that it comes from?",
	],
	[
		/this is neither pprof nor/,
		"The profile has an unknown format",
		"send pprof, or another form that the path takes",
	],
	[
		/(?:profile|body|raw_profile|file) is empty/,
		"The profile is empty",
		"did the profiler run, is there a file of this name?",
	],
	[
		/multipart/,
		"The form is not that of Pyroscope's SDKs",
		"update the SDK; a script sends the bare profile to /api/v1/ingest",
	],
	// when
	[
		/older than the retention/,
		"The profiles are older than what is kept",
		"set the sender's clock, or see --storage.tsdb.retention.time",
	],
	[
		/is too old:/,
		"The profiles come too late",
		"set the sender's clock, or see --storage.tsdb.out-of-order-time-window",
	],
	[
		/ahead of this server's clock/,
		"The sender's clock is ahead",
		"set it, or this server's, by NTP",
	],
	[
		/before 1970 or after 2116|at most a day/,
		"The time of the profile is in another unit",
		"pprof and OTLP count nanoseconds, from and until seconds",
	],
	[/ were deleted$/, "Data of this series and time was deleted", "nothing, unless newer profiles are refused too"],
	[
		/invalid parameter "([^"]*)"/,
		"The parameter $1 of the address is wrong",
		"the message says how: correct this parameter",
	],
	// how much
	[
		/profiles_per_second/,
		"The sender is faster than allowed",
		"longer intervals, or profiles_per_second of push_config",
	],
	[
		/requests of this sender are under way/,
		"Too many requests come at once from one sender",
		"send fewer at once; a gateway counts as one sender",
	],
	[
		/--web\.max-body-memory-per-address/,
		"Too many bodies come at once from one address",
		"nothing, unless it stays: then --web.max-body-memory-per-address",
	],
	[/--web\.max-body-memory/, "Too many bodies come at once", "nothing, unless it stays: then --web.max-body-memory"],
	[
		/\d labels, limit|label name .* longer|the value of label .* longer|labels of the series are|in attributes, the limit|more than \d+ labels/,
		"The labels are too many or too long",
		"leave some out by drop_labels or relabel_configs of push_config",
	],
	[
		/cannot be the name of|the value of label .* is not UTF-8|bad label name/,
		"A label is not valid",
		"rename or drop it by attributes, drop_labels or relabel_configs of push_config",
	],
	[
		/profiles in a request|(?:body|message) is longer than|^limit\D*request (?:is|has) /,
		"The request is too large",
		"smaller batches; no flag allows more",
	],
	[
		/^limit.*(?:bytes|limit|more than)/,
		"The profile is too large",
		"shorter intervals, fewer labels of samples; no flag allows more",
	],
	[
		/stored already/,
		"Several processes send under the same labels",
		"give each a label of its own, as instance or pod",
	],
	// damaged, after all that says more
	[
		/^invalid.*(?:gzip: |zstd: |not well-formed|bad varint|truncated|cut (?:off|short)|unknown wire type)/,
		"The body is damaged or cut",
		"does a proxy between change or shorten it, does the sender break off?",
	],
	// the server's own state
	[
		/disk is full/,
		"No room on this server's disk",
		"make room, or see --storage.tsdb.retention.size; a sender that repeats loses nothing",
	],
	[
		/shutting down|is closing|being reopened|a commit failed/,
		"This server was stopping, or repaired its store",
		"nothing, unless it stays: senders repeat",
	],
	[/^unavailable/, "This server was busy", "nothing, unless it stays: senders repeat"],
	[/^i\/o error/, "This server's disk failed", "see its log; senders repeat"],
	[/^out of memory/, "This server had no memory left", "nothing, unless it stays: senders repeat"],
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
