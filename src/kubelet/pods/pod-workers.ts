/**
 * The workers of all pods of a node, one per pod. Pods from the API server enter through `updatePod`; the PLEG
 * reports changes in the runtime.
 */
import type { Pod } from '#apis/core/v1.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { Eviction } from '../eviction/eviction-manager.ts'
import { GarbageCollector } from '../gc/garbage-collector.ts'
import { readImageDisk } from '../machine/disks.ts'
import { disruptionOf } from '../pod/pod-conditions.ts'
import { createPodHost } from './create-pod-host.ts'
import { removeAll, stopSandboxes } from './pod-cleanup.ts'
import type { PodHost, PodWorkersOptions } from './pod-host.ts'
import type { PodRegistry } from './pod-registry.ts'
import { type PodOwner, PodWorker } from './pod-worker.ts'

export class PodWorkers {
  readonly registry: PodRegistry
  /** Collects dead containers and unused images. */
  readonly garbage: GarbageCollector
  readonly #host: PodHost
  readonly #ending = new AbortController()
  #hasSources = false
  #isListed = false
  /** Orphaned volumes have been removed from disk. */
  #hasRemovedOrphanedVolumes = false

  constructor(options: PodWorkersOptions) {
    this.#host = createPodHost(options, this.#ending.signal)
    const { runtime, clock, log, meters, pleg, logs, registry } = this.#host
    this.registry = registry
    const { imageDisk = () => readImageDisk(runtime, clock), recordNodeEvent = () => undefined, garbage = {} } = options
    this.garbage = new GarbageCollector({
      runtime,
      pleg,
      clock,
      log,
      logs,
      imageDisk,
      isGone: (uid) => this.#isGone(uid),
      isOver: (uid) => registry.get(uid)?.isFinished ?? true,
      sweep: () => this.#sweepDirectories(),
      recordEvent: recordNodeEvent,
      meters,
      policy: garbage.containers,
      images: garbage.images,
      records: options.records,
    })
    void this.#start()
  }

  async #start(): Promise<void> {
    await this.#host.pleg.start((uids) => this.#changed(uids))
    if (!this.#ending.signal.aborted) this.garbage.start()
  }

