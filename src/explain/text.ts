/** An explanation as text for people: the verdict, its steps, and what would help. */
import { type Finding, isNotKnown, type Step } from './explanation.ts'

const SUFFIXES = { reported: '', recomputed: ' (recomputed)', inferred: ' (inferred)' } as const

export function explanationText({ verdict, steps, wouldHelp }: Finding): string {
  const head = isNotKnown({ verdict }) ? verdict.replace('NotKnown:', 'Not known:') : verdict
  const help = wouldHelp.length === 0 ? [] : ['Would help:', ...wouldHelp.map((sentence) => `  - ${sentence}`)]
  const shown = steps.filter(isShown)
  const lines = shown.map((step, at) => `  ${stepText(step)}${at === shown.length - 1 ? causesText(step) : ''}`)
  return [head, ...lines, ...help].map((line) => `${line}\n`).join('')
}

/** A step without an actor only has evidence. */
function isShown({ actor, object }: Step): boolean {
  return actor !== '' || object === ''
}

function stepText({ at, actor, did, certainty, object }: Step): string {
  const time = at === undefined ? '' : `${at} `
  if (actor === '') return object === '' ? `There ${did}` : did
  return `${time}${actor} ${did}${SUFFIXES[certainty]}`
}

/** The other steps explain the causes of theirs. */
function causesText({ because, revision, evidence }: Step): string {
  const own = new Set(evidence.map(({ object }) => object))
  const others = because.filter((ref) => !own.has(ref) && !ref.endsWith(`@${revision}`))
  return others.length === 0 ? '' : `, because of ${others.join(', ')}`
}
