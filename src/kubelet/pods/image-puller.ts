/** Images of containers: there already, or pulled, so many at a time, with a pause after each failure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { unlessAborted } from '#lib/abort.ts'
import { createTokenBucket, type TokenBucket } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'

import { nextBackOff, retryMs } from '../back-off.ts'
import type { BackOff } from '../container-runs.ts'
import type { Credential } from '../credentials/credential.ts'
import type { PullRecords } from '../credentials/pull-records.ts'
import { callText, pullText } from '../cri/call-text.ts'
import type { Image } from '../cri/runtime-messages.ts'
import type { Runtime } from '../cri/runtime.ts'
import { nameFault } from '../image-name.ts'
import { type Note, present, pullBackOff, pulled, pullFailed, pulling } from '../kubelet-notes.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { type ImageUser, imageUserOf } from './container-config.ts'
import { type PullFault, pullFault, pullTexts } from './pull-faults.ts'
import { StartError } from './start-error.ts'

export interface PulledImage {
  /** `sha256:…`, of its configuration. */
  readonly ref: string
  readonly user: ImageUser
}

interface Failure extends PullFault {
  readonly backOff: BackOff
  readonly atMs: number
}

export interface ImageWish {
  readonly pod: Pod
  readonly container: Container | EphemeralContainer
  readonly say: (note: Note) => void
  /** Nobody waits for the image any more. */
  readonly signal: AbortSignal
  /** Who to be, best first; asked only when it hangs on them. */
  readonly credentials: () => Promise<readonly Credential[]>
  /** Told how long it took, waiting for others too. */
  readonly pulled?: (span: { readonly startMs: number; readonly endMs: number }) => void
}

export interface PullLimits {
  /** 0: as many as there are. */
  readonly qps: number
  readonly burst: number
  /** How many at a time. */
  readonly parallel: number
}

export interface ImagePullerOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly meters: KubeletMeters
  /** Default: as upstream's. */
  readonly limits?: PullLimits | undefined
  /** Default: who may use an image that is there is nobody's concern. */
  readonly records?: PullRecords | undefined
}

/** What kubelets allow themselves by default. */
const PULLS: PullLimits = { qps: 5, burst: 10, parallel: 1 }

export class ImagePuller {
  readonly #runtime: Runtime
  readonly #clock: Clock
  readonly #meters: KubeletMeters
  readonly #bucket: TokenBucket<string> | undefined
  /** By uid and image. */
  readonly #failures = new Map<string, Failure>()
  readonly #parallel: number
  readonly #records: PullRecords | undefined
  #pulling = 0
  /** Those whose turn comes when another is done, first come first. */
  readonly #waiting: (() => void)[] = []

  constructor({ runtime, clock, meters, limits = PULLS, records }: ImagePullerOptions) {
    this.#runtime = runtime
    this.#clock = clock
    this.#meters = meters
    this.#bucket = limits.qps === 0 ? undefined : createTokenBucket(clock, limits)
    this.#parallel = limits.parallel
    this.#records = records
  }

  /** Fails with `StartError`. */
  async ensure(given: ImageWish): Promise<PulledImage> {
    const wish = { ...given, credentials: once(given.credentials) }
    const { container, say } = wish
    const { image = '', imagePullPolicy = 'IfNotPresent' } = container
    const fault = nameFault(image)
    if (fault !== undefined) {
      const text = `Failed to apply default image tag ${goQuote(image)}: couldn't parse image name ${goQuote(image)}: ${fault}`
      say({ type: 'Warning', reason: 'InspectFailed', message: text })
      throw new StartError('InvalidImageName', text, 'InvalidImageName')
    }
    const found = await this.#find(image, say)
    const isFree = found !== undefined && imagePullPolicy !== 'Always' && (await this.#mayUse(wish, image, found))
    const isWanted = !isFree && (imagePullPolicy !== 'Never' || found !== undefined)
    const requests = this.#meters.family('kubelet_image_manager_ensure_image_requests_total')
    requests.labels(String(found !== undefined), imagePullPolicy.toLowerCase(), String(isWanted)).inc()
    if (isFree) {
      say(present(image, this.#records !== undefined))
      return found
    }
    if (imagePullPolicy === 'Never') {
      const message = `Container image ${goQuote(image)} is not present with pull policy of Never`
      say({ type: 'Warning', reason: 'ErrImageNeverPull', message })
      throw new StartError('ErrImageNeverPull', message, 'ErrImageNeverPull')
    }
    return this.#recorded(wish, image)
  }

  /** When the pull of the image that failed is tried again; undefined when none did. */
  retryAtMs(pod: Pod, image: string): number | undefined {
    const failure = this.#failures.get(keyOf(pod, image))
    return failure === undefined ? undefined : retryMs(failure.backOff, failure.atMs)
  }

  forget({ metadata: { uid = '' } }: Pod): void {
    for (const key of this.#failures.keys()) if (key.startsWith(`${uid}_`)) this.#failures.delete(key)
  }

  async #find(image: string, say: ImageWish['say']): Promise<PulledImage | undefined> {
    try {
      const { image: found } = await this.#runtime.imageStatus({ image: { image } })
      return found === undefined ? undefined : imageOf(found)
    } catch (error) {
      const message = `Failed to inspect image "": ${callText(error)}`
      say({ type: 'Warning', reason: 'InspectFailed', message })
      throw new StartError('ImageInspectError', message, 'ImageInspectError')
    }
  }

  async #mayUse({ credentials }: ImageWish, image: string, { ref }: PulledImage): Promise<boolean> {
    return this.#records === undefined || !(await this.#records.mustPull(image, ref, credentials))
  }

  /** Before anything is pulled it is noted that it will be; and then by whom, or that it was not. */
  async #recorded(wish: ImageWish, image: string): Promise<PulledImage> {
    const records = this.#records
    await records?.intend(image).catch((error: Error) => {
      const why = `failed to record image pull intent: ${error.message}`
      const text = `Failed to record image pull intent for container image ${goQuote(image)}: ${why}`
      throw new StartError(why, text, why)
    })
    try {
      const { used, ...pulledImage } = await this.#pullUnlessWaiting(wish, image)
      await records?.pulled(image, pulledImage.ref, used)
      return pulledImage
    } catch (error) {
      await records?.failed(image)
      throw error
    }
  }

  async #pullUnlessWaiting(wish: ImageWish, image: string): Promise<Pulled> {
    const { pod, say } = wish
    const key = keyOf(pod, image)
    const before = this.#failures.get(key)
    if (before !== undefined && this.#clock.now() < retryMs(before.backOff, before.atMs)) {
      say(pullBackOff(image))
      const text = `Back-off pulling image ${goQuote(image)}: ${before.reason}: ${before.message}`
      throw new StartError('ImagePullBackOff', text, 'ImagePullBackOff')
    }
    try {
      const pulledImage = await this.#pull(wish, image)
      this.#failures.delete(key)
      return pulledImage
    } catch (cause) {
      if (wish.signal.aborted) throw cause
      const error = cause instanceof PullErrors ? cause.message : pullText(cause)
      const fault = pullFault(image, error)
      const atMs = this.#clock.now()
      this.#failures.set(key, { backOff: nextBackOff(before?.backOff, atMs, atMs), atMs, ...fault })
      say(pullFailed(image, error))
      throw new StartError(fault.reason, fault.message, fault.reason)
    }
  }

