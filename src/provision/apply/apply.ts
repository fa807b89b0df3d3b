/**
 * Applies a plan of `hyperkube build` wave by wave; each wave limits how many machines change concurrently. After an
 * interruption the next plan contains the remaining steps.
 */

import { inParallel } from '#lib/in-parallel.ts'

import { MachineLost } from '../machine.ts'
import type { Plan, Step, Track, Wave } from '../plan/step.ts'
import { perform, type Site } from './actions.ts'

export type Progress =
  | { readonly event: 'wave'; readonly wave: Wave }
  | { readonly event: 'begin' | 'done'; readonly wave: Wave; readonly step: Step }
  | { readonly event: 'failed'; readonly wave: Wave; readonly step: Step; readonly error: Error }

export interface ApplyResult {
  readonly done: number
  /** The failures of optional tracks. */
  readonly failures: readonly StepError[]
}

export class StepError extends Error {
  override readonly name = 'StepError'
  readonly step: Step

  constructor(step: Step, cause: Error) {
    super(`${step.host === '' ? '' : `${step.host}: `}cannot ${step.describe}: ${cause.message}`, { cause })
    this.step = step
  }
}

/**
 * Rejects with the first StepError of a required track after all running tracks have ended, or with the signal's
 * reason.
 */
export async function applyPlan(
  { waves }: Pick<Plan, 'waves'>,
  site: Site,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<ApplyResult> {
  let done = 0
  const failures: StepError[] = []
  for (const wave of waves) {
    onProgress({ event: 'wave', wave })
    const failed: StepError[] = []
    await inParallel(wave.tracks, wave.width, async (track) => {
      if (failed.length > wave.tolerates || signal.aborted) return
      const error = await runTrack(track, wave, { site, onProgress, signal, counted: () => done++ })
      if (error !== undefined) failed.push(error)
    })
    signal.throwIfAborted()
    const [first] = failed
    if (first !== undefined && failed.length > wave.tolerates) throw first
    failures.push(...failed)
  }
  return { done, failures }
}

interface TrackContext {
  readonly site: Site
  readonly onProgress: (progress: Progress) => void
  readonly signal: AbortSignal
  readonly counted: () => void
}

async function runTrack(track: Track, wave: Wave, running: TrackContext): Promise<StepError | undefined> {
  const { site, onProgress, signal, counted } = running
  for (const step of track) {
    if (signal.aborted) return undefined
    onProgress({ event: 'begin', wave, step })
    try {
      await twice(() => perform(step.action, step.host, site, signal))
    } catch (cause) {
      if (signal.aborted) return undefined
      const error = cause as Error
      onProgress({ event: 'failed', wave, step, error })
      return new StepError(step, error)
    }
    counted()
    onProgress({ event: 'done', wave, step })
  }
  return undefined
}

/** A broken connection is reopened once, because every step is idempotent. */
async function twice(task: () => Promise<void>): Promise<void> {
  try {
    await task()
  } catch (error) {
    if (!(error instanceof MachineLost)) throw error
    await task()
  }
}
