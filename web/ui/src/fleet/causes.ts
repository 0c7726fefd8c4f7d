// Why a scrape failed, in words of what to look at: the likely cause of the server's error.

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

/** The likely cause of a scrape's error; "" if the error says all that is known. */
export function causeOf(error: string, url: string): string {
	const at = hostIn(url);
	if (/^another profiler has had/.test(error)) return "does another server scrape it, for all of its interval?";
	if (/set "scheme: https"$/.test(error)) return `port ${at.port} speaks TLS; add "scheme: https" to the job`;
	const moved = ofRedirect(error);
	if (moved) return moved;
	const status = /server returned HTTP status (.*)/.exec(error)?.[1];
	if (status !== undefined) return STATUS.find(([re]) => re.test(status))?.[1](at) ?? "";
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
	if (/Connection reset/i.test(error)) return "it ended the connection; did the program restart?";
	if (/answers a web page|text\/html/.test(error))
		return `another program, or a login page, answers at ${at.path}`;
	if (/body size limit|bytes, limit/.test(error)) return "the profile is larger than allowed; see body_size_limit";
	return "";
}
