// The part of JSON Schema that the schemas of these tests use: type, const, enum, required, properties,
// additionalProperties, items, minItems, minimum, oneOf, $ref within the document.
function typeOf(v) {
  if (v === null) return 'null';
  if (Array.isArray(v)) return 'array';
  return typeof v === 'number' && Number.isInteger(v) ? 'integer' : typeof v;
}

function resolve(root, ref) {
  return ref.slice(2).split('/').reduce((at, key) => at[key], root);
}

/** The errors in v, each with its place; [] if it is valid. */
export function faults(schema, v, root = schema, at = '$') {
  const out = [];
  const say = (what) => out.push(`${at}: ${what}`);
  if (schema.$ref) return faults(resolve(root, schema.$ref), v, root, at);
  const type = typeOf(v);
  if (schema.type && type !== schema.type && !(schema.type === 'number' && type === 'integer')) return [`${at}: ${type}, want ${schema.type}`];
  if ('const' in schema && v !== schema.const) say(`${JSON.stringify(v)}, want ${JSON.stringify(schema.const)}`);
  if (schema.enum && !schema.enum.includes(v)) say(`${JSON.stringify(v)} is none of ${schema.enum.join(', ')}`);
  if ('minimum' in schema && v < schema.minimum) say(`${v} is below ${schema.minimum}`);
  if (schema.oneOf) {
    const each = schema.oneOf.map((s) => faults(s, v, root, at));
    if (each.filter((e) => e.length === 0).length !== 1) out.push(...(each.find((e) => e.length) ?? [`${at}: fits several`]));
  }
  if (type === 'object') {
    for (const key of schema.required ?? []) if (!(key in v)) say(`${key} is missing`);
    for (const [key, value] of Object.entries(v)) {
      if (schema.properties?.[key]) out.push(...faults(schema.properties[key], value, root, `${at}.${key}`));
      else if (schema.additionalProperties === false) say(`${key} is not known`);
    }
  }
  if (type === 'array') {
    if (v.length < (schema.minItems ?? 0)) say(`${v.length} items, want ${schema.minItems}`);
    if (schema.items) v.forEach((item, i) => out.push(...faults(schema.items, item, root, `${at}[${i}]`)));
  }
  return out;
}
