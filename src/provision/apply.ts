/** Does a plan: wave after wave, in each as many machines at a time as it says. Whatever interrupts it, the next plan has the rest. */
import { perform, type Site } from './actions.ts'
import { MachineLost } from './machine.ts'
import type { Plan, Step, Track, Wave } from './step.ts'

export type Progress =
  | { readonly event: 'wave'; readonly wave: Wave }
  | { readonly event: 'begin' | 'done'; readonly wave: Wave; readonly step: Step }
  | { readonly event: 'failed'; readonly wave: Wave; readonly step: Step; readonly error: Error }

export interface ApplyResult {
  readonly done: number
  /** Of tracks that the plan could do without. */
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

/** Rejects with the first StepError that the plan cannot do without, when all that is under way has ended; or with the signal's reason. */
export async function applyPlan(
  { waves }: Pick<Plan, 'waves'>,
  site: Site,
  told: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<ApplyResult> {
  let done = 0
  const failures: StepError[] = []
  for (const wave of waves) {
    told({ event: 'wave', wave })
    const failed: StepError[] = []
    const queue = [...wave.tracks]
    const work = async (): Promise<void> => {
      for (let track = queue.shift(); track !== undefined; track = queue.shift()) {
        if (failed.length > wave.tolerates || signal.aborted) return
        const error = await runTrack(track, wave, { site, told, signal, counted: () => done++ })
        if (error !== undefined) failed.push(error)
      }
    }
    await Promise.all(Array.from({ length: Math.min(wave.width, queue.length) }, work))
    signal.throwIfAborted()
    const [first] = failed
    if (first !== undefined && failed.length > wave.tolerates) throw first
    failures.push(...failed)
  }
  return { done, failures }
}

interface Running {
  readonly site: Site
  readonly told: (progress: Progress) => void
  readonly signal: AbortSignal
  readonly counted: () => void
}

async function runTrack(track: Track, wave: Wave, running: Running): Promise<StepError | undefined> {
  const { site, told, signal, counted } = running
  for (const step of track) {
    if (signal.aborted) return undefined
    told({ event: 'begin', wave, step })
    try {
      await twice(() => perform(step.action, step.host, site, signal))
    } catch (cause) {
      if (signal.aborted) return undefined
      const error = cause as Error
      told({ event: 'failed', wave, step, error })
      return new StepError(step, error)
    }
    counted()
    told({ event: 'done', wave, step })
  }
  return undefined
}

/** A connection that broke is made again, once: every step may be done again. */
async function twice(task: () => Promise<void>): Promise<void> {
  try {
    await task()
  } catch (error) {
    if (!(error instanceof MachineLost)) throw error
    await task()
  }
}
