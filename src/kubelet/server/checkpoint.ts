/** `POST /checkpoint/<namespace>/<pod>/<container>`: the runtime writes a checkpoint of a container to a file. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { callText } from '#cri/call-text.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import { timeOf } from '#meta/time.ts'

import { isRunning } from '../pod/container-runs.ts'
import type { PodOfNode } from '../pod/pod-of-node.ts'
import { type Answer, jsonAnswer, textAnswer } from './answer.ts'

export interface CheckpointOptions {
  readonly clock: Clock
  readonly runtime: Runtime
  readonly query: URLSearchParams
  readonly checkpointsDir: string
  readonly runtimeTimeoutMs?: number
  readonly find: (namespace: string, name: string) => PodOfNode | undefined
}

const RUNTIME_TIMEOUT_MS = 120_000

export async function checkpoint(parts: readonly string[], options: CheckpointOptions): Promise<Answer> {
  const [namespace = '', name = '', container = ''] = parts
  const { find, query, clock, runtime, checkpointsDir, runtimeTimeoutMs = RUNTIME_TIMEOUT_MS } = options
  const view = find(namespace, name)
  if (view === undefined) return textAnswer(404, 'pod does not exist')
  const found = view.containers.get(container)
  if (found === undefined) return textAnswer(404, `container ${container} does not exist`)
  // The last of several values counts. The timeout is at least that of other runtime calls.
  const timeout = query.getAll('timeout').at(-1) ?? '0'
  if (!/^[+-]?\d+$/.test(timeout)) return textAnswer(404, 'cannot parse value of timeout parameter')
  const failed = (why: string): Answer =>
    textAnswer(500, `checkpointing of ${namespace}/${name}/${container} failed (${why})`)
  const containerId = found.current?.containerId
  if (containerId === undefined || !isRunning(found.record)) return failed(`container ${container} not found`)
  if (Number(timeout) < 0) return failed('CheckpointContainer requires the timeout value to be > 0')
  const file = `checkpoint-${name}_${namespace}-${container}-${timeOf(clock.now())}.tar`
  const location = join(checkpointsDir, file)
  try {
    await clock.during(mkdir(checkpointsDir, { recursive: true, mode: 0o700 }))
    const timeoutMs = Math.max(Number(timeout) * 1000, runtimeTimeoutMs)
    await runtime.checkpointContainer({ containerId, location, timeout: Math.trunc(timeoutMs / 1000) }, { timeoutMs })
    return jsonAnswer({ items: [location] })
  } catch (error) {
    return failed(callText(error))
  }
}
