/** Takes away what nobody needs any more: dead containers and sandboxes, directories and logs of pods that have gone, images. */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'

import type { PullRecords } from '../credentials/pull-records.ts'
import { messageText } from '../cri/call-text.ts'
import type { Runtime } from '../cri/runtime.ts'
import type { Note } from '../kubelet-notes.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { LogFiles } from '../pods/log-links.ts'
import type { RuntimePods } from '../pods/runtime-pods.ts'
import { LABELS } from '../pods/sandbox-config.ts'
import {
  type Disk,
  excessOf,
  IMAGE_POLICY,
  type ImagePolicy,
  ImageUse,
  outdated,
  sizeText,
  toFree,
  type UnusedImage,
} from './image-garbage.ts'
import { deadContainers, deadSandboxes, GARBAGE_POLICY, type GarbagePolicy, type Holdings } from './runtime-garbage.ts'

export interface GarbageOptions {
  readonly runtime: Runtime
  readonly held: RuntimePods
  readonly clock: Clock
  readonly log: Logger
  readonly logs: LogFiles
  /** Of the file system that images are on. */
  readonly imageDisk: () => Promise<Disk>
  /** Nothing of the pod is to be kept. False for all until all pods are known. */
  readonly isGone: (uid: string) => boolean
  /** Its containers have ended for good. */
  readonly isOver: (uid: string) => boolean
  /** Takes away directories of pods that have gone. */
  readonly sweep: () => Promise<void>
  readonly meters: KubeletMeters
  /** Told about the node. */
  readonly note: (said: Note) => void
  readonly policy?: GarbagePolicy | undefined
  readonly images?: ImagePolicy | undefined
  /** Forgets who pulled images that have gone. */
  readonly records?: Pick<PullRecords, 'prune'> | undefined
}

const CONTAINERS_MS = 60_000
const IMAGES_MS = 300_000

const warning = (reason: string, message: string): Note => ({ type: 'Warning', reason, message })

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

  /** What is dead; `isAll`: of pods that are over as well. */
  async collect(isAll = false): Promise<void> {
    const { held, runtime, clock, policy = GARBAGE_POLICY, isGone, isOver, log, note } = this.#options
    const faults: unknown[] = []
    const attempt = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => faults.push(error))
    await held.relist()
    const isDone = (uid: string): boolean => isGone(uid) || (isAll && isOver(uid))
    const holdings = (): Holdings => ({ ...held.all, uidOf, isGone: isDone })
    const containers = deadContainers(holdings(), policy, clock.now())
    for (const containerId of containers) await attempt(runtime.removeContainer({ containerId }))
    if (containers.length > 0) await held.relist()
    for (const podSandboxId of deadSandboxes(holdings())) {
      await attempt(runtime.stopPodSandbox({ podSandboxId }).then(() => runtime.removePodSandbox({ podSandboxId })))
    }
    await attempt(this.#options.sweep())
    await attempt(this.#sweepLogs())
    if (faults.length === 0) return
    log.error(faults[0], 'Container garbage collection failed')
    note(warning('ContainerGCFailed', faults.map(messageText).join(', ')))
  }

  /** Whatever nobody uses, however full the disk is. Returns how much that was. */
  async removeUnusedImages(): Promise<number> {
    const nowMs = this.#options.clock.now()
    return this.#remove(toFree(await this.#unused(), Infinity, this.#images.minAgeMs, nowMs), 'space')
  }

  async #sweepLogs(): Promise<void> {
    const { logs, isGone, held } = this.#options
    const known = new Set(held.all.containers.map(({ id }) => id))
    for (const uid of await logs.uids()) if (isGone(uid)) await logs.remove(uid)
    for (const { containerId, path } of await logs.deadLinks()) {
      // Between the two steps of a rotation there is no file either.
      if (!known.has(containerId)) await logs.unlink(path)
    }
  }

  async #unused(): Promise<UnusedImage[]> {
    const { runtime, clock } = this.#options
    const [{ images }, { containers }] = await Promise.all([runtime.listImages({}), runtime.listContainers({})])
    this.#use.see(images, containers, clock.now())
    return this.#use.unused()
  }

  /** Once in a row it may be that nobody knows the disk yet. */
  async #collectImages(): Promise<void> {
    const { log, note, runtime, records } = this.#options
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
      if (this.#hasFailed) note(warning('ImageGCFailed', messageText(error)))
      this.#hasFailed = true
    }
  }

  async #freeImages(): Promise<void> {
    const { clock, imageDisk, note } = this.#options
    const nowMs = clock.now()
    const images = await this.#unused()
    const old = outdated(images, this.#images, { nowMs, beganMs: this.#beganMs })
    await this.#remove(old, 'age')
    const disk = await imageDisk()
    if (disk.capacityBytes === 0) {
      note(warning('InvalidDiskCapacity', 'invalid capacity 0 on image filesystem'))
      throw new Error('invalid capacity 0 on image filesystem')
    }
    const excess = excessOf(disk, this.#images)
    if (excess === undefined) return
    const left = images.filter((image) => !old.includes(image))
    const freed = await this.#remove(toFree(left, excess.bytes, this.#images.minAgeMs, nowMs), 'space')
    if (freed >= excess.bytes) return
    const message = `Insufficient free disk space on the node's image filesystem (${excess.usedPercent}% of ${sizeText(disk.capacityBytes)} used). Failed to free sufficient space by deleting unused images (freed ${freed} bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.`
    note(warning('FreeDiskSpaceFailed', message))
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
