/**
 * Collects the structs and kinds of each group version. Throws if sources disagree, so that no field of a new release
 * is missed.
 */
import { ELSEWHERE, EXTRA_KINDS, GATES, GROUPS, JSON_ONLY } from './corrections.ts'
import type { Facts, Message } from './facts.ts'
import { buildStruct, definitionOf, type Source, staleGoNames, type Struct } from './structs.ts'

/** One group version. */
export interface Package {
  /** `core/v1`: the folder and file of its types; with a dot in place of the slash, the name of its table. */
  readonly key: string
  /** `k8s.io.api.core.v1`. */
  readonly proto: string
  readonly group: string
  readonly version: string
  /** By Go name, sorted. */
  readonly structs: ReadonlyMap<string, Struct>
  /** Go names of the structs that are kinds, sorted. */
  readonly kinds: readonly string[]
  /** Kinds whose struct is in another package: kind → package key. */
  readonly elsewhere: Readonly<Record<string, string>>
}

/** Protobuf packages that are not API groups, or whose types are leaves here. */
const LEFT_OUT =
  /^k8s\.io\.(apiserver|metrics)\.|^k8s\.io\.apimachinery\.pkg\.(api\.resource|runtime|runtime\.schema|util\.intstr)$/

/** Messages that are a scalar, a list or any value in JSON, and one that is an alias. */
const NOT_STRUCTS =
  /^(meta\/v1\.(Duration|FieldsV1|MicroTime|Patch|Time|Timestamp|Verbs)|core\/v1\.List|apiextensions\/\w+\.JSON|.*\.ExtraValue)$/

/** Kinds that every group version knows; `schemas.ts` has the list. */
const EVERYWHERE = /^((Create|Delete|Get|List|Patch|Update)Options|WatchEvent)$/

export function buildPackages(facts: Facts): Package[] {
  const protos = [...facts.messages.keys()].filter((proto) => !LEFT_OUT.test(proto))
  const groups = groupsByFolder(facts)
  const packages = protos
    .map((proto) => buildPackage({ key: packageKey(proto), proto, facts }, groups))
    .filter(({ kinds }) => kinds.length > 0)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  checkCoverage(packages, facts)
  checkGates(packages)
  const stale = staleGoNames(facts, new Map(protos.map((proto) => [packageKey(proto), proto])))
  if (stale.length > 0) throw new Error(`No such fields: ${stale.join(', ')}; mend go-names.json`)
  return packages
}

/** `k8s.io.api.core.v1` → `core/v1`. */
function packageKey(proto: string): string {
  return proto.split('.').slice(-2).join('/')
}

function buildPackage(source: Source, groups: ReadonlyMap<string, string>): Package {
  const { key, proto } = source
  const [folder = '', version = ''] = key.split('/')
  const group = groups.get(folder)
  if (group === undefined) throw new Error(`Which API group is package "${proto}"? Add it to corrections.ts`)
  const messages = messagesOf(source)
  const { here, elsewhere } = splitKinds(key, kindNames(source, messages, { group, version }), messages)
  const names = Object.keys(messages).sort()
  const structs = names.map((name): [string, Struct] => [name, buildStruct(source, name, here.has(name))])
  return { key, proto, group, version, structs: new Map(structs), kinds: [...here].sort(), elsewhere }
}

type Messages = Readonly<Record<string, Message>>

function messagesOf({ key, proto, facts }: Source): Messages {
  const structs = Object.entries(facts.messages.get(proto) ?? {}).filter(
    ([name]) => !NOT_STRUCTS.test(`${key}.${name}`),
  )
  const jsonOnly = Object.entries(JSON_ONLY).filter(([id]) => id.startsWith(`${key}.`))
  return Object.fromEntries([
    ...structs,
    ...jsonOnly.map(([id, [message]]) => [id.slice(key.length + 1), message] as const),
  ])
}

function groupsByFolder(facts: Facts): ReadonlyMap<string, string> {
  const groups = new Map(Object.entries(GROUPS))
  for (const [name, definition] of facts.definitions) {
    const folder = packageKey(definitionPackage(name)).split('/')[0] ?? ''
    const [kind] = definition['x-kubernetes-group-version-kind'] ?? []
    // Kinds of meta belong to many groups; GROUPS names their own.
    if (kind !== undefined && folder !== 'meta') groups.set(folder, kind.group)
  }
  return groups
}

