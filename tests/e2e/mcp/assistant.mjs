// usage: node assistant.mjs URL MODE END SYMPTOM...
// A scripted assistant on the official client. For each symptom it does what it can tell from the answers alone: it looks at
// the services, compares the profile that the symptom is about, looks at the function that moved most, and follows the calls
// that answers name. Prints a transcript as JSON. MODE: auto (the client probes) or legacy (it begins with initialize).
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, mode, end, ...symptoms] = process.argv.slice(2);
const about = { slow: 'cpu', grows: 'memory', waits: 'mutex' };
const client = new Client({ name: 'epimetheus-test', version: '1' }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const faults = {};

for (const symptom of symptoms) {
  const calls = [];
  const call = async (name, args) => {
    const result = await client.callTool({ name, arguments: args });
    const text = result.content.map((c) => c.text).join('');
    calls.push({ name, args, text, bytes: Buffer.byteLength(text), isError: !!result.isError });
    if (result.isError) throw new Error(`${name} ${JSON.stringify(args)}: ${text}`);
    return result.structuredContent;
  };
  const row = (table, at = 0) => Object.fromEntries(table.columns.map((column, i) => [column, table.rows[at]?.[i]]));
  const services = await call('services', { window: '20m', end });
  const service = row(services.services).service;
  const compared = await call('compare', { profiles: `${about[symptom]}{__service__="${service}"}`, window: '20m', end });
  const moved = row(compared.functions.rows.length ? compared.functions : compared.with_callees);
  const next = compared.next.find((n) => n.tool === 'function');
  let close = await call(next.tool, next.arguments);
  // What costs little itself only calls what does.
  if (close.flat < close.cum / 2 && calls.length < 4)
    close = await call(next.tool, { ...next.arguments, function: close.callees.rows[0].at(-1) });
  faults[symptom] = { calls, service, moved, grown: compared.new_total / compared.base_total, function: close.function,
    where: close.where, callers: close.callers.rows.map((r) => r.at(-1)), lines: close.lines.rows.map((r) => r.at(-1)) };
}
console.log(JSON.stringify({ version: client.getNegotiatedProtocolVersion?.(), server: client.getServerVersion(),
  tools: tools.map((t) => t.name), faults }));
await client.close();
