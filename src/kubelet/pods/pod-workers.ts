/**
 * The pods of a node: one worker each, which brings it from being bound to being gone. What the API server says of pods
 * comes in by `learn`; what containers do comes from the runtime, by one listing for all.
 */
import type { Pod, PodCondition } from '#apis/core/v1.ts'
import type { Timer } from '#lib/clock.ts'
import { timeOf } from '#meta/time.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { Rejection } from '../admission-rules.ts'
import { NO_CGROUPS } from '../cgroups/pod-cgroups.ts'
import { type ContainerRecord } from '../container-runs.ts'
import { withDeadlines } from '../cri/deadlines.ts'
import type { Eviction } from '../eviction/eviction-manager.ts'
import { GarbageCollector } from '../gc/garbage-collector.ts'
import { NO_GRANTS } from '../grants/container-grant.ts'
import type { Note } from '../kubelet-notes.ts'
import { readImageDisk } from '../machine/disks.ts'
import { createKubeletMeters, type KubeletMeters } from '../metrics/kubelet-families.ts'
import { ProbeCounts } from '../metrics/probe-counts.ts'
import { readObjects } from '../object-cache.ts'
import { Charges } from '../pod-admission.ts'
import { compareResizes } from '../pod-allocation.ts'
import { choosePreempted, mayPreempt } from '../preemption.ts'
import { createProbeAction } from '../probes/probe-action.ts'
import type { VolumeKeeper } from '../volumes/volume-keeper.ts'
import { createMemoryAllocations } from './allocations.ts'
import { ImagePuller } from './image-puller.ts'
import { removeAll, stopSandboxes } from './leftovers.ts'
import { createLogFiles } from './log-links.ts'
import { createPodFiles } from './pod-files.ts'
import type { PodHost, PodWorkersOptions } from './pod-host.ts'
import type { ContainerOfPod, Instance, PodOfNode } from './pod-of-node.ts'
import { idOf } from './pod-probes.ts'
import { PodWorker } from './pod-worker.ts'
import { RuntimePods } from './runtime-pods.ts'
import { podLogDirectory } from './sandbox-config.ts'

export class PodWorkers {
  readonly #options: PodWorkersOptions
  readonly #workers = new Map<string, PodWorker>()
  readonly #held: RuntimePods
  readonly #host: PodHost
  readonly #ending = new AbortController()
  readonly #charges = new Charges()
  readonly #meters: KubeletMeters
  readonly #collector: GarbageCollector
  #runtimeName = 'containerd'
  #retry: Timer | undefined
  #hasSources = false
  #isListed = false
  /** Nothing is on the disk that belongs to nobody. */
  #isDiskTidy = false

