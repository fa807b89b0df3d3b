/**
 * Finds completion choices in clusters and kubeconfigs. Any failure yields no choices, because errors would disturb
 * typing.
 */
import type { Pod } from '#apis/core/v1.ts'
import type { ProgramContext } from '#lib/program.ts'

import { select } from '../builder/builder.ts'
import { onePerResource } from '../commands/api-resources.ts'
import { resourcePath } from '../related-objects.ts'
import type { AnyObject } from '../session/rest.ts'
import type { Session } from '../session/session.ts'
import { attachablePod, readNamed, theOnly } from '../streams/target-pod.ts'

export interface CompletionContext extends Pick<ProgramContext, 'cwd' | 'stdin' | 'clock' | 'env'> {
  readonly session: Session
}

/** Requests only metadata, because only names matter. */
const METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'
/** The longest wait for a pod during completion. */
const POD_MS = 100

async function orNothing<T>(ask: () => Promise<readonly T[]>): Promise<readonly T[]> {
  return ask().catch(() => [])
}

/** The names of all objects of a type, in the namespace of the line by default. */
export function namesOf(around: CompletionContext, type: string, namespace?: string): Promise<readonly string[]> {
  return orNothing(async () => {
    const { session } = around
    const where = namespace ?? (await session.namespace()).namespace
    const asking = { accept: METADATA }
    const io = around
    const selection = await select({ session, io, namespace: where, args: [type], allowEmptySelector: true, asking })
    const { infos } = await selection.infos()
    const items = infos.flatMap(({ object }) => (object?.['items'] ?? []) as readonly AnyObject[])
    return items.map(({ metadata }) => metadata.name ?? '').filter(Boolean)
  })
}

/** Readable resources with their groups. */
export function typesOf({ session }: CompletionContext): Promise<readonly string[]> {
  return orNothing(async () => {
    const { kinds } = await (await session.mapper()).known()
    const readable = onePerResource(kinds).filter(({ verbs }) => verbs.includes('get'))
    const byGroup = readable.toSorted(
      (one, other) => compare(one.group, other.group) || compare(one.plural, other.plural),
    )
    return byGroup.map(({ plural, group }) => (group === '' ? plural : `${plural}.${group}`))
  })
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

export function kubeconfigNames(
  { session }: CompletionContext,
  section: 'contexts' | 'clusters' | 'users',
): Promise<readonly string[]> {
  return orNothing(async () => [...(await session.rawConfig())[section].keys()].sort())
}

/** Finds the pod for a name or `TYPE/NAME`. */
async function podOf(around: CompletionContext, name: string): Promise<Pod> {
  const { session, clock } = around
  const rest = await session.rest()
  if (name.includes('/')) {
    const named = theOnly(await readNamed(around, { names: [name] }), 'one')
    return attachablePod(named, { rest, clock, timeoutMs: POD_MS })
  }
  const { namespace } = await session.namespace()
  return rest.json<Pod>(resourcePath('v1/pods', namespace, name))
}

/** The containers of a pod, with init containers first. */
export function containersOf(around: CompletionContext, name: string): Promise<readonly string[]> {
  return orNothing(async () => {
    const { initContainers = [], containers } = (await podOf(around, name)).spec
    return [...initContainers, ...containers].map((container) => container.name)
  })
}

/** Ports to forward to: those of the service, or those of the pod's containers. */
export function portsOf(around: CompletionContext, target: string): Promise<readonly number[]> {
  return orNothing(async () => {
    const [type = '', name = ''] = target.includes('/') ? target.split('/') : ['pod', target]
    if (!['service', 'services', 'svc'].includes(type)) {
      const { containers } = (await podOf(around, target)).spec
      return containers.flatMap(({ ports = [] }) => ports.map(({ containerPort }) => containerPort))
    }
    const { session } = around
    const { namespace } = await session.namespace()
    const rest = await session.rest()
    const { spec } = await rest.json<{ readonly spec: { readonly ports?: readonly { readonly port: number }[] } }>(
      resourcePath('v1/services', namespace, name),
    )
    return (spec.ports ?? []).map(({ port }) => port)
  })
}
