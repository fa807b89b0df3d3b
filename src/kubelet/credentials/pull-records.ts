/**
 * Records with which credentials this kubelet pulled each image, so that no pod uses an image that it could not pull
 * (KEP-2535). The records have upstream's format.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Image } from '#apis/wire/cri.ts'
import { normalImageName, repositoryOf } from '#cri/image-name.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import { plainForm, readCheckpoint, writeCheckpoint } from '../checkpoint/checkpoint.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { Credential } from './credential.ts'
import {
  isVerified,
  matchOf,
  mergeCredentials,
  type PullCredentials,
  pullCredentials,
  type Verification,
} from './pull-policy.ts'

export interface PullRecordsOptions {
  /** `image_manager` below the root directory. */
  readonly folder: string
  readonly verification: Verification
  readonly clock: Clock
  readonly log: Logger
  readonly meters: KubeletMeters
}

interface PulledRecord {
  readonly lastUpdatedTime: string
  readonly imageRef: string
  readonly credentialMapping?: Readonly<Record<string, PullCredentials>>
}

const API_VERSION = 'kubelet.config.k8s.io/v1beta1'
const FILE = /^sha256-[0-9a-f]{64}$/
/** Maximum number of recorded Secrets per image. */
const MAX_RECORDED_SECRETS = 100

export class PullRecords {
  readonly #options: PullRecordsOptions
  /** Running pulls by image name; 0: left by a previous kubelet. */
  readonly #intents = new Map<string, number>()
  /** By image ID. */
  readonly #pulled = new Map<string, PulledRecord>()
  #writing: Promise<void> = Promise.resolve()

  private constructor(options: PullRecordsOptions) {
    this.#options = options
  }

  /** `images` lists the runtime's images; called when a previous kubelet ended during a pull. */
  static async open(options: PullRecordsOptions, images: () => Promise<readonly Image[]>): Promise<PullRecords> {
    const records = new PullRecords(options)
    const { clock, log } = options
    await clock.during(records.#read())
    if (records.#intents.size > 0) {
      await images().then(
        (found) => clock.during(records.#finishIntents(found)),
        (error: unknown) => log.error(error, 'failed to list images'),
      )
    }
    records.#count()
    return records
  }

  /** Call before a pull. Rejects when the record cannot be written; then the image must not be pulled. */
  async intend(image: string): Promise<void> {
    const count = this.#intents.get(image)
    this.#intents.set(image, (count ?? 0) + 1)
    if (count !== undefined) return
    await this.#serialized(() =>
      this.#write('pulling', image, { kind: 'ImagePullIntent', apiVersion: API_VERSION, image }),
    )
  }

  async pulled(image: string, imageRef: string, used: Credential | undefined): Promise<void> {
    await this.#record(image, imageRef, pullCredentials(used)).then(
      () => this.failed(image),
      // The intent stays and marks the image as pulled.
      (error: unknown) => this.#options.log.error(error, 'failed to write image pulled record', { imageRef }),
    )
  }

