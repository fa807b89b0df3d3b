/** Parses `KEY=VALUE` and `KEY-` after the resource arguments, for `label`, `annotate` and `set`. */
import { KubectlError } from '../errors.ts'

/** Resources first, then pairs. Throws KubectlError. */
export function splitPairs(args: readonly string[], what: string): { resources: string[]; pairs: string[] } {
  const isPair = (arg: string): boolean =>
    (arg.includes('=') && !arg.startsWith('=')) || (arg.endsWith('-') && arg !== '-')
  const first = args.findIndex(isPair)
  if (first < 0) return { resources: [...args], pairs: [] }
  const late = args.slice(first).find((arg) => !isPair(arg))
  if (late !== undefined) throw new KubectlError(`all resources must be specified before ${what} changes: ${late}`)
  return { resources: args.slice(0, first), pairs: args.slice(first) }
}

export interface Changes {
  readonly set: ReadonlyMap<string, string>
  readonly removed: readonly string[]
}

/** `KEY=VALUE` and `KEY-`; the value extends to the end. Throws KubectlError. */
export function parsePairs(pairs: readonly string[], what: string): Changes {
  const set = new Map<string, string>()
  const removed: string[] = []
  const invalid: string[] = []
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at > 0) set.set(pair.slice(0, at), pair.slice(at + 1))
    else if (pair.endsWith('-') && pair !== '-') removed.push(pair.slice(0, -1))
    else invalid.push(pair)
  }
  if (invalid.length > 0) throw new KubectlError(`invalid ${what} format: ${invalid.join(', ')}`)
  return { set, removed }
}
