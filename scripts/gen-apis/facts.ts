/**
 * Reads the kinds, fields, types and defaults of the Kubernetes API from recorded files, for the generator. It skips
 * descriptions, so that no prose of upstream reaches the generated files.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Facts {
  /** OpenAPI v3 definitions by name, `io.k8s.api.core.v1.PodSpec`. */
  readonly definitions: ReadonlyMap<string, Definition>
  /** Protobuf messages by package, `k8s.io.api.core.v1`, in the order of the .proto file, which is Go's. */
  readonly messages: ReadonlyMap<string, Readonly<Record<string, Message>>>
  /** By name of the protobuf package, `runtime.v1`. */
  readonly wire: ReadonlyMap<string, WirePackage>
  readonly presence: ReadonlyMap<string, Readonly<Record<string, Readonly<Record<string, Presence>>>>>
  /** Kinds that have a fixture: group, version, kind. */
  readonly fixtures: readonly (readonly [group: string, version: string, kind: string])[]
  /** Groups other than core, in the order of preference that discovery gives. */
  readonly groups: readonly DiscoveryGroup[]
  /** Resources by `apiVersion`. */
  readonly resources: ReadonlyMap<string, readonly ApiResource[]>
}

export interface Definition {
  readonly properties?: Readonly<Record<string, Property>>
  readonly required?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string
    readonly version: string
    readonly kind: string
  }[]
}

export interface Property {
  readonly type?: string
  readonly default?: unknown
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
  readonly 'x-kubernetes-patch-merge-key'?: string
}

export type Message = Readonly<Record<string, MessageField>>

export interface MessageField {
  readonly id: number
  readonly type?: string
  readonly map?: readonly [key: string, value: string]
  readonly repeated?: boolean
  /** The oneof that the field is a member of. */
  readonly oneof?: string
}

/** Messages, enums and services of CRI, etcd or plugins. Nested enums are `Message.Enum`. */
export interface WirePackage {
  readonly messages: Readonly<Record<string, Message>>
  readonly enums?: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly services?: Readonly<
    Record<string, Readonly<Record<string, { readonly request: string; readonly response: string }>>>
  >
}

/** Letters of wire-presence.json; a pair when JSON has another name for the field than protobuf. */
export type Presence = string | readonly [flags: string, jsonName: string]

export interface DiscoveryGroup {
  readonly metadata: { readonly name: string }
  readonly versions: readonly { readonly version: string }[]
}

/** One line of an APIResourceList; subresources are lines of their own, `pods/log`. */
export interface ApiResource {
  readonly name: string
  readonly kind: string
  readonly group?: string
  readonly version?: string
  readonly namespaced: boolean
  readonly singularName: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly verbs: readonly string[]
  readonly storageVersionHash?: string
}

const WIRE_FILES = ['protobuf-cri.json', 'protobuf-etcd.json', 'protobuf-kubelet-plugins.json']

/** Whether `directory` has the facts. They are never part of the repository. */
export function hasFacts(directory: string): boolean {
  return existsSync(join(directory, 'protobuf-kubernetes.json'))
}

export function loadFacts(directory: string): Facts {
  const read = (...path: string[]): unknown => JSON.parse(readFileSync(join(directory, ...path), 'utf8'))
  const protobuf = read('protobuf-kubernetes.json') as Record<string, { messages?: Record<string, Message> }>
  const presence = read('wire-presence.json') as Record<string, never>
  return {
    definitions: loadDefinitions(directory, read),
    messages: new Map(Object.entries(protobuf).map(([name, { messages }]) => [name, messages ?? {}])),
    wire: new Map(WIRE_FILES.flatMap((file) => Object.entries(read(file) as Record<string, WirePackage>))),
    presence: new Map(Object.entries(presence).filter(([name]) => name !== '_legend')),
    fixtures: listFixtures(directory),
    groups: (read('discovery', 'aggregated_v2.json') as { items: DiscoveryGroup[] }).items,
    resources: loadResources(directory, read),
  }
}

type Read = (...path: string[]) => unknown

function loadDefinitions(directory: string, read: Read): Facts['definitions'] {
  const definitions = new Map<string, Definition>()
  for (const file of readdirSync(join(directory, 'openapi-v3')).sort()) {
    const { components } = read('openapi-v3', file) as { components?: { schemas?: Record<string, Definition> } }
    for (const [name, schema] of Object.entries(components?.schemas ?? {})) definitions.set(name, schema)
  }
  return definitions
}

function loadResources(directory: string, read: Read): Facts['resources'] {
  const files = readdirSync(join(directory, 'discovery')).filter((file) => /^apis?__.*v\d\w*\.json$/.test(file))
  return new Map(
    files.sort().map((file) => {
      const list = read('discovery', file) as { groupVersion: string; resources: ApiResource[] }
      return [list.groupVersion, list.resources]
    }),
  )
}

function listFixtures(directory: string): Facts['fixtures'] {
  const names = readdirSync(join(directory, 'fixtures')).filter((file) => file.endsWith('.json'))
  return names.sort().map((file) => {
    const [, group = '', version = '', kind = ''] = /^(.+)\.(v\d\w*)\.(\w+)\.json$/.exec(file) ?? []
    return [group === 'core' ? '' : group, version, kind]
  })
}
