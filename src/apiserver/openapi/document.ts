/** The common parts of OpenAPI v2 and v3 documents: settings, and definitions by kind. */
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import { type GroupVersionKind, kindKey } from '#meta/kind.ts'
import type { StructSchema } from '#meta/schema.ts'

import type { Aggregated } from '../aggregated.ts'
import type { Definition, Dialect } from '../registry/openapi-definition.ts'
import type { CustomRules } from '../registry/resource.ts'
import { Definitions, nameOf } from './definitions.ts'
import { type ApiFacts, DELETE_OPTIONS, WATCH_EVENT } from './operations.ts'
import { VERSION_INFO } from './root-paths.ts'

export interface OpenApiOptions extends ApiFacts {
  readonly groups: () => readonly ServedGroup[]
  /** `1.36`. */
  readonly version: string
  /** The documents of aggregated servers. */
  readonly aggregated?: Pick<Aggregated, 'swaggers' | 'openApiIndex' | 'openApi'> | undefined
}

/** The descriptions of definitions and fields. */
export type Describe = (name: string, field?: string) => string

export interface References {
  /** By name; grows with references. */
  readonly found: Map<string, Definition>
  readonly refOf: (answer: GroupVersionKind | 'text') => Definition
  readonly patch: () => Definition
}

const PATCH_NAME = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch'
const VERSION_NAME = 'io.k8s.apimachinery.pkg.version.Info'

export function createReferences(
  dialect: Dialect,
  describe: Describe,
  kinds: readonly Kind[],
  { schemaFor, groups, customOf }: OpenApiOptions,
): References {
  const isCustom = kinds.length > 0 && kinds.every((kind) => customOf(kind) !== undefined)
  const all = groups().flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
  const served = isCustom ? kinds : all.filter((kind) => customOf(kind) === undefined)
  const named = groupVersionKinds(isCustom ? [] : kinds, served, schemaFor)
  const definitions = new Definitions(dialect, describe, (name) => named.get(name) ?? [])
  const { found } = definitions
  const customs = customDefinitions(kinds, customOf, dialect)
  return {
    found,
    refOf(answer) {
      if (answer === 'text') return { type: 'string' }
      if (answer === VERSION_INFO) {
        found.set(VERSION_NAME, versionDefinition(dialect))
        return { $ref: dialect.refPrefix + VERSION_NAME }
      }
      const custom = customs(answer)
      if (custom !== undefined) {
        const [name, definition] = custom
        found.set(name, definition)
        for (const field of metadataSchemas(schemaFor)) definitions.ref(field)
        return { $ref: dialect.refPrefix + name }
      }
      const schema = schemaFor(answer)
      return schema === undefined ? { type: 'object' } : definitions.ref(schema)
    },
    patch() {
      found.set(PATCH_NAME, { type: 'object' })
      return { $ref: dialect.refPrefix + PATCH_NAME }
    },
  }
}

type FindCustom = (gvk: GroupVersionKind) => readonly [name: string, definition: Definition] | undefined

/** The objects and lists of custom resources, described at the first reference. */
function customDefinitions(kinds: readonly Kind[], customOf: ApiFacts['customOf'], dialect: Dialect): FindCustom {
  const makers = new Map<string, { readonly kind: Kind; readonly part: 'object' | 'list' }>()
  for (const kind of kinds.filter((one) => customOf(one) !== undefined)) {
    makers.set(kindKey(kind), { kind, part: 'object' })
    makers.set(kindKey({ ...kind, kind: kind.listKind }), { kind, part: 'list' })
  }
  const known = new Map<Kind, ReturnType<CustomRules['describe']> | undefined>()
  return (gvk) => {
    const { kind, part } = makers.get(kindKey(gvk)) ?? {}
    if (kind === undefined || part === undefined) return undefined
    const described = known.get(kind) ?? customOf(kind)?.describe(dialect)
    known.set(kind, described)
    return [customName(gvk), described?.[part] ?? {}]
  }
}

/** `io.ex.v1.Life`. */
function customName({ group, version, kind }: GroupVersionKind): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

/** The fields of every object and every list. */
function metadataSchemas(schemaFor: ApiFacts['schemaFor']): StructSchema[] {
  return ['ConfigMap', 'ConfigMapList'].flatMap((kind) => {
    const schema = schemaFor({ group: '', version: 'v1', kind })?.fields.get('metadata')?.schema
    return schema?.type === 'struct' ? [schema] : []
  })
}

export function sortedDefinitions({ found }: References): Record<string, Definition> {
  return Object.fromEntries([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** The kinds of definitions: options and watch events belong to all group versions of the document. */
function groupVersionKinds(
  kinds: readonly Kind[],
  served: readonly Kind[],
  schemaFor: ApiFacts['schemaFor'],
): ReadonlyMap<string, readonly GroupVersionKind[]> {
  const found = new Map<string, Map<string, GroupVersionKind>>()
  const note = ({ group, version, kind }: GroupVersionKind, as = { group, version }): void => {
    const schema = schemaFor({ group, version, kind })
    if (schema === undefined) return
    const name = nameOf(schema)
    const known = found.get(name) ?? new Map<string, GroupVersionKind>()
    found.set(name, known.set(`${as.group}/${as.version}`, { group: as.group, kind, version: as.version }))
  }
  for (const everywhere of [DELETE_OPTIONS, WATCH_EVENT]) note(everywhere)
  for (const name of ['Status', 'APIVersions', 'APIGroup', 'APIGroupList', 'APIResourceList']) {
    note({ group: '', version: 'v1', kind: name })
  }
  for (const kind of served) {
    note(kind)
    note({ ...kind, kind: kind.listKind })
    for (const part of kind.subresources) note(part.kind)
  }
  for (const kind of kinds) for (const everywhere of [DELETE_OPTIONS, WATCH_EVENT]) note(everywhere, kind)
  return new Map([...found].map(([name, gvks]) => [name, [...gvks.values()]]))
}

/** The response of `/version`, which is not a kind. */
function versionDefinition({ wrapsRefs }: Dialect): Definition {
  const always = 'buildDate compiler gitCommit gitTreeState gitVersion goVersion major minor platform'.split(' ')
  const sometimes = 'emulationMajor emulationMinor minCompatibilityMajor minCompatibilityMinor'.split(' ')
  const required = { type: 'string', ...(wrapsRefs ? { default: '' } : {}) }
  return {
    type: 'object',
    required: [
      'major',
      'minor',
      'gitVersion',
      'gitCommit',
      'gitTreeState',
      'buildDate',
      'goVersion',
      'compiler',
      'platform',
    ],
    properties: Object.fromEntries([
      ...always.map((name) => [name, required]),
      ...sometimes.map((name) => [name, { type: 'string' }]),
    ]),
  }
}

/** The inputs of a document: kinds are added, removed and changed at run time. */
export function factsOf(kinds: readonly Kind[], { schemaFor }: ApiFacts): readonly unknown[] {
  return kinds.flatMap((kind) => [kind, schemaFor(kind)])
}

export function sameFacts(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((fact, at) => fact === others[at])
}