  constructor(options: PodWorkersOptions) {
    this.#options = options
    const { clock, random, log, facts } = options
    const runtime = withDeadlines(options.runtime, clock, options.callLimitMs)
    const meters = (this.#meters = options.meters ?? createKubeletMeters())
    this.#held = new RuntimePods({ runtime, clock, log, meters, onChange: (uids) => this.#changed(uids) })
    this.#host = {
      ...options,
      runtime,
      volumes: options.volumes ?? NO_VOLUMES,
      objects: options.objects ?? readObjects(options.client),
      files: options.files ?? createPodFiles(facts, clock, random),
      logs: options.logs ?? createLogFiles(facts.podLogsDir, facts.containerLogsDir, clock),
      askProbe: options.askProbe ?? createProbeAction({ runtime, clock, random }),
      puller: new ImagePuller({ runtime, clock, meters, limits: options.pulls, records: options.records }),
      meters,
      probes: options.probes ?? new ProbeCounts(),
      held: this.#held,
      runtimeName: () => this.#runtimeName,
      signal: this.#ending.signal,
      cgroups: options.cgroups ?? NO_CGROUPS,
      grants: options.grants ?? NO_GRANTS,
      allocations: options.allocations ?? createMemoryAllocations(),
      admit: (pod, isThere) => this.#charges.admit(pod, options.node(), isThere, options.traits?.()),
      preempt: (pod) => this.#preempt(pod),
      resize: (pod) => this.#resize(pod),
      release: (pod) => this.#release(pod),
      note: (...said) => this.#note(...said),
      gone: (uid) => this.#gone(uid),
    }
    const { imageDisk = () => readImageDisk(runtime, clock), noteNode = () => undefined, garbage = {} } = options
    this.#collector = new GarbageCollector({
      runtime,
      held: this.#held,
      clock,
      log,
      logs: this.#host.logs,
      imageDisk,
      isGone: (uid) => this.#isGone(uid),
      isOver: (uid) => this.#workers.get(uid)?.isFinished ?? true,
      sweep: () => this.#sweepDirectories(),
      note: noteNode,
      meters,
      policy: garbage.containers,
      images: garbage.images,
      records: options.records,
    })
    void this.#start()
  }

  async #preempt(pod: Pod): Promise<boolean> {
    const node = this.#options.node()
    if (node === undefined) return false
    const others = [...this.#workers.values()].filter((one) => !one.isFinished && mayPreempt(pod, one.pod))
    const candidates = others.map((one) => ({ pod: one.pod, takes: this.#charges.takenBy(one.pod) }))
    const missing = this.#charges.missing(pod, node)
    const chosen = choosePreempted(missing, candidates)
    const [signal = ''] = missing.keys()
    await Promise.all((chosen ?? []).map(({ pod: victim }) => this.#putToFlight(victim, signal)))
    return chosen !== undefined && chosen.length > 0
  }

  /** `signal`: what there is too little of. */
  async #putToFlight(pod: Pod, signal: string): Promise<void> {
    this.#meters.family('kubelet_preemptions').labels(signal).inc()
    this.#note(pod, { type: 'Warning', reason: 'Preempting', message: PREEMPTED })
    const condition = disruptionOf(pod, PREEMPTION, this.#options.clock.now())
    await this.#workers.get(pod.metadata.uid ?? '')?.end({ reason: 'Preempting', message: PREEMPTED }, 0, condition)
    this.#charges.release(pod)
  }

  #resize(pod: Pod): Rejection | undefined {
    const rejection = this.#charges.resize(pod, this.#options.node())
    if (rejection === undefined) this.#retryResizes()
    return rejection
  }

  #release(pod: Pod): void {
    this.#charges.release(pod)
    this.#retryResizes()
  }

  #gone(uid: string): void {
    this.#workers.delete(uid)
    this.#options.onGone?.(uid)
  }

  #isGone(uid: string): boolean {
    return this.#hasSources && this.#isListed && !this.#workers.has(uid)
  }

  /** Of pods that have gone while nobody was there to take them away. */
  async #sweepDirectories(): Promise<void> {
    const { files, volumes, grants } = this.#host
    const uids = new Set([...(await files.uids()), ...(await volumes.uids()), ...grants.uids()])
    const cleaned = this.#meters.family('kubelet_orphan_pod_cleaned_volumes').labels()
    cleaned.set(0)
    for (const uid of uids) {
      if (!this.#isGone(uid) || this.#held.of(uid).containers.length > 0) continue
      await volumes.leave(uid)
      cleaned.inc()
      await grants.release(uid)
      await files.remove(uid)
    }
    await this.#host.cgroups.sweep((uid) => this.#isGone(uid))
  }

  async #start(): Promise<void> {
    try {
      this.#runtimeName = (await this.#host.runtime.version({})).runtimeName
    } catch (error) {
      this.#options.log.error(error, 'The runtime does not say its name')
    }
    if (this.#ending.signal.aborted) return
    this.#held.start()
    this.#collector.start()
  }

  /** News of a pod that is bound to this node. */
  learn({ type, object }: ObjectEvent<Pod>): void {
    if (type === 'BOOKMARK') return
    const { uid = '' } = object.metadata
    const worker = this.#workers.get(uid)
    if (type === 'DELETED') return worker?.forget()
    if (worker !== undefined) return worker.learn(object)
    this.#meters.family('kubelet_containers_per_pod_count').labels().observe(object.spec.containers.length)
    const fresh = new PodWorker(object, this.#host)
    this.#workers.set(uid, fresh)
    // Before the first listing nobody knows what runs already.
    if (this.#isListed) fresh.wake()
  }

  /** Every pod of the node has been learnt: whatever else the runtime holds belongs to nobody. */
  sourcesReady(): void {
    this.#hasSources = true
    this.#host.allocations.retain(new Set(this.#workers.keys()))
    if (this.#isListed) this.#removeOrphans()
  }

  *pods(): Iterable<PodOfNode> {
    for (const worker of this.#workers.values()) yield this.#viewOf(worker)
  }

  /** `uid` guards against another of the same name. */
  find(namespace: string, name: string, uid?: string): PodOfNode | undefined {
    for (const worker of this.#workers.values()) {
      const { metadata } = worker.pod
      if (metadata.namespace !== namespace || metadata.name !== name) continue
      if (uid === undefined || metadata.uid === uid) return this.#viewOf(worker)
    }
    return undefined
  }

  /** Those whose containers have not ended for good. */
  *activePods(): Iterable<PodOfNode> {
    for (const worker of this.#workers.values()) if (!worker.isFinished) yield this.#viewOf(worker)
  }

  /** What nobody needs is taken away by it. */
  get garbage(): GarbageCollector {
    return this.#collector
  }

  /** Resolves when the containers of the pod have ended. */
  async evict({ metadata }: Pod, { message, graceSeconds, isDisruption, annotations }: Eviction): Promise<void> {
    const worker = this.#workers.get(metadata.uid ?? '')
    if (worker === undefined) return
    this.#note(worker.pod, { type: 'Warning', reason: 'Evicted', message, ...(annotations && { annotations }) })
    const condition = isDisruption ? disruptionOf(worker.pod, message, this.#options.clock.now()) : undefined
    await worker.end({ reason: 'Evicted', message }, graceSeconds, condition)
  }

  /** The machine shuts down. Resolves when the pod's containers have ended and nothing is mounted for it any more. */
  async shutDown({ metadata }: Pod, graceSeconds: number): Promise<void> {
    const worker = this.#workers.get(metadata.uid ?? '')
    if (worker === undefined) return
    const condition = disruptionOf(worker.pod, SHUT_DOWN, this.#options.clock.now())
    await worker.end({ reason: 'Terminated', message: SHUT_DOWN }, graceSeconds, condition)
    await worker.emptied
  }

  /** When the runtime last told what it holds: a node whose runtime does not is not ready. */
  get listedMs(): number | undefined {
    return this.#held.listedMs
  }

  /** Nothing is done any more; containers go on running, to be found again. */
  async stop(): Promise<void> {
    this.#ending.abort()
    this.#held.stop()
    this.#collector.stop()
    this.#retry?.cancel()
    for (const worker of this.#workers.values()) worker.stop()
  }

  /** There may be room for what was put off: asked in order, once whoever made room is done. */
  #retryResizes(): void {
    this.#retry?.cancel()
    const retry = (): void => {
      const waiting = [...this.#workers.values()].flatMap((worker) => {
        const resize = worker.waitingResize
        return resize === undefined ? [] : [{ worker, resize }]
      })
      for (const { worker } of waiting.sort((a, b) => compareResizes(a.resize, b.resize))) worker.retryResize()
    }
    this.#retry = this.#options.clock.after(0, retry, { background: true })
  }

  #changed(uids: readonly string[]): void {
    if (this.#isListed) {
      for (const uid of uids) this.#workers.get(uid)?.wake()
    } else {
      this.#isListed = true
      for (const worker of this.#workers.values()) worker.wake()
    }
    if (this.#hasSources) this.#removeOrphans()
  }

  #removeOrphans(): void {
    for (const uid of this.#held.uids) {
      if (this.#workers.has(uid)) continue
      this.#meters.family('kubelet_orphaned_runtime_pods_total').labels().inc()
      void this.#removeOrphan(uid)
    }
    if (!this.#isDiskTidy) void this.#tidyDisk()
  }

  /** What pods left on the disk before a restart; those of which the runtime holds something have their turn later. */
  async #tidyDisk(): Promise<void> {
    this.#isDiskTidy = true
    const { log } = this.#options
    try {
      for (const uid of await this.#host.volumes.uids()) {
        if (this.#workers.has(uid) || this.#ending.signal.aborted) continue
        const { containers, sandboxes } = this.#held.of(uid)
        if (containers.length > 0 || sandboxes.length > 0) {
          this.#isDiskTidy = false
          continue
        }
        await this.#host.volumes.leave(uid)
        await this.#host.files.remove(uid)
        log.info('Cleaned up orphaned pod volumes dir', { podUID: uid })
      }
    } catch (error) {
      this.#isDiskTidy = false
      log.error(error, 'Orphaned pod volumes could not be cleaned up')
    }
  }

  async #removeOrphan(uid: string): Promise<void> {
    const { runtime } = this.#host
    const { log } = this.#options
    const { containers } = this.#held.of(uid)
    try {
      await Promise.all(containers.map(({ id }) => runtime.stopContainer({ containerId: id, timeout: ORPHAN_SECONDS })))
      await stopSandboxes(this.#host, uid)
      await this.#host.volumes.leave(uid)
      await removeAll(this.#host, uid)
    } catch (error) {
      if (!this.#ending.signal.aborted) log.error(error, 'An orphan could not be removed', { uid })
    }
  }

  #note(pod: Pod, said: Note, fieldPath?: string): void {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = pod.metadata
    const about = { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion }
    this.#options.recorder.record(fieldPath === undefined ? about : { ...about, fieldPath }, said)
  }

  #viewOf(worker: PodWorker): PodOfNode {
    const { pod } = worker
    const dir = podLogDirectory(pod, this.#options.facts.podLogsDir)
    const containers = worker.records.map((record) => [record.spec.name, containerOf(record, dir)] as const)
    return { pod: { ...pod, status: worker.status() }, sandboxId: worker.sandboxId, containers: new Map(containers) }
  }
}

const ORPHAN_SECONDS = 2

const SHUT_DOWN = 'Pod was terminated in response to imminent node shutdown.'
const PREEMPTED = 'Preempted in order to admit critical pod'
const PREEMPTION = 'Pod was preempted by Kubelet to accommodate a critical pod.'

function disruptionOf({ metadata: { generation } }: Pod, message: string, nowMs: number): PodCondition {
  return {
    type: 'DisruptionTarget',
    ...(generation !== undefined && { observedGeneration: generation }),
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timeOf(nowMs),
    reason: 'TerminationByKubelet',
    message,
  }
}

function containerOf(record: ContainerRecord, dir: string): ContainerOfPod {
  const { restartCount, lastRun, spec } = record
  const of = (id: string | undefined, attempt: number): Instance | undefined =>
    id === undefined ? undefined : { containerId: id, logPath: `${dir}/${spec.name}/${attempt}.log` }
  const previous = lastRun === undefined ? undefined : idOf({ run: lastRun })
  return { record, current: of(idOf(record), restartCount), previous: of(previous, restartCount - 1) }
}

const NO_VOLUMES: VolumeKeeper = {
  bring: async ({ spec: { volumes = [] } }) =>
    volumes.length === 0
      ? { mounts: new Map() }
      : {
          failures: volumes.map(
            ({ name }) => `MountVolume.SetUp failed for volume "${name}" : no volumes on this node`,
          ),
        },
  subPath: async ({ subPath }) => {
    throw new Error(`failed to prepare subPath "${subPath}": no volumes on this node`)
  },
  read: async () => {
    throw new Error('no volumes on this node')
  },
  leave: async () => undefined,
  uids: async () => [],
}
