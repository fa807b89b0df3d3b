/** Creates sample writes for tests of admission plugins: complete attributes with defaults. */
import type { AdmissionPlugin } from '#admission/plugin.ts'
import { concerns, Rounds } from '#admission/plugin.ts'
import { type Kind, preferredKind } from '#apis/kinds.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import type { User } from '#auth/user.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'

/** Objects by resource: `deployments.apps`. */
export type World = Readonly<Record<string, readonly object[]>>

export interface SampleWrite extends Partial<Omit<Attributes, 'kind' | 'objects' | 'warn' | 'object' | 'oldObject'>> {
  /** `pods`, `deployments.apps`. */
  readonly resource: string
  readonly object?: object
  readonly oldObject?: object
  /** Other stored objects. */
  readonly world?: World
}

export interface Sample {
  readonly attributes: Attributes
  readonly warnings: readonly string[]
}

const USER: User = { name: 'alice', uid: '', groups: ['system:authenticated'], extra: {} }

export function sampleKind(resource: string): Kind {
  const [plural = '', ...group] = resource.split('.')
  const kind = preferredKind({ group: group.join('.'), resource: plural }, () => true)
  if (kind === undefined) throw new Error(`No resource "${resource}"`)
  return kind
}

/** The object is copied, so that tests can share theirs. */
export function sampleWrite({ resource, world = {}, ...rest }: SampleWrite): Sample {
  const warnings: string[] = []
  const kind = sampleKind(resource)
  const object = rest.object === undefined ? undefined : (deepCopy(rest.object) as KubeObject)
  const { metadata } = (object ?? rest.oldObject ?? { metadata: {} }) as KubeObject
  const attributes: Attributes = {
    operation: rest.oldObject === undefined ? 'CREATE' : object === undefined ? 'DELETE' : 'UPDATE',
    kind,
    subresource: '',
    objectKind: kind,
    addressed: { group: kind.group, version: kind.version, resource: kind.plural },
    namespace: kind.namespaced ? 'ns' : '',
    name: metadata.name ?? '',
    options: {},
    dryRun: false,
    user: USER,
    objects: readerOf(world),
    warn: (text) => warnings.push(text),
    signal: new AbortController().signal,
    ...rest,
    object,
    oldObject: rest.oldObject as KubeObject | undefined,
  }
  return { attributes, warnings }
}

/** Objects without a namespace are in `ns`. */
export function readerOf(world: World): ObjectReader {
  const of = (kind: Kind, namespace: string): KubeObject[] => {
    const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
    const all = (world[name] ?? []) as KubeObject[]
    return all.filter(({ metadata }) => namespace === '' || (metadata.namespace ?? 'ns') === namespace)
  }
  return {
    get: (kind, namespace, name) =>
      Promise.resolve(of(kind, namespace).find(({ metadata }) => metadata.name === name) as never),
    list: (kind, namespace) => Promise.resolve(of(kind, namespace) as never),
  }
}

/** Runs the plugin as the chain would and returns the object. */
export async function admit(plugin: AdmissionPlugin, write: SampleWrite): Promise<KubeObject | undefined> {
  const { attributes } = sampleWrite(write)
  await run(plugin, attributes)
  return attributes.object
}

/** The message of the refusal, or undefined if the write was admitted. */
export async function refusal(plugin: AdmissionPlugin, write: SampleWrite): Promise<string | undefined> {
  return (await refusalStatus(plugin, write))?.message
}

export async function refusalStatus(
  plugin: AdmissionPlugin,
  write: SampleWrite,
): Promise<StatusError['status'] | undefined> {
  try {
    await run(plugin, sampleWrite(write).attributes)
    return undefined
  } catch (error) {
    if (error instanceof StatusError) return error.status
    throw error
  }
}

export async function run(plugin: AdmissionPlugin, attributes: Attributes): Promise<void> {
  if (!concerns(plugin, attributes)) return
  await plugin.mutate?.(attributes, new Rounds())
  await plugin.validate?.(attributes)
}