  /** The pull failed. */
  async failed(image: string): Promise<void> {
    const count = this.#intents.get(image) ?? 0
    if (count > 1) return void this.#intents.set(image, count - 1)
    this.#intents.delete(image)
    await this.#serialized(() => this.#remove('pulling', image)).catch((error: unknown) =>
      this.#options.log.error(error, 'failed to remove image pull intent', { image }),
    )
  }

  /** True if a pod must pull a present image to prove its access. `credentials` is called only if needed. */
  async mustPull(image: string, imageRef: string, credentials: () => Promise<readonly Credential[]>): Promise<boolean> {
    const counted = (result: string): boolean => {
      this.#options.meters.family('kubelet_imagemanager_image_mustpull_checks_total').labels(result).inc()
      return result === 'mustAuthenticate'
    }
    const record = this.#pulled.get(imageRef)
    const isPulled = record !== undefined || this.#intents.has(image)
    if (!isVerified(this.#options.verification, image, isPulled)) return counted('credentialPolicyAllowed')
    const known = record?.credentialMapping?.[repositoryOf(image)]
    if (known === undefined) return counted('mustAuthenticate')
    if (known.nodePodsAccessible === true) return counted('credentialRecordFound')
    const match = matchOf(known, await credentials())
    if (match === undefined) return counted('mustAuthenticate')
    if ((known.kubernetesSecrets ?? []).length < MAX_RECORDED_SECRETS) {
      await this.#record(image, imageRef, pullCredentials(match)).catch((error: unknown) =>
        this.#options.log.error(error, 'failed to write an image pulled record', { image, imageRef }),
      )
    }
    return counted('credentialRecordFound')
  }

  /** Removes records of missing images. `untilMs` is the time at which images were listed. */
  async prune(imageRefs: readonly string[], untilMs: number): Promise<void> {
    const there = new Set(imageRefs)
    for (const [imageRef, { lastUpdatedTime }] of this.#pulled) {
      if (there.has(imageRef) || Date.parse(lastUpdatedTime) >= untilMs) continue
      this.#pulled.delete(imageRef)
      await this.#serialized(() => this.#remove('pulled', imageRef))
    }
  }

  async #record(image: string, imageRef: string, shown: PullCredentials | undefined): Promise<void> {
    const before = this.#pulled.get(imageRef)
    const name = repositoryOf(image)
    const known = before?.credentialMapping?.[name]
    const merged = shown === undefined ? known : mergeCredentials(known, shown)
    if (before !== undefined && merged === known) return
    const record: PulledRecord = {
      lastUpdatedTime: new Date(this.#options.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z'),
      imageRef,
      credentialMapping: { ...before?.credentialMapping, ...(merged !== undefined && { [name]: merged }) },
    }
    this.#pulled.set(imageRef, record)
    await this.#serialized(() =>
      this.#write('pulled', imageRef, { kind: 'ImagePulledRecord', apiVersion: API_VERSION, ...record }),
    )
  }

  /** A previous kubelet may have ended between a pull and its record. The credentials are then unknown. */
  async #finishIntents(images: readonly Image[]): Promise<void> {
    const intents = [...this.#intents.keys()]
    for (const { id, repoTags, repoDigests } of images) {
      const names = new Set([...repoDigests, ...repoTags].map(normalImageName))
      for (const image of intents.filter((name) => names.has(normalImageName(name)))) {
        await this.#record(image, id, undefined)
        await this.failed(image)
      }
    }
  }

  async #read(): Promise<void> {
    for (const { image } of await this.#filesIn<{ image: string }>('pulling')) this.#intents.set(image, 0)
    for (const record of await this.#filesIn<PulledRecord>('pulled')) this.#pulled.set(record.imageRef, record)
  }

  async #filesIn<T>(name: 'pulling' | 'pulled'): Promise<T[]> {
    const folder = join(this.#options.folder, name)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const files = (await readdir(folder)).filter((file) => FILE.test(file))
    const read = async (file: string): Promise<T[]> => {
      try {
        const record = await readCheckpoint(join(folder, file), plainForm<T>())
        return record === undefined ? [] : [record]
      } catch (error) {
        this.#options.log.error(error, 'failed to read an image pull record', { file })
        return []
      }
    }
    return (await Promise.all(files.map(read))).flat()
  }

  /** Writes run one at a time, so that the last state is on disk. */
  #serialized(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(() => this.#options.clock.during(work()))
    this.#writing = done.catch(() => undefined)
    return done.finally(() => this.#count())
  }

  #pathOf(folder: 'pulling' | 'pulled', key: string): string {
    return join(this.#options.folder, folder, `sha256-${createHash('sha256').update(key).digest('hex')}`)
  }

  #write(folder: 'pulling' | 'pulled', key: string, content: object): Promise<void> {
    return writeCheckpoint(this.#pathOf(folder, key), plainForm(), content)
  }

  #remove(folder: 'pulling' | 'pulled', key: string): Promise<void> {
    return rm(this.#pathOf(folder, key), { force: true })
  }

  #count(): void {
    const { meters } = this.#options
    meters.family('kubelet_imagemanager_ondisk_pullintents').labels().set(this.#intents.size)
    meters.family('kubelet_imagemanager_ondisk_pulledrecords').labels().set(this.#pulled.size)
  }
}
