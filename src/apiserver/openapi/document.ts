/** What documents of both versions of OpenAPI are made with: their settings, and definitions found by kind. */
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import type { Aggregated } from '../aggregated.ts'
import { type Definition, Definitions, type Dialect, nameOf } from './definitions.ts'
import { type ApiFacts, DELETE_OPTIONS, WATCH_EVENT } from './operations.ts'
import { VERSION_INFO } from './root-paths.ts'

export interface OpenApiOptions extends ApiFacts {
  readonly groups: () => readonly ServedGroup[]
  /** `1.36`. */
  readonly version: string
  /** What servers behind this one describe. */
  readonly aggregated?: Pick<Aggregated, 'swaggers' | 'openApiIndex' | 'openApi'> | undefined
}

/** What definitions and fields are said to be. */
export type Describe = (name: string, field?: string) => string

export interface References {
  /** By name; grows with what is referred to. */
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
  { schemaFor, groups }: OpenApiOptions,
): References {
  const served = groups().flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
  const named = groupVersionKinds(kinds, served, schemaFor)
  const definitions = new Definitions(dialect, describe, (name) => named.get(name) ?? [])
  const { found } = definitions
  return {
    found,
    refOf(answer) {
      if (answer === 'text') return { type: 'string' }
      if (answer === VERSION_INFO) {
        found.set(VERSION_NAME, versionDefinition(dialect))
        return { $ref: dialect.refPrefix + VERSION_NAME }
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

export function sortedDefinitions({ found }: References): Record<string, Definition> {
  return Object.fromEntries([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Which definitions are kinds, and of which group versions: options and watch events belong to all of the document. */
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

/** The answer of `/version`, which is no kind. */
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

/** What a document of these kinds depends on: kinds come and go while the server runs, and come back in another shape. */
export function factsOf(kinds: readonly Kind[], { schemaFor }: ApiFacts): readonly unknown[] {
  return kinds.flatMap((kind) => [kind, schemaFor(kind)])
}

export function sameFacts(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((fact, at) => fact === others[at])
}
