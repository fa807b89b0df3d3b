/** Tracks the stages and steps of a running Operation from the events of the builder. */
import type { Progress } from '#provision/apply/apply.ts'
import type { Plan, Step } from '#provision/plan/step.ts'

import { MAX_STEPS, type OperationStage, type OperationStep } from '../kinds/operation.ts'

type LiveStep = { -readonly [K in keyof OperationStep]: OperationStep[K] }

interface LiveStage {
  readonly name: string
  readonly steps: LiveStep[]
  readonly more: number
}

/** The last words of a step; the log has all of them. */
const MAX_WORDS = 2000

export class StageRecord {
  readonly #now: () => string
  readonly #redact: (text: string) => string
  readonly #stages: LiveStage[] = []
  readonly #steps = new Map<Step, LiveStep>()
  #room = MAX_STEPS
  #completed = 0

  constructor(now: () => string, redact: (text: string) => string) {
    this.#now = now
    this.#redact = redact
  }

  get stages(): readonly OperationStage[] {
    return this.#stages.map(({ name, steps, more }) => ({
      name,
      steps: steps.map((step) => ({ ...step })),
      ...(more > 0 && { more }),
    }))
  }

  get completed(): number {
    return this.#completed
  }

  /** Machines may need many steps: those of the first plans are shown. */
  planned({ waves }: Plan): void {
    for (const { name, tracks } of waves) {
      const all = tracks.flat()
      const shown = all.slice(0, this.#room)
      this.#room -= shown.length
      const steps = shown.map((step) => this.#follow(step))
      this.#stages.push({ name, steps, more: all.length - shown.length })
    }
  }

  /** Adds a stage of one step that runs on the server itself. The result ends it. */
  begin(name: string, describe: string): (error?: Error) => void {
    const step: LiveStep = { host: '', describe, state: 'Running', startedAt: this.#now() }
    this.#stages.push({ name, steps: [step], more: 0 })
    return (error) => {
      step.state = error === undefined ? 'Done' : 'Failed'
      step.endedAt = this.#now()
      if (error !== undefined) step.message = this.#redact(error.message).slice(-MAX_WORDS)
    }
  }

  #follow(step: Step): LiveStep {
    const live: LiveStep = { host: step.host, describe: this.#redact(step.describe), state: 'Waiting' }
    this.#steps.set(step, live)
    return live
  }

  progressed(progress: Progress): void {
    if (progress.event === 'wave') return
    if (progress.event === 'done') this.#completed++
    const live = this.#steps.get(progress.step)
    if (live === undefined) return
    switch (progress.event) {
      case 'begin':
        live.state = 'Running'
        live.startedAt = this.#now()
        break
      case 'done':
        live.state = 'Done'
        live.endedAt = this.#now()
        break
      case 'failed':
        live.state = 'Failed'
        live.endedAt = this.#now()
        live.message = this.#redact(progress.error.message).slice(-MAX_WORDS)
    }
  }
}
