/** Prints container logs: finds the log requests for an object, and writes their lines. */
import type { Pod } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { drained } from '#lib/drained.ts'
import type { ProgramContext } from '#lib/program.ts'

import { resourcePath } from '../related-objects.ts'
import { type Query, queryText } from '../session/rest.ts'
import { DEFAULT_CONTAINER, defaultedText, findContainer, isChoice, noSuchContainer } from './containers.ts'

export interface LogOptions {
  /** Empty selects the pod's default container or the first. */
  readonly container: string
  readonly follow?: boolean
  readonly previous?: boolean
  readonly timestamps?: boolean
  readonly sinceTime?: string
  readonly sinceSeconds?: number
  readonly tailLines?: number
  readonly limitBytes?: number
  readonly insecureSkipTLSVerifyBackend?: boolean
}

/** The log of one container. */
export interface LogSource {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly options: LogOptions
}

export interface LogSelection {
  readonly options: LogOptions
  readonly allContainers?: boolean
  /** Suppresses the message about the default container. */
  readonly isQuiet?: boolean
}

/** Throws KubectlError for an unknown container. */
export function logSources(
  pod: Pod,
  { options, allContainers = false, isQuiet = false }: LogSelection,
  warn: (line: string) => void,
): LogSource[] {
  const { name = '', namespace = '' } = pod.metadata
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec
  const names = allContainers
    ? [...initContainers, ...containers, ...ephemeralContainers].map((one) => one.name)
    : [options.container || defaultOf(pod, isQuiet, warn)]
  return names.map((container) => {
    if (findContainer(pod, container) === undefined) throw noSuchContainer(pod, container)
    return { namespace, pod: name, container, options: { ...options, container } }
  })
}

function defaultOf(pod: Pod, isQuiet: boolean, warn: (line: string) => void): string {
  const named = pod.metadata.annotations?.[DEFAULT_CONTAINER] ?? ''
  if (named !== '') {
    if (findContainer(pod, named) !== undefined) return named
    warn(`Default container name "${named}" not found in pod ${pod.metadata.name ?? ''}\n`)
  }
  const first = pod.spec.containers[0]?.name ?? ''
  if (isChoice(pod) && !isQuiet) warn(defaultedText(pod, first))
  return first
}

export type Write = (data: Buffer) => Promise<void>

/** Complete lines as they arrive; the last one may lack its line break. Throws StatusError. */
export async function copyLog(
  client: ApiClient,
  { namespace, pod, options }: LogSource,
  { write, signal }: { readonly write: Write; readonly signal: AbortSignal },
): Promise<void> {
  const path = `${resourcePath('v1/pods', namespace, pod)}/log${queryText(options as unknown as Query)}`
  const about = { resource: { group: '', resource: 'pods' }, name: pod }
  const response = await client.ask({ method: 'GET', path, accept: 'application/json, */*', about, signal })
  let rest: Buffer = EMPTY
  for await (const piece of response.body) {
    const end = piece.lastIndexOf(10)
    if (end < 0) {
      rest = Buffer.concat([rest, piece])
      continue
    }
    await write(Buffer.concat([rest, piece.subarray(0, end + 1)]))
    rest = piece.subarray(end + 1)
  }
  if (rest.length > 0) await write(rest)
}

const EMPTY: Buffer = Buffer.alloc(0)

export function writerTo(stream: ProgramContext['stdout']): Write {
  return async (data) => {
    if (!stream.write(data)) await drained(stream)
  }
}

/** Adds the prefix to every line. */
export function prefixed(prefix: string, write: Write): Write {
  const head = Buffer.from(prefix)
  return (data) => {
    const parts: Buffer[] = []
    for (let at = 0; at < data.length;) {
      const end = data.indexOf(10, at)
      const next = end < 0 ? data.length : end + 1
      parts.push(head, data.subarray(at, next))
      at = next
    }
    return write(Buffer.concat(parts))
  }
}
