/** Prints the progress of a run: one line for each completed step, with its machine. */
import type { Writable } from 'node:stream'

import type { Progress } from '../apply/apply.ts'
import type { Plan, Step, Wave } from '../plan/step.ts'
import type { OutputSettings } from './settings.ts'

/** Prints lines for a command, unless --quiet is set. */
export function sayTo({ quiet }: Pick<OutputSettings, 'quiet'>, stream: Writable): (text: string) => void {
  return quiet ? () => undefined : (text) => void stream.write(`${text}\n`)
}

/** The line for an event, if there is one; with `isDebug` also for the start of a step. */
export function progressLine(progress: Progress, isDebug = false): string | undefined {
  switch (progress.event) {
    case 'wave':
      return `[${progress.wave.name}] ${amountOf(progress.wave)}`
    case 'begin':
      return isDebug ? `[${progress.wave.name}] begin ${stepText(progress.step)}` : undefined
    case 'done':
      return `[${progress.wave.name}] ${stepText(progress.step)}`
    case 'failed':
      return `[${progress.wave.name}] FAILED ${stepText(progress.step)}: ${progress.error.message}`
  }
}

function stepText({ host, describe }: Step): string {
  return host === '' ? describe : `${host}: ${describe}`
}

function amountOf({ tracks, width }: Wave): string {
  const steps = tracks.flat().length
  const many = tracks.length > 1 ? `, ${Math.min(width, tracks.length)} of ${tracks.length} machines at a time` : ''
  return `${steps} step${steps === 1 ? '' : 's'}${many}`
}

/** The format of `build plan`. */
export function planText({ waves, faults, notes }: Plan): string {
  const lines = [
    ...notes.map((text) => `note: ${text}`),
    ...faults.map((text) => `fault: ${text}`),
    ...waves.flatMap((wave) => [
      `${wave.name} (${amountOf(wave)})`,
      ...wave.tracks.flat().map((step) => `  ${stepText(step)}`),
    ]),
  ]
  if (waves.length === 0 && faults.length === 0) lines.push('Nothing to do: the cluster is up to date.')
  return `${lines.join('\n')}\n`
}
