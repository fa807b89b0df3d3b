/** A pod that kubectl just created: waits for it, attaches to it, or prints its logs if it has already ended. */
import type { Pod } from '#apis/core/v1.ts'
import { notFoundError } from '#meta/status-errors.ts'

import { asError } from '../errors.ts'
import { awaited, LATE } from '../wait/awaited.ts'
import { type AttachOptions, attachTo } from './attaching.ts'
import { chosenContainer } from './containers.ts'
import { copyLog, logSources, writerTo } from './pod-logs.ts'
import { isReady } from './pod-order.ts'
import type { StreamContext } from './remote-session.ts'
import { PODS } from './target-pod.ts'

export interface PodWait {
  readonly namespace: string
  readonly name: string
  /** Undefined means no limit. */
  readonly timeoutMs?: number
}

/** Throws StatusError if the pod is deleted, and KubectlError after the timeout. */
export async function podThat(
  { session }: Pick<StreamContext, 'session'>,
  { namespace, name, timeoutMs }: PodWait,
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

/** The pod has a container to attach to, or has already ended. */
export function hasBegun(pod: Pod): boolean {
  return isOver(pod) || (pod.status?.phase === 'Running' && isReady(pod))
}

/** Prints everything that the container has written so far. */
export async function printLogs(
  { session, stdout, stderr, signal }: StreamContext,
  pod: Pod,
  { container, quiet }: Pick<AttachOptions, 'container' | 'quiet'>,
): Promise<void> {
  const warn = (line: string): void => void (quiet || stderr.write(line))
  const name = chosenContainer(pod, container, warn).container.name
  const client = await session.client()
  for (const source of logSources(pod, { options: { container: name } }, warn)) {
    await copyLog(client, source, { write: writerTo(stdout), signal })
  }
}

/** Falls back to logs if attaching fails. */
export async function attachOrRead(context: StreamContext, pod: Pod, attaching: AttachOptions): Promise<void> {
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
