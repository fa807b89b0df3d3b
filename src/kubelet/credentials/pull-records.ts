/**
 * Which images this kubelet has pulled, and with whose credentials, so that a pod does not use what others had the right to pull
 * (KEP-2535). Kept where the next kubelet, of either make, finds it: `image_manager/pulling` and `image_manager/pulled`. What is
 * written before a pull says that the image, should it be there, was brought by no one else.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'

import type { Image } from '../cri/runtime-messages.ts'
import { normalImageName, repositoryOf } from '../image-name.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { Credential } from './credential.ts'
import {
  isVerified,
  matchOf,
  mergeCredentials,
  type PullCredentials,
  shownBy,
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
/** Of a secret that changes again and again, and of many that say the same, not all are noted. */
const MOST_NOTED = 100

export class PullRecords {
  readonly #options: PullRecordsOptions
  /** How many pulls go on, by the name of the image; 0: of a kubelet before. */
  readonly #intents = new Map<string, number>()
  /** By the id of the image. */
  readonly #pulled = new Map<string, PulledRecord>()
  #writing: Promise<void> = Promise.resolve()

  private constructor(options: PullRecordsOptions) {
    this.#options = options
  }

  /** `images`: those of the runtime, asked for when a kubelet before ended during a pull. */
  static async open(options: PullRecordsOptions, images: () => Promise<readonly Image[]>): Promise<PullRecords> {
    const records = new PullRecords(options)
    const { clock, log } = options
    await clock.during(records.#read())
    if (records.#intents.size > 0) {
      await images().then(
        (found) => clock.during(records.#conclude(found)),
        (error: unknown) => log.error(error, 'failed to list images'),
      )
    }
    records.#count()
    return records
  }

  /** Before a pull. Rejects when it cannot be kept: then nothing may be pulled. */
  async intend(image: string): Promise<void> {
    const count = this.#intents.get(image)
    this.#intents.set(image, (count ?? 0) + 1)
    if (count !== undefined) return
    await this.#inTurn(() => this.#write('pulling', image, { kind: 'ImagePullIntent', apiVersion: API_VERSION, image }))
  }

  async pulled(image: string, imageRef: string, used: Credential | undefined): Promise<void> {
    await this.#note(image, imageRef, shownBy(used)).then(
      () => this.failed(image),
      // The intent stays, and makes the image ours.
      (error: unknown) => this.#options.log.error(error, 'failed to write image pulled record', { imageRef }),
    )
  }

  /** Nothing came of it. */
  async failed(image: string): Promise<void> {
    const count = this.#intents.get(image) ?? 0
    if (count > 1) return void this.#intents.set(image, count - 1)
    this.#intents.delete(image)
    await this.#inTurn(() => this.#remove('pulling', image)).catch((error: unknown) =>
      this.#options.log.error(error, 'failed to remove image pull intent', { image }),
    )
  }

  /** Whether a pod that shows these must pull the image though it is there. They are asked for only if it hangs on them. */
  async mustPull(image: string, imageRef: string, credentials: () => Promise<readonly Credential[]>): Promise<boolean> {
    const told = (result: string): boolean => {
      this.#options.meters.family('kubelet_imagemanager_image_mustpull_checks_total').labels(result).inc()
      return result === 'mustAuthenticate'
    }
    const record = this.#pulled.get(imageRef)
    const isPulled = record !== undefined || this.#intents.has(image)
    if (!isVerified(this.#options.verification, image, isPulled)) return told('credentialPolicyAllowed')
    const known = record?.credentialMapping?.[repositoryOf(image)]
    if (known === undefined) return told('mustAuthenticate')
    if (known.nodePodsAccessible === true) return told('credentialRecordFound')
    const match = matchOf(known, await credentials())
    if (match === undefined) return told('mustAuthenticate')
    if ((known.kubernetesSecrets ?? []).length < MOST_NOTED) {
      await this.#note(image, imageRef, shownBy(match)).catch((error: unknown) =>
        this.#options.log.error(error, 'failed to write an image pulled record', { image, imageRef }),
      )
    }
    return told('credentialRecordFound')
  }

  /** Forgets images that are not there any more. `untilMs`: when they were listed. */
  async prune(imageRefs: readonly string[], untilMs: number): Promise<void> {
    const there = new Set(imageRefs)
    for (const [imageRef, { lastUpdatedTime }] of this.#pulled) {
      if (there.has(imageRef) || Date.parse(lastUpdatedTime) >= untilMs) continue
      this.#pulled.delete(imageRef)
      await this.#inTurn(() => this.#remove('pulled', imageRef))
    }
  }

  async #note(image: string, imageRef: string, shown: PullCredentials | undefined): Promise<void> {
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
    await this.#inTurn(() =>
      this.#write('pulled', imageRef, { kind: 'ImagePulledRecord', apiVersion: API_VERSION, ...record }),
    )
  }

  /** A kubelet before may have ended between the pull and its record. Who had the right to it is not known then. */
  async #conclude(images: readonly Image[]): Promise<void> {
    const intents = [...this.#intents.keys()]
    for (const { id, repoTags, repoDigests } of images) {
      const names = new Set([...repoDigests, ...repoTags].map(normalImageName))
      for (const image of intents.filter((name) => names.has(normalImageName(name)))) {
        await this.#note(image, id, undefined)
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
        return [JSON.parse(await readFile(join(folder, file), 'utf8')) as T]
      } catch (error) {
        this.#options.log.error(error, 'failed to read an image pull record', { file })
        return []
      }
    }
    return (await Promise.all(files.map(read))).flat()
  }

  /** One after the other: the file says what was meant last. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(() => this.#options.clock.during(work()))
    this.#writing = done.catch(() => undefined)
    return done.finally(() => this.#count())
  }

  #pathOf(folder: 'pulling' | 'pulled', key: string): string {
    return join(this.#options.folder, folder, `sha256-${createHash('sha256').update(key).digest('hex')}`)
  }

  #write(folder: 'pulling' | 'pulled', key: string, content: object): Promise<void> {
    return writeFileAtomically(this.#pathOf(folder, key), JSON.stringify(content), { mode: 0o600 })
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
