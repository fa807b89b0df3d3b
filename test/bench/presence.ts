/**
 * Tracks by name which objects of a collection exist, with a watch. When a slow watch is closed by the server, it
 * starts again from the current list, so that nothing is counted twice or missed.
 */
import { request } from 'node:https'

import { pause } from './http-load.ts'
import type { Target } from './up-under-test.ts'

/** Followed until it is disposed of. */
export interface Presence extends Disposable {
  /** How many are there now. */
  size(): number
  /** Resolves when so many are there. */
  reached(many: number): Promise<void>
  /** Resolves when none is there. */
  emptied(): Promise<void>
}

const AGAIN_MS = 100

/** Resolves when what was there is known. `counts`: whether an object, as the line of its event, is one of those. */
export async function followPresence(
  target: Target,
  path: string,
  counts: (line: string) => boolean = () => true,
): Promise<Presence> {
  const over = new AbortController()
  const watched = (version: string): string =>
    `${path}${path.includes('?') ? '&' : '?'}watch=1&allowWatchBookmarks=true&resourceVersion=${version}`
  let names = new Set<string>()
  let wanted: { readonly isSo: () => boolean; readonly so: () => void } | undefined
  const known = Promise.withResolvers<void>()
  const look = (): void => {
    if (wanted?.isSo() === true) wanted.so()
  }
  const watch = async (): Promise<void> => {
    const { items, metadata } = await readList(target, path, over.signal)
    const fresh = new Set<string>()
    for (const object of items) take(fresh, JSON.stringify({ type: 'ADDED', object }), counts)
    names = fresh
    known.resolve()
    look()
    await readLines(target, watched(metadata.resourceVersion), over.signal, (line) => {
      take(names, line, counts)
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
    size: () => names.size,
    reached: (many) => until(() => names.size >= many),
    emptied: () => until(() => names.size === 0),
    [Symbol.dispose]: () => over.abort(),
  }
}

function take(names: Set<string>, line: string, counts: (line: string) => boolean): void {
  if (line.startsWith('{"type":"BOOKMARK"') || line.startsWith('{"type":"ERROR"')) return
  // The first is that of its metadata.
  const name = /"name":"([^"]+)"/.exec(line)?.[1] ?? ''
  if (line.startsWith('{"type":"DELETED"') || !counts(line)) names.delete(name)
  else names.add(name)
}

interface List {
  readonly items: readonly object[]
  readonly metadata: { readonly resourceVersion: string }
}

/** Lists instead of streaming the initial list, because an API server on an etcd before 3.5 never marks its end. */
async function readList(target: Target, path: string, signal: AbortSignal): Promise<List> {
  const parts: string[] = []
  await read(target, path, signal, (part) => parts.push(part))
  return JSON.parse(parts.join('')) as List
}

async function readLines(
  target: Target,
  path: string,
  signal: AbortSignal,
  next: (line: string) => void,
): Promise<void> {
  let rest = ''
  await read(target, path, signal, (part) => {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) next(line)
  })
}

/** Resolves when the server ends the response; rejects if the request fails. */
function read({ port, tls }: Target, path: string, signal: AbortSignal, next: (part: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, path, host: '127.0.0.1', signal, ...tls }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`The server answered ${answer.statusCode} to ${path}`))
      answer.setEncoding('utf8').on('data', next).on('error', reject).on('close', resolve)
    })
    asked.on('error', reject).end()
  })
}
