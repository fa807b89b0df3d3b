/** An explanation as text for people: the verdict, its steps, and what would help. */
import { type Finding, isNotKnown, type Step } from './explanation.ts'

const SUFFIXES = { reported: '', recomputed: ' (recomputed)', inferred: ' (inferred)' } as const

export function explanationText({ verdict, steps, wouldHelp }: Finding): string {
  const head = isNotKnown({ verdict }) ? verdict.replace('NotKnown:', 'Not known:') : verdict
  const help = wouldHelp.length === 0 ? [] : ['Would help:', ...wouldHelp.map((sentence) => `  - ${sentence}`)]
  return [head, ...steps.filter(isShown).map((step) => `  ${stepText(step)}`), ...help]
    .map((line) => `${line}\n`)
    .join('')
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
