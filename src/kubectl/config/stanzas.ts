/**
 * The data model of `kubectl config`: named clusters, users and contexts, each with its file. It has upstream's fields
 * in upstream's order. Like upstream, it drops unknown fields when it writes a file.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

/** The type of a field. `!`: the field is written even if it is empty. */
type FieldKind = 'text' | 'text!' | 'bool' | 'bool!' | 'bytes' | 'texts' | 'texts!' | 'map' | 'extensions' | Fields

type Fields = readonly (readonly [name: string, kind: FieldKind])[]

const EXEC: Fields = [
  ['command', 'text!'],
  ['args', 'texts!'],
  ['env', 'texts!'],
  ['apiVersion', 'text'],
  ['installHint', 'text'],
  ['provideClusterInfo', 'bool!'],
  ['interactiveMode', 'text'],
]

const AUTH_PROVIDER: Fields = [
  ['name', 'text!'],
  ['config', 'texts!'],
]

export const SECTIONS: Readonly<Record<SectionName, Section>> = {
  clusters: {
    part: 'cluster',
    type: 'Cluster',
    fields: [
      ['server', 'text!'],
      ['tls-server-name', 'text'],
      ['insecure-skip-tls-verify', 'bool'],
      ['certificate-authority', 'text'],
      ['certificate-authority-data', 'bytes'],
      ['proxy-url', 'text'],
      ['disable-compression', 'bool'],
      ['extensions', 'extensions'],
    ],
    paths: ['certificate-authority'],
  },
  users: {
    part: 'user',
    type: 'AuthInfo',
    fields: [
      ['client-certificate', 'text'],
      ['client-certificate-data', 'bytes'],
      ['client-key', 'text'],
      ['client-key-data', 'bytes'],
      ['token', 'text'],
      ['tokenFile', 'text'],
      ['as', 'text'],
      ['as-uid', 'text'],
      ['as-groups', 'texts'],
      ['as-user-extra', 'map'],
      ['username', 'text'],
      ['password', 'text'],
      ['auth-provider', AUTH_PROVIDER],
      ['exec', EXEC],
      ['extensions', 'extensions'],
    ],
    paths: ['client-certificate', 'client-key', 'tokenFile'],
  },
  contexts: {
    part: 'context',
    type: 'Context',
    fields: [
      ['cluster', 'text!'],
      ['user', 'text!'],
      ['namespace', 'text'],
      ['extensions', 'extensions'],
    ],
    paths: [],
  },
}

interface Section {
  readonly part: string
  /** Upstream's type name, for messages. */
  readonly type: string
  readonly fields: Fields
  /** Fields that contain file paths. */
  readonly paths: readonly string[]
}

export type SectionName = 'clusters' | 'users' | 'contexts'
export const SECTION_NAMES: readonly SectionName[] = ['clusters', 'users', 'contexts']

/** One cluster, user or context. */
export interface Stanza {
  readonly fields: Readonly<JsonObject>
  /** The file that defines it; empty for a new one. */
  readonly origin: string
}

export interface Configuration extends Record<SectionName, ReadonlyMap<string, Stanza>> {
  readonly currentContext: string
  readonly preferences: Readonly<JsonObject>
  readonly extensions: readonly JsonValue[]
}

export const EMPTY: Configuration = {
  clusters: new Map(),
  users: new Map(),
  contexts: new Map(),
  currentContext: '',
  preferences: {},
  extensions: [],
}

/** Parses a file. Throws an Error that describes the problem. */
export function configurationOf(value: JsonValue, origin: string): Configuration {
  const config = value ?? {}
  if (!isJsonObject(config)) throw new Error('it is not a kubeconfig')
  const current = config['current-context']
  return {
    clusters: sectionOf(config, 'clusters', origin),
    users: sectionOf(config, 'users', origin),
    contexts: sectionOf(config, 'contexts', origin),
    currentContext: typeof current === 'string' ? current : '',
    preferences: preferencesOf(config.preferences),
    extensions: extensionsOf(config.extensions),
  }
}

function preferencesOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value ?? null)
    ? canonical(value as JsonObject, [
        ['colors', 'bool'],
        ['extensions', 'extensions'],
      ])
    : {}
}

