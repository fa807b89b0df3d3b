/** Sends the request of an action to a cluster. */
import { clusterPath } from '../api/kinds.ts'
import { send } from '../api/request.ts'
import { now, random } from '../browser/time.ts'
import type { ActionRequest, Surroundings } from './action.ts'

/** Rejects with RequestError. */
export async function runRequest(
  cluster: string,
  { method, path, body, type }: ActionRequest,
  signal?: AbortSignal,
): Promise<void> {
  const options = { method, signal, ...(body !== undefined && { body }), ...(type !== undefined && { type }) }
  await send(clusterPath(cluster, path), options)
}

const LETTERS = 'bcdfghjklmnpqrstvwxz2456789'

export function surroundings(): Surroundings {
  const letter = (): string => LETTERS[Math.floor(random() * LETTERS.length)] ?? 'x'
  return { nowMs: now(), suffix: Array.from({ length: 5 }, letter).join('') }
}
