/**
 * Generates request bodies of up to 3 MiB that are expensive to parse: deep, wide, with many keys, or with nested
 * aliases.
 */
export interface Document {
  readonly name: string
  readonly contentType: string
  readonly body: Buffer
}

const MIB = 1 << 20
const JSON_TYPE = 'application/json'
const YAML_TYPE = 'application/yaml'
const APPLY_TYPE = 'application/apply-patch+yaml'

/** Almost all a body may be. */
const MAX = 3 * MIB - 1024

function configMap(data: string, name = 'hostile'): string {
  return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},"data":${data}}`
}

/** `piece(n)` again and again, up to so many bytes. */
function repeated(piece: (n: number) => string, bytes: number): string {
  const out: string[] = []
  for (let size = 0, n = 0; ; n++) {
    const next = piece(n)
    size += next.length
    if (size > bytes) return out.join('')
    out.push(next)
  }
}

function keys(bytes: number, separator = ','): string {
  return repeated((n) => `${n === 0 ? '' : separator}"key-${n}":"value"`, bytes)
}

const nested = (open: string, close: string, bytes: number): string => {
  const depth = Math.floor(bytes / (open.length + close.length))
  return open.repeat(depth) + close.repeat(depth)
}

function laughs(): string {
  const levels = Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(', ')}]`)
  return ['a0: &a0 ["lol"]', ...levels, 'kind: ConfigMap', 'apiVersion: v1', ''].join('\n')
}

/** Aliases below the limit of what is suspicious, as many as fit. */
function quietAliases(): string {
  const anchor = `a: &a {${Array.from({ length: 50 }, (_, n) => `k${n}: v`).join(', ')}}\n`
  return anchor + repeated((n) => `b${n}: *a\n`, MAX)
}

const flowMap = (bytes: number): string => `{${repeated((n) => `${n === 0 ? '' : ', '}key-${n}: value`, bytes)}}`
const blockMap = (bytes: number): string => repeated((n) => `  key-${n}: value\n`, bytes)
const yamlHead = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n'

/** Each document is created at its first use. */
const MAKERS: Readonly<Record<string, readonly [contentType: string, make: () => string]>> = {
  'one long text': [JSON_TYPE, () => configMap(`{"a":"${'x'.repeat(MAX - 200)}"}`)],
  'many keys': [JSON_TYPE, () => configMap(`{${keys(MAX)}}`)],
  'the same key': [JSON_TYPE, () => configMap(`{${repeated((n) => `${n === 0 ? '' : ','}"a":"b"`, MAX)}}`)],
  'deep arrays': [JSON_TYPE, () => configMap(nested('[', ']', MAX - 200))],
  'deep objects': [JSON_TYPE, () => configMap(`${'{"a":'.repeat(400_000)}1${'}'.repeat(400_000)}`)],
  'empty objects': [JSON_TYPE, () => configMap(`[${repeated((n) => (n === 0 ? '{}' : ',{}'), MAX - 200)}]`)],
  'long numbers': [
    JSON_TYPE,
    () => configMap(`[${repeated((n) => `${n === 0 ? '' : ','}9007199254740993`, MAX - 200)}]`),
  ],
  escapes: [JSON_TYPE, () => configMap(`{"a":"${'\\ud83d\\ude00'.repeat(250_000)}"}`)],
  'unknown fields': [JSON_TYPE, () => `${configMap('{}').slice(0, -1)},${keys(MAX - 200)}}`],
  'many containers': [
    JSON_TYPE,
    () =>
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"hostile"},"spec":{"containers":[${repeated((n) => `${n === 0 ? '' : ','}{"name":"c${n}","image":"x","env":[{"name":"a","value":"b"}]}`, MAX - 200)}]}}`,
  ],
  'broken at the end': [JSON_TYPE, () => configMap(`{${keys(MAX - 100)}`).slice(0, -1)],
  'YAML: many keys': [YAML_TYPE, () => `${yamlHead}data:\n${blockMap(MAX - 200)}`],
  'YAML: flow map': [YAML_TYPE, () => `${yamlHead}data: ${flowMap(MAX - 200)}\n`],
  'YAML: billion laughs': [YAML_TYPE, laughs],
  'YAML: many aliases': [YAML_TYPE, quietAliases],
  'YAML: deep': [YAML_TYPE, () => `a: ${nested('[', ']', MAX - 200)}`],
  'YAML: deep by indent': [YAML_TYPE, () => Array.from({ length: 2400 }, (_, n) => `${' '.repeat(n)}a:\n`).join('')],
  'YAML: long folded text': [
    YAML_TYPE,
    () => `${yamlHead}data:\n  a: >\n${repeated(() => '    word word word\n', MAX - 200)}`,
  ],
  'YAML: quoted text': [YAML_TYPE, () => `${yamlHead}data:\n  a: "${repeated(() => 'x\\n\\\n   ', MAX - 200)}"\n`],
  'YAML: markers': [YAML_TYPE, () => repeated(() => '# a\n---\n', MAX)],
  'YAML: too little indent': [YAML_TYPE, () => `a: [\n${repeated(() => 'b,\n', MAX - 200)}]`],
  'YAML: merges': [YAML_TYPE, () => `a: &a {b: c}\n${repeated((n) => `d${n}: {<<: *a, <<: *a}\n`, MAX)}`],
  'apply: many keys': [APPLY_TYPE, () => `${yamlHead}data:\n${blockMap(MIB - 200)}`],
  'apply: JSON with many keys': [APPLY_TYPE, () => configMap(`{${keys(MIB - 200)}}`)],
}

export const DOCUMENT_NAMES: readonly string[] = Object.keys(MAKERS)

const made = new Map<string, Document>()

export function documentNamed(name: string): Document {
  const known = made.get(name)
  if (known !== undefined) return known
  const maker = MAKERS[name]
  if (maker === undefined) throw new Error(`No document is named "${name}"`)
  const document = { name, contentType: maker[0], body: Buffer.from(maker[1]()).subarray(0, 3 * MIB) }
  made.set(name, document)
  return document
}
