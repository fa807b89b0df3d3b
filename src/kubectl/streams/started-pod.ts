/** A pod that was just made: waiting for it, its logs when it was faster than we are, attaching to it. */
import type { Pod } from '#apis/core/v1.ts'
import { notFoundError } from '#meta/status-errors.ts'

import { asError } from '../errors.ts'
import { awaited, LATE } from '../wait/awaited.ts'
import { type Attaching, attachTo } from './attaching.ts'
import { chosenContainer } from './containers.ts'
import { copyLog, logSources, writerTo } from './pod-logs.ts'
import { isReady } from './pod-order.ts'
import type { StreamContext } from './remote-session.ts'
import { PODS } from './target-pod.ts'

export interface Waiting {
  readonly namespace: string
  readonly name: string
  /** None: as long as it takes. */
  readonly timeoutMs?: number
}

/** Throws StatusError when it is deleted, and KubectlError when it takes too long. */
export async function podThat(
  { session }: Pick<StreamContext, 'session'>,
  { namespace, name, timeoutMs }: Waiting,
  isSo: (pod: Pod) => boolean,
): Promise<Pod> {
  const found = await awaited(session, { kind: PODS, namespace, name }, { timeoutMs, late: LATE }, (object) => {
    if (object === undefined) throw notFoundError({ group: '', resource: 'pods' }, '')
    return isSo(object as unknown as Pod)
  })
  return found as unknown as Pod
}

export function isOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

/** To be attached to, or too late for that. */
export function hasBegun(pod: Pod): boolean {
  return isOver(pod) || (pod.status?.phase === 'Running' && isReady(pod))
}

/** Everything that the container has written up to now. */
export async function printLogs(
  { session, stdout, stderr, signal }: StreamContext,
  pod: Pod,
  { container, quiet }: Pick<Attaching, 'container' | 'quiet'>,
): Promise<void> {
  const warn = (line: string): void => void (quiet || stderr.write(line))
  const name = chosenContainer(pod, container, warn).container.name
  const client = await session.client()
  for (const source of logSources(pod, { options: { container: name } }, warn)) {
    await copyLog(client, source, { write: writerTo(stdout), signal })
  }
}

/** A session that cannot be begun is read at least. */
export async function attachOrRead(context: StreamContext, pod: Pod, attaching: Attaching): Promise<void> {
  try {
    await attachTo(context, pod, attaching)
  } catch (error) {
    if (context.signal.aborted) throw error
    const name = pod.metadata.name ?? ''
    const text = `warning: couldn't attach to pod/${name}, falling back to streaming logs: ${asError(error).message}\n`
    context.stderr.write(text)
    await printLogs(context, pod, attaching)
  }
}
