/**
 * Ensures that images are on the node: checks the pull policy, pulls with limited parallelism, and backs off after
 * failures.
 */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Image } from '#apis/wire/cri.ts'
import { callText, pullText } from '#cri/call-text.ts'
import { nameFault } from '#cri/image-name.ts'
import type { Runtime } from '#cri/runtime.ts'
import { unlessAborted } from '#lib/abort.ts'
import { createTokenBucket, type TokenBucket } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'

import type { Credential } from '../../credentials/credential.ts'
import type { PullRecords } from '../../credentials/pull-records.ts'
import type { KubeletMeters } from '../../metrics/kubelet-families.ts'
import { nextBackOff, retryMs } from '../../pod/back-off.ts'
import type { BackOff } from '../../pod/container-runs.ts'
import { type EventSpec, present, pullBackOff, pulled, pullFailed, pulling } from '../../pod/events.ts'
import { type ImageUser, imageUserOf } from '../container-config.ts'
import { StartError } from '../start-error.ts'
import { type PullFault, pullFault, pullTexts } from './pull-errors.ts'

export interface PulledImage {
  /** `sha256:…` of the image configuration. */
  readonly ref: string
  readonly user: ImageUser
}

interface Failure extends PullFault {
  readonly backOff: BackOff
  readonly atMs: number
}

export interface ImageRequest {
  readonly pod: Pod
  readonly container: Container | EphemeralContainer
  readonly recordEvent: (event: EventSpec) => void
  /** Aborts the pull. */
  readonly signal: AbortSignal
  /** Credentials, best first; called only when they are needed. */
  readonly credentials: () => Promise<readonly Credential[]>
  /** Called with the time span of the pull, including the time in the queue. */
  readonly onPulled?: (span: { readonly startMs: number; readonly endMs: number }) => void
}

export interface PullLimits {
  /** 0 means no limit. */
  readonly qps: number
  readonly burst: number
  /** Maximum number of pulls at a time. */
  readonly parallel: number
}

export interface ImagePullerOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly meters: KubeletMeters
  /** Default: upstream's limits. */
  readonly limits?: PullLimits | undefined
  /** Default: access to present images is not verified. */
  readonly records?: PullRecords | undefined
}

/** Upstream's defaults. */
const PULLS: PullLimits = { qps: 5, burst: 10, parallel: 1 }