  #isGone(uid: string): boolean {
    return this.#hasSources && this.#isListed && !this.registry.has(uid)
  }

  /** Removes directories of pods that disappeared while no kubelet ran. */
  async #sweepDirectories(): Promise<void> {
    const { files, volumes, containerManager } = this.#host
    const uids = new Set([...(await files.uids()), ...(await volumes.uids()), ...containerManager.uids()])
    const cleaned = this.#host.meters.family('kubelet_orphan_pod_cleaned_volumes').labels()
    cleaned.set(0)
    for (const uid of uids) {
      if (!this.#isGone(uid) || this.#host.pleg.of(uid).containers.length > 0) continue
      await volumes.unmount(uid)
      cleaned.inc()
      await containerManager.release(uid)
      await files.remove(uid)
    }
    await this.#host.cgroups.sweep((uid) => this.#isGone(uid))
  }

  /** Handles an event about a pod of this node. Default owner: the API server. */
  updatePod({ type, object }: ObjectEvent<Pod>, owner?: PodOwner): void {
    if (type === 'BOOKMARK') return
    const { uid = '' } = object.metadata
    const worker = this.registry.get(uid)
    if (type === 'DELETED') return worker?.forget()
    if (worker !== undefined) return worker.update(object)
    this.#host.meters.family('kubelet_containers_per_pod_count').labels().observe(object.spec.containers.length)
    const fresh = new PodWorker(object, this.#host, owner)
    this.registry.set(uid, fresh)
    // Containers that already run are unknown until the first relist.
    if (this.#isListed) fresh.wake()
  }

  /** All pods are known, so other pods in the runtime are orphans. */
  sourcesReady(): void {
    this.#hasSources = true
    this.#host.allocations.retain(new Set(this.registry.keys()))
    if (this.#isListed) this.#removeOrphans()
  }

  /** Resolves when the containers of the pod have ended. */
  async evict(pod: Pod, { message, graceSeconds, isDisruption, annotations }: Eviction): Promise<void> {
    const worker = this.registry.of(pod)
    if (worker === undefined) return
    this.#host.recordEvent(worker.pod, {
      type: 'Warning',
      reason: 'Evicted',
      message,
      ...(annotations && { annotations }),
    })
    const condition = isDisruption ? disruptionOf(worker.pod, message, this.#host.clock.now()) : undefined
    await worker.end({ reason: 'Evicted', message }, graceSeconds, condition)
  }

  /** For a node shutdown. Resolves when the pod's containers have ended and its volumes are unmounted. */
  async shutDown(pod: Pod, graceSeconds: number): Promise<void> {
    const worker = this.registry.of(pod)
    if (worker === undefined) return
    const condition = disruptionOf(worker.pod, SHUT_DOWN, this.#host.clock.now())
    await worker.end({ reason: 'Terminated', message: SHUT_DOWN }, graceSeconds, condition)
    await worker.unmounted
  }

  /** Time of the last relist; without a recent one the node is not ready. */
  get listedMs(): number | undefined {
    return this.#host.pleg.listedMs
  }

  /** Stops all workers. Containers keep running for the next kubelet. */
  async stop(): Promise<void> {
    this.#ending.abort()
    this.#host.pleg.stop()
    this.garbage.stop()
    this.#host.admission.stop()
    for (const worker of this.registry.values()) worker.stop()
  }

  #changed(uids: readonly string[]): void {
    if (this.#isListed) {
      for (const uid of uids) this.registry.get(uid)?.wake()
    } else {
      this.#isListed = true
      for (const worker of this.registry.values()) worker.wake()
    }
    if (this.#hasSources) this.#removeOrphans()
  }

  #removeOrphans(): void {
    for (const uid of this.#host.pleg.uids) {
      if (this.registry.has(uid)) continue
      this.#host.meters.family('kubelet_orphaned_runtime_pods_total').labels().inc()
      void this.#removeOrphan(uid)
    }
    if (!this.#hasRemovedOrphanedVolumes) void this.#removeOrphanedVolumes()
  }

  /** Removes volumes that pods left before a restart. Pods that still have containers in the runtime come later. */
  async #removeOrphanedVolumes(): Promise<void> {
    this.#hasRemovedOrphanedVolumes = true
    const { log } = this.#host
    try {
      for (const uid of await this.#host.volumes.uids()) {
        if (this.registry.has(uid) || this.#ending.signal.aborted) continue
        const { containers, sandboxes } = this.#host.pleg.of(uid)
        if (containers.length > 0 || sandboxes.length > 0) {
          this.#hasRemovedOrphanedVolumes = false
          continue
        }
        await this.#host.volumes.unmount(uid)
        await this.#host.files.remove(uid)
        log.info('Cleaned up orphaned pod volumes dir', { podUID: uid })
      }
    } catch (error) {
      this.#hasRemovedOrphanedVolumes = false
      log.error(error, 'Failed to clean up orphaned pod volumes')
    }
  }

  async #removeOrphan(uid: string): Promise<void> {
    const { runtime, pleg, log } = this.#host
    const { containers } = pleg.of(uid)
    try {
      await Promise.all(containers.map(({ id }) => runtime.stopContainer({ containerId: id, timeout: ORPHAN_SECONDS })))
      await stopSandboxes(this.#host, uid)
      await this.#host.volumes.unmount(uid)
      await removeAll(this.#host, uid)
    } catch (error) {
      if (!this.#ending.signal.aborted) log.error(error, 'Failed to remove orphaned pod', { uid })
    }
  }
}

const ORPHAN_SECONDS = 2

const SHUT_DOWN = 'Pod was terminated in response to imminent node shutdown.'
