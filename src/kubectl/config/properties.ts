/**
 * `kubectl config set` and `unset`: change one value by its dotted path. Names may contain dots; a name ends where a
 * field follows. Field names are those of upstream's internal types, such as `act-as` for `as`.
 */
import { parseBool } from '#lib/flags/go-literals.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject, JsonValue } from '#lib/json/value.ts'

import { KubectlError } from '../errors.ts'
import { type Configuration, type SectionName, withStanza } from './stanzas.ts'

type Kind = 'text' | 'bool' | 'bytes' | 'texts' | 'map' | 'objects' | 'pointer'

const TEXTS = (names: string): Record<string, Kind> =>
  Object.fromEntries(names.split(' ').map((name) => [name, 'text']))

const FIELDS: Readonly<Record<SectionName, Readonly<Record<string, Kind>>>> = {
  clusters: {
    ...TEXTS('server tls-server-name certificate-authority proxy-url'),
    'insecure-skip-tls-verify': 'bool',
    'certificate-authority-data': 'bytes',
    'disable-compression': 'bool',
    extensions: 'objects',
  },
  users: {
    ...TEXTS('client-certificate client-key token tokenFile act-as act-as-uid username password'),
    'client-certificate-data': 'bytes',
    'client-key-data': 'bytes',
    'act-as-groups': 'texts',
    'act-as-user-extra': 'map',
    'auth-provider': 'pointer',
    exec: 'pointer',
    extensions: 'objects',
  },
  contexts: { ...TEXTS('cluster user namespace'), extensions: 'objects' },
}

const ROOT = ['kind', 'apiVersion', 'preferences', 'clusters', 'users', 'contexts', 'current-context', 'extensions']

export interface PropertyChange {
  readonly path: string
  /** Undefined removes the value. */
  readonly value?: string
  /** Bytes are raw instead of base64. */
  readonly isRaw?: boolean
}

/** Throws KubectlError. */
export function changedConfiguration(config: Configuration, change: PropertyChange): Configuration {
  const { path, value } = change
  const [first = '', ...rest] = path.split('.')
  if (!ROOT.includes(first)) throw new KubectlError(`unable to parse ${path} after [] at api.Config`)
  if (first === 'clusters' || first === 'users' || first === 'contexts')
    return changedSection(config, first, rest, change)
  if (first === 'preferences') return changedPreferences(config, rest, change)
  if (first === 'extensions') throw new KubectlError(`unable to parse one or more field values of ${path}`)
  if (rest.length > 0) throw new KubectlError(`unable to parse one or more field values of ${path}`)
  return first === 'current-context' ? { ...config, currentContext: value ?? '' } : config
}

function changedPreferences(config: Configuration, rest: readonly string[], change: PropertyChange): Configuration {
  const [field, ...more] = rest
  if (field === undefined) {
    if (change.value === undefined) return { ...config, preferences: {} }
    throw new KubectlError('unable to locate path under preferences')
  }
  if (field !== 'colors' || more.length > 0) {
    throw new KubectlError(`unable to parse ${change.path} after [preferences] at api.Preferences`)
  }
  const { colors: _, ...others } = config.preferences
  const isOn = change.value !== undefined && truth(change.value)
  return { ...config, preferences: { ...(isOn && { colors: true }), ...others } }
}

function changedSection(
  config: Configuration,
  section: SectionName,
  rest: readonly string[],
  change: PropertyChange,
): Configuration {
  const { path, value } = change
  const kinds = FIELDS[section]
  if (rest.length === 0) {
    if (value === undefined) return { ...config, [section]: new Map() }
    throw new KubectlError(`can't set a map to a value: map[${[...config[section].keys()].join(' ')}]`)
  }
  const at = rest.findIndex((part, index) => index > 0 && Object.hasOwn(kinds, part))
  const name = rest.slice(0, at < 0 ? rest.length : at).join('.')
  const [field, ...more] = at < 0 ? [] : rest.slice(at)
  const stanza = config[section].get(name)
  if (field === undefined) {
    if (value === undefined) return withStanza(config, section, name, undefined)
    throw new KubectlError(`can't set a map to a value: map[${[...config[section].keys()].join(' ')}]`)
  }
  const kind = kinds[field] as Kind
  if (more.length > 0) {
    if (kind === 'map') throw new KubectlError('string is not of type struct')
    throw new KubectlError(`unable to parse one or more field values of ${path}`)
  }
  if (stanza === undefined && value === undefined) throw new KubectlError(`current map key \`${name}\` is invalid`)
  const own = field.replace(/^act-/, '')
  const { [own]: _, ...others }: JsonObject = { ...stanza?.fields }
  const next: JsonObject =
    value === undefined ? others : { ...others, [own]: valueOf(kind, value, change.isRaw === true) }
  return withStanza(config, section, name, { fields: next, origin: stanza?.origin ?? '' })
}

function valueOf(kind: Kind, text: string, isRaw: boolean): JsonValue {
  if (kind === 'text') return text
  if (kind === 'bool') return truth(text)
  if (kind === 'texts') throw new KubectlError('unrecognized slice type. string')
  if (kind !== 'bytes') throw new KubectlError(`can't set this to a value: ${text}`)
  return isRaw ? Buffer.from(text).toString('base64') : checkedBase64(text)
}

function truth(text: string): boolean {
  try {
    return text === '' ? false : parseBool(text)
  } catch (cause) {
    throw new KubectlError(`strconv.ParseBool: parsing ${goQuote(text)}: invalid syntax`, { cause })
  }
}

/** Throws KubectlError with the offset of the first invalid character or incomplete group, as Go counts it. */
function checkedBase64(text: string): string {
  const plain = text.replaceAll(/[\r\n]/g, '')
  const wrong = /[^A-Za-z0-9+/]/.exec(plain.replace(/={1,2}$/, ''))
  const at = wrong?.index ?? (plain.length % 4 === 0 ? -1 : plain.length - (plain.length % 4))
  if (at >= 0) throw new KubectlError(`error decoding input value: illegal base64 data at input byte ${at}`)
  return Buffer.from(plain, 'base64').toString('base64')
}
