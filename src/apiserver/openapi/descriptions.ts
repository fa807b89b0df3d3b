/**
 * Descriptions for `kubectl explain`, in our own words. `descriptions/<package>.json` contains them by type and JSON
 * field name; `''` is the type itself. The name `'...'` refers to another type with the remaining fields.
 */
import { readFileSync } from 'node:fs'

export type FieldTexts = Readonly<Record<string, string>>
type DescriptionTable = Readonly<Record<string, FieldTexts>>

/** Packages without their version: the versions of a group share the meaning of fields. */
const PACKAGES: readonly string[] = [
  'io.k8s.api.admissionregistration',
  'io.k8s.api.apiserverinternal',
  'io.k8s.api.apps',
  'io.k8s.api.authentication',
  'io.k8s.api.authorization',
  'io.k8s.api.autoscaling',
  'io.k8s.api.batch',
  'io.k8s.api.certificates',
  'io.k8s.api.coordination',
  'io.k8s.api.core',
  'io.k8s.api.discovery',
  'io.k8s.api.events',
  'io.k8s.api.flowcontrol',
  'io.k8s.api.networking',
  'io.k8s.api.node',
  'io.k8s.api.policy',
  'io.k8s.api.rbac',
  'io.k8s.api.resource',
  'io.k8s.api.scheduling',
  'io.k8s.api.storage',
  'io.k8s.api.storagemigration',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'io.k8s.apimachinery.pkg.apis.meta',
  'io.k8s.kube-aggregator.pkg.apis.apiregistration',
]

export const TABLES: ReadonlyMap<string, DescriptionTable> = new Map(
  PACKAGES.map((home) => [home, read(home.slice(home.lastIndexOf('.') + 1))]),
)

/** Descriptions for all conditions, lists and options, for types without fields, and defaults for common fields. */
export const SHARED: DescriptionTable = read('shared')

const PARAMETERS = read('parameters')

/** The description of a parameter of an operation on this kind. */
export function describeParameter(name: string, place: 'query' | 'path', kind = ''): string {
  return textOf(PARAMETERS, place, name) ?? (name === 'name' ? `name of the ${kind}` : '')
}

function read(name: string): DescriptionTable {
  return JSON.parse(readFileSync(new URL(`./descriptions/${name}.json`, import.meta.url), 'utf8')) as DescriptionTable
}

/** The description of a definition (`io.k8s.api.core.v1.Pod`) or one of its fields. Empty if there is none. */
export function describeDefinition(name: string, field = ''): string {
  const [, home = '', type = ''] = /^(.*)\.[^.]+\.([^.]+)$/.exec(name) ?? []
  return textOf(TABLES.get(home) ?? {}, type, field) ?? describeShared(type, field)
}

/** The sections of shared.json by the ending of type names. */
const SECTIONS: readonly (readonly [ending: string, section: string])[] = [
  ['List', 'list'],
  ['Condition', 'condition'],
  ['Options', 'options'],
]

function describeShared(type: string, field: string): string {
  const section = SECTIONS.find(([ending]) => type.endsWith(ending))?.[1] ?? ''
  const known = textOf(SHARED, section, field)
  if (known !== undefined) return known
  if (field !== '') return textOf(SHARED, 'any', field) ?? ''
  if (section === 'list') return `${type} is a list of objects of kind ${type.slice(0, -'List'.length)}.`
  return textOf(SHARED, 'type', type) ?? ''
}

export function textOf(table: DescriptionTable, type: string, field: string): string | undefined {
  const texts = Object.hasOwn(table, type) ? table[type] : undefined
  if (texts === undefined) return undefined
  if (Object.hasOwn(texts, field)) return texts[field]
  return texts['...'] === undefined ? undefined : textOf(table, texts['...'], field)
}
