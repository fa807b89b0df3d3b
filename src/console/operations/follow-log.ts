/** Reads the log of an Operation and goes on while it grows. */
import { send } from '../api/request.ts'
import { buildRoute } from './operation-requests.ts'

/** Calls back with each piece. Resolves when the Operation has ended. Rejects with RequestError or when the connection breaks. */
export async function followLog(
  cluster: string,
  operation: string,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = buildRoute(cluster, `operations/${encodeURIComponent(operation)}/log?follow=true`)
  const response = await send(path, { accept: 'text/plain', signal })
  if (response.body === null) return
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onText(decoder.decode(value, { stream: true }))
  }
}

const MAX_CHARACTERS = 512 * 1024

/** The end of a log, in whole lines. */
export function endOfLog(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text
  const end = text.slice(-MAX_CHARACTERS)
  return end.slice(end.indexOf('\n') + 1)
}

/** `2026-01-01T10:00:00.123Z text` without its day. */
export function withShortTimes(text: string): string {
  return text.replaceAll(/^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\.\d+Z /gm, '$1 ')
}