/** Every kind of a group version that any source shows: OpenAPI, a fixture, or a list of objects. */
function kindNames(
  { key, proto, facts }: Source,
  messages: Messages,
  gv: { group: string; version: string },
): Set<string> {
  const kinds = new Set(EXTRA_KINDS[key])
  for (const [name, definition] of facts.definitions) {
    const isHere =
      definitionPackage(name) === proto || (key === 'core/v1' && definitionPackage(name).endsWith('.meta.v1'))
    const gvks = isHere ? (definition['x-kubernetes-group-version-kind'] ?? []) : []
    for (const gvk of gvks) if (gvk.group === gv.group && gvk.version === gv.version) kinds.add(gvk.kind)
  }
  for (const [group, version, kind] of facts.fixtures) if (group === gv.group && version === gv.version) kinds.add(kind)
  for (const [list, item] of listKinds(messages)) kinds.add(list).add(item)
  return kinds
}

function listKinds(messages: Messages): [list: string, item: string][] {
  return Object.entries(messages)
    .filter(([name, { metadata }]) => name.endsWith('List') && metadata?.type?.endsWith('.ListMeta'))
    .map(([name, { items }]): [string, string] => [name, items?.type ?? ''])
    .filter(([, item]) => messages[item]?.['metadata']?.type?.endsWith('.ObjectMeta'))
}

/** Kinds without a message in this package have their struct in meta, unless the row names another package. */
function splitKinds(
  key: string,
  kinds: ReadonlySet<string>,
  messages: Messages,
): { readonly here: ReadonlySet<string>; readonly elsewhere: Readonly<Record<string, string>> } {
  const here = [...kinds].filter((kind) => messages[kind] !== undefined)
  const others = [...kinds].filter((kind) => messages[kind] === undefined && !EVERYWHERE.test(kind))
  const elsewhere = Object.fromEntries(others.map((kind) => [kind, 'meta/v1']))
  return { here: new Set(here), elsewhere: { ...elsewhere, ...ELSEWHERE[key] } }
}

function checkCoverage(packages: readonly Package[], facts: Facts): void {
  const byKey = new Map(packages.map((item) => [item.key, item]))
  for (const { key, proto, structs } of packages) {
    for (const struct of structs.values()) {
      const expected = new Set(Object.keys(definitionOf(facts, proto, struct.name)?.properties ?? {}))
      const differing = [...expected.symmetricDifference(new Set(jsonNames(byKey, struct)))]
      if (expected.size === 0 || differing.length === 0) continue
      throw new Error(`OpenAPI and protobuf differ in "${key}.${struct.name}": ${differing.join(', ')}`)
    }
  }
}

/** The names of a struct's members in JSON, those it inlines among them. */
function jsonNames(packages: ReadonlyMap<string, Package>, struct: Struct): string[] {
  const names = struct.fields.flatMap(({ name, inline, type }) => {
    if (!inline || type.kind !== 'struct') return [name]
    const member = packages.get(type.package)?.structs.get(type.name)
    if (member === undefined) throw new Error(`Struct "${type.package}.${type.name}" is inlined but unknown`)
    return jsonNames(packages, member)
  })
  return struct.typeMeta ? ['kind', 'apiVersion', ...names] : names
}

function checkGates(packages: readonly Package[]): void {
  for (const [id, gates] of Object.entries(GATES)) {
    const [folder, name = ''] = id.split('.')
    const structs = packages.filter(({ key }) => key.split('/')[0] === folder).map((item) => item.structs.get(name))
    const gated = structs.flatMap((struct) => struct?.fields ?? []).filter(({ gate }) => gate !== undefined)
    const missing = Object.keys(gates).filter((field) => !gated.some((other) => other.name === field))
    if (missing.length > 0) throw new Error(`No "${id}" has ${missing.join(', ')}; mend GATES in corrections.ts`)
  }
}

/** `io.k8s.api.core.v1.PodSpec` → `k8s.io.api.core.v1`. */
function definitionPackage(name: string): string {
  return name
    .slice(0, name.lastIndexOf('.'))
    .replace(/^io\.k8s/, 'k8s.io')
    .replaceAll('-', '_')
}