  async #pull({ say, credentials, signal, pulled: told }: ImageWish, image: string): Promise<Pulled> {
    if (this.#bucket?.tryTake() === false) throw new Error('pull QPS exceeded')
    say(pulling(image))
    const askedMs = this.#clock.elapsed()
    const auths = await credentials()
    const { startedMs, used } = await unlessAborted(
      signal,
      this.#inTurn(async () => {
        signal.throwIfAborted()
        const beganMs = this.#clock.elapsed()
        return { used: await this.#pullAs(image, auths, signal), startedMs: beganMs }
      }),
    )
    const doneMs = this.#clock.elapsed()
    const { image: found } = await this.#runtime.imageStatus({ image: { image } })
    if (found === undefined) throw new Error(`image ${goQuote(image)} was pulled and is not there`)
    const sizeBytes = Number(found.size)
    say(pulled(image, { tookMs: doneMs - startedMs, withWaitingMs: doneMs - askedMs, sizeBytes }))
    told?.({ startMs: askedMs, endMs: doneMs })
    const durations = this.#meters.family('kubelet_image_pull_duration_seconds')
    durations.labels(sizeClass(sizeBytes)).observe((doneMs - startedMs) / 1000)
    return { ...imageOf(found), used }
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pulling >= this.#parallel) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#pulling++
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#pulling--
      else next()
    }
  }

  /** Returns what the registry took. */
  async #pullAs(
    image: string,
    credentials: readonly Credential[],
    signal: AbortSignal,
  ): Promise<Credential | undefined> {
    const tries = credentials.length === 0 ? [undefined] : credentials
    const failures: unknown[] = []
    for (const one of tries) {
      try {
        await this.#runtime.pullImage({ image: { image, userSpecifiedImage: image }, auth: one?.auth }, { signal })
        return one
      } catch (error) {
        failures.push(error)
      }
    }
    throw new PullErrors(failures)
  }
}

interface Pulled extends PulledImage {
  readonly used: Credential | undefined
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined
  return () => (done ??= work())
}

/** What came of each of those one tried to be. */
class PullErrors extends Error {
  override readonly name = 'PullErrors'

  constructor(failures: readonly unknown[]) {
    super(pullTexts(failures), { cause: failures.at(-1) })
  }
}

const MB = 1024 ** 2
const GB = 1024 ** 3
const SIZES: readonly (readonly [above: number, name: string])[] = [
  [100 * GB, 'GT100GB'],
  [60 * GB, '60GB-100GB'],
  [40 * GB, '40GB-60GB'],
  [30 * GB, '30GB-40GB'],
  [20 * GB, '20GB-30GB'],
  [10 * GB, '10GB-20GB'],
  [5 * GB, '5GB-10GB'],
  [GB, '1GB-5GB'],
  [500 * MB, '500MB-1GB'],
  [100 * MB, '100MB-500MB'],
  [10 * MB, '10MB-100MB'],
  [0, '0-10MB'],
]

/** How large an image is, roughly: for a label. */
export function sizeClass(bytes: number): string {
  return SIZES.find(([above]) => bytes > above)?.[1] ?? 'N/A'
}

const keyOf = ({ metadata: { uid = '' } }: Pod, image: string): string => `${uid}_${image}`

function imageOf(image: Image): PulledImage {
  return { ref: image.id, user: imageUserOf(image) }
}
