/**
 * Which objects of a collection are there, by name, as a watch tells. A server ends the watch of whoever does not keep up, and
 * on a busy machine that may be the bench: it then begins anew with all that is there, and nothing is counted twice or missed.
 */
import { request } from 'node:https'

import { pause } from './http-load.ts'
import type { Target } from './up-under-test.ts'

export interface Presence {
  /** Resolves when so many are there. */
  reached(many: number): Promise<void>
  /** Resolves when none is there. */
  emptied(): Promise<void>
  stop(): void
}

const INITIAL = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
const INITIAL_END = '"k8s.io/initial-events-end":"true"'
const AGAIN_MS = 100

/** Resolves when what was there is known. `counts`: whether an object, as the line of its event, is one of those. */
export async function followPresence(
  target: Target,
  path: string,
  counts: (line: string) => boolean = () => true,
): Promise<Presence> {
  const over = new AbortController()
  const watched = `${path}${path.includes('?') ? '&' : '?'}${INITIAL}`
  let names = new Set<string>()
  let wanted: { readonly isSo: () => boolean; readonly so: () => void } | undefined
  const known = Promise.withResolvers<void>()
  const look = (): void => {
    if (wanted?.isSo() === true) wanted.so()
  }
  const watch = async (): Promise<void> => {
    let fresh: Set<string> | undefined = new Set()
    await readLines(target, watched, over.signal, (line) => {
      if (fresh !== undefined && line.includes(INITIAL_END)) {
        names = fresh
        fresh = undefined
        known.resolve()
      } else take(fresh ?? names, line, counts)
      look()
    })
  }
  void (async () => {
    while (!over.signal.aborted) {
      await watch().catch(() => undefined)
      await pause(AGAIN_MS)
    }
  })()
  await known.promise
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((so) => {
      wanted = { isSo, so }
      look()
    })
  return {
    reached: (many) => until(() => names.size >= many),
    emptied: () => until(() => names.size === 0),
    stop: () => over.abort(),
  }
}

function take(names: Set<string>, line: string, counts: (line: string) => boolean): void {
  if (line.startsWith('{"type":"BOOKMARK"')) return
  // The first is that of its metadata.
  const name = /"name":"([^"]+)"/.exec(line)?.[1] ?? ''
  if (line.startsWith('{"type":"DELETED"') || !counts(line)) names.delete(name)
  else names.add(name)
}

/** Resolves when the server ends the answer; rejects when it cannot be asked. */
function readLines(
  { port, tls }: Target,
  path: string,
  signal: AbortSignal,
  next: (line: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, path, host: '127.0.0.1', signal, ...tls }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`The server answered ${answer.statusCode} to ${path}`))
      let rest = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        const lines = (rest + part).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) next(line)
      })
      answer.on('error', reject).on('close', resolve)
    })
    asked.on('error', reject).end()
  })
}
