/** Masks values that vary between two runs, and computes the remaining differences between two outputs. */
import { differences } from '../line-differences.ts'
import type { Mode } from './scene.ts'
import type { Outcome } from './sides.ts'

type Mask = readonly [RegExp, string]

/** Masks for both programs at any time. */
const ALWAYS: readonly Mask[] = [
  [/v1\.36\.4\+hyperkube\d+/g, 'v1.36.4'],
  [/^[WEIF]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\]/gm, 'LOG]'],
  // Upstream's informers say so when the server is slow.
  [/^LOG\] "Warning: watch ended with error" .*\n/gm, ''],
  [/(RenewTime: +).*/g, '$1TIME'],
  [/\(x\d+ over/g, '(xN over'],
  // Of the build, not of the program.
  [/((?:buildDate|gitCommit|gitTreeState|goVersion|compiler|platform)"?: "?)[^",\n]*/g, '$1BUILD'],
  [/kubectl(\.exe)?\/v1\.36\.4 \([^)]*\) kubernetes\/\w+/g, 'kubectl/v1.36.4'],
  [/(\d+)( milliseconds|ms\b)/g, 'N$2'],
  [/kubectl-edit-\w+/g, 'kubectl-edit-N'],
  [/\/tmp\/(LIVE|MERGED)-\w+/g, '/tmp/$1-N'],
]

/** Of objects that each of them has for itself. */
const APART: readonly Mask[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?/g, 'TIME'],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID'],
  [/[Rr]esourceVersion(\\?)"?: ?\\?"\d*\\?"/g, 'RV'],
  [/(Resource ?Version: +)\d+/g, '$1RV'],
  [/\b(10|172\.18)(\.\d+){2,3}\b/g, 'IP'],
  [/\bnode-\d\b/g, 'NODE'],
  [/\b3[0-2]\d{3}\b/g, 'PORT'],
  [/-[a-f0-9]{8,10}-[a-z0-9]{5}\b|(?<=[a-z0-9])-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '-GENERATED'],
  [/(?<=\w)-[bcdf0-9a-z]{8,10}(?= is| not| has|"|'|\s|$)/gm, '-HASH'],
  [/\.18[a-f0-9]{14}\b/g, '.EVENT'],
  [/simulated:\/\/[\da-f]{64}/g, 'CONTAINER'],
  [/applyset-[\w-]{43}-v1/g, 'APPLYSET'],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN'],
]

/** Of clusters that are started separately, and of how much time has passed. */
const RECORDED: readonly Mask[] = [
  [/^ +Warning +FailedScheduling .*\n/gm, ''],
  [/X509SHA256=[\da-f]+/g, 'X509SHA256=HASH'],
  [/(BEGIN CERTIFICATE)[^]*?(END CERTIFICATE)/g, '$1 $2'],
]

const AGE = /(?<=^|[\s(])(?:\d+[dhms]){1,2}(?=[\s),]|$)|<invalid>|<unknown>/gm

/** Names that differ between the sides: folders, namespaces, nodes. */
export type Names = readonly (readonly [string, string])[]

export interface Compared {
  readonly mode: Mode
  readonly args: readonly string[]
  readonly theirs: Outcome
  readonly ours: Outcome
  /** Of each side. */
  readonly names: readonly [Names, Names]
}

/** Nothing when they are the same; else lines that say where not, upstream's with `-`. */
export function differencesOf({ mode, args, theirs, ours, names }: Compared): string[] {
  return differencesBetween(maskedOutcome(theirs, args, mode, names[0]), maskedOutcome(ours, args, mode, names[1]))
}

/** The outcome without what may differ from run to run. */
export function maskedOutcome(
  outcome: Outcome,
  args: readonly string[],
  mode: Mode | 'recorded',
  names: Names,
): Outcome {
  const { code, out, err } = outcome
  return { code, out: masked(shown(args, out), mode, names), err: masked(shown(args, err), mode, names) }
}

/** Compares masked outcomes. */
export function differencesBetween(theirs: Outcome, ours: Outcome): string[] {
  const found = theirs.code === ours.code ? [] : [`exit code ${theirs.code}, ours ${ours.code}`]
  for (const part of ['out', 'err'] as const) {
    const [left, right] = [theirs[part], ours[part]]
    if (left === right || unaligned(left) === unaligned(right)) continue
    found.push(part === 'out' ? 'stdout:' : 'stderr:', ...differences(unaligned(left, right), unaligned(right, left)))
  }
  return found
}

function masked(text: string, mode: Mode | 'recorded', names: Names): string {
  const known = names.reduce((now, [name, word]) => now.replaceAll(name, word), text)
  const apart = mode === 'recorded' ? [...APART, ...RECORDED] : APART
  const masks = mode === 'reads' ? ALWAYS : [...ALWAYS, ...apart]
  return masks.reduce((now, [pattern, word]) => now.replaceAll(pattern, word), known)
}

/** An age that is a letter longer moves the columns behind it: where there is one, how wide columns are does not count. */
function unaligned(text: string, other = text): string {
  AGE.lastIndex = 0
  const hasAge = AGE.test(text) || AGE.test(other) || /TIME|IP|-GENERATED|-HASH|UID/.test(text)
  AGE.lastIndex = 0
  if (!hasAge) return text
  return text.replaceAll(AGE, 'AGE').replaceAll(/ {2,}/g, '  ').replaceAll(/ +$/gm, '').replaceAll(/-{4,}/g, '----')
}

/** Help is in our own words: headings, usage, names of commands and flags with what they default to are not. */
function shown(args: readonly string[], text: string): string {
  const isHelp = args.includes('--help') || /^Usage:$/m.test(text) || args[0] === 'options'
  // Upstream's come in the order of Go's maps: none.
  if (args.includes('--list') && /^(?:label|annotate)$/.test(args[0] ?? '')) return text.split('\n').sort().join('\n')
  // How often it is looked at meanwhile is a matter of time.
  if (!isHelp && args[0] === 'rollout' && args[1] === 'status') return text.replaceAll(/^Waiting for .*\n/gm, '')
  // Managers that write in the same second have another order than those that write later.
  if (args.includes('--show-managed-fields') && text.startsWith('{')) return withManagersInOrder(text)
  if (!isHelp) return text
  const kept = /^\S.*:$|^ {2,}(?:-\w, )?--[\w-]+=.*:$|^ {2}kubectl .*|^ {2}[a-z-]+(?= {2,})|^ {2}[a-z-]+$/
  return text
    .replace(/^Examples:\n[^]*?(?=^\S)/m, '')
    .split('\n')
    .map((line) => kept.exec(line)?.[0])
    .filter((line) => line !== undefined)
    .join('\n')
}

/** The text stays as it is written; only what stands for one manager changes its place. */
function withManagersInOrder(text: string): string {
  const face = (entry: string): string => entry.replaceAll(/"time": "[^"]*"/g, '')
  return text.replaceAll(/^( *)"managedFields": \[\n([^]*?)\n\1\]/gm, (_, indent: string, entries: string) => {
    const all = entries.split(new RegExp(`(?<=^${indent}    \\}),\n`, 'm'))
    const sorted = all.toSorted((one, other) => face(one).localeCompare(face(other)))
    return `${indent}"managedFields": [\n${sorted.join(',\n')}\n${indent}]`
  })
}