export class ImagePuller {
  readonly #runtime: Runtime
  readonly #clock: Clock
  readonly #meters: KubeletMeters
  readonly #bucket: TokenBucket<string> | undefined
  /** By pod UID and image. */
  readonly #failures = new Map<string, Failure>()
  readonly #parallel: number
  readonly #records: PullRecords | undefined
  #pulling = 0
  /** Resolvers of queued pulls, first in, first out. */
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
  async ensure(given: ImageRequest): Promise<PulledImage> {
    const request = { ...given, credentials: once(given.credentials) }
    const { container, recordEvent } = request
    const { image = '', imagePullPolicy = 'IfNotPresent' } = container
    const fault = nameFault(image)
    if (fault !== undefined) {
      const text = `Failed to apply default image tag ${goQuote(image)}: couldn't parse image name ${goQuote(image)}: ${fault}`
      recordEvent({ type: 'Warning', reason: 'InspectFailed', message: text })
      throw new StartError('InvalidImageName', text, 'InvalidImageName')
    }
    const found = await this.#find(image, recordEvent)
    const isFree = found !== undefined && imagePullPolicy !== 'Always' && (await this.#mayUse(request, image, found))
    const isWanted = !isFree && (imagePullPolicy !== 'Never' || found !== undefined)
    const requests = this.#meters.family('kubelet_image_manager_ensure_image_requests_total')
    requests.labels(String(found !== undefined), imagePullPolicy.toLowerCase(), String(isWanted)).inc()
    if (isFree) {
      recordEvent(present(image, this.#records !== undefined))
      return found
    }
    if (imagePullPolicy === 'Never') {
      const message = `Container image ${goQuote(image)} is not present with pull policy of Never`
      recordEvent({ type: 'Warning', reason: 'ErrImageNeverPull', message })
      throw new StartError('ErrImageNeverPull', message, 'ErrImageNeverPull')
    }
    return this.#recorded(request, image)
  }

  /** When the failed pull of the image may be retried; undefined when none has failed. */
  retryAtMs(pod: Pod, image: string): number | undefined {
    const failure = this.#failures.get(keyOf(pod, image))
    return failure === undefined ? undefined : retryMs(failure.backOff, failure.atMs)
  }

  forget({ metadata: { uid = '' } }: Pod): void {
    for (const key of this.#failures.keys()) if (key.startsWith(`${uid}_`)) this.#failures.delete(key)
  }

  async #find(image: string, recordEvent: ImageRequest['recordEvent']): Promise<PulledImage | undefined> {
    try {
      const { image: found } = await this.#runtime.imageStatus({ image: { image } })
      return found === undefined ? undefined : imageOf(found)
    } catch (error) {
      const message = `Failed to inspect image "": ${callText(error)}`
      recordEvent({ type: 'Warning', reason: 'InspectFailed', message })
      throw new StartError('ImageInspectError', message, 'ImageInspectError')
    }
  }

  async #mayUse({ credentials }: ImageRequest, image: string, { ref }: PulledImage): Promise<boolean> {
    return this.#records === undefined || !(await this.#records.mustPull(image, ref, credentials))
  }

  /** Records the intent before the pull, and its outcome afterwards. */
  async #recorded(request: ImageRequest, image: string): Promise<PulledImage> {
    const records = this.#records
    await records?.intend(image).catch((error: Error) => {
      const why = `failed to record image pull intent: ${error.message}`
      const text = `Failed to record image pull intent for container image ${goQuote(image)}: ${why}`
      throw new StartError(why, text, why)
    })
    try {
      const { used, ...pulledImage } = await this.#pullUnlessWaiting(request, image)
      await records?.pulled(image, pulledImage.ref, used)
      return pulledImage
    } catch (error) {
      await records?.failed(image)
      throw error
    }
  }

  async #pullUnlessWaiting(request: ImageRequest, image: string): Promise<Pulled> {
    const { pod, recordEvent } = request
    const key = keyOf(pod, image)
    const before = this.#failures.get(key)
    if (before !== undefined && this.#clock.now() < retryMs(before.backOff, before.atMs)) {
      recordEvent(pullBackOff(image))
      const text = `Back-off pulling image ${goQuote(image)}: ${before.reason}: ${before.message}`
      throw new StartError('ImagePullBackOff', text, 'ImagePullBackOff')
    }
    try {
      const pulledImage = await this.#pull(request, image)
      this.#failures.delete(key)
      return pulledImage
    } catch (cause) {
      if (request.signal.aborted) throw cause
      const error = cause instanceof PullErrors ? cause.message : pullText(cause)
      const fault = pullFault(image, error)
      const atMs = this.#clock.now()
      this.#failures.set(key, { backOff: nextBackOff(before?.backOff, atMs, atMs), atMs, ...fault })
      recordEvent(pullFailed(image, error))
      throw new StartError(fault.reason, fault.message, fault.reason)
    }
  }

  async #pull({ recordEvent, credentials, signal, onPulled }: ImageRequest, image: string): Promise<Pulled> {
    if (this.#bucket?.tryTake() === false) throw new Error('pull QPS exceeded')
    recordEvent(pulling(image))
    const requestedMs = this.#clock.elapsed()
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
    if (found === undefined) throw new Error(`image ${goQuote(image)} was pulled but is missing`)
    const sizeBytes = Number(found.size)
    recordEvent(pulled(image, { tookMs: doneMs - startedMs, withWaitingMs: doneMs - requestedMs, sizeBytes }))
    onPulled?.({ startMs: requestedMs, endMs: doneMs })
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

  /** Returns the credential that the registry accepted. */
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

/** The failures of all tried credentials. */
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

/** The size bucket used as a metric label. */
export function sizeClass(bytes: number): string {
  return SIZES.find(([above]) => bytes > above)?.[1] ?? 'N/A'
}

const keyOf = ({ metadata: { uid = '' } }: Pod, image: string): string => `${uid}_${image}`

function imageOf(image: Image): PulledImage {
  return { ref: image.id, user: imageUserOf(image) }
}
