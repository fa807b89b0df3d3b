/** The type of a log line before it is formatted, with its position in the source. */
import { getCallSites } from 'node:util'

export type Pair = readonly [key: string, value: unknown]

export interface Line {
  readonly nowMs: number
  readonly caller: Caller
  /** Of the logger; empty at the root. */
  readonly name: string
  readonly message: string
  /** Undefined for errors. */
  readonly level: number | undefined
  /** Under the key `err`, which is in neither list below. Anything may be thrown. */
  readonly error: unknown
  /** Of the logger. No key is also in `own`. */
  readonly values: readonly Pair[]
  /** Of the line itself. */
  readonly own: readonly Pair[]
}

export interface Caller {
  /** Folder and file, as zap shows it. */
  readonly path: string
  /** The file alone, as klog shows it. */
  readonly file: string
  readonly line: number
}

/** klog's placeholder for unknown values. */
export const UNKNOWN_CALLER: Caller = { path: '???', file: '???', line: 1 }

const paths = new Map<string, string>()

/** The function `frames` above the one that calls this. */
export function callerAbove(frames: number): Caller {
  const site = getCallSites(frames + 2)[frames + 1]
  if (site === undefined) return UNKNOWN_CALLER
  let path = paths.get(site.scriptName)
  if (path === undefined) {
    path = site.scriptName.split('/').slice(-2).join('/')
    paths.set(site.scriptName, path)
  }
  return { path, file: path.slice(path.indexOf('/') + 1), line: site.lineNumber }
}