function sectionOf(config: JsonObject, name: SectionName, origin: string): Map<string, Stanza> {
  const { part, fields, type } = SECTIONS[name]
  const list = config[name] ?? []
  if (!Array.isArray(list)) throw new Error(`"${name}" must be a list`)
  const found = new Map<string, Stanza>()
  for (const entry of list) {
    if (!isJsonObject(entry)) throw new Error(`"${name}" has an entry that is none`)
    const { name: key = '', [part]: inside } = entry
    if (typeof key !== 'string') throw new Error(`"${name}" has an entry without name`)
    if (found.has(key)) {
      throw new Error(
        `error converting *[]Named${type} into *map[string]*api.${type}: duplicate name "${key}" in list: [${list.map((one) => goText(one, part, fields)).join(' ')}]`,
      )
    }
    found.set(key, { fields: canonical(isJsonObject(inside ?? null) ? (inside as JsonObject) : {}, fields), origin })
  }
  return found
}

/** The name of an entry in a list; empty without one. */
export function nameOf({ name }: JsonObject): string {
  return typeof name === 'string' ? name : ''
}

/** Go's `%v` form of the entry. */
function goText(entry: JsonValue, part: string, fields: Fields): string {
  if (!isJsonObject(entry)) return '{ {}}'
  const inside = isJsonObject(entry[part] ?? null) ? (entry[part] as JsonObject) : {}
  const texts = fields.map(([name, kind]) => goFieldText(inside[name] ?? null, kind))
  return `{${nameOf(entry)} {${texts.join(' ')}}}`
}

function goFieldText(value: JsonValue, kind: FieldKind): string {
  if (typeof kind === 'object') return value === null ? '<nil>' : '0xc000000000'
  if (kind.startsWith('text') && !kind.startsWith('texts')) return typeof value === 'string' ? value : ''
  if (kind.startsWith('bool')) return String(value === true)
  if (kind === 'bytes') return `[${[...Buffer.from(typeof value === 'string' ? value : '', 'base64')].join(' ')}]`
  return kind === 'map'
    ? 'map[]'
    : `[${Array.isArray(value) ? value.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(' ') : ''}]`
}

/** The known fields in order; empty fields only if upstream writes them. */
export function canonical(value: Readonly<JsonObject>, fields: Fields): JsonObject {
  const out: JsonObject = {}
  for (const [name, kind] of fields) {
    const field = canonicalField(value[name], kind)
    if (field !== undefined) out[name] = field
  }
  return out
}

function canonicalField(value: JsonValue | undefined, kind: FieldKind): JsonValue | undefined {
  if (typeof kind === 'object') return isJsonObject(value ?? null) ? canonical(value as JsonObject, kind) : undefined
  if (kind === 'extensions') {
    const found = extensionsOf(value)
    return found.length === 0 ? undefined : found
  }
  if (kind === 'texts!') return value ?? null
  return isEmpty(value) ? EMPTY_FIELDS[kind] : value
}

/** The written form of an empty field. */
const EMPTY_FIELDS: Readonly<Record<string, JsonValue | undefined>> = { 'text!': '', 'bool!': false }

function isEmpty(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

function extensionsOf(value: JsonValue | undefined): JsonValue[] {
  const list = Array.isArray(value) ? value.filter((one): one is JsonObject => isJsonObject(one)) : []
  return list
    .toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
    .map(({ name = '', extension = null }) => ({ name, extension: sorted(extension) }))
}

/** Sorts keys at every depth. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || !isJsonObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] as JsonValue)]),
  )
}

/** The form for files and output: lists sorted by name. */
export function configurationValue(config: Configuration): JsonObject {
  const named = (section: SectionName): JsonValue => {
    const { part } = SECTIONS[section]
    const entries = [...config[section]].sort(([one], [other]) => (one < other ? -1 : 1))
    return entries.length === 0 ? null : entries.map(([name, { fields }]) => ({ name, [part]: { ...fields } }))
  }
  return {
    kind: 'Config',
    apiVersion: 'v1',
    ...(Object.keys(config.preferences).length > 0 && { preferences: { ...config.preferences } }),
    clusters: named('clusters'),
    users: named('users'),
    contexts: named('contexts'),
    'current-context': config.currentContext,
    ...(config.extensions.length > 0 && { extensions: [...config.extensions] }),
  }
}

/** The configuration with one stanza replaced or, without a replacement, removed. */
export function withStanza(
  config: Configuration,
  section: SectionName,
  name: string,
  stanza: Stanza | undefined,
): Configuration {
  const entries = new Map(config[section])
  if (stanza === undefined) entries.delete(name)
  else entries.set(name, { ...stanza, fields: canonical(stanza.fields, SECTIONS[section].fields) })
  return { ...config, [section]: entries }
}
