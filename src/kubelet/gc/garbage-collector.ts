/** Removes dead containers, dead sandboxes and unused images, and the directories and logs of removed pods. */
import { messageText } from '#cri/call-text.ts'
import type { Runtime } from '#cri/runtime.ts'
import { type Clock, every, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { PullRecords } from '../credentials/pull-records.ts'
import type { Disk } from '../machine/disks.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { EventSpec } from '../pod/events.ts'
import { LABELS } from '../pod/sandbox-config.ts'
import type { LogFiles } from '../runtime/log-links.ts'
import type { Pleg } from '../runtime/pleg.ts'
import {
  excessOf,
  IMAGE_POLICY,
  type ImagePolicy,
  ImageUse,
  outdated,
  sizeText,
  toFree,
  type UnusedImage,
} from './image-garbage.ts'
import {
  deadContainers,
  deadSandboxes,
  GARBAGE_POLICY,
  type GarbagePolicy,
  type RuntimeState,
} from './runtime-garbage.ts'

export interface GarbageOptions {
  readonly runtime: Runtime
  readonly pleg: Pleg
  readonly clock: Clock
  readonly log: Logger
  readonly logs: LogFiles
  /** The file system of images. */
  readonly imageDisk: () => Promise<Disk>
  /** True if nothing of the pod may remain. False until all pods are known. */
  readonly isGone: (uid: string) => boolean
  /** True if its containers have ended for good. */
  readonly isOver: (uid: string) => boolean
  /** Removes directories of removed pods. */
  readonly sweep: () => Promise<void>
  readonly meters: KubeletMeters
  /** Records an event about the node. */
  readonly recordEvent: (event: EventSpec) => void
  readonly policy?: GarbagePolicy | undefined
  readonly images?: ImagePolicy | undefined
  /** Forgets the pull records of removed images. */
  readonly records?: Pick<PullRecords, 'prune'> | undefined
}

const CONTAINERS_MS = 60_000
const IMAGES_MS = 300_000

const warning = (reason: string, message: string): EventSpec => ({ type: 'Warning', reason, message })

export class GarbageCollector {
  readonly #options: GarbageOptions
  readonly #images: ImagePolicy
  readonly #use = new ImageUse()
  readonly #timers: Timer[] = []
  readonly #beganMs: number
  #hasFailed = false

  constructor(options: GarbageOptions) {
    this.#options = options
    this.#images = options.images ?? IMAGE_POLICY
    this.#beganMs = options.clock.now()
  }

  start(): void {
    const { clock } = this.#options
    this.#timers.push(every(clock, CONTAINERS_MS, () => void this.collect()))
    if (this.#images.highPercent === 100 && this.#images.maxAgeMs === 0) return
    void this.#collectImages()
    this.#timers.push(every(clock, IMAGES_MS, () => void this.#collectImages()))
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel()
  }

  /** Removes dead containers; `isAll`: of finished pods as well. */
  async collect(isAll = false): Promise<void> {
    const { pleg, runtime, clock, policy = GARBAGE_POLICY, isGone, isOver, log, recordEvent } = this.#options
    const faults: unknown[] = []
    const attempt = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => faults.push(error))
    await pleg.relist()
    const isDone = (uid: string): boolean => isGone(uid) || (isAll && isOver(uid))
    const runtimeState = (): RuntimeState => ({ ...pleg.all, uidOf, isGone: isDone })
    const containers = deadContainers(runtimeState(), policy, clock.now())
    for (const containerId of containers) await attempt(runtime.removeContainer({ containerId }))
    if (containers.length > 0) await pleg.relist()
    for (const podSandboxId of deadSandboxes(runtimeState())) {
      await attempt(runtime.stopPodSandbox({ podSandboxId }).then(() => runtime.removePodSandbox({ podSandboxId })))
    }
    await attempt(this.#options.sweep())
    await attempt(this.#sweepLogs())
    if (faults.length === 0) return
    log.error(faults[0], 'Container garbage collection failed')
    recordEvent(warning('ContainerGCFailed', faults.map(messageText).join(', ')))
  }

  /** Removes all unused images, regardless of the disk usage. Returns the freed bytes. */
  async removeUnusedImages(): Promise<number> {
    const nowMs = this.#options.clock.now()
    return this.#remove(toFree(await this.#unused(), Infinity, this.#images.minAgeMs, nowMs), 'space')
  }

  async #sweepLogs(): Promise<void> {
    const { logs, isGone, pleg } = this.#options
    const known = new Set(pleg.all.containers.map(({ id }) => id))
    for (const uid of await logs.uids()) if (isGone(uid)) await logs.remove(uid)
    for (const { containerId, path } of await logs.deadLinks()) {
      // During a rotation the log file is missing for a moment.
      if (!known.has(containerId)) await logs.unlink(path)
    }
  }

  async #unused(): Promise<UnusedImage[]> {
    const { runtime, clock } = this.#options
    const [{ images }, { containers }] = await Promise.all([runtime.listImages({}), runtime.listContainers({})])
    this.#use.observe(images, containers, clock.now())
    return this.#use.unused()
  }

  /** A single failure is not reported, because the disk may be unknown at start. */
  async #collectImages(): Promise<void> {
    const { log, recordEvent, runtime, records } = this.#options
    try {
      const startedMs = this.#options.clock.now()
      await this.#freeImages()
      const { images } = await runtime.listImages({})
      await records?.prune(
        images.map(({ id }) => id),
        startedMs,
      )
      this.#hasFailed = false
    } catch (error) {
      log.error(error, 'Image garbage collection failed')
      if (this.#hasFailed) recordEvent(warning('ImageGCFailed', messageText(error)))
      this.#hasFailed = true
    }
  }

  async #freeImages(): Promise<void> {
    const { clock, imageDisk, recordEvent } = this.#options
    const nowMs = clock.now()
    const images = await this.#unused()
    const old = outdated(images, this.#images, { nowMs, beganMs: this.#beganMs })
    await this.#remove(old, 'age')
    const disk = await imageDisk()
    if (disk.capacityBytes === 0) {
      recordEvent(warning('InvalidDiskCapacity', 'invalid capacity 0 on image filesystem'))
      throw new Error('invalid capacity 0 on image filesystem')
    }
    const excess = excessOf(disk, this.#images)
    if (excess === undefined) return
    const left = images.filter((image) => !old.includes(image))
    const freed = await this.#remove(toFree(left, excess.bytes, this.#images.minAgeMs, nowMs), 'space')
    if (freed >= excess.bytes) return
    const message = `Insufficient free disk space on the node's image filesystem (${excess.usedPercent}% of ${sizeText(disk.capacityBytes)} used). Failed to free sufficient space by deleting unused images (freed ${freed} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`
    recordEvent(warning('FreeDiskSpaceFailed', message))
    throw new Error(message)
  }

  async #remove(images: readonly UnusedImage[], reason: 'age' | 'space'): Promise<number> {
    const { runtime, log, meters } = this.#options
    let freed = 0
    const faults: string[] = []
    for (const { id, sizeBytes } of images) {
      log.info('Removing image to free bytes', { imageID: id, size: sizeBytes })
      try {
        await runtime.removeImage({ image: { image: id } })
        freed += sizeBytes
        meters.family('kubelet_image_garbage_collected_total').labels(reason).inc()
      } catch (error) {
        faults.push(messageText(error))
      }
    }
    if (faults.length === 0) return freed
    throw new Error(`freed ${freed} bytes space with errors in image deletion: ${faults.join(', ')}`)
  }
}

const uidOf = ({ labels }: { readonly labels: ReadonlyMap<string, string> }): string => labels.get(LABELS.podUid) ?? ''
