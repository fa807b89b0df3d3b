/** Writes the progress of an Operation to its status and its log, at most every two seconds. */
import type { ApiClient } from '#client/api-client.ts'
import type { Clock, Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { isNotFound } from '#meta/status.ts'
import type { StepWatcher } from '#provision/builder/converge.ts'

import { type Operation, Operations, type OperationStatus } from '../kinds/operation.ts'
import { OperationLog, readLog, writeLog } from './operation-log.ts'
import { StageRecord } from './stage-record.ts'

export interface RecorderOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Logger
  readonly operation: Operation
  readonly redact: (text: string) => string
}

/** Null removes a field. */
export type StatusChange = { readonly [K in keyof OperationStatus]?: OperationStatus[K] | null }

const FLUSH_MS = 2000

export class Recorder {
  readonly #options: RecorderOptions
  readonly #log: OperationLog
  readonly #stages: StageRecord
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()
  readonly watcher: StepWatcher

  private constructor(options: RecorderOptions, log: OperationLog) {
    const now = (): string => new Date(options.clock.now()).toISOString()
    this.#options = options
    this.#log = log
    this.#stages = new StageRecord(now, options.redact)
    this.watcher = {
      planned: (plan) => {
        this.#stages.planned(plan)
        this.#soon()
      },
      progressed: (progress) => {
        this.#stages.progressed(progress)
        this.#soon()
      },
    }
  }

  static async open(options: RecorderOptions): Promise<Recorder> {
    const { client, clock, operation, redact } = options
    const before = await readLog(client, operation.metadata.name ?? '')
    return new Recorder(options, new OperationLog(before, clock, redact))
  }

  say(text: string): void {
    this.#log.add(text)
    this.#soon()
  }

  /** Adds a stage of one step, which the next write shows. The result ends it. */
  begin(stage: string, describe: string): (error?: Error) => void {
    return this.#stages.begin(stage, describe)
  }

  #soon(): void {
    this.#timer ??= this.#options.clock.after(FLUSH_MS, () => {
      this.#timer = undefined
      this.#write({}).catch((error: unknown) =>
        this.#options.log.error(error, 'Failed to write status of operation', {
          operation: this.#options.operation.metadata.name,
        }),
      )
    })
  }

  /** Writes what is known, and these fields. Resolves when it is durable. */
  async write(change: StatusChange): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#write(change)
  }

  /** One write after the other. An Operation that was deleted has nothing to record. */
  #write(change: StatusChange): Promise<void> {
    const { client, operation } = this.#options
    const work = async (): Promise<void> => {
      const log = this.#log.stored
      await writeLog(client, operation, log)
      const stages = this.#stages.stages
      const progress = stages.length === 0 ? {} : { stages, completed: this.#stages.completed }
      await patchStatus(client, operation, { ...progress, logBytes: log.bytes, ...change })
    }
    const turn = this.#writing.then(work).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    this.#writing = turn.catch(() => undefined)
    return turn
  }
}

/** With `resourceVersion`, rejects with 409 if the Operation has changed since. */
export async function patchStatus(
  client: ApiClient,
  { metadata }: Operation,
  status: StatusChange,
  resourceVersion?: string,
): Promise<void> {
  const where = { name: metadata.name ?? '', subresource: 'status' }
  const guard = resourceVersion === undefined ? {} : { metadata: { resourceVersion } }
  await client.patch(Operations, where, { type: 'merge', value: { ...guard, status } })
}
