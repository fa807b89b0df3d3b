/** The records of the containers of one pod, kept in step with what the runtime holds. */
import type { Pod, PodSpec } from '#apis/core/v1.ts'
import { hasStatus } from '#lib/grpc/status.ts'

import { adopt } from '../adoption.ts'
import { type ContainerRecord, isRunning, recordsOf, type RunEnd, TYPES } from '../container-runs.ts'
import { CONTAINER_STATE } from '../cri/codes.ts'
import { retire } from '../sandbox-change.ts'
import { lastWordsOf } from './last-words.ts'
import { lose, observe } from './observation.ts'
import type { PodHost } from './pod-host.ts'
import { idOf } from './pod-probes.ts'

const LOST = 'The container could not be located when the pod was deleted.  The container used to be Running'

export class RecordKeeper {
  readonly #host: PodHost
  records: readonly ContainerRecord[]
  /** What is known of containers of the runtime, by id. */
  readonly #states = new Map<string, number>()
  /** At which listing a container was started: a listing from before does not have it. */
  readonly #since = new Map<string, number>()

  readonly #initialised: (tookMs: number) => void

  /** Goes on where the status says that the pod was. `initialised`: told how long init containers took. */
  constructor(pod: Pod, host: PodHost, initialised: (tookMs: number) => void = () => undefined) {
    this.#host = host
    this.#initialised = initialised
    this.records = recordsOf(pod.spec)
    if (pod.status.startTime !== undefined) adopt(this.records, pod.status)
  }

  learn(spec: PodSpec): void {
    const known = new Map(this.records.map((record) => [record.spec.name, record]))
    this.records = recordsOf(spec).map((fresh) => {
      const record = known.get(fresh.spec.name) ?? fresh
      record.spec = fresh.spec
      return record
    })
  }

  /** `sandboxId`: of the one that is ready. */
  async look({ metadata: { uid = '' }, spec: podSpec }: Pod, sandboxId: string | undefined): Promise<void> {
    const { held, clock } = this.#host
    const { containers } = held.of(uid)
    for (const { id, state, metadata, podSandboxId } of containers) {
      const record = this.records.find(({ spec }) => spec.name === metadata?.name)
      if (record === undefined) continue
      if (this.#states.get(id) !== state) await this.observe(record, id)
      const isPast = sandboxId !== undefined && podSandboxId !== sandboxId
      if (isPast && idOf(record) === id && !isRunning(record)) retire(podSpec, record)
    }
    const present = new Set(containers.map(({ id }) => id))
    for (const record of this.records) {
      const id = idOf(record)
      if (id === undefined || present.has(id) || held.rounds <= (this.#since.get(id) ?? 0)) continue
      lose(record, LOST, clock.now())
    }
  }

  /** One that has gone since the last listing is told by the next. */
  async observe(record: ContainerRecord, id: string): Promise<void> {
    const { runtime, files, runtimeName } = this.#host
    const { status } = await runtime.containerStatus({ containerId: id }).catch((error: unknown) => {
      if (!hasStatus(error, 'notFound')) throw error
      return { status: undefined }
    })
    if (status === undefined) return
    this.#states.set(id, status.state)
    const words = status.state === CONTAINER_STATE.exited ? await lastWordsOf(files, status, this.records.length) : ''
    const wasRunning = isRunning(record)
    observe(record, status, `${runtimeName()}://${id}`, words)
    const { end } = record.run ?? {}
    if (wasRunning && end !== undefined) this.#ended(record, end)
  }

  #ended({ role, run }: ContainerRecord, { exitCode, reason, finishedMs }: RunEnd): void {
    const ends = this.#host.meters.family('kubelet_terminated_containers_total')
    ends.labels(TYPES[role], String(exitCode), reason).inc()
    if (role === 'init' && run !== undefined) this.#initialised(finishedMs - run.startedMs)
  }

  /** It was started just now. */
  async began(record: ContainerRecord, id: string): Promise<void> {
    this.#since.set(id, this.#host.held.rounds + 1)
    await this.observe(record, id)
  }

  /** Of dead containers the newest is kept, for its log. */
  async sweep({ metadata: { uid = '' } }: Pod, record: ContainerRecord): Promise<void> {
    const { runtime, held } = this.#host
    const kept = [record.run, record.lastRun].flatMap((run) => (run === undefined ? [] : (idOf({ run }) ?? [])))
    for (const { id, metadata, state } of held.of(uid).containers) {
      if (metadata?.name !== record.spec.name || kept.includes(id) || state === CONTAINER_STATE.running) continue
      await runtime.removeContainer({ containerId: id }).catch(() => undefined)
      this.#states.delete(id)
      this.#since.delete(id)
    }
  }

  /** Nothing of it is left in the runtime. */
  async remove({ metadata: { uid = '' } }: Pod, record: ContainerRecord): Promise<void> {
    const { runtime, held } = this.#host
    const listed = held.of(uid).containers.filter(({ metadata }) => metadata?.name === record.spec.name)
    const newest = idOf(record)
    for (const id of new Set([...listed.map((one) => one.id), ...(newest === undefined ? [] : [newest])])) {
      await runtime.removeContainer({ containerId: id })
    }
  }
}
